"""The `agent` workflow on the real server: answers, sessions, wrong inputs, approvals."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from temporalio.api.common.v1 import Payload
from temporalio.client import (
    Client,
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowHandle,
    WorkflowUpdateFailedError,
    WorkflowUpdateStage,
)
from temporalio.common import RawValue
from temporalio.exceptions import ApplicationError

from agentmem.testing import call, fail, hang, reply
from tests.stack import (
    eventually,
    last_user_text,
    stack,
    status_where,
    task_failures,
    waiting_call,
)
from tests.tools import delete_file, ping, runs

TOOLS = '[agents.plain]\nsystem_prompt = "Be brief."\ntools = ["ping", "delete_file"]\n'


def cause(error: WorkflowUpdateFailedError | WorkflowFailureError) -> ApplicationError:
    """Return the application error behind a failed update or workflow."""
    assert isinstance(error.cause, ApplicationError)
    return error.cause


async def refused(handle: WorkflowHandle[Any, Any], *args: Any) -> ApplicationError:
    """Send what must be refused; returns the error."""
    with pytest.raises(WorkflowUpdateFailedError) as caught:
        await handle.execute_update("send", args=args)
    return cause(caught.value)


async def test_one_message_is_answered_and_completes(client: Client, tmp_path: Path) -> None:
    """A start with a message prints the answer."""
    async with stack(client, tmp_path, [reply("Hello!")]) as s:
        handle = await s.start(agent="plain", message="hi")
        assert await handle.result() == "Hello!"
        s.model.assert_strict()
        assert s.model.requests[0].messages[0] == {"role": "system", "content": "Be brief."}


async def test_a_session_takes_turns_in_order_and_ends(client: Client, tmp_path: Path) -> None:
    """The start's message comes first, then the sends in order; the end counts them."""

    def echo(request: Any) -> Any:
        return reply(f"re: {last_user_text(request.messages)}")

    async with stack(client, tmp_path, echo) as s:
        handle = await s.start(agent="plain", session=True, message="one")
        accepted = WorkflowUpdateStage.ACCEPTED
        sent = [
            await handle.start_update("send", text, wait_for_stage=accepted)
            for text in ("two", "three")
        ]
        assert [await update.result() for update in sent] == ["re: two", "re: three"]
        asked = [last_user_text(request.messages) for request in s.model.requests]
        assert asked == ["one", "two", "three"]
        whole = await handle.execute_update("ask", "four")
        assert whole["text"] == "re: four"
        assert whole["turn"] == 4
        assert whole["finish"] == "stop"
        assert whole["usage"]["requests"] == 1
        status = await handle.query("status")
        assert status["turns"] == 4
        assert status["state"] == "waiting"
        page = await handle.query("messages", args=[2, 3])
        assert [entry["content"] for entry in page["messages"]] == ["two", "re: two", "three"]
        assert page["total"] == 8
        assert (await handle.query("usage"))["requests"] == 4
        assert await handle.execute_update("end") == {"turns": 4}
        assert await handle.result() == {"turns": 4}
        s.model.assert_strict()
        assert await task_failures(handle) == []


WRONG_STARTS: list[tuple[tuple[Any, ...], str]] = [
    ((), "missing"),
    ((None,), "missing"),
    (("hi",), "JSON object"),
    ((["hi"],), "JSON object"),
    (({"agent": "", "message": "hi"},), "'agent'"),
    (({"agent": "plain"},), "message"),
    (({"agent": "plain", "message": 5},), "'message'"),
    (({"agent": "plain", "message": " "},), "blank"),
    (({"agent": "plain", "mesage": "hi"},), "'mesage'"),
    (({"agent": "nobody", "message": "hi"},), "plain"),
    (({"agent": "plain", "message": "hi"}, {"more": 1}), "one argument"),
    (({"agent": "assistant", "message": "hi"},), "'scope'"),
]


@pytest.mark.parametrize(("args", "words"), WRONG_STARTS)
async def test_a_wrong_start_fails_at_once_and_says_why(
    client: Client, tmp_path: Path, args: tuple[Any, ...], words: str
) -> None:
    """No input leaves a workflow running; the failure names the field or what exists."""
    async with stack(client, tmp_path) as s:
        with pytest.raises(WorkflowFailureError) as caught:
            await s.run("agent", *args)
        assert words in cause(caught.value).message


async def test_wrong_messages_are_refused_and_the_session_answers(
    client: Client, tmp_path: Path
) -> None:
    """A send without input, with a wrong or a surplus one is refused; then it answers."""
    async with stack(client, tmp_path, [reply("ok")]) as s:
        handle = await s.start(agent="plain", session=True)
        for args in ((), (None,), (5,), ({"text": "x"},), ("  ",), ("a", "b")):
            error = await refused(handle, *args)
            assert error.type == "InvalidInput"
        for name in ("approve", "end_of_days"):
            await handle.signal(name, {"nonsense": True})
        with pytest.raises(WorkflowUpdateFailedError):
            await handle.execute_update("approve", {"call": "t9.s9.c9", "ok": True})
        assert await handle.execute_update("send", "hi") == "ok"
        await handle.signal("end", args=["surplus", 1])
        assert await handle.result() == {"turns": 1}
        assert await task_failures(handle) == []


async def test_a_failed_turn_is_a_failed_update_and_the_session_goes_on(
    client: Client, tmp_path: Path
) -> None:
    """The error names the model; the half turn is not kept; the next turn works."""
    async with stack(client, tmp_path, [fail(401), reply("better")]) as s:
        handle = await s.start(agent="plain", session=True)
        error = await refused(handle, "first")
        assert error.type == "TurnFailed"
        assert "openai/test-model" in error.message
        assert await handle.execute_update("send", "second") == "better"
        assert [m["content"] for m in s.model.requests[-1].messages] == ["Be brief.", "second"]
        s.model.assert_strict()
        await handle.signal("end")
        await handle.result()
        assert await task_failures(handle) == []


async def test_a_full_session_refuses_more_and_still_takes_approvals(
    client: Client, tmp_path: Path
) -> None:
    """Fourteen senders, one approval open: four sends are held, `approve` is answered at once."""
    runs.clear()

    def script(request: Any) -> Any:
        if last_user_text(request.messages) == "delete" and request.messages[-1]["role"] == "user":
            return reply(calls=[call("ping"), call("delete_file", path="a.txt")])
        return reply("done")

    async with stack(client, tmp_path, script, agents=TOOLS, extra=[ping, delete_file]) as s:
        handle = await s.start(agent="plain", session=True)
        first = asyncio.create_task(handle.execute_update("send", "delete"))
        waiting = await status_where(handle, lambda status: status["approvals"])
        name = await waiting_call(handle, "t1.s1.c1")
        assert waiting["approvals"] == [
            {"call": name, "tool": "delete_file", "arguments": {"path": "a.txt"}}
        ]
        others = [asyncio.create_task(handle.execute_update("send", f"m{i}")) for i in range(13)]
        await status_where(handle, lambda status: status["open"] == 4)
        async with asyncio.timeout(10):  # as the eleventh update it was refused after 14 s
            assert await handle.execute_update("approve", {"call": name, "ok": True})
        assert await first == "done"
        outcomes = await asyncio.gather(*others, return_exceptions=True)
        busy = [o for o in outcomes if isinstance(o, WorkflowUpdateFailedError)]
        # The server's own word for one that came just as a task ended; it was not taken either.
        assert {cause(o).type for o in busy} - {"UnprocessedUpdate"} == {"SessionBusy"}
        assert outcomes.count("done") == 13 - len(busy) >= 3
        assert runs == ["ping", "delete a.txt"]
        s.model.assert_strict()
        await handle.signal("end")
        await handle.result()
        assert await task_failures(handle) == []


@pytest.mark.parametrize("ok", [True, False])
async def test_approval_decides_and_siblings_run(client: Client, tmp_path: Path, ok: bool) -> None:
    """The free call runs once, the other only if a person agrees; each has a result."""
    runs.clear()
    script = [reply(calls=[call("ping"), call("delete_file", path="a.txt")]), reply("done")]
    async with stack(client, tmp_path, script, agents=TOOLS, extra=[ping, delete_file]) as s:
        handle = await s.start(agent="plain", message="go")
        name = await waiting_call(handle, "t1.s1.c1")
        await handle.signal("approve", {"call": name, "ok": ok, "reason": "not now"})
        assert await handle.result() == "done"
        assert runs == (["ping", "delete a.txt"] if ok else ["ping"])
        results = [m for m in s.model.requests[-1].messages if m["role"] == "tool"]
        assert results[0]["content"] == "pong"
        assert ("deleted a.txt" if ok else "not now") in results[1]["content"]
        s.model.assert_strict()


async def test_a_cancelled_turn_leaves_a_valid_conversation(client: Client, tmp_path: Path) -> None:
    """Cancelling reaches the request; the next turn works and runs no old tool."""
    runs.clear()
    script = [reply(calls=[call("ping")]), hang(), reply("fine")]
    async with stack(client, tmp_path, script, agents=TOOLS, extra=[ping, delete_file]) as s:
        handle = await s.start(agent="plain", session=True)
        first = asyncio.create_task(handle.execute_update("send", "go"))
        await eventually(lambda: len(s.model.requests) == 2)
        assert await handle.execute_update("cancel_turn") is True
        with pytest.raises(WorkflowUpdateFailedError) as caught:
            await first
        assert "cancelled" in cause(caught.value).message
        await eventually(lambda: s.model.requests[1].disconnected)
        assert await handle.execute_update("send", "go on") == "fine"
        s.model.assert_strict()
        assert runs == ["ping"]
        assert await handle.execute_update("cancel_turn") is False
        await handle.signal("end")
        await handle.result()
        assert await task_failures(handle) == []


async def test_the_limit_of_tool_calls_is_never_exceeded(client: Client, tmp_path: Path) -> None:
    """At the limit each open call has a result, and the model is asked for its answer."""
    runs.clear()
    agents = TOOLS + "max_tool_calls = 3\n"
    many = reply(calls=[call("ping"), call("ping")])
    script = [many, many, reply("enough")]
    async with stack(client, tmp_path, script, agents=agents, extra=[ping, delete_file]) as s:
        handle = await s.start(agent="plain", message="go")
        assert await handle.result() == "enough"
        assert runs == ["ping"] * 3
        last = s.model.requests[-1]
        assert last.body["tool_choice"] == "none"
        assert "limit" not in last.messages[-2]["content"]
        assert "3 tool calls" in last.messages[-1]["content"]
        s.model.assert_strict()


async def test_an_ended_session_takes_nothing_more(client: Client, tmp_path: Path) -> None:
    """A send to a session that ended fails within seconds."""
    async with stack(client, tmp_path, [reply("ok")]) as s:
        handle = await s.start(agent="plain", session=True, message="hi")
        await handle.execute_update("end")
        await handle.result()
        async with asyncio.timeout(5):
            with pytest.raises(Exception, match=r"(?i)completed|not found"):
                await handle.execute_update("send", "more")


@pytest.mark.parametrize("asks", [False, True])
async def test_cancelling_the_session_ends_it(
    client: Client, tmp_path: Path, *, asks: bool
) -> None:
    """In a model call or before an approval, with a queue: all callers read why."""
    script = [reply(calls=[call("ping"), call("delete_file", path="a")])] if asks else [hang()]
    async with stack(client, tmp_path, script, agents=TOOLS, extra=[ping, delete_file]) as s:
        handle = await s.start(agent="plain", session=True)
        turns = [asyncio.create_task(handle.execute_update("send", "hi")) for _ in range(3)]
        await status_where(handle, lambda found: found["open"] == 3)
        await eventually(lambda: bool(s.model.requests))
        await status_where(handle, lambda found: bool(found["approvals"]) == asks)
        await handle.cancel()
        with pytest.raises(WorkflowFailureError):
            await handle.result()
        for turn in turns:
            with pytest.raises(WorkflowUpdateFailedError) as caught:
                await turn
            assert cause(caught.value).message == "the session was cancelled"
        description = await handle.describe()
        assert description.status == WorkflowExecutionStatus.CANCELED
        assert await task_failures(handle) == []


async def test_the_same_workflow_id_twice_never_mixes_conversations(
    client: Client, tmp_path: Path
) -> None:
    """Messages are cached by run: a second session under the same id starts empty."""
    async with stack(client, tmp_path, [reply("one"), reply("two")]) as s:
        for word, answer in (("first", "one"), ("second", "two")):
            result = await client.execute_workflow(
                "agent",
                {"agent": "plain", "message": word},
                id=f"twice-{s.task_queue}",
                task_queue=s.task_queue,
            )
            assert result == answer
        assert [m["content"] for m in s.model.requests[1].messages] == ["Be brief.", "second"]


@pytest.mark.parametrize(
    "data",
    [b'{"agent":"plain","message":"\\ud800"}', b"[" * 250 + b"]" * 250, b"1" * 5_000, b"{", b""],
)
async def test_what_no_decoder_takes_fails_the_start(
    client: Client, tmp_path: Path, data: bytes
) -> None:
    """JSON that cannot be decoded fails the workflow, and leaves no failing task behind."""
    payload = Payload(metadata={"encoding": b"json/plain"}, data=data)
    async with stack(client, tmp_path) as s:
        for kind in ("agent", "agent_dream"):
            with pytest.raises(WorkflowFailureError):
                await s.run(kind, RawValue(payload))


async def test_ending_a_session_that_cannot_start_ends_it(client: Client, tmp_path: Path) -> None:
    """An `end` that comes while the start fails does not hold the workflow open."""
    async with stack(client, tmp_path) as s:
        handle = await s.start(agent="nobody", session=True, message="hi")
        await asyncio.gather(handle.execute_update("end"), return_exceptions=True)
        with pytest.raises(WorkflowFailureError):
            await handle.result()


async def test_an_ending_session_asks_for_no_more_approvals(client: Client, tmp_path: Path) -> None:
    """After `end` a call that needs approval is refused at once, and the session ends."""
    again = reply(calls=[call("delete_file", path="a.txt")])
    script = [again, again, reply("done")]
    async with stack(client, tmp_path, script, agents=TOOLS, extra=[ping, delete_file]) as s:
        handle = await s.start(agent="plain", session=True)
        turn = asyncio.create_task(handle.execute_update("send", "go"))
        await status_where(handle, lambda status: status["approvals"])
        await handle.signal("end")
        assert await turn == "done"
        assert await handle.result() == {"turns": 1}


async def test_a_quiet_time_does_not_end_a_session_in_a_turn(
    client: Client, tmp_path: Path
) -> None:
    """Waiting for a person is not quiet; quiet begins when the turn is over."""
    script = [reply(calls=[call("delete_file", path="a.txt")]), reply("done")]
    async with stack(client, tmp_path, script, agents=TOOLS, extra=[ping, delete_file]) as s:
        handle = await s.start(agent="plain", session=True, end_after_minutes=0.03)
        turn = asyncio.create_task(handle.execute_update("send", "go"))
        name = await waiting_call(handle, "t1.s1.c0")
        await asyncio.sleep(4)
        assert (await handle.query("status"))["state"] == "working"
        await handle.signal("approve", {"call": name, "ok": True})
        assert await turn == "done"
        assert await handle.result() == {"turns": 1}


async def test_cancelling_one_answer_is_a_cancelled_workflow(
    client: Client, tmp_path: Path
) -> None:
    """A cancelled start is closed as cancelled, not as failed."""
    async with stack(client, tmp_path, [hang()]) as s:
        handle = await s.start(agent="plain", message="hi")
        await eventually(lambda: bool(s.model.requests))
        await handle.cancel()
        with pytest.raises(WorkflowFailureError):
            await handle.result()
        assert (await handle.describe()).status == WorkflowExecutionStatus.CANCELED
