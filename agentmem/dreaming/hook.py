"""Starting dreams from workflow code: the hook, and the protocol that loses no message.

A dream is a child workflow that outlives its parent. Its id names provider, agent and scope, which
makes the id a lock: one dream a scope at a time. Whoever finds one running tells it that there is
more, and it goes round again.
"""

import hashlib
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Protocol
from urllib.parse import quote

from pydantic import ValidationError
from temporalio import workflow as temporal

from agentmem import contracts
from agentmem.contracts import (
    Definition,
    DreamInput,
    DreamLimits,
    Mode,
    PhaseSettings,
    Resolve,
    ScopeRef,
    SessionNote,
    StepName,
)
from agentmem.deadline import within
from agentmem.dreaming.hand_over import ANSWER_PATIENCE, PATCH, Carrier, HasTranscript
from agentmem.dreaming.start import start_or_tell
from agentmem.error_text import describe
from agentmem.errors import ConfigurationError, DreamFailed
from agentmem.policies import MEMORY, dream_run_timeout
from agentmem.priorities import of_dream, of_turn
from agentmem.wire import clip

START_TIMEOUT = timedelta(seconds=10)
"""The time that a dream had to start in histories recorded before there were hand-overs."""

DREAM_ID = "dream/"
"""The beginning of the ids of scopes' dreams."""

ID_BYTES = 200
"""The longest plain id; an id of over 1,000 bytes would hang the parent."""

# The server refuses a summary of over 400 bytes, and the parent would hang on that.
_NAME_BYTES = 100


class HasStore(Protocol):
    """The part of a long-term memory that a hook needs."""

    @property
    def store(self) -> ScopeRef:
        """The provider's identity, the agent and the scope."""
        ...


def dream(
    *,
    working_memory: HasTranscript,
    long_term_memory: HasStore,
    model: str | None = None,
    workflow: str = "agent_dream",
    limits: DreamLimits | None = None,
    phases: Mapping[StepName, PhaseSettings] | None = None,
    task_queue: str | None = None,
    mode: Mode = "commit",
) -> "DreamHook":
    """Return a hook for `on_complete` and `on_pause` that starts a dream, and waits for none.

    The hook carries what was said since the last time over to the scope's transcript and starts
    the dream, or tells the running one that there is more. What goes wrong is one warning in the
    workflow's log, never the agent's failure. Making the hook does no I/O.

    Args:
        working_memory: The conversation to learn from.
        long_term_memory: The facts to work on: their agent and scope, not the task's.
        model: The model of the phases that name none; None for that of the agent whose hook this
            is, and for the worker's default where it is no agent's.
        workflow: The dream's workflow type. One of your own takes a `DreamInput`.
        limits: Tool calls a phase, facts a scope, failures before dreams are skipped.
        phases: Model, attempts and time of single phases, by their names.
        task_queue: Where the dream runs; the workflow's own task queue if None.
        mode: `commit`, or `propose`: nothing is stored until people apply it.

    Raises:
        ConfigurationError: There is no such phase or mode, a bound is out of its range, or the
            four phases may take longer together than a dream has time.
    """
    settings = _checked(
        model=model or "",
        limits=limits or DreamLimits(),
        phases=phases or {},
        mode=mode,
    )
    if not workflow:
        raise ConfigurationError("dream: workflow: name a workflow type, like 'agent_dream'")
    return DreamHook(
        working_memory, long_term_memory, settings, workflow=workflow, task_queue=task_queue
    )


class DreamHook:
    """Starts a scope's dreams; `dream()` makes it.

    Attributes:
        started: How many dreams it started, or told that there is more.
        carrier: Does the work, for callers with another patience.
    """

    def __init__(
        self,
        memory: HasTranscript,
        facts: HasStore,
        settings: DreamInput,
        *,
        workflow: str,
        task_queue: str | None,
    ) -> None:
        self._memory = memory
        self._facts = facts
        self._settings = settings
        self._workflow = workflow
        self._task_queue = task_queue
        self.started = 0
        self.carrier = Carrier(
            memory,
            lambda: facts.store,
            dream=settings,
            kind=workflow,
            task_queue=task_queue,
            start=self._start_dream,
        )

    def bounds_itself(self) -> bool:
        """Tell whether the hook keeps its own time, and needs nobody to end it."""
        return temporal.patched(PATCH)

    def expect(self) -> None:
        """Let everything that is said reach the scope, if need be by a later dream."""
        self._memory.expect_transcript(self._facts.store)

    def note(self) -> SessionNote:
        """Return what the store is to know of the conversation from its beginning on."""
        session, memory = self._memory.session, self._memory.name
        return SessionNote(store=self._facts.store, session=session, memory=memory)

    def use_model(self, model: str) -> None:
        """Dream with an agent's model, unless the hook names one or has taken another agent's."""
        if not self._settings.model:
            self._settings = self._settings.replace(model=model)
            self.carrier.dream_with(self._settings)

    async def __call__(self, agent_name: str, value: Any) -> None:
        """Carry what was said over and start the dream; what goes wrong is one warning.

        The answer waits for the store for 2 seconds at the most: then `agent_hand_over` brings it.
        """
        if self.bounds_itself():
            self.started += await self.carrier.carry(agent_name, ANSWER_PATIENCE)
            return
        try:
            await within(START_TIMEOUT, self._start())
        except TimeoutError:
            temporal.logger.warning("%s: no dream was started within %s", agent_name, START_TIMEOUT)
        except Exception as error:
            temporal.logger.warning("%s: no dream was started: %s", agent_name, describe(error))

    async def leave(self, agent_name: str) -> None:
        """Hand over at once what was said: the workflow was cancelled before the hook was done."""
        if self.bounds_itself():
            await self.carrier.leave(agent_name)

    async def _start(self) -> None:
        store = await _resolved(self._facts.store)
        await self._memory.append_transcript(store)
        place = {"agent": store.agent, "scope": store.scope, "provider": store.provider}
        request = self._settings.replace(**place)
        await self._start_dream(request)
        self.started += 1

    async def _start_dream(self, request: DreamInput) -> None:
        await start_dream(request, workflow=self._workflow, task_queue=self._task_queue)


async def start_dream(
    request: DreamInput, *, workflow: str = "agent_dream", task_queue: str | None = None
) -> str:
    """Start the scope's dream, or tell the running one that there is more; waits for neither.

    Args:
        request: The scope, its provider resolved.
        workflow: The dream's workflow type.
        task_queue: Where it runs; the workflow's own task queue if None.

    Returns:
        The dream's workflow id.

    Raises:
        DreamFailed: A dream was there at each start and gone at each signal, five times over.
        temporalio.exceptions.FailureError: The server refused.
    """
    name = dream_id(ScopeRef(provider=request.provider, agent=request.agent, scope=request.scope))
    if await start_or_tell(
        workflow,
        request,
        name=name,
        task_queue=task_queue,
        run_timeout=dream_run_timeout(request.limits),
        summary=_summary(request),
        priority=of_dream(request.agent, request.scope),
    ):
        return name
    raise DreamFailed(f"{name} could be neither started nor told that there is more")


def dream_id(store: ScopeRef) -> str:
    """Return the workflow id of a scope's dreams: `dream/<provider>/<agent>/<scope>`, quoted.

    Over 200 bytes it is the first 40 characters and a digest of the whole.
    """
    parts = (store.provider, store.agent, store.scope)
    name = DREAM_ID + "/".join(quote(part, safe="") for part in parts)
    if len(name) <= ID_BYTES:
        return name
    return f"{name[:40]}-{hashlib.sha256(name.encode()).hexdigest()}"


def _checked(**settings: Any) -> DreamInput:
    """Return a dream's settings as an input for which the scope is still to be filled in."""
    # Now, where people see it: once the hook runs, an error is but a warning in a log.
    try:
        return DreamInput.model_validate({"agent": "any", "scope": "any"} | settings)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        path = ".".join(map(str, first["loc"]))
        raise ConfigurationError(f"dream: {path}: {first['msg']}") from error


async def _resolved(store: ScopeRef) -> ScopeRef:
    # The worker knows what its default is; the dream's id must name it.
    if store.provider != "default":
        return store
    found: Definition = await temporal.execute_activity(
        contracts.resolve,
        Resolve(provider=store.provider),
        priority=of_turn(store.agent, store.scope),
        **MEMORY,
    )
    return store.replace(provider=found.long_term_memory)


def _summary(request: DreamInput) -> str:
    return f"Dream of {clip(request.agent, _NAME_BYTES)}, {clip(request.scope, _NAME_BYTES)}"
