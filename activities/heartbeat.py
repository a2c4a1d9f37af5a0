"""Heartbeats for the whole of an activity, so that a cancellation reaches it and a crash shows."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar

from temporalio import activity

_began: ContextVar[float] = ContextVar("began")
"""When the running activity began, by its event loop's clock: the server's may go differently."""

BEAT_SECONDS = 1.0
"""A cancellation comes back on a heartbeat: it must arrive within two seconds."""


@asynccontextmanager
async def heartbeating(counters: Mapping[str, float] | None = None) -> AsyncGenerator[None]:
    """Heartbeat while the body runs.

    The worker cancels the activity's task when Temporal asks for it, so the body sees an
    ordinary `asyncio.CancelledError` where it waits.

    Args:
        counters: Sent with each heartbeat, as they are then: for people, and for the next attempt.
    """
    _began.set(asyncio.get_running_loop().time())
    beats = asyncio.create_task(_beat(counters))
    try:
        yield
    finally:
        beats.cancel()


def time_left(otherwise: float) -> float:
    """Return how many seconds the running activity has until Temporal ends it.

    Args:
        otherwise: Returned outside of activities, and where the activity has no such bound.
    """
    began = _began.get(None)
    if began is None or not activity.in_activity():
        return otherwise
    info = activity.info()
    waited = info.started_time - info.scheduled_time
    ends = [info.start_to_close_timeout or None]
    if info.schedule_to_close_timeout:
        ends.append(info.schedule_to_close_timeout - waited)
    bounds = [end.total_seconds() for end in ends if end is not None]
    return min(bounds) - (asyncio.get_running_loop().time() - began) if bounds else otherwise


async def _beat(counters: Mapping[str, float] | None) -> None:
    while True:
        # None at once: most activities are over before, and each beat is a request to the server.
        await asyncio.sleep(BEAT_SECONDS)
        activity.heartbeat(*([dict(counters)] if counters else []))
