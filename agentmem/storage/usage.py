"""Noting which facts are asked for: after the answer, once a day a key, and never in its way."""

import asyncio
import logging
from collections.abc import Iterable
from datetime import UTC, date, datetime

from agentmem.contracts import ScopeRef
from agentmem.storage.protocol import TransactionalProvider

logger = logging.getLogger(__name__)

_REMEMBERED = 100_000  # keys of a day; beyond that some are noted again


class UsageNotes:
    """The facts whose use this worker noted today. A fact's use counts when a dream must choose."""

    def __init__(self) -> None:
        self._day = date.min
        self._noted: set[tuple[str, str, str, str]] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def note(self, provider: TransactionalProvider, store: ScopeRef, keys: Iterable[str]) -> None:
        """Note these keys in the background; a failure is forgotten."""
        today = datetime.now(UTC).date()
        if today != self._day or len(self._noted) > _REMEMBERED:
            self._day, self._noted = today, set()
        where = (store.provider, store.agent, store.scope)
        new = [key for key in keys if (*where, key) not in self._noted]
        if new:
            self._noted.update((*where, key) for key in new)
            task = asyncio.create_task(_use(provider, store, new, today))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def written(self) -> None:
        """Wait until what was noted is written, or has failed."""
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def _use(
    provider: TransactionalProvider, store: ScopeRef, keys: list[str], today: date
) -> None:
    try:
        await provider.use(store.agent, store.scope, keys, today)
    except Exception as error:
        logger.debug("usage of %d keys was not noted: %s", len(keys), type(error).__name__)
