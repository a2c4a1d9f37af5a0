"""Bounds of a turn: tool calls at a time, tokens, minutes; and tools that fail or are slow."""

from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client, WorkflowFailureError, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError

from agentmem.testing import Reply, Request, call, fail, hang, reply
from tests.counted_tools import free, get_temp, most, paged, unlucky
from tests.stack import stack

TOOLS = '[agents.plain]\ntools = ["paged", "free", "get_temp", "unlucky"]\n'
ALL: dict[str, Any] = {"extra": [paged, free, get_temp, unlucky]}


def message(error: WorkflowUpdateFailedError | WorkflowFailureError) -> str:
    """Return what the caller reads."""
    assert isinstance(error.cause, ApplicationError)
    assert error.cause.type == "TurnFailed"
    return error.cause.message


@pytest.mark.parametrize(("bound", "together"), [("", 6), ("max_concurrent_tools = 3", 3)])
async def test_calls_at_a_time_are_bounded_by_agent_and_by_tool(
    client: Client, tmp_path: Path, bound: str, together: int
) -> None:
    """Two of a tool that takes two callers; as many in all as the agent allows."""
    most.clear()
    script = [reply(calls=[call("paged")] * 4 + [call("free")] * 4), reply("done")]
    async with stack(client, tmp_path, script, agents=TOOLS + bound, **ALL) as s:
        handle = await s.start(agent="plain", message="go")
        assert await handle.result() == "done"
        assert most["paged"] == 2
        assert 2 < most["all"] <= together
        s.model.assert_strict()


async def test_results_come_in_call_order_whatever_takes_longer(
    client: Client, tmp_path: Path
) -> None:
    """Two calls of one tool run together; each result is its own, in call order."""
    script = [
        reply(calls=[call("get_temp", city="Oslo"), call("get_temp", city="Cairo")]),
        reply("done"),
    ]
    async with stack(client, tmp_path, script, agents=TOOLS, **ALL) as s:
        handle = await s.start(agent="plain", message="go")
        assert await handle.result() == "done"
        shown = s.model.requests[1].messages
        ids = [entry["id"] for entry in shown[-3]["tool_calls"]]
        assert [(m["tool_call_id"], m["content"]) for m in shown[-2:]] == [
            (ids[0], "Oslo: 20"),
            (ids[1], "Cairo: 20"),
        ]
        gap = s.model.requests[1].at - s.model.requests[0].at
        assert gap >= 3
        s.model.assert_strict()


async def test_a_tool_that_always_fails_runs_once_a_call(client: Client, tmp_path: Path) -> None:
    """Without a policy of the user's there is one attempt, then the model reads the error."""
    most.clear()
    script = [reply(calls=[call("unlucky")]), reply("too bad")]
    async with stack(client, tmp_path, script, agents=TOOLS, **ALL) as s:
        handle = await s.start(agent="plain", message="go")
        assert await handle.result() == "too bad"
        assert most["unlucky"] == 1
        assert s.model.requests[1].messages[-1]["content"] == "RuntimeError: no luck"


async def test_a_turn_has_a_budget_and_a_session_another(client: Client, tmp_path: Path) -> None:
    """Over one the turn fails, its calls answered; over the other every later turn does."""
    agents = TOOLS + "turn_budget = 1_000\nbudget = 1_500\n"

    def script(request: Request) -> Reply:
        usage = {"prompt_tokens": 600, "completion_tokens": 10}
        if request.messages[-1]["content"] == "much":
            usage = {"prompt_tokens": 900, "completion_tokens": 100}
            return reply(calls=[call("free")], usage=usage)
        return reply("fine", usage=usage)

    async with stack(client, tmp_path, script, agents=agents, **ALL) as s:
        handle = await s.start(agent="plain", session=True)
        with pytest.raises(WorkflowUpdateFailedError) as caught:
            await handle.execute_update("send", "much")
        assert "budget of a turn, 1000 tokens, is used up (1000 spent)" in message(caught.value)
        assert await handle.execute_update("send", "little") == "fine"
        with pytest.raises(WorkflowUpdateFailedError) as caught:
            await handle.execute_update("send", "little")
        assert "the budget, 1500 tokens, is used up (1610 spent)" in message(caught.value)
        assert len(s.model.requests) == 2
        assert (await handle.query("usage"))["prompt"] == 1500
        await handle.execute_update("end")
        s.model.assert_strict()


async def test_retries_end_with_the_turns_time(client: Client, tmp_path: Path) -> None:
    """An overload that does not pass is retried within the turn's minutes; the error names it."""
    agents = "[agents.plain]\nturn_minutes = 0.05\n"
    async with stack(client, tmp_path, [fail(529)] * 9, agents=agents) as s:
        handle = await s.start(agent="plain", message="go")
        with pytest.raises(WorkflowFailureError) as caught:
            await handle.result()
        assert "openai/test-model is unavailable" in message(caught.value)
        assert 2 <= len(s.model.requests) <= 3


async def test_a_turn_that_ends_in_the_middle_of_a_call_says_what_bounds_it(
    client: Client, tmp_path: Path
) -> None:
    """Temporal's own timeout names neither model nor setting; the turn's error does."""
    agents = "[agents.plain]\nturn_minutes = 0.05\n"
    async with stack(client, tmp_path, [hang()] * 3, agents=agents) as s:
        handle = await s.start(agent="plain", message="go")
        with pytest.raises(WorkflowFailureError) as caught:
            await handle.result()
        text = "the model openai/test-model, turn_minutes 0.05: it did not end in time"
        assert text in message(caught.value)
