"""Tool calls as activities: a user's function under its own name, its result as a message."""

import asyncio
import contextvars
import dataclasses
import inspect
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.heartbeat import heartbeating
from agentmem.agent.tool_batch import INTERRUPTED
from agentmem.contracts import ToolRun, ToolSpec
from agentmem.errors import ToolError
from agentmem.guest_loop import GuestLoop
from agentmem.messages import Message, Role
from agentmem.tools.results import error_text, is_async, lazy_result_text, result_text
from agentmem.tools.toolbox import Tool, ToolBox
from agentmem.wire import JSONObject

ToolActivity = Callable[[ToolRun], Awaitable[Message]]
Remember = Callable[[str, Message], None]
"""Keeps a message of a working memory for the next prompt that this worker writes."""

THREADS = 100
"""The number of sync tools that a worker runs at once; it takes as many activities by default."""


def tool_activities(box: ToolBox, remember: Remember | None = None) -> list[ToolActivity]:
    """Return an activity for each of the user's tools, under the tool's own name.

    Sync tools share a pool of `THREADS` threads, which start as they are needed. Async tools share
    an event loop in a thread of its own: one that blocks holds up the other async tools only.
    """
    # Not asyncio's own pool: it has a few threads, which opening a store and dreams need too, and
    # `asyncio.run` waits for all of them, also for a tool that hangs.
    threads = ThreadPoolExecutor(THREADS, thread_name_prefix="agentmem-tool")
    return [_activity(tool, threads, remember) for tool in box.tools]


async def answer(
    run: ToolRun, spec: ToolSpec, work: Awaitable[str], remember: Remember | None
) -> Message:
    """Wait for a call's work, heartbeating, and make the message that the conversation keeps.

    An error becomes a result that the model can read, and fails no activity; only where the
    tool may be tried again and an attempt is left is it raised, for Temporal to do that.
    """
    info = activity.info()
    async with heartbeating():
        try:
            text, failed = await work, False
        except (Exception, SystemExit, asyncio.CancelledError) as error:
            if _is_cancelled(error) or _is_tried_again(error, info):
                raise
            activity.logger.info("The tool %s failed: %s", spec.name, type(error).__name__)
            text, failed = error_text(error), True
    message = Message(
        id=run.reply,
        role=Role.TOOL_RESULT,
        content=text,
        turn=run.turn,
        call=run.call.id,
        name=run.call.name,
        failed=failed,
        recalled=spec.recalled,
        attempt=info.attempt,
    )
    if remember is not None:
        remember(run.memory, message)
    return message


def _activity(tool: Tool, threads: ThreadPoolExecutor, remember: Remember | None) -> ToolActivity:
    @activity.defn(name=tool.spec.name)
    async def run_tool(run: ToolRun) -> Message:
        return await answer(run, tool.spec, _attempt(tool, threads, run.call.given), remember)

    return run_tool


async def _attempt(tool: Tool, threads: ThreadPoolExecutor, arguments: JSONObject) -> str:
    """Call the tool, unless it may have run as often as it may.

    A paused activity that is unpaused gets another attempt, whatever its retry policy says. So the
    attempts are counted here too, and a pause lets a call that runs once come to its end.
    """
    if activity.info().attempt > tool.spec.retries + 1:
        raise ToolError(INTERRUPTED)
    call = asyncio.ensure_future(_ended(_call(tool, threads, arguments)))
    try:
        ended = await asyncio.shield(call)
    except asyncio.CancelledError:
        if not _is_paused() or tool.spec.retries:
            call.cancel()
            ended = await call
        else:
            ended = await _outlive_pause(call)
    if isinstance(ended, SystemExit):
        raise ended
    return ended


async def _ended(call: Awaitable[str]) -> str | SystemExit:
    """Return a call's text, or its exit: a task that raised that would end the worker's loop."""
    try:
        return await call
    except SystemExit as error:
        return error


def _is_paused() -> bool:
    details = activity.cancellation_details()
    return details is not None and details.paused


async def _outlive_pause(call: "asyncio.Future[str | SystemExit]") -> str | SystemExit:
    """Wait until the call is done, or until the worker stops.

    A worker that stops cancels no activity that a pause has cancelled already.
    """
    if (task := asyncio.current_task()) is not None:
        task.uncancel()
    stopping = asyncio.ensure_future(activity.wait_for_worker_shutdown())
    try:
        await asyncio.wait((call, stopping), return_when=asyncio.FIRST_COMPLETED)
        if call.done():
            return await call
        raise ToolError(INTERRUPTED)
    finally:
        stopping.cancel()
        call.cancel()


async def _call(tool: Tool, threads: ThreadPoolExecutor, arguments: JSONObject) -> str:
    limit = tool.spec.result_bytes
    loop = asyncio.get_running_loop()

    def made() -> Any:
        _heartbeat_through(loop)
        # Checking is the user's code too, where a type has a validator.
        return tool.function(**tool.signature.bind(arguments))

    async def in_loop(value: Any) -> str:
        _heartbeat_through(loop)
        # In the tool's own thread: a lazy result computes while it is read.
        return await lazy_result_text(await value if inspect.isawaitable(value) else value, limit)

    async def called() -> str:
        return await in_loop(made())

    if inspect.iscoroutinefunction(tool.function):
        return await _TOOLS.run(called)
    context = contextvars.copy_context()
    value = await loop.run_in_executor(threads, lambda: context.run(_in_thread, made, limit))
    if isinstance(value, str):
        return value
    # An async function behind a sync decorator, or an async generator.
    return await _TOOLS.run(lambda: in_loop(value))


# One loop for all async tools: what they keep at module level, a client of httpx or a pool of
# connections, belongs to the loop that it was made in.
_TOOLS = GuestLoop("agentmem-async-tools")


def _in_thread(made: Callable[[], Any], limit: int) -> Any:
    """Return the result's text; what must be awaited comes back as it is."""
    try:
        value = made()
        return value if is_async(value) else result_text(value, limit)
    except StopIteration as error:  # no future can carry it: the wait would never end
        raise RuntimeError("the tool raised StopIteration") from error


def _heartbeat_through(loop: asyncio.AbstractEventLoop) -> None:
    """Let a tool heartbeat from a thread of its own: the SDK's function needs the worker's loop."""
    if not activity.in_activity():
        return
    context = activity._Context.current()  # pyright: ignore[reportPrivateUsage]
    beat = context.heartbeat
    if beat is None:
        return

    def routed(*details: Any) -> None:
        loop.call_soon_threadsafe(beat, *details)

    changed = dataclasses.replace(context, heartbeat=routed)
    activity._Context.set(changed)  # pyright: ignore[reportPrivateUsage]


def _is_cancelled(error: BaseException) -> bool:
    # A tool's own inner cancellation is its failure; the activity's (asked for, timed out, or the
    # worker's shutdown, which Temporal tells apart) must pass.
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0


def _is_tried_again(error: BaseException, info: activity.Info) -> bool:
    if isinstance(error, ToolError) or not isinstance(error, Exception):
        return False  # what a tool chose to say, and what would end the process, is an answer
    if isinstance(error, ApplicationError) and error.non_retryable:
        return False
    policy = info.retry_policy
    return policy is not None and info.attempt < policy.maximum_attempts
