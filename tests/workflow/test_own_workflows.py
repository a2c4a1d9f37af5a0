"""The same loop in workflows of a user's own."""

from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client, WorkflowFailureError
from temporalio.exceptions import ApplicationError

from agentmem.testing import Request, call, fail, reply
from tests.own_workflows import Nonsense, Own, TwoMemories, WithFacts
from tests.stack import last_user_text, stack
from tests.tools import delete_file, ping

OWN = [Own, TwoMemories, WithFacts, Nonsense, ping, delete_file]


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
    """A-04: through any number of tool rounds each request holds the question, bounded."""
    rounds = [reply(calls=[call("ping")]) for _ in range(6)]
    async with stack(client, tmp_path, [*rounds, reply("done")], extra=OWN) as s:
        options = {"tools": ["ping"], "memory": {"window": 4}}
        await s.run("Own", ["what is it?"], options)
        for request in s.model.requests:
            assert last_user_text(request.messages) == "what is it?"
            assert len(request.messages) <= 5
        s.model.assert_strict()


async def test_memories_and_agents_without_one_are_apart(client: Client, tmp_path: Path) -> None:
    """D3, D4: no conversation shows in another; without a memory each call starts anew."""
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
        ("tool", "ConfigurationError", "no_such_tool"),
        ("blank", "InvalidInput", "instruction"),
    ],
)
async def test_a_library_error_fails_the_workflow(
    client: Client, tmp_path: Path, what: str, kind: str, words: str
) -> None:
    """Errors of ours fail a user's workflow with a message; it never hangs in failing tasks."""
    async with stack(client, tmp_path, extra=OWN) as s:
        with pytest.raises(WorkflowFailureError) as caught:
            await s.run("Nonsense", what)
        cause = caught.value.cause
        assert isinstance(cause, ApplicationError)
        assert cause.type == kind
        assert words in cause.message


async def test_a_model_that_fails_fails_the_workflow(client: Client, tmp_path: Path) -> None:
    """E-05: one attempt for a bad request; the error's text reaches the caller."""
    script = [fail(400, "tools.0.name: invalid")]
    async with stack(client, tmp_path, script, extra=OWN) as s:
        with pytest.raises(WorkflowFailureError) as caught:
            await s.run("Own", ["go"], {})
        assert isinstance(caught.value.cause, ApplicationError)
        assert caught.value.cause.type == "TurnFailed"
        assert "tools.0.name" in caught.value.cause.message
        assert len(s.model.requests) == 1
