"""Letting what dreams have read go in time, on every store that the worker has open."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta

from agentmem.errors import AgentMemError
from agentmem.storage.registry import Providers

logger = logging.getLogger(__name__)

EVERY = timedelta(hours=6)


@asynccontextmanager
async def retention(providers: Providers, days: int) -> AsyncGenerator[None, None]:
    """Delete, now and every six hours while this lasts, what was read more than `days` ago.

    Any number of workers may do so at once. A store that fails is tried again the next time.
    """
    task = asyncio.create_task(_keep(providers, days))
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _keep(providers: Providers, days: int) -> None:
    while True:
        for provider in providers.opened():
            try:
                await provider.expire(datetime.now(UTC) - timedelta(days=days))
            except AgentMemError as error:
                logger.warning("transcripts that are due stay for now: %s", error.message)
        await asyncio.sleep(EVERY.total_seconds())
