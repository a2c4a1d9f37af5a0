"""Heartbeats for the whole of an activity, so that a cancellation reaches it and a crash shows."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from temporalio import activity

BEAT_SECONDS = 1.0
"""A cancellation comes back on a heartbeat: it must arrive within two seconds."""


@asynccontextmanager
async def heartbeating() -> AsyncGenerator[None]:
    """Heartbeat while the body runs.

    The worker cancels the activity's task when Temporal asks for it, so the body sees an
    ordinary `asyncio.CancelledError` where it waits.
    """
    beats = asyncio.create_task(_beat())
    try:
        yield
    finally:
        beats.cancel()


async def _beat() -> None:
    while True:
        activity.heartbeat()
        await asyncio.sleep(BEAT_SECONDS)
