"""Carrying a conversation over to its scope, whatever the store does, without keeping anybody.

Whoever answers or ends waits for a store for seconds at the most. What the store did not take by
then is handed over to a child workflow, `agent_hand_over`, which outlives its parent, reads the
parent's messages by query, stores them when the store is back, and starts the dream.
"""

import hashlib
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Protocol

from temporalio import workflow
from temporalio.exceptions import ActivityError, TimeoutError, TimeoutType

from agentmem import contracts
from agentmem.contracts import Definition, DreamInput, HandOver, Resolve, ScopeRef
from agentmem.dreaming.start import start_or_tell, tell
from agentmem.error_text import describe, raise_cancellation
from agentmem.errors import AgentMemError
from agentmem.policies import HAND_OVER_RUN_TIMEOUT, memory_within
from agentmem.priorities import of_turn
from agentmem.wire import clip

WORKFLOW = "agent_hand_over"

PATCH = "hand-over"
"""Histories without this mark were recorded when a dream had ten seconds to start, or was lost."""

CANCELLED_PATCH = "hand-over-when-cancelled"
"""Histories without this mark were recorded when a cancellation in an append left the words out."""

ANSWER_PATIENCE = timedelta(seconds=2)
"""The time that an answer waits for its store, where a workflow returns it after the hooks."""

END_PATIENCE = timedelta(seconds=10)
"""The time that a session that ends, or changes its run, waits for its store."""

_NAME_BYTES = 100


class HasTranscript(Protocol):
    """The parts of a working memory that carry it over to long-term memory."""

    session: str
    """The run in which the conversation began, by which transcripts know it."""

    @property
    def name(self) -> str:
        """The memory's name within its workflow."""
        ...

    def expect_transcript(self, store: ScopeRef) -> None:
        """Let everything said reach a scope, by a later dream if the workflow is terminated."""
        ...

    async def append_transcript(self, store: ScopeRef, *, within: timedelta | None = None) -> int:
        """Carry what is new over to a scope's transcript."""
        ...

    def number_transcript(self, store: ScopeRef) -> None:
        """Number what the transcript lacks, so that a hand-over can append it."""
        ...

    def rename_transcript(self, old: ScopeRef, new: ScopeRef) -> None:
        """Go on under another name of the same scope."""
        ...


class Carrier:
    """Carries one working memory over to one scope, and starts the scope's dreams.

    Args:
        memory: The conversation.
        store: Returns the scope; its provider may be `default`.
        dream: The dream's input with a scope yet to be filled in; None for no dreams.
        workflow: The dream's workflow type.
        task_queue: Where the dream runs; the workflow's own task queue if None.
        start: Starts a dream.
    """

    def __init__(
        self,
        memory: HasTranscript,
        store: Callable[[], ScopeRef],
        *,
        dream: DreamInput | None = None,
        kind: str = "agent_dream",
        task_queue: str | None = None,
        start: Callable[[DreamInput], Awaitable[object]] | None = None,
    ) -> None:
        self._memory = memory
        self._store = store
        self._dream = dream
        self._kind = kind
        self._task_queue = task_queue
        self._start = start
        self._handed_over = ""  # the id of the hand-over that may be under way
        self._given = ScopeRef(agent="", scope="")  # the scope that it was given

    def dream_with(self, dream: DreamInput) -> None:
        """Start dreams with other settings from now on."""
        self._dream = dream

    async def carry(
        self, agent_name: str, patience: timedelta | None, *, dreams: bool = True
    ) -> bool:
        """Append what the transcript lacks and start the dream; what goes wrong is one warning.

        What the store does not take in time is handed over. Only the store is waited for with
        patience: starting a workflow is between Temporal and us, and has no deadline.

        Args:
            agent_name: The agent's name, for warnings.
            patience: How long the store may take. None leaves it to the attempts of the append;
                zero does not ask the store at all.
            dreams: Whether a dream is to be started.

        Returns:
            Whether everything is on its way: stored, or handed over.
        """
        try:
            if self._handed_over and await self._told():
                return True
            store = self._store()
            try:
                store = await self._appended(store, patience)
            except ActivityError as error:
                raise_cancellation(error)
                await self._hand_over(store, dreams)
                _warn(agent_name, store, _why(error, patience), self._handed_over)
            except _NoTime:
                await self._hand_over(store, dreams)
                _warn(agent_name, store, "it did not answer in time", self._handed_over)
            else:
                if dreams and self._dream is not None and self._start is not None:
                    await self._start(_of(self._dream, store))
        except Exception as error:
            raise_cancellation(error)
            workflow.logger.warning("%s: no dream was started: %s", agent_name, describe(error))
            return False
        return True

    async def leave(self, agent_name: str, *, dreams: bool = True) -> None:
        """Hand over at once what the transcript may lack, after a cancellation.

        Args:
            agent_name: The agent's name, for warnings.
            dreams: Whether a dream is to be started.
        """
        if workflow.patched(CANCELLED_PATCH):
            await self.carry(agent_name, timedelta(0), dreams=dreams)

    async def _appended(self, store: ScopeRef, patience: timedelta | None) -> ScopeRef:
        """Append, and return the scope with its provider resolved."""
        if patience is not None and patience <= timedelta(0):
            raise _NoTime
        began = workflow.now()
        resolved = await _resolved(store, patience)
        if resolved != store:
            self._memory.rename_transcript(store, resolved)
        left = None if patience is None else patience - (workflow.now() - began)
        await self._memory.append_transcript(resolved, within=left)
        return resolved

    async def _hand_over(self, store: ScopeRef, dreams: bool) -> None:
        self._memory.number_transcript(store)
        request = HandOver(
            store=store,
            memory=self._memory.name,
            dream=_of(self._dream, store) if dreams and self._dream is not None else None,
            workflow=self._kind,
            task_queue=self._task_queue or "",
        )
        name = hand_over_id(workflow.info().run_id, self._memory.name, store)
        if not await start_or_tell(
            WORKFLOW,
            request,
            name=name,
            task_queue=None,
            run_timeout=HAND_OVER_RUN_TIMEOUT,
            summary=_summary(store),
            priority=of_turn(store.agent, store.scope),
        ):
            raise AgentMemError(f"{name} could be neither started nor told that there is more")
        self._handed_over, self._given = name, store

    async def _told(self) -> bool:
        """Tell the hand-over that is under way; False if it is done, and this turn's is ours."""
        self._memory.number_transcript(self._given)
        if await tell(self._handed_over):
            return True
        self._handed_over = ""
        return False


class _NoTime(Exception):
    """The time is up before the store was asked."""


def hand_over_id(run_id: str, memory: str, store: ScopeRef) -> str:
    """Return the workflow id of the hand-over of a run's working memory to a scope."""
    digest = hashlib.sha256(store.model_dump_json().encode()).hexdigest()[:12]
    return f"hand-over/{run_id}/{memory}/{digest}"


async def _resolved(store: ScopeRef, patience: timedelta | None) -> ScopeRef:
    # The worker knows what its default is; the dream's id must name it.
    if store.provider != "default":
        return store
    found: Definition = await workflow.execute_activity(
        contracts.resolve,
        Resolve(provider=store.provider),
        priority=of_turn(store.agent, store.scope),
        **memory_within(patience),
    )
    return store.replace(provider=found.long_term_memory)


def _of(dream: DreamInput, store: ScopeRef) -> DreamInput:
    return dream.replace(agent=store.agent, scope=store.scope, provider=store.provider)


def _why(error: ActivityError, patience: timedelta | None) -> str:
    cause = error.cause
    if isinstance(cause, TimeoutError) and cause.cause is not None:
        return describe(cause.cause)
    if isinstance(cause, TimeoutError) and patience is not None:
        seconds = f"{patience.total_seconds():g} seconds"
        if cause.type is TimeoutType.SCHEDULE_TO_START:
            return f"no worker was free for it within {seconds}"
        return f"it did not answer within {seconds}"
    return describe(error)


def _warn(agent_name: str, store: ScopeRef, why: str, name: str) -> None:
    workflow.logger.warning(
        "%s: the store %s did not take what was said: %s; no dream was started yet, %s goes on "
        "trying",
        *(agent_name, store.provider, why, name),
    )


def _summary(store: ScopeRef) -> str:
    agent, scope = clip(store.agent, _NAME_BYTES), clip(store.scope, _NAME_BYTES)
    return f"Words for the memory of {agent}, {scope}"
