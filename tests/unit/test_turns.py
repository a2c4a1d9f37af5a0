"""Tests of a turn and its batch: what they say of failures, and what they leave behind."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from agentmem.agent.approvals import Approval, Approvals
from agentmem.agent.tool_batch import Batch
from agentmem.contracts import Answer, Definition, ToolSpec
from agentmem.error_text import TEXT_BYTES, describe
from agentmem.errors import ConfigurationError, TurnFailed
from agentmem.memory.references import in_memory, named, postgresql, sqlite
from agentmem.memory.working import WorkingMemory
from agentmem.messages import Message, Role, ToolCall
from agentmem.session.turns import OUTCOMES_BYTES, TurnOutcome, Turns
from agentmem.wire import encoded_size


class Asleep(Approvals):
    """People who never answer."""

    async def ask(self, call: ToolCall, memory: str, patience: timedelta = timedelta()) -> Approval:
        """Wait for ever."""
        return await asyncio.get_running_loop().create_future()


async def nothing() -> None:
    """Do nothing on a pause."""


def waiting_batch() -> tuple[WorkingMemory, Batch]:
    """Return a batch whose one call waits for a person."""
    memory = WorkingMemory()
    memory.begin_turn("delete it")
    calls = [ToolCall(id="t1.s1.c0", name="delete")]
    memory.store(Message(id=memory.reserve(), role=Role.ASSISTANT, calls=calls, turn=1))
    definition = Definition(name="a", model="m", tools=[ToolSpec(name="delete", approval=True)])
    return memory, Batch(definition, memory, calls, approvals=Asleep(), on_pause=nothing)


async def test_a_call_that_never_began_is_not_said_to_have_taken_effect() -> None:
    """A turn cancelled while a person is asked did not run the tool, and says so."""
    memory, batch = waiting_batch()
    task = asyncio.create_task(batch.run(1, 10))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    result = memory.messages()[-1]
    assert result.role is Role.TOOL_RESULT
    assert result.text == "Not run: the turn was cancelled before it began."


async def test_an_evicted_batch_touches_nothing() -> None:
    """A coroutine that is collected adds no result: its workflow is gone, or another runs."""
    memory, batch = waiting_batch()
    before = memory.messages()
    others = asyncio.all_tasks()
    run = batch.run(1, 10)
    run.send(None)
    run.close()
    assert memory.messages() == before
    for task in asyncio.all_tasks() - others:
        task.cancel()


@pytest.mark.parametrize(
    ("long", "says"),
    [
        ({"answer": Answer(turn=1, text="x" * OUTCOMES_BYTES)}, "was answered"),
        ({"problem": "x" * OUTCOMES_BYTES}, "failed"),
    ],
)
def test_an_outcome_too_long_to_keep_says_whether_the_turn_failed(long: Any, says: str) -> None:
    """Sent again after a change of runs, a turn is told for what it was."""
    turns = Turns()
    last = TurnOutcome(id="t2", answer=Answer(turn=2, text="yes"))
    turns.restore(2, [TurnOutcome(id="t1", **long), last])
    handed_on = turns.outcomes()
    assert [outcome.id for outcome in handed_on] == ["t1", "t2"]
    turns.restore(2, handed_on)
    assert turns.outcome("t2").text == "yes"
    with pytest.raises(TurnFailed, match=f"this turn {says}"):
        turns.outcome("t1")


def test_of_errors_that_came_together_the_first_is_told() -> None:
    """Parallel tool calls fail as a group, whose own text says nothing."""
    inner = ExceptionGroup("of tools", [ValueError("no such number"), KeyError("b")])
    assert describe(ExceptionGroup("of all", [inner])) == "ValueError: no such number"


def test_an_error_is_described_in_4_kib() -> None:
    """Its text stands in a failure more than once, and over 2 MB a workflow hangs."""
    text = describe(ValueError("\x00" * 1_000_000))
    assert text.startswith("ValueError: ")
    assert encoded_size(text) <= TEXT_BYTES
    assert "6000012 bytes in full" in text


@pytest.mark.parametrize("make", [sqlite, named, in_memory, postgresql])
@pytest.mark.parametrize("value", [None, 5, b"x"])
def test_references_take_text(make: Any, value: Any) -> None:
    """A reference to a store takes text and nothing else."""
    if make is postgresql and value is None:
        assert postgresql(value).identity == "postgresql"
        return
    with pytest.raises(ConfigurationError, match=make.__name__):
        make(value)
