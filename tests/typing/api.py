"""The public API as users type it: only type-checked, never run."""

from typing import assert_type

from pydantic import BaseModel

from agentmem import (
    Assistant,
    LongTermMemory,
    MemoryProvider,
    TransactionalProvider,
    WorkingMemory,
    agent,
    dream,
    in_memory,
    long_term_memory,
    postgresql,
    provider,
    sqlite,
    tool,
    working_memory,
)
from agentmem.wire import JSONValue


@tool
def plain(city: str) -> str:
    """A tool keeps its type."""
    return city


@tool(approval=True, retries=2)
async def configured(number: int) -> list[int]:
    """So does one with settings."""
    return [number]


assert_type(plain("Oslo"), str)


@provider("mine")
class Mine:
    """A store of a user's own, with the five methods."""

    async def memorize(self, agent: str, scope: str, key: str, value: JSONValue) -> None: ...

    async def recall(self, agent: str, scope: str, key: str | None = None) -> JSONValue: ...

    async def forget(self, agent: str, scope: str, key: str | None = None) -> None: ...

    async def keys(self, agent: str, scope: str) -> list[str]:
        return []

    async def scopes(self, agent: str) -> list[str]:
        return []


store: MemoryProvider = Mine()


class Weather(BaseModel):
    """A response format."""

    city: str


async def use(transactional: TransactionalProvider) -> None:
    """The names of the first page of the documents."""
    wm = working_memory(window=20, max_tokens=50_000)
    assert_type(wm, WorkingMemory)
    assert_type(await wm.memorize("user", "hi"), str)
    assert_type(wm.recall(), list[dict[str, str]])
    assert_type(wm.keys(), list[str])
    ltm = long_term_memory(provider=sqlite("a.db"), agent="a", scope="s")
    assert_type(ltm, LongTermMemory)
    await ltm.memorize("key", {"any": ["json", 1, None]}, until="2026-05-09")
    await ltm.recall("key", details=True)
    for reference in (in_memory(), postgresql(), postgresql("env:URL")):
        LongTermMemory(reference, "a", "s")
    assistant = await agent(
        "You are helpful.",
        model="ollama/llama3.2",
        tools=[plain, configured, *ltm.as_tools(), "by_name"],
        working_memory=wm,
        long_term_memory=ltm,
        on_complete=[dream(working_memory=wm, long_term_memory=ltm), print],
    )
    assert_type(assistant, Assistant)
    assert_type(await assistant("question", context="before"), str)
    typed = await agent("You are helpful.", response_format=Weather, name="typed")
    assert_type(await typed("question"), Weather)
    loose = await agent("You are helpful.", response_format={"type": "object"})
    assert_type(await loose("question"), JSONValue)
    also_a_provider: MemoryProvider = transactional
    await also_a_provider.keys("a", "s")
