"""Patience: how a dream waits for a model, a store or a worker that is away.

A dream is background work. What is away comes back, so a dream waits for it on a timer and then
continues where it was: stored replies are not asked for again, and the commit checks changes
against the versions of its own time.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TypeVar

from temporalio import workflow
from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    TimeoutError,
    TimeoutType,
    is_cancelled_exception,
)

from agentmem.contracts import DreamLimits
from agentmem.error_text import describe
from agentmem.errors import ModelUnavailable, StoreUnavailable
from agentmem.policies import DREAM_WORK, PAYLOADS_TOO_LARGE
from agentmem.wire import clip

PATCH = "dream-patience"
"""Histories without this mark were recorded when an outage or a shut gate ended a dream."""

FIRST_WAIT = timedelta(seconds=2)
"""The first wait; each further one of the same outage is twice as long."""

LONGEST_WAIT = timedelta(minutes=10)
"""The longest wait between two tries, unless the model's provider asks for a longer one."""

FAILURE_WAIT = timedelta(seconds=8)
"""The longest wait before a phase that failed is tried again."""

GATE_WAIT = timedelta(minutes=1)
"""The time that a dream waits at a shut gate before the signal `more` makes it look again."""

Result = TypeVar("Result")

_REASON_BYTES = 300
_SUMMARY_BYTES = 200
_AWAY = {
    ModelUnavailable.__name__: "the model",
    StoreUnavailable.__name__: "the store",
    "WorkerShutdown": "a worker",  # an activity that a worker gave up when it stopped
}


class Patience:
    """The waiting of one run of a dream, all of it from one budget.

    Attributes:
        left: How much longer the run may wait. At first it is the limits' `patience_hours`, and
            never more than the run's timeout leaves beside the work.

    Args:
        limits: The dream's limits.
        show: Shows a line to people, also during the next try; an empty one when it is over.
    """

    def __init__(self, limits: DreamLimits, show: Callable[[str], None]) -> None:
        self.left = timedelta(hours=limits.patience_hours)
        self._show = show
        if (run_timeout := workflow.info().run_timeout) is not None:
            self.left = max(timedelta(), min(self.left, run_timeout - DREAM_WORK))

    async def outlast(
        self, call: Callable[[], Awaitable[Result]], *, attempts: int, asks_model: bool
    ) -> Result:
        """Call an activity until it is done, waiting for what is away.

        An outage takes up patience, and no attempt; once the patience is used up, it takes up
        attempts as any other failure.

        Args:
            call: Executes the activity; it must be idempotent.
            attempts: How often it may fail.
            asks_model: Whether a time-out may lie with the model; else it lies with the store.

        Raises:
            ActivityError: It was cancelled, failed too often, or in a way that no retry changes.
        """
        failures = tries = 0
        waits_for, since = "", workflow.now()
        while True:
            began = workflow.now()
            try:
                result = await call()
            except ActivityError as error:
                if is_cancelled_exception(error) or not workflow.patched(PATCH):
                    raise
                away = what_is_away(error, asks_model=asks_model)
                if away and self.left > timedelta():
                    if away != waits_for:
                        waits_for, since, tries = away, began, 0
                    tries += 1
                    line = f"waiting for {away} since {_minute(since)} ({_reason(error)})"
                    await self._wait(max(_grown(tries, LONGEST_WAIT), _asked(error)), line)
                    self._take(began)
                    continue
                waits_for, failures = "", failures + 1
                self._show("")
                if failures >= attempts or not _is_retryable(error):
                    raise
                await workflow.sleep(_grown(failures, FAILURE_WAIT), summary="before a retry")
            else:
                self._show("")
                return result

    async def gate(self, next_try: datetime, reason: str, told: Callable[[], bool]) -> bool:
        """Wait at a shut gate until it lets a dream through, at most for `LONGEST_WAIT`.

        People may open it meanwhile, so the caller looks again after each such wait.

        Args:
            next_try: When it lets a dream through.
            reason: Why it is shut.
            told: Says whether there is more to dream of, which ends the wait after a minute.

        Returns:
            Whether to look again; False if it stays shut for longer than there is patience.
        """
        began = workflow.now()
        rest = next_try - began
        if rest > self.left or not workflow.patched(PATCH):
            return False
        line = f"waiting for the failure gate ({reason})"
        wait = max(min(rest, LONGEST_WAIT), FIRST_WAIT)
        await self._wait(min(wait, GATE_WAIT), line)
        if wait > GATE_WAIT:
            await self._wait(wait - GATE_WAIT, line, told)
        self._take(began)
        return True

    async def _wait(
        self, wait: timedelta, line: str, told: Callable[[], bool] = lambda: False
    ) -> None:
        self._show(line)
        summary = clip(line, _SUMMARY_BYTES)
        with suppress(asyncio.TimeoutError):
            wait = max(min(wait, self.left), timedelta(milliseconds=1))
            await workflow.wait_condition(told, timeout=wait, timeout_summary=summary)

    def _take(self, began: datetime) -> None:
        self.left = max(timedelta(), self.left - (workflow.now() - began))


def what_is_away(error: ActivityError, *, asks_model: bool) -> str:
    """Return what an activity failed for lack of: `the model`, `the store` or `a worker`.

    Empty if it failed for another reason.

    Args:
        error: How the activity ended.
        asks_model: Whether it asks a model, which is slow then if it does not end in time. An
            activity that only works on the store is held up by that.
    """
    cause = error.cause
    if isinstance(cause, TimeoutError):
        if cause.type is TimeoutType.HEARTBEAT:
            return "a worker"
        return "" if asks_model else "the store"
    return _AWAY.get(cause.type or "", "") if isinstance(cause, ApplicationError) else ""


def _is_retryable(error: ActivityError) -> bool:
    cause = error.cause
    if not isinstance(cause, ApplicationError):
        return isinstance(cause, TimeoutError)
    return not cause.non_retryable and cause.type != PAYLOADS_TOO_LARGE


def _grown(tries: int, longest: timedelta) -> timedelta:
    """Return the wait after so many tries, spread by a quarter.

    Many dreams meet the same outage, and must not come back at one moment.
    """
    wait = min(FIRST_WAIT * 2 ** min(tries - 1, 20), longest)
    return wait * (1 - workflow.random().random() / 4)


def _asked(error: ActivityError) -> timedelta:
    asked = error.cause.next_retry_delay if isinstance(error.cause, ApplicationError) else None
    return asked or timedelta()


def _reason(error: ActivityError) -> str:
    return clip(" ".join(describe(error).split()), _REASON_BYTES)


def _minute(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M} UTC"
