"""A tool call on the worker: arguments in, one message out, whatever the tool does."""

import asyncio
import contextvars
import dataclasses
import functools
import threading
from collections.abc import Callable
from datetime import date
from typing import Any

import pytest
from pydantic import Field
from temporalio import activity
from temporalio.common import RetryPolicy
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.tools import tool_activities
from agentmem.contracts import ToolRun
from agentmem.errors import ToolError
from agentmem.messages import Message, Role, ToolCall
from agentmem.tools import tool
from agentmem.tools.toolbox import ToolBox


@tool
def forecast(city: str, days: int = 1) -> str:
    """Say the weather."""
    return f"{city!r} {days!r}"


def call(
    function: Callable[..., Any],
    arguments: dict[str, Any] | None = None,
    *,
    attempt: int = 1,
    attempts: int = 1,
    remembered: list[tuple[str, Message]] | None = None,
) -> Any:
    env = ActivityEnvironment()
    policy = RetryPolicy(maximum_attempts=attempts)
    env.info = dataclasses.replace(env.info, attempt=attempt, retry_policy=policy)

    def remember(memory: str, message: Message) -> None:
        if remembered is not None:
            remembered.append((memory, message))

    [run] = tool_activities(ToolBox([function]), remember)
    name = getattr(function, "__name__", "")
    wish = ToolCall(id="t1.s1.c0", name=name, arguments=arguments or {})
    return env.run(run, ToolRun(reply="m2", call=wish, memory="wm0", turn=1))


async def test_a_result_is_a_message_under_the_reserved_id() -> None:
    """The activity returns what the workflow stores, and keeps it for the next prompt."""
    remembered: list[tuple[str, Message]] = []
    message = await call(forecast, {"city": "Oslo"}, remembered=remembered)
    assert message == Message(
        id="m2",
        role=Role.TOOL_RESULT,
        content="'Oslo' 1",
        turn=1,
        call="t1.s1.c0",
        name="forecast",
    )
    assert remembered == [("wm0", message)]


async def test_the_attempt_is_part_of_the_message() -> None:
    """A result of the second attempt says so: the first may have made another one."""
    assert (await call(forecast, {"city": "x"}, attempt=2, attempts=3)).attempt == 2


async def test_an_activity_has_the_tools_own_name() -> None:
    """The Temporal UI shows `forecast`, not a dispatcher."""
    [run] = tool_activities(ToolBox([forecast]))
    env = ActivityEnvironment()
    assert run.__temporal_activity_definition.name == "forecast"  # type: ignore[attr-defined]
    assert (await env.run(run, ToolRun(reply="m1", call=ToolCall(id="c", name="forecast")))).failed


async def test_no_arguments_run_a_tool_without_parameters() -> None:
    """`{}` is what a call without arguments runs with."""

    @tool
    def ping() -> str:
        return "pong"

    assert (await call(ping)).content == "pong"


@pytest.mark.parametrize(
    ("arguments", "result"),
    [
        ({"city": "Oslo", "days": "3", "units": "C"}, "'Oslo' 3"),
        ({"city": 5, "days": 2.0}, "'5' 2"),
        ({"city": "Oslo", "days": None}, "'Oslo' 1"),
    ],
)
async def test_arguments_are_coerced_and_extra_ones_ignored(
    arguments: dict[str, Any], result: str
) -> None:
    """Lax coercion, unknown fields ignored, null for an optional field is its default."""
    message = await call(forecast, arguments)
    assert (message.content, message.failed) == (result, False)


async def test_wrong_arguments_are_named_to_the_model() -> None:
    """A missing field is named, with what was sent instead and what exists."""
    message = await call(forecast, {"town": "Oslo", "days": "many"})
    assert message.failed
    assert message.content == (
        "The tool was not run, its arguments are wrong. city: missing; days: input should be a "
        "valid integer, unable to parse string as an integer; town: no such parameter. "
        "Its parameters: city (required), days."
    )


async def test_wrong_arguments_are_not_tried_again() -> None:
    """The same arguments stay wrong: the model hears of it at the first attempt."""
    assert (await call(forecast, {}, attempts=5)).failed


async def test_types_arrive_as_declared() -> None:
    """Arguments become what the annotations say; a pydantic `Field` is a default like another."""

    @tool
    async def book(day: date, seats: set[int], note: str = Field("none", max_length=5)) -> str:
        return f"{day!r} {sorted(seats)} {note}"

    message = await call(book, {"day": "2026-03-10", "seats": [2, 1, 2]})
    assert message.content == "datetime.date(2026, 3, 10) [1, 2] none"
    assert "note" in (await call(book, {"day": "2026-03-10", "seats": [], "note": "x" * 6})).text


async def test_a_sync_tool_runs_in_a_thread_with_its_context() -> None:
    """A blocking tool does not hold up the worker, and sees the activity it runs in."""
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable")
    variable.set("kept")

    @tool
    def where() -> list[Any]:
        main = threading.current_thread() is threading.main_thread()
        return [main, variable.get(), activity.info().activity_id]

    assert (await call(where)).content == '[false,"kept","test"]'


async def test_an_async_function_behind_a_sync_decorator_is_awaited() -> None:
    """A wrapper that only returns a coroutine is waited for like an async function."""

    async def slow() -> str:
        await asyncio.sleep(0)
        return "done"

    @tool
    @functools.wraps(slow)
    def wrapper() -> Any:
        return slow()

    assert (await call(wrapper)).content == "done"


@pytest.mark.parametrize(
    "error",
    [ValueError("bad day"), SystemExit("bad day"), StopIteration("bad day"), RecursionError()],
)
@pytest.mark.parametrize("in_thread", [True, False])
async def test_whatever_a_tool_raises_is_a_result(error: BaseException, in_thread: bool) -> None:
    """No error fails the activity, ends the worker or never returns."""

    def fail() -> None:
        raise error

    async def fail_async() -> None:
        raise error

    message = await call(tool(name="fail")(fail if in_thread else fail_async))
    assert message.failed
    expected = "bad day" if isinstance(error, ValueError | SystemExit) else "Error"
    assert expected in message.text


async def test_a_tool_error_gives_its_text() -> None:
    """A tool chooses what the model reads by raising `ToolError`, at the first attempt."""

    @tool
    def fail() -> None:
        raise ToolError("Oslo is closed today.")

    message = await call(fail, attempts=3)
    assert (message.content, message.failed) == ("Oslo is closed today.", True)


async def test_an_error_is_raised_only_while_an_attempt_is_left() -> None:
    """One attempt by default; with retries the last error is the result."""

    @tool(retries=2)
    def fail() -> None:
        raise ValueError("bad day")

    for attempt in (1, 2):
        with pytest.raises(ValueError, match="bad day"):
            await call(fail, attempt=attempt, attempts=3)
    assert (await call(fail, attempt=3, attempts=3)).content == "ValueError: bad day"
    assert (await call(fail)).failed


async def test_an_error_that_says_not_to_retry_is_a_result_at_once() -> None:
    """A non-retryable ApplicationError is not raised for Temporal to retry."""

    @tool(retries=2)
    def fail() -> None:
        raise ApplicationError("gone", non_retryable=True)

    assert (await call(fail, attempts=3)).content == "ApplicationError: gone"


async def test_a_cancellation_inside_a_tool_is_its_failure() -> None:
    """A tool whose own task was cancelled gives an error; the activity was not cancelled."""

    @tool
    async def fail() -> None:
        inner = asyncio.create_task(asyncio.sleep(10))
        inner.cancel()
        await inner

    assert (await call(fail)).content == "CancelledError"


async def test_a_cancelled_activity_reaches_the_tool_and_gives_no_result() -> None:
    """Cancelling the activity cancels the tool's own task, and nothing is stored."""
    reached, started = asyncio.Event(), asyncio.Event()
    remembered: list[tuple[str, Message]] = []

    @tool
    async def wait() -> None:
        try:
            started.set()
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            reached.set()
            raise

    task = asyncio.ensure_future(call(wait, remembered=remembered))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert reached.is_set()
    assert not remembered


async def test_a_running_tool_heartbeats() -> None:
    """A long call heartbeats at once and on, so that Temporal sees a dead worker."""
    beats: list[Any] = []

    @tool
    def slow() -> None:
        while len(beats) < 2:
            threading.Event().wait(0.01)

    env = ActivityEnvironment()
    env.on_heartbeat = lambda *details: beats.append(details)
    [run] = tool_activities(ToolBox([slow]))
    await env.run(run, ToolRun(reply="m1", call=ToolCall(id="c", name="slow")))
    assert len(beats) >= 2
