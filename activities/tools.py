"""Tool calls as activities: a user's function under its own name, its result as a message."""

import asyncio
import contextvars
import inspect
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.heartbeat import heartbeating
from agentmem.contracts import ToolRun, ToolSpec
from agentmem.errors import ToolError
from agentmem.messages import Message, Role
from agentmem.tools.box import Tool, ToolBox
from agentmem.tools.results import error_text, result_text
from agentmem.values import JSONObject

ToolActivity = Callable[[ToolRun], Awaitable[Message]]
Remember = Callable[[str, Message], None]
"""Keeps a message of a working memory for the next prompt that this worker writes."""

THREADS = 100
"""How many sync tools a worker runs at once: as many as it takes activities by default."""


def tool_activities(box: ToolBox, remember: Remember | None = None) -> list[ToolActivity]:
    """Return an activity for each of the user's tools, under the tool's own name.

    Sync tools share a pool of `THREADS` threads, which start as they are needed.
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
        return await answer(run, tool.spec, _call(tool, threads, run.call.given), remember)

    return run_tool


async def _call(tool: Tool, threads: ThreadPoolExecutor, arguments: JSONObject) -> str:
    keywords = tool.signature.bind(arguments)
    if inspect.iscoroutinefunction(tool.function):
        value = await tool.function(**keywords)
    else:
        context = contextvars.copy_context()
        value = await asyncio.get_running_loop().run_in_executor(
            threads, lambda: context.run(_in_thread, tool.function, keywords)
        )
        if inspect.isawaitable(value):  # an async function behind a sync decorator
            value = await value
    return result_text(value, tool.spec.result_bytes)


def _in_thread(function: Callable[..., Any], keywords: dict[str, Any]) -> Any:
    try:
        return function(**keywords)
    except StopIteration as error:  # no future can carry it: the wait would never end
        raise RuntimeError("the tool raised StopIteration") from error


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
