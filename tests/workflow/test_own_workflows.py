"""The same loop in workflows of a user's own."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowFailureError
from temporalio.exceptions import ApplicationError, CancelledError

from agentmem.testing import Request, call, fail, hang, reply
from tests.own_workflows import (
    AtOnce,
    CancelledHook,
    Impatient,
    Nonsense,
    Own,
    TwoMemories,
    WithFacts,
    WrongAgent,
)
from tests.stack import eventually, last_user_text, stack, task_failures
from tests.tools import delete_file, ping

OWN = [
    AtOnce,
    CancelledHook,
    Impatient,
    Nonsense,
    Own,
    TwoMemories,
    WithFacts,
    WrongAgent,
    ping,
    delete_file,
]


def echo(request: Request) -> Any:
    """Answer with what the user said last."""
    return reply(f"re: {last_user_text(request.messages)}")


async def test_turns_share_the_memory_and_hooks_fire_in_order(
    client: Client, tmp_path: Path
) -> None:
    """A failing hook is a warning and the next still runs; the conversation goes on."""
    async with stack(client, tmp_path, echo, extra=OWN) as s:
        result = await s.run("Own", ["one", "two"], {"name": "echo"})
        assert result["answers"] == ["re: one", "re: two"]
        assert result["fired"] == [["echo", "re: one"], ["echo", "re: two"]]
        assert [m["content"] for m in s.model.requests[1].messages] == [
            "Be brief.",
            "one",
            "re: one",
            "two",
        ]
        s.model.assert_strict()


async def test_a_tool_round_is_stored_as_the_original_stores_it(
    client: Client, tmp_path: Path
) -> None:
    """The memory starts with the user, ends with the assistant, and holds call and result."""
    script = [reply(calls=[call("ping")]), reply("done")]
    async with stack(client, tmp_path, script, extra=OWN) as s:
        result = await s.run("Own", ["go"], {"tools": ["ping"]})
        roles = [entry["role"] for entry in result["recall"]]
        assert roles == ["user", "tool_call", "tool_result", "assistant"]


async def test_a_window_bounds_what_is_sent(client: Client, tmp_path: Path) -> None:
    """A request holds its whole turn, which the limit of tool calls bounds, or the window."""
    rounds = [reply(calls=[call("ping")]) for _ in range(6)]
    async with stack(client, tmp_path, [*rounds, reply("done"), reply("ok")], extra=OWN) as s:
        options = {"tools": ["ping"], "memory": {"window": 4}}
        await s.run("Own", ["what is it?", "and now?"], options)
        *turn, after = s.model.requests
        for number, request in enumerate(turn):
            assert last_user_text(request.messages) == "what is it?"
            assert len(request.messages) == 2 + 2 * number
        assert len(after.messages) <= 1 + 4
        s.model.assert_strict()


async def test_memories_and_agents_without_one_are_apart(client: Client, tmp_path: Path) -> None:
    """No conversation shows in another; without a memory each call starts anew."""
    async with stack(client, tmp_path, echo, extra=OWN) as s:
        await s.run("TwoMemories", "hi")
        seen = [(r.messages[0]["content"], len(r.messages)) for r in s.model.requests]
        assert seen == [("First.", 2), ("Second.", 2), ("Third.", 2), ("First.", 4), ("Third.", 2)]


@pytest.mark.parametrize("as_tools", [True, False])
async def test_long_term_memory_and_its_tools_register_once(
    client: Client, tmp_path: Path, as_tools: bool
) -> None:
    """`tools=[*ltm.as_tools()]` alone works, and with `long_term_memory=` nothing is doubled."""
    script = [reply(calls=[call("store_memory", key="city", value="Oslo")]), reply("ok")]
    async with stack(client, tmp_path, script, extra=OWN) as s:
        assert await s.run("WithFacts", s.task_queue, as_tools) == "Oslo"
        names = [tool["function"]["name"] for tool in s.model.requests[0].tools]
        assert sorted(names) == [
            "forget_memory",
            "list_memory_keys",
            "recall_memory",
            "store_memory",
        ]


@pytest.mark.parametrize(
    ("what", "kind", "words"),
    [
        ("window", "ConfigurationError", "window"),
        ("scope", "InvalidFact", "scope"),
        ("client", "ConfigurationError", "named"),
        ("blank", "InvalidInput", "instruction"),
        ("context", "InvalidInput", "context"),
        ("restore", "InvalidInput", "dict"),
        ("limits", "ConfigurationError", "keys"),
        ("memorize", "InvalidInput", "NoneType"),
        ("sqlite", "ConfigurationError", "sqlite"),
        ("value", "ValidationError", "agent"),
    ],
)
async def test_a_library_error_fails_the_workflow(
    client: Client, tmp_path: Path, what: str, kind: str, words: str
) -> None:
    """Errors of ours fail a user's workflow with a message; it never hangs in failing tasks."""
    async with stack(client, tmp_path, extra=OWN) as s, asyncio.timeout(20):
        with pytest.raises(WorkflowFailureError) as caught:
            await s.run("Nonsense", what)
        cause = caught.value.cause
        assert isinstance(cause, ApplicationError)
        assert cause.type == kind
        assert words in cause.message


WRONG: list[dict[str, Any]] = [
    {"tools": ["no_such_tool"]},
    {"tools": None},
    {"max_tool_calls": None},
    {"max_tool_calls": -1},
    {"max_concurrent_tools": 0},
    {"max_tokens": "many"},
    {"reasoning_effort": "huge"},
    {"budget": 1.5},
    {"turn_budget": -1},
    {"approve": "some"},
    {"approve": ["nothing_here"]},
    {"approve": [5]},
    {"approval_minutes": "long"},
    {"turn_minutes": 0},
    {"reply_minutes": float("inf")},
    {"stream": "yes"},
    {"response_format": "City"},
    {"name": "n" * 513},
    {"system_prompt": None},
    {"model": 5},
    {"working_memory": {}},
    {"long_term_memory": "x"},
    {"on_complete": None},
]


async def test_a_wrong_argument_of_agent_fails_the_workflow(client: Client, tmp_path: Path) -> None:
    """Each argument of `agent()` is checked, and the error names it."""
    async with stack(client, tmp_path, extra=OWN) as s, asyncio.timeout(60):
        for options in WRONG:
            with pytest.raises(WorkflowFailureError) as caught:
                await s.run("WrongAgent", options)
            cause = caught.value.cause
            assert isinstance(cause, ApplicationError)
            assert cause.type == "ConfigurationError"
            named = "no_such_tool" if options.get("tools") else next(iter(options))
            assert named in cause.message


async def test_a_cancelled_workflow_ends_as_cancelled(client: Client, tmp_path: Path) -> None:
    """A cancellation that reaches a turn is no failure of it."""
    async with stack(client, tmp_path, [hang()], extra=OWN) as s:
        handle = await client.start_workflow(
            "Own", args=[["hi"], {}], id=f"own-{s.task_queue}", task_queue=s.task_queue
        )
        await eventually(lambda: bool(s.model.requests))
        await handle.cancel()
        with pytest.raises(WorkflowFailureError) as caught:
            await handle.result()
        assert isinstance(caught.value.cause, CancelledError)
        assert (await handle.describe()).status is WorkflowExecutionStatus.CANCELED
        assert await task_failures(handle) == []


async def test_waiting_for_an_answer_can_time_out(client: Client, tmp_path: Path) -> None:
    """`asyncio.wait_for` raises its own TimeoutError, and the turn is as if it was not asked."""
    async with stack(client, tmp_path, [hang(), reply("re: two")], extra=OWN) as s:
        assert await s.run("Impatient") == ["timeout", "re: two", "two", "re: two"]


async def test_turns_asked_at_once_do_not_mix(client: Client, tmp_path: Path) -> None:
    """Turns of one conversation wait for each other, whoever asks; all requests are counted."""
    async with stack(client, tmp_path, echo, extra=OWN) as s:
        result = await s.run("AtOnce", ["a", "b", "c", "d"])
        assert result["answers"] == ["re: a", "re: b", "re: c", "re: d"]
        assert result["texts"] == ["a", "re: a", "b", "re: b", "c", "re: c", "d", "re: d"]
        assert result["requests"] == 4
        s.model.assert_strict()


async def test_a_hook_that_is_cancelled_is_a_warning(client: Client, tmp_path: Path) -> None:
    """A hook that ends in a cancellation of its own does not cancel the agent."""
    async with stack(client, tmp_path, echo, extra=OWN) as s:
        assert await s.run("CancelledHook") == ["re: hi", "re: hi"]


async def test_a_model_that_fails_fails_the_workflow(client: Client, tmp_path: Path) -> None:
    """One attempt for a bad request; the error's text reaches the caller."""
    script = [fail(400, "tools.0.name: invalid")]
    async with stack(client, tmp_path, script, extra=OWN) as s:
        with pytest.raises(WorkflowFailureError) as caught:
            await s.run("Own", ["go"], {})
        assert isinstance(caught.value.cause, ApplicationError)
        assert caught.value.cause.type == "TurnFailed"
        assert "tools.0.name" in caught.value.cause.message
        assert len(s.model.requests) == 1
