"""What goes on beside a session's turns: dreams, and noticing that nobody talks any more."""

import asyncio
from collections.abc import Callable
from datetime import timedelta

from temporalio import workflow

from agentmem.agent import Assistant, equip, resolve
from agentmem.approvals import Approvals
from agentmem.contracts import AgentInput, Definition, DreamSettings, Resolve, Store
from agentmem.dreaming.hook import dream
from agentmem.errors import InvalidInput
from agentmem.hooks import Hook, run_hooks
from agentmem.memory.long_term import LongTermMemory
from agentmem.memory.references import ProviderReference
from agentmem.memory.working import WorkingMemory

FINISH = timedelta(seconds=60)
"""How long an ending session waits for hooks that are still queued."""


class Background:
    """Runs a session's hooks one at a time, after the answer: turns never wait for them."""

    def __init__(
        self,
        agent: str,
        memory: WorkingMemory,
        hook: Hook | None,
        settings: DreamSettings,
        store: Store | None,
    ) -> None:
        self.memory = memory
        self._agent = agent
        self._hook = hook
        self._store = store
        self._on = frozenset(settings.on) if hook is not None else frozenset[str]()
        self._idle = timedelta(minutes=settings.idle_minutes)
        self._every = settings.every
        self._answers = 0
        self._queue: list[str | None] = []
        self._busy = False
        self._last = workflow.now()
        self._working: Callable[[], bool] = lambda: False
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin to run hooks."""
        if self._hook is not None:
            self._tasks.append(asyncio.create_task(self._work()))

    def watch(
        self, end_after_minutes: float, end: Callable[[], None], working: Callable[[], bool]
    ) -> None:
        """Begin to watch for quiet times.

        Args:
            working: Whether a turn is accepted and not over: such a time is not quiet.
            end_after_minutes: Call `end` after so many quiet minutes; 0 means never.
            end: Ends the session.
        """
        self._working = working
        if "idle" in self._on:
            self._tasks.append(asyncio.create_task(self._watch(self._idle, self._dream_if_ahead)))
        if end_after_minutes > 0:
            quiet = timedelta(minutes=end_after_minutes)
            self._tasks.append(asyncio.create_task(self._watch(quiet, end)))

    def touch(self) -> None:
        """Take note that a turn is over: quiet begins now."""
        self._last = workflow.now()

    def answered(self, text: str) -> None:
        """Take note of an answer."""
        self._answers += 1
        if "complete" in self._on and self._answers % self._every == 0:
            self._queue.append(text)

    async def paused(self) -> None:
        """Take note that a turn waits for a person."""
        if "pause" in self._on:
            self._queue.append(None)

    async def finish(self) -> None:
        """Dream at the end if there is anything new, and wait for what is queued, 60 s at most."""
        await self._settle()
        if self._on & {"end", "complete"}:
            self._dream_if_ahead()
        await self._settle()
        for task in self._tasks:
            task.cancel()

    async def _settle(self) -> None:
        if not self._queue and not self._busy:
            return
        try:
            await workflow.wait_condition(
                lambda: not self._queue and not self._busy, timeout=FINISH
            )
        except TimeoutError:
            workflow.logger.warning("the session ends with %d hooks undone", len(self._queue) + 1)

    def _dream_if_ahead(self) -> None:
        # What the store has not confirmed counts, so a hook that failed is made good here.
        waiting = bool(self._queue) or self._busy
        if not waiting and self._store is not None and self.memory.is_ahead_of(self._store):
            self._queue.append(None)

    async def _work(self) -> None:
        while True:
            await workflow.wait_condition(lambda: bool(self._queue))
            value = self._queue.pop(0)
            self._busy = True
            try:
                await run_hooks([self._hook] if self._hook else [], self._agent, value)
            finally:
                self._busy = False

    async def _watch(self, quiet: timedelta, then: Callable[[], None]) -> None:
        """Call `then` once for each quiet time; one timer for each, not one a turn."""
        while True:
            await workflow.wait_condition(lambda: not self._working())
            seen = self._last
            left = seen + quiet - workflow.now()
            await workflow.sleep(max(left, timedelta(seconds=1)))
            if self._last == seen and not self._working():
                then()
                await workflow.wait_condition(lambda seen=seen: self._last != seen)


async def prepare(request: AgentInput, approvals: Approvals) -> tuple[Assistant, Background]:
    """Make the agent that a session or a single answer needs.

    Raises:
        ConfigurationError: The worker knows no such agent; the message lists what exists.
        InvalidInput: No agent is named, or it has long-term memory and no scope was given.
    """
    if not request.agent.strip():
        raise InvalidInput("field 'agent' is empty; name one of the worker's agents")
    definition = await resolve(Resolve(agent=request.agent))
    memory = WorkingMemory(**definition.working_memory.model_dump())
    long_term = _long_term(definition, request.scope)
    hook: Hook | None = None
    settings = definition.dream or DreamSettings(on=[])
    if long_term is not None:
        definition = equip(definition, long_term)
        if definition.dream is not None:
            hook = dream(
                working_memory=memory,
                long_term_memory=long_term,
                model=settings.model or definition.model,
                workflow=settings.workflow,
                limits=settings.limits,
                mode=settings.mode,
            )
    background = Background(
        definition.name, memory, hook, settings, long_term.store if long_term else None
    )

    async def paused(_: str, __: object) -> None:
        await background.paused()

    return Assistant(definition, memory=memory, on_pause=[paused]), background


def _long_term(definition: Definition, scope: str) -> LongTermMemory | None:
    if not definition.long_term_memory:
        return None
    if not scope:
        raise InvalidInput(
            f"field 'scope' is missing: agent {definition.name!r} has long-term memory; give a "
            'name for whose facts these are, like "user-1"'
        )
    provider = ProviderReference(identity=definition.long_term_memory)
    return LongTermMemory(provider, definition.name, scope)
