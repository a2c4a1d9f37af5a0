"""Tools as activities on the real server: once, again, cancelled, handed over, cut."""

import asyncio
import dataclasses
import threading
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from typing import Any

import pytest
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import PauseActivityRequest, UnpauseActivityRequest
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.exceptions import CancelledError
from temporalio.testing import ActivityEnvironment
from temporalio.worker import Worker

from activities.tools import tool_activities
from agentmem.agent.tool_batch import INTERRUPTED
from agentmem.contracts import ToolRun
from agentmem.errors import ToolError
from agentmem.messages import Message, ToolCall
from agentmem.tools import tool, tool_spec
from agentmem.tools.toolbox import ToolBox
from tests.small_workflows import OneCall
from tests.stack import eventually


def working(
    client: Client, task_queue: str, function: Callable[..., Any]
) -> AbstractAsyncContextManager[Worker]:
    return Worker(
        client,
        task_queue=task_queue,
        workflows=[OneCall],
        activities=tool_activities(ToolBox([function])),
        max_heartbeat_throttle_interval=timedelta(seconds=1),
        default_heartbeat_throttle_interval=timedelta(seconds=1),
    )


async def run_call(client: Client, task_queue: str, function: Callable[..., Any]) -> Message:
    return await client.execute_workflow(
        OneCall.run, tool_spec(function), id=task_queue, task_queue=task_queue
    )


async def test_a_tool_that_raises_runs_once(client: Client, task_queue: str) -> None:
    """A mail that was sent before the error is not sent again; the model hears of it."""
    sent: list[str] = []

    @tool
    def send_mail() -> None:
        sent.append("mail")
        raise ConnectionError("no answer")

    async with working(client, task_queue, send_mail):
        message = await run_call(client, task_queue, send_mail)
    assert (message.content, message.failed) == ("ConnectionError: no answer", True)
    assert sent == ["mail"]


async def test_an_idempotent_tool_is_tried_again(client: Client, task_queue: str) -> None:
    """With `retries`, Temporal repeats the call, and the message says which attempt made it."""
    tries: list[int] = []

    @tool(retries=2)
    def look_up() -> str:
        tries.append(1)
        if len(tries) < 3:
            raise ConnectionError("no answer")
        return "found"

    async with working(client, task_queue, look_up):
        message = await run_call(client, task_queue, look_up)
    assert (message.content, message.failed, message.attempt) == ("found", False, 3)


async def test_after_the_last_attempt_the_error_is_the_result(
    client: Client, task_queue: str
) -> None:
    """The activity itself never fails: the model reads the last error."""

    @tool(retries=1)
    def look_up() -> str:
        raise ConnectionError("no answer")

    async with working(client, task_queue, look_up):
        message = await run_call(client, task_queue, look_up)
    assert (message.content, message.attempt) == ("ConnectionError: no answer", 2)


async def test_a_cancellation_reaches_a_running_tool(client: Client, task_queue: str) -> None:
    """A tool that waits is cancelled within two seconds of the workflow."""
    started, cancelled = asyncio.Event(), asyncio.Event()

    @tool
    async def wait() -> None:
        started.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    async with working(client, task_queue, wait):
        handle = await client.start_workflow(
            OneCall.run, tool_spec(wait), id=task_queue, task_queue=task_queue
        )
        await asyncio.wait_for(started.wait(), 10)
        await handle.cancel()
        await asyncio.wait_for(cancelled.wait(), 2)
        with pytest.raises(WorkflowFailureError) as failure:
            await handle.result()
    assert isinstance(failure.value.cause, CancelledError)


async def test_a_workers_shutdown_is_no_cancellation(client: Client, task_queue: str) -> None:
    """A call that its worker must give up is handed to another one, if it may run twice."""
    started = asyncio.Event()
    runs: list[int] = []

    @tool(retries=1)
    async def work() -> str:
        runs.append(1)
        started.set()
        await asyncio.sleep(60 if len(runs) == 1 else 0)
        return "done"

    async with working(client, task_queue, work):
        handle = await client.start_workflow(
            OneCall.run, tool_spec(work), id=task_queue, task_queue=task_queue
        )
        await asyncio.wait_for(started.wait(), 10)
    async with working(client, task_queue, work):
        message: Message = await handle.result()
    assert (message.content, message.attempt, len(runs)) == ("done", 2, 2)


async def test_slow_tools_hold_up_nothing_else() -> None:
    """Forty calls block in threads at once, and asyncio's own pool stays free for stores."""
    entered, release = threading.Barrier(41), threading.Event()

    @tool
    def block() -> str:
        entered.wait(20)
        release.wait(20)
        return "done"

    [run] = tool_activities(ToolBox([block]))
    wish = ToolRun(reply="m1", call=ToolCall(id="c", name="block"))
    calls = [asyncio.ensure_future(ActivityEnvironment().run(run, wish)) for _ in range(40)]
    try:
        async with asyncio.timeout(30):
            await asyncio.to_thread(entered.wait, 20)
    finally:
        release.set()
    assert [message.content for message in await asyncio.gather(*calls)] == ["done"] * 40


@pytest.mark.slow
async def test_a_tool_longer_than_the_heartbeat_timeout_ends(
    client: Client, task_queue: str
) -> None:
    """A blocking call goes on in its thread while the worker heartbeats for it."""

    @tool
    def slow() -> str:
        threading.Event().wait(11)
        return "done"

    async with working(client, task_queue, slow):
        assert (await run_call(client, task_queue, slow)).content == "done"


@pytest.mark.parametrize("text", ["x" * 3_000_000, "😀" * 200_000])
async def test_a_huge_result_leaves_a_small_history(
    client: Client, task_queue: str, text: str
) -> None:
    """Megabytes of output cost at most 64 KiB, encoded, and a bit."""

    @tool
    def dump() -> str:
        return text

    async with working(client, task_queue, dump):
        message = await run_call(client, task_queue, dump)
        history = await client.get_workflow_handle(task_queue).fetch_history()
    assert message.text.endswith("bytes in full]")
    largest = max(event.ByteSize() for event in history.events)
    assert largest < 66 * 1024


async def test_a_tools_own_words_are_the_result(client: Client, task_queue: str) -> None:
    """A `ToolError` ends the call at once, with its text."""

    @tool(retries=3)
    def book() -> None:
        raise ToolError("Sold out; try Friday.")

    async with working(client, task_queue, book):
        message = await run_call(client, task_queue, book)
    assert (message.content, message.attempt) == ("Sold out; try Friday.", 1)


async def paused(client: Client, handle: WorkflowHandle[Any, Any]) -> dict[str, Any]:
    """Pause the workflow's one activity until its worker knows; return how to name it."""
    described = await handle.describe()
    (pending,) = described.raw_description.pending_activities
    there: dict[str, Any] = {
        "namespace": client.namespace,
        "execution": WorkflowExecution(workflow_id=handle.id),
        "id": pending.activity_id,
    }
    await client.workflow_service.pause_activity(PauseActivityRequest(**there))
    await asyncio.sleep(2.5)  # it comes with the answer to a heartbeat
    return there


@pytest.mark.parametrize("in_thread", [True, False])
async def test_a_call_that_runs_once_outlives_a_pause(
    client: Client, task_queue: str, in_thread: bool
) -> None:
    """A pause lets the one call of a tool with side effects end, and no second one begins."""
    sent: list[str] = []

    @tool
    async def send_mail() -> str:
        sent.append("mail")
        await asyncio.sleep(5)
        return "sent"

    @tool(name="send_mail")
    def send_mail_in_thread() -> str:
        sent.append("mail")
        time.sleep(5)
        return "sent"

    function = send_mail_in_thread if in_thread else send_mail
    async with working(client, task_queue, function):
        handle = await client.start_workflow(
            OneCall.run, tool_spec(function), id=task_queue, task_queue=task_queue
        )
        await eventually(lambda: bool(sent))
        there = await paused(client, handle)
        await client.workflow_service.unpause_activity(UnpauseActivityRequest(**there))
        message = await handle.result()
        assert (message.content, message.failed) == ("sent", False)
        await asyncio.sleep(1)
    assert sent == ["mail"]


async def test_a_worker_stops_beside_a_paused_call(client: Client, task_queue: str) -> None:
    """The worker does not wait for it; the model is told, and no other worker runs it again."""
    sent: list[str] = []

    @tool
    async def send_mail() -> str:
        sent.append("mail")
        await asyncio.sleep(60)
        return "sent"

    async with working(client, task_queue, send_mail):
        handle = await client.start_workflow(
            OneCall.run, tool_spec(send_mail), id=task_queue, task_queue=task_queue
        )
        await eventually(lambda: bool(sent))
        await paused(client, handle)
    async with working(client, task_queue, send_mail):
        message = await handle.result()
    assert (message.content, message.failed) == (INTERRUPTED, True)
    assert sent == ["mail"]


async def test_no_call_beyond_those_that_a_tool_allows() -> None:
    """An unpaused activity gets an attempt that its retry policy does not have: it is not run."""
    sent: list[str] = []

    @tool(retries=1)
    def send_mail() -> str:
        sent.append("mail")
        return "sent"

    (activity,) = tool_activities(ToolBox([send_mail]))
    run = ToolRun(reply="m2", call=ToolCall(id="t1.s1.c0", name="send_mail"), turn=1)
    said: list[object] = []
    for attempt in (1, 2, 3):
        environment = ActivityEnvironment()
        environment.info = dataclasses.replace(environment.info, attempt=attempt)
        said.append((await environment.run(activity, run)).content)
    assert (said, sent) == (["sent", "sent", INTERRUPTED], ["mail", "mail"])
