"""Heartbeats for the whole of an activity, so that a cancellation reaches it and a crash shows."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from datetime import timedelta

from temporalio import activity

_ends: ContextVar[float] = ContextVar("ends")
"""When the running activity must be done, by its event loop's clock: the server's may differ."""

BEAT_SECONDS = 1.0
"""A cancellation comes back on a heartbeat: it must arrive within two seconds."""


@asynccontextmanager
async def heartbeating(
    counters: Mapping[str, float] | None = None, *, most: timedelta | None = None
) -> AsyncGenerator[None]:
    """Heartbeat while the body runs.

    The worker cancels the activity's task when Temporal asks for it, so the body sees an
    ordinary `asyncio.CancelledError` where it waits.

    Args:
        counters: Sent with each heartbeat, as they are then: for people, and for the next attempt.
        most: The time that the body has, where that is less than Temporal gives this attempt.
    """
    bounds = [bound for bound in (most, *_bounds()) if bound is not None]
    if bounds:
        _ends.set(asyncio.get_running_loop().time() + min(bounds).total_seconds())
    beats = asyncio.create_task(_beat(counters))
    try:
        yield
    finally:
        beats.cancel()


def time_left(otherwise: float) -> float:
    """Return how many seconds the running activity has until it ends.

    Args:
        otherwise: Returned outside of activities, and where the activity has no such bound.
    """
    ends = _ends.get(None)
    if ends is None or not activity.in_activity():
        return otherwise
    return ends - asyncio.get_running_loop().time()


def slot_wait() -> timedelta:
    """Return how long this attempt of the running activity waited for a worker's free slot."""
    info = activity.info()
    return max(timedelta(), info.started_time - info.current_attempt_scheduled_time)


def _bounds() -> list[timedelta]:
    if not activity.in_activity():
        return []
    info = activity.info()
    bounds = [info.start_to_close_timeout] if info.start_to_close_timeout else []
    if info.schedule_to_close_timeout:
        waited = info.started_time - info.scheduled_time
        bounds.append(info.schedule_to_close_timeout - waited)
    return bounds


async def _beat(counters: Mapping[str, float] | None) -> None:
    while True:
        # None at once: most activities are over before, and each beat is a request to the server.
        await asyncio.sleep(BEAT_SECONDS)
        activity.heartbeat(*([dict(counters)] if counters else []))
