"""Heartbeats for the whole of an activity, so that a cancellation reaches it and a crash shows."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

from temporalio import activity

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
    beats = asyncio.create_task(_beat(counters))
    try:
        yield
    finally:
        beats.cancel()


async def _beat(counters: Mapping[str, float] | None) -> None:
    while True:
        # None at once: most activities are over before, and each beat is a request to the server.
        await asyncio.sleep(BEAT_SECONDS)
        activity.heartbeat(*([dict(counters)] if counters else []))
