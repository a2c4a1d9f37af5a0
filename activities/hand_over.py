"""Storing what a conversation's transcript lacks, as soon as its store takes it."""

import asyncio
from collections.abc import Awaitable
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from temporalio import activity
from temporalio.exceptions import ApplicationErrorCategory

from activities.heartbeat import heartbeating
from activities.queries import (
    Handle,
    fetch_lacking,
    fetch_page,
    is_gone,
    run_of,
    was_reset,
)
from agentmem.contracts import Delivered, Delivery, ScopeRef
from agentmem.errors import AgentMemError, ProviderError
from agentmem.memory.providers.protocol import SessionLedger, TransactionalProvider
from agentmem.memory.providers.records import MessageId
from agentmem.memory.providers.registry import Providers
from agentmem.memory.transcript_rows import transcript_rows
from agentmem.messages import from_ranges
from agentmem.redaction import Redactor
from agentmem.secret_shapes import redacted

Result = TypeVar("Result")

STORE_SECONDS = 10.0
"""The seconds that one step of a store may take; one that hangs must not keep a worker's slot."""

PAGE = 200
"""Messages that are asked for at once."""


class UnknownSession(AgentMemError):
    """A store does not know a session whose words are to be collected."""


class HandOverActivity:
    """The activity `agentmem.hand_over`.

    Args:
        providers: The worker's stores.
        patience: How long a store may be away before its hand-overs give up.
        redact: Takes out what must not be kept.
    """

    def __init__(
        self, providers: Providers, patience: timedelta, redact: Redactor = redacted
    ) -> None:
        self._providers = providers
        self._patience = patience
        self._redact = redact

    @activity.defn(name="agentmem.hand_over")
    async def hand_over(self, request: Delivery) -> Delivered:
        """Store what a transcript lacks of a run; what it took before is not stored again.

        Raises:
            ProviderError: The store failed, or the run does not answer; tried again until the
                worker's patience is over.
            AgentMemError: The server has deleted the run; nothing brings its words back.
        """
        try:
            async with heartbeating():
                return await self._delivered(request)
        except AgentMemError as error:
            if is_gone(error):
                raise
            # A wrong setting can be put right too: it is tried again as well.
            raise self._failed(request, error.message) from error
        except TimeoutError as error:
            why = f"it did not answer within {STORE_SECONDS:g} seconds"
            raise self._failed(request, why) from error

    async def _delivered(self, request: Delivery) -> Delivered:
        provider = await _bounded(self._providers.get(request.store.provider))
        handle = run_of(request.workflow_id, request.run_id)
        messages = await deliver(
            provider, handle, request.store, request.memory, self._redact, ended=False
        )
        resolved = self._providers.resolve(request.store.provider)
        return Delivered(store=request.store.replace(provider=resolved), messages=messages)

    def _failed(self, request: Delivery, why: str) -> ProviderError:
        waited = datetime.now(UTC) - activity.info().scheduled_time
        over = waited >= self._patience
        hours = self._patience / timedelta(hours=1)
        given_up = f" for {hours:g} hours (AGENTMEM_HAND_OVER_HOURS), given up" if over else ""
        return ProviderError(
            f"the store {request.store.provider} did not take what was said{given_up}: {why}",
            non_retryable=over,
            # The session has warned of it; each new attempt would leave a traceback in the log.
            category=(
                ApplicationErrorCategory.UNSPECIFIED if over else ApplicationErrorCategory.BENIGN
            ),
        )


async def deliver(
    provider: TransactionalProvider,
    handle: Handle,
    store: ScopeRef,
    memory: str,
    redact: Redactor,
    *,
    ended: bool,
    known: bool = False,
) -> int:
    """Append what a scope's transcript lacks of a run's working memory.

    A run that was reset has nothing to give: the run that goes on instead brings what was kept of
    it, and the rest was taken away.

    Args:
        provider: The opened store.
        handle: The run's, pinned.
        store: The scope, by the name that the run knows it by.
        memory: The working memory.
        redact: Takes out what must not be kept.
        ended: Whether the run has ended, so that everything said is to be stored.
        known: Whether the store must know the session already: an erased one must not come back.

    Returns:
        How many messages were lacking; the store has them now.

    Raises:
        UnknownSession: The store must know the session, and does not.
        AgentMemError: The run does not give its messages.
        ProviderError: The store failed.
        TimeoutError: The store took over ten seconds for one step.
    """
    if await was_reset(handle):
        return 0
    lacking = await fetch_lacking(handle, memory, store, ended=ended)
    session = lacking.session
    if known and not (
        isinstance(provider, SessionLedger)
        and await _bounded(provider.knows_session(store.agent, store.scope, session, memory))
    ):
        raise UnknownSession(
            "its store does not know it: the store was away when it began, or the scope was erased"
        )
    ids = list(from_ranges(lacking.numbered))
    forgotten = list(from_ranges(lacking.forgotten))
    done = 0
    while done < len(ids):
        page = await fetch_page(handle, memory, ids[done : done + PAGE])
        rows = await asyncio.to_thread(
            transcript_rows,
            page,
            session=session,
            memory=memory,
            first=lacking.acknowledged + done + 1,
            forgotten=forgotten,
            redact=redact,
        )
        held = await _bounded(provider.append(store.agent, store.scope, rows))
        done = held - lacking.acknowledged  # the store may have had more than this page
    for message in [*forgotten, *from_ranges(lacking.late)]:  # a row may have its text, and quotes
        which = MessageId(session=session, memory=memory, message=message)
        await _bounded(provider.forget_message(store.agent, store.scope, which))
    return len(ids)


async def _bounded(step: Awaitable[Result]) -> Result:
    async with asyncio.timeout(STORE_SECONDS):
        return await step
