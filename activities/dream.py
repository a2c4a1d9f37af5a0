"""Dreams as activities: the stores and the model behind a dream's phases."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from temporalio import activity
from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest
from temporalio.service import RPCError

from activities.heartbeat import heartbeating
from activities.transcripts import Collector
from agentmem.contracts import (
    PHASES,
    SEARCH_ATTRIBUTES,
    Begun,
    DreamInput,
    DreamReport,
    PhaseName,
    PhaseResult,
    PhaseRun,
    ScopeRef,
)
from agentmem.dreaming.begin import Opening, open_dream
from agentmem.dreaming.commit import commit_dream
from agentmem.dreaming.hook import dream_id
from agentmem.dreaming.model_replies import Asker
from agentmem.dreaming.phases import run_phase
from agentmem.errors import ModelCallError, ModelUnavailable
from agentmem.llm.errors import is_outage
from agentmem.storage.identities import DEFAULT
from agentmem.storage.registry import Providers
from agentmem.wire import JSONObject

_LIST_TIMEOUT = timedelta(seconds=3)


class DreamActivities:
    """The activities that a worker runs for dreams.

    Everything is idempotent by the dream's id: an activity that runs again finds what it did.

    Args:
        providers: The worker's stores.
        ask: Asks a model once.
        model: The model of dreams that name none.
        context: Says how many tokens a model's context has; 0 if it does not know.
        zone: The time zone whose days count in "yesterday", where a message has none of its own.
        collector: Brings in what sessions said that were terminated; None for none.
        stores: The agents' own stores, by the agents' names. A dream that names no store is in its
            agent's, and in the worker's default for an agent that is not among them.
    """

    def __init__(
        self,
        providers: Providers,
        ask: Asker,
        *,
        model: str,
        context: Callable[[str], int] = lambda model: 0,
        zone: str = "UTC",
        collector: Collector | None = None,
        stores: Mapping[str, str] | None = None,
    ) -> None:
        self._providers = providers
        self._ask = ask
        self._model = model
        self._context = context
        self._zone = zone
        self._collector = collector
        self._stores = stores or {}

    @property
    def activities(self) -> list[Callable[..., Awaitable[Any]]]:
        """All of them, to register."""
        phases = [self.orient, self.gather_signal, self.consolidate, self.prune]
        return [self.begin, *phases, self.commit, self.give_up]

    @activity.defn(name="dream.begin")
    async def begin(self, request: DreamInput) -> Begun:
        """Open the dream of this run, unless the workflow does not hold its scope's lock."""
        info = activity.info()
        named = request.provider
        own = self._stores.get(request.agent, named) if named == DEFAULT else named
        identity = self._providers.resolve(own)
        store = ScopeRef(provider=identity, agent=request.agent, scope=request.scope)
        if info.workflow_id != dream_id(store):
            return Begun(status="delegated", store=store)
        model = request.model or self._model
        opening = Opening(
            dream=info.workflow_run_id or "",
            store=store,
            model=model,
            context=self._smallest_context(request, model),
            zone=self._zone,
            now=datetime.now(UTC),
        )
        provider = await self._providers.get(identity)
        if self._collector is not None:
            notes = await self._collector.collect(provider, store)
            opening = replace(opening, notes=notes)
        begun = await open_dream(provider, request, opening)
        return begun.replace(search_attributes=await _registered())

    @activity.defn(name="dream.orient")
    async def orient(self, phase: PhaseRun) -> PhaseResult:
        """Look over the scope: duplicates, contradictions, stale entries."""
        return await self._run("orient", phase)

    @activity.defn(name="dream.gather_signal")
    async def gather_signal(self, phase: PhaseRun) -> PhaseResult:
        """Find what the new messages tell: findings with their evidence."""
        return await self._run("gather_signal", phase)

    @activity.defn(name="dream.consolidate")
    async def consolidate(self, phase: PhaseRun) -> PhaseResult:
        """Work the findings into the draft."""
        return await self._run("consolidate", phase)

    @activity.defn(name="dream.prune")
    async def prune(self, phase: PhaseRun) -> PhaseResult:
        """Tidy the draft and bring it to its cap."""
        return await self._run("prune", phase)

    @activity.defn(name="dream.commit")
    async def commit(self, phase: PhaseRun) -> DreamReport:
        """Commit the draft in one transaction."""
        return await commit_dream(await self._providers.get(phase.store.provider), phase)

    @activity.defn(name="dream.give_up")
    async def give_up(self, phase: PhaseRun) -> None:
        """End a dream whose patience was used up, and take back its attempt: it did not fail."""
        provider = await self._providers.get(phase.store.provider)
        agent, scope = phase.store.agent, phase.store.scope
        await provider.end_dream(agent, scope, phase.dream, "gave_up", "undo")

    async def _run(self, name: PhaseName, phase: PhaseRun) -> PhaseResult:
        counters: dict[str, int] = {}
        async with heartbeating(counters):
            provider = await self._providers.get(phase.store.provider)
            try:
                return await run_phase(name, phase, provider, self._marked, counters.update)
            except ModelCallError as error:
                if not is_outage(error):
                    raise
                # Without the cause, as where it came from.
                wait = error.next_retry_delay
                raise ModelUnavailable(
                    error.message, *error.details, next_retry_delay=wait
                ) from None

    def _smallest_context(self, request: DreamInput, model: str) -> int:
        # All phases begin with the same facts, and share the messages and findings, of which the
        # verifier reads its part.
        models = {request.phase(name).model or model for name in PHASES}
        models |= {request.verifier} - {""}
        return min((size for one in models if (size := self._context(one))), default=0)

    async def _marked(self, request: JSONObject) -> JSONObject:
        # Claude caches up to a mark, set behind what all requests of a dream share; the other
        # vendors cache a beginning by themselves.
        if "claude" not in request["model"]:
            return await self._ask(request)
        system, facts, *rest = request["messages"]
        marked = {**facts, "cache_control": {"type": "ephemeral"}}
        return await self._ask({**request, "messages": [system, marked, *rest]})


async def _registered() -> list[str]:
    """Return which of our search attributes the server knows; none if it does not say."""
    try:
        client = activity.client()
        known = await client.operator_service.list_search_attributes(
            ListSearchAttributesRequest(namespace=client.namespace), timeout=_LIST_TIMEOUT
        )
    except RPCError:
        return []  # no right to ask, as on Temporal Cloud
    return [name for name in SEARCH_ATTRIBUTES if name in known.custom_attributes]
