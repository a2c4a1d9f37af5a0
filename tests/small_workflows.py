"""Workflows for tests of one activity, apart from the tests: what a workflow imports is light."""

from typing import Any

from temporalio import workflow

from agentmem import agent
from agentmem.contracts import ToolRun, ToolSpec
from agentmem.errors import AgentMemError, InvalidFact
from agentmem.memory.long_term import long_term_memory
from agentmem.memory.references import named, sqlite
from agentmem.messages import Message, ToolCall
from agentmem.policies import tool_options

Calls = list[tuple[str, list[Any]]]
"""Methods of a long-term memory, with their arguments."""


@workflow.defn
class OneCall:
    """Runs one tool call, as the agent loop does."""

    @workflow.run
    async def run(self, spec: ToolSpec) -> Message:
        """Return the call's result."""
        run = ToolRun(reply="m2", call=ToolCall(id="t1.s1.c0", name=spec.name), turn=1)
        return await workflow.execute_activity(
            spec.name, run, result_type=Message, **tool_options(spec)
        )


@workflow.defn
class Remembering:
    """Calls methods of a long-term memory, one after another."""

    @workflow.run
    async def run(self, agent: str, provider: str, calls: Calls) -> list[Any]:
        """Return what each call gave; of one of agentmem's errors, its type and message."""
        reference = named(provider) if provider else sqlite("facts.db")
        memory = long_term_memory(provider=reference, agent=agent, scope="user-1")
        results: list[Any] = []
        for method, arguments in calls:
            try:
                results.append(await getattr(memory, method)(*arguments))
            except AgentMemError as error:
                results.append([error.type, error.message])
        return results


@workflow.defn
class Planning:
    """Stores facts that end, and recalls what is known of them."""

    @workflow.run
    async def run(self, untils: dict[str, str]) -> list[Any]:
        """Store each key until its day; return all details, one key's, and a wrong day's error."""
        memory = long_term_memory(sqlite("facts.db"), "assistant", "user-1")
        for key, until in untils.items():
            await memory.memorize(key, f"the {key}", until=until)
        wrong = ""
        try:
            await memory.memorize("lunch", 1, until="tomorrow")
        except InvalidFact as error:
            wrong = error.message
        everything = await memory.recall(details=True)
        return [everything, await memory.recall("visit", details=True), wrong]


@workflow.defn
class Unguarded:
    """Stores a value and lets errors pass."""

    @workflow.run
    async def run(self, key: str) -> None:
        """Store under the key."""
        await long_term_memory(named("stalled"), "a", "s").memorize(key, 1)


@workflow.defn
class Forgetful:
    """Has a bug, which no retry of its task mends."""

    @workflow.run
    async def run(self) -> None:
        """Fail the workflow task."""
        raise KeyError("the bug")


@workflow.defn
class Patient:
    """Takes updates for as long as it is let."""

    @workflow.run
    async def run(self) -> None:
        """Wait."""
        await workflow.wait_condition(lambda: False)

    @workflow.update
    async def say(self, text: str) -> int:
        """Return the length of a text."""
        return len(text)


@workflow.defn
class Handed:
    """Goes on as another workflow, with arguments that a newer version may have written."""

    @workflow.run
    async def run(self, handed: list[Any]) -> None:
        """Hand the rest on; text that is the state of a run is given as hexadecimal."""
        kind, request, *state = handed
        workflow.continue_as_new(
            args=[request, *(bytes.fromhex(one) for one in state)], workflow=kind
        )


@workflow.defn
class Unknowing:
    """Makes an agent with a tool that no worker has."""

    @workflow.run
    async def run(self) -> None:
        """Make it."""
        await agent("Be brief.", tools=["no_such_tool"])


@workflow.defn
class Starts:
    """Starts a dream as a child and waits for it."""

    @workflow.run
    async def run(self, name: str, request: dict[str, Any]) -> Any:
        """Return what the dream gave."""
        return await workflow.execute_child_workflow("agent_dream", request, id=name)
