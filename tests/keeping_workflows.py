"""Workflows for tests of what is kept of a conversation; what they import is light."""

from temporalio import workflow

from agentmem import agent, long_term_memory, named, postgresql, sqlite, working_memory
from agentmem.agent.api import Assistant


@workflow.defn
class Keeping:
    """Talks for a turn, appends what was said, and forgets what the user said."""

    @workflow.run
    async def run(self, scope: str, said: str, forgets: bool) -> str:
        """Return the id of the user's message."""
        memory = working_memory()
        facts = long_term_memory(sqlite("facts.db"), "friend", scope)
        friend = await agent("Be a friend.", working_memory=memory, long_term_memory=facts)
        await friend(said)
        await memory.append_transcript(facts.store)
        first, *_ = memory.keys()
        if forgets:
            await memory.forget(first)
            await memory.append_transcript(facts.store)
            await memory.append_transcript(facts.store)
        return first


@workflow.defn
class Chatting:
    """Talks by updates, and appends what was said after each answer."""

    def __init__(self) -> None:
        self._memory = working_memory()
        self._friend: Assistant | None = None
        self._ended = False

    @workflow.run
    async def run(self, scope: str) -> None:
        """Talk until it is told to end."""
        self._facts = long_term_memory(sqlite("facts.db"), "friend", scope)
        self._friend = await agent(
            "Be a friend.", working_memory=self._memory, long_term_memory=self._facts
        )
        await workflow.wait_condition(lambda: self._ended)

    @workflow.update
    async def say(self, text: str) -> int:
        """Answer; return how many messages the transcript has."""
        await workflow.wait_condition(lambda: self._friend is not None)
        assert self._friend is not None
        await self._friend(text)
        return await self._memory.append_transcript(self._facts.store)

    @workflow.signal
    def end(self) -> None:
        """End it."""
        self._ended = True


@workflow.defn
class Confiding:
    """Keeps facts in two stores whose addresses are secrets; one of them fails at first."""

    @workflow.run
    async def run(self, scope: str, said: str) -> str:
        """Return what the model answers."""
        leaky = long_term_memory(named("leaky"), "friend", scope)
        await leaky.memorize("city", "Oslo")
        memory = working_memory()
        facts = long_term_memory(postgresql(), "friend", scope)
        await facts.memorize("city", "Oslo")
        friend = await agent("Be a friend.", working_memory=memory, long_term_memory=facts)
        answer = await friend(said)
        await memory.append_transcript(facts.store)
        return answer


@workflow.defn
class Storing:
    """Writes facts by code and by a model's tools, forgets a whole scope, and keeps its words."""

    @workflow.run
    async def run(self, scope: str, said: str) -> str:
        """Return what the model answers."""
        memory = working_memory()
        facts = long_term_memory(sqlite("facts.db"), "friend", scope)
        await facts.memorize("old", 1)
        await facts.forget()
        await facts.memorize("kept", 1)
        await facts.memorize("gone", 1)
        await facts.forget("gone")
        friend = await agent("Be a friend.", working_memory=memory, long_term_memory=facts)
        answer = await friend(said)
        await memory.append_transcript(facts.store)
        return answer
