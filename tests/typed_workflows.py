"""Workflows whose agents answer in a form; apart, for the sandbox imports their module."""

from typing import Any

from pydantic import BaseModel, field_validator
from temporalio import workflow

from agentmem import agent, working_memory
from tests.tools import ping


class City(BaseModel):
    """A city, with a rule that no JSON schema tells."""

    name: str
    people: int = 0

    @field_validator("name")
    @classmethod
    def _is_a_name(cls, value: str) -> str:
        if not value.istitle():
            raise ValueError("a name begins with a capital")
        return value


@workflow.defn
class TypedAnswers:
    """Asks for a city once for each question."""

    @workflow.run
    async def run(self, questions: list[str]) -> list[Any]:
        """Return the answers' types and values, what the hooks saw, and the conversation."""
        seen: list[Any] = []
        memory = working_memory()
        assistant = await agent(
            "Name cities.",
            working_memory=memory,
            tools=[ping],
            response_format=City,
            on_complete=[lambda _, value: seen.append(type(value).__name__)],
        )
        answers = [await assistant(question) for question in questions]
        return [[city.model_dump() for city in answers], seen, memory.recall()]


@workflow.defn
class WrongFormats:
    """Makes an agent with a response format that makes no sense."""

    @workflow.run
    async def run(self, given: Any) -> None:
        """Make it."""
        await agent("x", response_format=given)
