"""A user's own chat workflow and its tool: an app for workers of any number of processes."""

from typing import Any

from temporalio import workflow

from agentmem import agent, tool, working_memory
from agentmem.agent.api import Assistant


@tool(retries=2)  # a call that dies with its worker is made again
def look_up(page: int) -> str:
    """Read a page of 3,000 characters."""
    return f"page {page}: ".ljust(3_000, "-")


@workflow.defn
class OwnChat:
    """Talks by updates until it is told to end."""

    def __init__(self) -> None:
        self._memory = working_memory()
        self._assistant: Assistant | None = None
        self._ended = False

    @workflow.run
    async def run(self, *_: Any) -> list[str]:
        """Return the ids of the conversation's messages."""
        self._assistant = await agent("Be brief.", working_memory=self._memory, tools=["look_up"])
        await workflow.wait_condition(lambda: self._ended)
        await workflow.wait_condition(workflow.all_handlers_finished)
        return self._memory.keys()

    @workflow.update
    async def send(self, text: str) -> str:
        """Answer a message."""
        await workflow.wait_condition(lambda: self._assistant is not None)
        assert self._assistant
        return await self._assistant(text)

    @workflow.signal
    def end(self) -> None:
        """End it."""
        self._ended = True
