"""Collecting what sessions said that ended without handing it over: terminated, or timed out."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any, cast

from temporalio import activity
from temporalio.client import WorkflowExecution
from temporalio.exceptions import TemporalError

from activities.hand_over import deliver
from activities.queries import run_of
from agentmem.contracts import ScopeRef
from agentmem.errors import AgentMemError
from agentmem.memory.providers.protocol import TransactionalProvider
from agentmem.redaction import Redactor
from agentmem.secret_shapes import redacted

logger = logging.getLogger(__name__)

SECONDS = 5.0
"""The seconds that a dream's begin looks for such sessions; the next dream finds the others."""

KNOWN = 10_000
"""Runs that a worker remembers to have looked at: the next dream looks further."""

_CLOSED = "ExecutionStatus IN ('Terminated', 'TimedOut')"
_SESSIONS = f"WorkflowType = 'agent' AND {_CLOSED}"
_HAND_OVERS = (
    "WorkflowType = 'agent_hand_over' AND ExecutionStatus IN ('Terminated', 'TimedOut', 'Failed')"
)


@dataclass(frozen=True, kw_only=True)
class _Lost:
    """A run whose words may be lacking: whose they are, and whether all of it is to be stored."""

    workflow_id: str
    run_id: str
    memory: str
    agent: str
    scope: str
    ended: bool


class Collector:
    """Finds a scope's sessions that ended without a word, as long as the server still has them.

    One for a worker: it remembers which runs it has read.

    Args:
        redact: Takes out what must not be kept.
    """

    def __init__(self, redact: Redactor = redacted) -> None:
        self._redact = redact
        self._known: dict[str, _Lost | None] = {}
        self._stored: set[tuple[str, str]] = set()

    async def collect(self, provider: TransactionalProvider, store: ScopeRef) -> list[str]:
        """Store what a scope's lost sessions said; returns lines for the dream's report.

        What goes wrong is in these lines, and the next dream tries again.
        """
        lines: list[str] = []
        try:
            async with asyncio.timeout(SECONDS):
                async for lost in self._lost(store):
                    lines += await self._stored_of(provider, store, lost)
        except TimeoutError:
            lines.append(f"ended sessions: the search took over {SECONDS:g} s; more next time")
        except TemporalError as error:  # no right to list workflows, for example
            logger.warning("ended sessions were not looked for: %s", error)
        return lines

    async def _stored_of(
        self, provider: TransactionalProvider, store: ScopeRef, lost: _Lost
    ) -> list[str]:
        name = f"session {lost.workflow_id}, which ended without handing over"
        handle = run_of(lost.workflow_id, lost.run_id)
        try:
            number = await deliver(
                provider, handle, store, lost.memory, self._redact, ended=lost.ended, known=True
            )
        except AgentMemError as error:
            return [f"{name}: its words could not be read: {error.message}"]
        self._stored.add((lost.run_id, store.model_dump_json()))
        return [f"{name}: {number} messages collected"] if number else []

    async def _lost(self, store: ScopeRef) -> AsyncGenerator[_Lost]:
        for query, read in ((_SESSIONS, _session), (_HAND_OVERS, _hand_over)):
            async for run in activity.client().list_workflows(query):
                if len(self._known) > KNOWN:
                    self._known.clear()
                if run.run_id not in self._known:
                    self._known[run.run_id] = read(run, await _input(run))
                lost = self._known[run.run_id]
                if lost is None or (lost.agent, lost.scope) != (store.agent, store.scope):
                    continue
                if (lost.run_id, store.model_dump_json()) not in self._stored:
                    yield lost


async def _input(run: WorkflowExecution) -> dict[str, Any]:
    """Return what a run was started with; empty if that is no JSON object."""
    client = activity.client()
    handle = client.get_workflow_handle(run.id, run_id=run.run_id)
    async for event in handle.fetch_history_events(page_size=1):
        payloads = event.workflow_execution_started_event_attributes.input.payloads
        try:
            found: list[Any] = await client.data_converter.decode(payloads[:1])
        except Exception:  # whatever a caller may have sent
            return {}
        return cast("dict[str, Any]", found[0]) if found and isinstance(found[0], dict) else {}
    return {}


def _session(run: WorkflowExecution, request: dict[str, Any]) -> _Lost | None:
    agent, scope = request.get("agent", "assistant"), request.get("scope", "")
    return _Lost(
        workflow_id=run.id, run_id=run.run_id, memory="wm0", agent=agent, scope=scope, ended=True
    )


def _hand_over(run: WorkflowExecution, request: dict[str, Any]) -> _Lost | None:
    store = cast("dict[str, Any] | None", request.get("store"))
    if not isinstance(store, dict) or not run.parent_id or not run.parent_run_id:
        return None
    return _Lost(
        workflow_id=run.parent_id,
        run_id=run.parent_run_id,
        memory=str(request.get("memory", "")),
        agent=store.get("agent", ""),
        scope=store.get("scope", ""),
        ended=False,
    )
