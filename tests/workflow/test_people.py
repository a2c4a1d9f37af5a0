"""Waiting for people: approvals of an agent, several at once, in time or too late; questions."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from temporalio.api.sdk.v1 import WorkflowMetadata
from temporalio.client import Client, WorkflowUpdateFailedError

from agentmem.testing import Request, call, reply
from tests.stack import eventually, stack, status_where, waiting_call
from tests.tools import delete_file, ping, runs

AGENTS = """
[agents.careful]
approve = ["ping"]
tools = ["ping", "delete_file"]
[agents.wary]
approve = "all"
approval_minutes = 0.02
tools = ["ping"]
[agents.curious]
tools = ["ask_user", "ping"]
"""
BOTH = reply(calls=[call("ping"), call("delete_file", path="a.txt")])


def results(request: Request) -> list[str]:
    """Return the tools' results in a request."""
    return [str(m["content"]) for m in request.messages if m["role"] == "tool"]


async def test_a_part_is_approved_and_its_siblings_keep_waiting(
    client: Client, tmp_path: Path
) -> None:
    """Agent and tool both ask; one answered call runs, while the other still waits."""
    runs.clear()
    async with stack(
        client, tmp_path, [BOTH, reply("done")], agents=AGENTS, extra=[ping, delete_file]
    ) as s:
        handle = await s.start(agent="careful", session=True)
        turn = asyncio.create_task(handle.execute_update("send", "go"))
        other = await waiting_call(handle, "t1.s1.c1")
        first = await waiting_call(handle, "t1.s1.c0")
        await handle.execute_update("approve", {"call": first, "ok": True})
        status = await status_where(handle, lambda status: len(status["approvals"]) == 1)
        assert status["approvals"][0]["call"] == other
        await eventually(lambda: runs == ["ping"])
        no = {"call": other, "ok": False, "reason": "keep it"}
        await handle.execute_update("approve", no)
        assert await turn == "done"
        assert runs == ["ping"]
        assert results(s.model.requests[1]) == [
            "pong",
            "Not run: a person did not approve it: keep it",
        ]
        await handle.execute_update("end")
        s.model.assert_strict()


async def test_nobody_answers_in_time(client: Client, tmp_path: Path) -> None:
    """After the agent's own time a call counts as not approved, and the turn goes on."""
    runs.clear()
    script = [reply(calls=[call("ping")]), reply("as you like")]
    async with stack(client, tmp_path, script, agents=AGENTS, extra=[ping, delete_file]) as s:
        handle = await s.start(agent="wary", message="go")
        assert await handle.result() == "as you like"
        assert runs == []
        assert "nobody answered within 0.02 minutes" in results(s.model.requests[1])[0]
        s.model.assert_strict()


async def test_a_question_to_the_user_is_answered_and_the_turn_goes_on(
    client: Client, tmp_path: Path
) -> None:
    """`ask_user` waits like an approval; what the user writes is its result."""
    runs.clear()
    asked = [
        call("ask_user", question="Which city?"),
        call("ping"),
        call("ask_user", question=" "),
        call("ask_user", question="Which day?"),
    ]
    script = [reply(calls=asked), reply("Oslo it is")]
    async with stack(client, tmp_path, script, agents=AGENTS, extra=[ping, delete_file]) as s:
        handle = await s.start(agent="curious", session=True)
        turn = asyncio.create_task(handle.execute_update("send", "plan a trip"))
        status = await status_where(handle, lambda status: len(status["approvals"]) == 2)
        first, last = [str(one["call"]) for one in status["approvals"]]
        assert status["approvals"][0] == {
            "call": first,
            "tool": "ask_user",
            "arguments": {"question": "Which city?"},
        }
        too_long = {"call": first, "ok": True, "answer": "x" * 70_000}
        shown = await handle.query("__temporal_workflow_metadata", result_type=WorkflowMetadata)
        assert f'Waits for a person: `{first}` ask_user {{"question":"Which city?"}}' in str(
            shown.current_details
        )
        with pytest.raises(WorkflowUpdateFailedError) as caught:
            await handle.execute_update("approve", too_long)
        assert "'answer' takes 70000 bytes" in str(caught.value.cause)
        answer = {"call": first, "ok": True, "answer": "Oslo"}
        await handle.execute_update("approve", answer)
        await handle.signal("approve", {"call": last, "ok": False, "reason": "any"})
        assert await turn == "Oslo it is"
        assert results(s.model.requests[1]) == [
            "Oslo",
            "pong",
            "Not asked: `question` must be text, and not blank.",
            "The user did not answer: any",
        ]
        names = [tool["function"]["name"] for tool in s.model.requests[0].tools]
        assert names == ["ask_user", "ping"]
        await handle.execute_update("end")
        s.model.assert_strict()


async def test_an_approval_survives_the_worker(client: Client, tmp_path: Path) -> None:
    """A call that waits when its worker stops is answered on the next one."""
    runs.clear()
    options: dict[str, Any] = {"agents": AGENTS, "extra": [ping, delete_file]}
    async with stack(client, tmp_path, [BOTH], **options) as s:
        handle = await s.start(agent="careful", session=True, message="go")
        await status_where(handle, lambda status: len(status["approvals"]) == 2)
    async with stack(client, tmp_path, [reply("done")], task_queue=s.task_queue, **options) as s:
        for number in (1, 0):
            name = await waiting_call(handle, f"t1.s1.c{number}")
            await handle.signal("approve", {"call": name, "ok": True})
        await handle.execute_update("end")
        assert sorted(runs) == ["delete a.txt", "ping"]
        assert results(s.model.requests[0]) == ["pong", "deleted a.txt"]
        s.model.assert_strict()
