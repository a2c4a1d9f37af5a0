"""Workflows of a user's own, in a light module: the sandbox imports it for each run."""

import asyncio
from typing import Any

from temporalio import workflow

from agentmem import DreamLimits, agent, in_memory, long_term_memory, sqlite, working_memory
from agentmem.agent.approvals import approvals
from agentmem.contracts import ScopeRef
from agentmem.errors import TurnFailed


@workflow.defn
class Own:
    """Asks several questions with one agent; what it says and what it knows is the result."""

    @workflow.run
    async def run(self, questions: list[str], options: dict[str, Any]) -> dict[str, Any]:
        """Ask one after another."""
        fired: list[list[Any]] = []

        def broken(name: str, value: Any) -> None:
            raise ValueError("a bug in a hook")

        async def note(name: str, value: Any) -> None:
            fired.append([name, value])

        memory = working_memory(**options.pop("memory", {}))
        assistant = await agent(
            "Be brief.", working_memory=memory, on_complete=[broken, note], **options
        )
        answers = [await assistant(question) for question in questions]
        return {"answers": answers, "recall": memory.recall(), "fired": fired}


@workflow.defn
class Kept:
    """Asks several questions, failed turns and all, and carries everything to a transcript."""

    @workflow.run
    async def run(self, questions: list[str], memory: dict[str, Any], scope: str) -> list[str]:
        """Return the answers, and what failed in place of those that there are not."""
        conversation = working_memory(**memory)
        assistant = await agent("Be brief.", working_memory=conversation)
        answers: list[str] = []
        for question in questions:
            try:
                answers.append(await assistant(question))
            except TurnFailed as error:
                answers.append(f"failed: {error.message}")
        store = ScopeRef(provider="in_memory:kept", agent="own", scope=scope)
        await conversation.append_transcript(store)
        return answers


@workflow.defn
class Relay:
    """Asks two questions a run, and goes on in the next with what was said."""

    @workflow.run
    async def run(self, questions: list[str], state: bytes | None = None) -> list[dict[str, str]]:
        """Return the whole conversation."""
        memory = working_memory(max_tokens=50_000, restore=state)
        assistant = await agent("Be brief.", working_memory=memory)
        for question in questions[:2]:
            await assistant(question)
        if questions[2:]:
            workflow.continue_as_new(args=[questions[2:], memory.dump()])
        return memory.recall()


@workflow.defn
class Anew:
    """Begins a conversation anew in each run, and keeps what was said."""

    @workflow.run
    async def run(self, said: list[str], store: ScopeRef) -> None:
        """Say one thing a run."""
        memory = working_memory()
        await memory.memorize("user", said[0])
        await memory.append_transcript(store)
        if said[1:]:
            workflow.continue_as_new(args=[said[1:], store])


@workflow.defn
class TwoMemories:
    """Two agents with a conversation each, and one without."""

    @workflow.run
    async def run(self, question: str) -> list[str]:
        """Ask all of them."""
        first = await agent("First.", working_memory=working_memory())
        second = await agent("Second.", working_memory=working_memory())
        third = await agent("Third.")
        asked = [first, second, third, first, third]
        return [await assistant(question) for assistant in asked]


@workflow.defn
class WithFacts:
    """An agent with long-term memory, given as such and as tools alone."""

    @workflow.run
    async def run(self, scope: str, as_tools: bool) -> Any:
        """Let the model store a fact, then read it in code."""
        memory = long_term_memory(provider=in_memory(), agent="own", scope=scope)
        if as_tools:
            assistant = await agent("Remember.", tools=[*memory.as_tools()])
        else:
            assistant = await agent(
                "Remember.", tools=[*memory.as_tools()], long_term_memory=memory
            )
        await assistant("my city is Oslo")
        return await memory.recall("city")


@workflow.defn
class Nonsense:
    """Makes what the library must refuse: the workflow fails, and never hangs."""

    @workflow.run
    async def run(self, what: str) -> None:
        """Do one wrong thing."""
        wrong: dict[str, Any] = {"window": 0, "restore": {"messages": []}}
        if what in wrong:
            working_memory(**{what: wrong[what]})
        elif what == "scope":
            long_term_memory(provider=in_memory(), agent="a", scope="")
        elif what == "client":
            long_term_memory(provider="postgresql://u:p@h/d", agent="a", scope="s")  # pyright: ignore[reportArgumentType]
        elif what == "blank":
            await (await agent("x"))("  ")
        elif what == "context":
            await (await agent("x"))("y" * 600_000, context="z" * 600_000)
        elif what == "limits":
            DreamLimits(keys=0)
        elif what == "memorize":
            await working_memory().memorize("user", None)  # pyright: ignore[reportArgumentType]
        elif what == "sqlite":
            sqlite(None)  # pyright: ignore[reportArgumentType]
        elif what == "value":
            ScopeRef.model_validate({"agent": 5})


@workflow.defn
class WrongAgent:
    """Makes an agent with arguments that make no sense."""

    @workflow.run
    async def run(self, options: dict[str, Any]) -> None:
        """Make it."""
        given: dict[str, Any] = {"system_prompt": "x", **options}
        await agent(**given)


@workflow.defn
class Impatient:
    """Waits two seconds for an answer, then asks again."""

    @workflow.run
    async def run(self) -> list[str]:
        """Return what came of both, and the conversation's texts."""
        memory = working_memory()
        assistant = await agent("Be brief.", working_memory=memory)
        try:
            first = await asyncio.wait_for(assistant("one"), 2)
        except TimeoutError:
            first = "timeout"
        second = await assistant("two")
        return [first, second, *(entry["content"] for entry in memory.recall())]


@workflow.defn
class AtOnce:
    """Asks several questions at once, of two agents on one conversation."""

    @workflow.run
    async def run(self, questions: list[str]) -> dict[str, Any]:
        """Return the answers, the conversation's texts, and how many requests were counted."""
        memory = working_memory()
        assistants = [await agent(who, working_memory=memory) for who in ("First.", "Second.")]
        asked = [assistants[i % 2](question) for i, question in enumerate(questions)]
        answers = await asyncio.gather(*asked)
        texts = [entry["content"] for entry in memory.recall()]
        return {
            "answers": answers,
            "texts": texts,
            "requests": sum(assistant.usage.requests for assistant in assistants),
        }


@workflow.defn
class CancelledHook:
    """Has a hook that ends in a cancellation of its own."""

    @workflow.run
    async def run(self) -> list[str]:
        """Return the answer, and what the hook after it was told."""
        told: list[str] = []

        async def gives_up(name: str, value: Any) -> None:
            raise asyncio.CancelledError

        def note(name: str, value: Any) -> None:
            told.append(value)

        assistant = await agent("Be brief.", on_complete=[gives_up, note])
        return [await assistant("hi"), *told]


@workflow.defn
class Asking:
    """Asks one question a run with a tool that needs approval, and shows who it waits for."""

    @workflow.init
    def __init__(self, more: int) -> None:
        self._waiting = approvals()

    @workflow.run
    async def run(self, more: int) -> str:
        """Return the last run's answer."""
        assistant = await agent("Be brief.", tools=["wipe"])
        answer = await assistant("go")
        if more:
            workflow.continue_as_new(more - 1)
        return answer

    @workflow.query
    def status(self) -> dict[str, Any]:
        """Return the calls that wait, as the `agent` workflow's query of this name does."""
        return {"approvals": self._waiting.waiting()}
