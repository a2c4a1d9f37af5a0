"""Transcripts as activities: the append, the hand-over and the collection.

An append stores what a transcript lacks. A hand-over does so as soon as its store accepts it. A
collection brings what sessions said that were terminated or timed out.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar, cast

from pydantic import ValidationError
from temporalio import activity
from temporalio.api.common.v1 import Payload
from temporalio.client import WorkflowExecution
from temporalio.exceptions import ApplicationErrorCategory, TemporalError

from activities.heartbeat import heartbeating
from activities.messages import (
    Handle,
    MessageCache,
    fetch_lacking,
    fetch_page,
    is_gone,
    run_of,
    was_reset,
)
from agentmem.contracts import Append, Delivered, Delivery, Resolve, ScopeRef
from agentmem.errors import AgentMemError, ProviderError
from agentmem.memory.redaction import Redactor, redacted
from agentmem.memory.transcript import transcript_rows
from agentmem.messages import from_ranges
from agentmem.records import MessageId
from agentmem.storage.protocol import SessionLedger, TransactionalProvider
from agentmem.storage.registry import Providers


class TranscriptActivities:
    """The activity `agentmem.append`."""

    def __init__(
        self, providers: Providers, cache: MessageCache, redact: Redactor = redacted
    ) -> None:
        """Append to these stores, with the worker's messages, redacted."""
        self._providers = providers
        self._cache = cache
        self._redact = redact

    @activity.defn(name="agentmem.append")
    async def append(self, request: Append) -> int:
        """Append messages to the transcript, and blank what was forgotten.

        Returns:
            The last sequence number that the store holds; without new messages, 0.

        Raises:
            ProviderError: The store failed.
        """
        provider = await self._providers.get(request.store.provider)
        messages = await self._cache.resolve_prompt(request.prompt, timed=True)
        rows = await asyncio.to_thread(
            transcript_rows,
            messages,
            session=request.session,
            memory=request.prompt.memory,
            first=request.first,
            forgotten=request.forgotten,
            redact=self._redact,
        )
        agent, scope = request.store.agent, request.store.scope
        held = await provider.append(agent, scope, rows)
        for message in request.forgotten:  # a row may be there with its text, and be quoted
            which = MessageId(
                session=request.session, memory=request.prompt.memory, message=message
            )
            await provider.forget_message(agent, scope, which)
        return held


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


logger = logging.getLogger(__name__)

SECONDS = 5.0
"""The seconds that a dream's begin looks for such runs; the next dream finds the others."""

RUN_SECONDS = 2.0
"""The seconds that one run may take to answer: it may be of a workflow that no worker runs now."""

EVENTS = 100
"""The first events of a run that are searched for the conversations that began there."""

MOST_LINES = 10
"""The most lines for the report, which stays small: it lands in the history of a running parent."""

KNOWN = 10_000
"""Runs that a worker remembers to have looked at: the next dream looks further."""

_CLOSED = "ExecutionStatus IN ('Terminated', 'TimedOut')"
_SESSIONS = f"WorkflowType = 'agent' AND {_CLOSED}"
_HAND_OVERS = (
    "WorkflowType = 'agent_hand_over' AND ExecutionStatus IN ('Terminated', 'TimedOut', 'Failed')"
)
_OWN = f"WorkflowType NOT IN ('agent', 'agent_hand_over', 'agent_dream') AND {_CLOSED}"


@dataclass(frozen=True, kw_only=True)
class _Lost:
    """A conversation whose words may be lacking.

    Attributes:
        workflow_id: Whose it is.
        run_id: The run that has it.
        memory: The working memory.
        agent: Whose scope.
        scope: The scope.
        provider: The store, as the run names it; empty for that of whoever asks.
        ended: Whether all of it is to be stored.
    """

    workflow_id: str
    run_id: str
    memory: str
    agent: str
    scope: str
    provider: str = ""
    ended: bool


class Collector:
    """Finds a scope's runs that ended without a word, as long as the server still has them.

    One for a worker: it remembers which runs it has read.

    Args:
        redact: Takes out what must not be kept.
        resolve: Returns a provider's identity; a run may name its store `default`.
    """

    def __init__(
        self, redact: Redactor = redacted, resolve: Callable[[str], str] = lambda name: name
    ) -> None:
        self._redact = redact
        self._resolve = resolve
        self._known: dict[str, list[_Lost]] = {}
        self._stored: set[tuple[_Lost, str]] = set()
        self._tries: Counter[_Lost] = Counter()

    async def collect(self, provider: TransactionalProvider, store: ScopeRef) -> list[str]:
        """Store what a scope's lost runs said; returns lines for the dream's report.

        What goes wrong is in these lines, and the next dream tries again.
        """
        lines: list[str] = []
        try:
            async with asyncio.timeout(SECONDS):
                again: list[_Lost] = []  # those that did not answer before come last
                async for lost in self._lost(store):
                    if self._tries[lost]:
                        again.append(lost)
                    else:
                        lines += await self._stored_of(provider, store, lost)
                for lost in sorted(again, key=lambda one: self._tries[one]):
                    lines += await self._stored_of(provider, store, lost)
        except TimeoutError:
            lines.append(f"ended sessions: the search took over {SECONDS:g} s; more next time")
        except TemporalError as error:  # no right to list workflows, for example
            logger.warning("ended sessions were not looked for: %s", error)
        more = len(lines) - MOST_LINES
        return [
            *lines[:MOST_LINES],
            *([f"{more} more lines of ended sessions"] if more > 0 else []),
        ]

    async def _stored_of(
        self, provider: TransactionalProvider, store: ScopeRef, lost: _Lost
    ) -> list[str]:
        name = f"session {lost.workflow_id}, which ended without handing over"
        handle = run_of(lost.workflow_id, lost.run_id)
        self._tries[lost] += 1
        place = store.replace(provider=lost.provider) if lost.provider else store
        try:
            async with asyncio.timeout(RUN_SECONDS):
                number = await deliver(
                    *(provider, handle, place, lost.memory, self._redact),
                    ended=lost.ended,
                    known=True,
                )
            lines = [f"{name}: {number} messages collected"] if number else []
        except UnknownSession as error:
            lines = [f"{name}: its words are not collected: {error.message}"]
        except AgentMemError as error:
            return [f"{name}: its words could not be read: {error.message}"]
        except TimeoutError:
            return [f"{name}: it did not answer within {RUN_SECONDS:g} s; tried again next time"]
        self._stored.add((lost, store.model_dump_json()))
        return lines

    async def _lost(self, store: ScopeRef) -> AsyncGenerator[_Lost]:
        for query, read in ((_SESSIONS, _session), (_HAND_OVERS, _hand_over), (_OWN, _own)):
            async for run in activity.client().list_workflows(query):
                if len(self._known) > KNOWN:
                    self._known.clear()
                if run.run_id not in self._known:
                    self._known[run.run_id] = [one async for one in read(run)]
                for lost in self._known[run.run_id]:
                    if self._is_of(lost, store):
                        yield lost

    def _is_of(self, lost: _Lost, store: ScopeRef) -> bool:
        if (lost.agent, lost.scope) != (store.agent, store.scope):
            return False
        if (lost, store.model_dump_json()) in self._stored:
            return False
        return not lost.provider or self._names(lost.provider, store.provider)

    def _names(self, provider: str, identity: str) -> bool:
        try:
            return self._resolve(provider) == identity
        except AgentMemError:  # of another worker's configuration
            return False


async def _session(run: WorkflowExecution) -> AsyncGenerator[_Lost]:
    request = await _input(run)
    agent, scope = request.get("agent", "assistant"), request.get("scope", "")
    yield _Lost(
        workflow_id=run.id, run_id=run.run_id, memory="wm0", agent=agent, scope=scope, ended=True
    )


async def _hand_over(run: WorkflowExecution) -> AsyncGenerator[_Lost]:
    request = await _input(run)
    store = cast("dict[str, Any] | None", request.get("store"))
    if not isinstance(store, dict) or not run.parent_id or not run.parent_run_id:
        return
    yield _Lost(
        workflow_id=run.parent_id,
        run_id=run.parent_run_id,
        memory=str(request.get("memory", "")),
        agent=store.get("agent", ""),
        scope=store.get("scope", ""),
        ended=False,
    )


async def _own(run: WorkflowExecution) -> AsyncGenerator[_Lost]:
    """Yield the conversations of a workflow of one's own, as its store was told of them."""
    handle = activity.client().get_workflow_handle(run.id, run_id=run.run_id)
    seen = 0
    async for event in handle.fetch_history_events(page_size=EVENTS):
        seen += 1
        if seen > EVENTS:
            return
        scheduled = event.activity_task_scheduled_event_attributes
        if scheduled.activity_type.name != "agentmem.resolve":
            continue
        try:
            request = Resolve.model_validate(await _first(scheduled.input.payloads))
        except ValidationError:
            continue
        for note in request.notes:
            yield _Lost(
                workflow_id=run.id,
                run_id=run.run_id,
                memory=note.memory,
                agent=note.store.agent,
                scope=note.store.scope,
                provider=note.store.provider,
                ended=True,
            )


async def _input(run: WorkflowExecution) -> dict[str, Any]:
    """Return what a run was started with; empty if that is no JSON object."""
    handle = activity.client().get_workflow_handle(run.id, run_id=run.run_id)
    async for event in handle.fetch_history_events(page_size=1):
        found = await _first(event.workflow_execution_started_event_attributes.input.payloads)
        return cast("dict[str, Any]", found) if isinstance(found, dict) else {}
    return {}


async def _first(payloads: Any) -> Any:
    """Return the first argument, None if there is none that can be read."""
    given: list[Payload] = list(payloads)
    try:
        found: list[Any] = await activity.client().data_converter.decode(given[:1])
    except Exception:  # whatever a caller may have sent
        return None
    return found[0] if found else None
