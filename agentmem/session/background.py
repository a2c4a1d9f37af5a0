"""The work beside a session's turns: dreams, and noticing that nobody talks any more."""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta

from temporalio import workflow
from temporalio.exceptions import ActivityError

from agentmem.agent.hooks import run_hooks
from agentmem.contracts import DreamSettings, ScopeRef
from agentmem.dreaming.hand_over import PATCH, Carrier
from agentmem.dreaming.hook import DreamHook
from agentmem.error_text import describe, raise_cancellation
from agentmem.memory.working import WorkingMemory

FINISH = timedelta(seconds=60)
"""The time that an ending session waits for hooks that are still queued."""


class Background:
    """Runs a session's hooks one at a time, after the answer: turns never wait for them.

    Attributes:
        answers: How many there were.
        busy: Whether a hook runs.
        undreamt: Whether the transcript has messages that no dream was told of.
        continued: Whether the session went on in a new run, or tried to: then the transcript gets
            the whole of it.
        last_dream: When a dream was last started, or told that there is more.
        on_dream: Called then.
    """

    def __init__(
        self,
        agent: str,
        memory: WorkingMemory,
        hook: DreamHook | None,
        settings: DreamSettings,
        store: ScopeRef,
    ) -> None:
        """Take what there is to run.

        Args:
            agent: Its name.
            memory: The conversation.
            hook: Starts dreams; None without them.
            settings: When.
            store: Where the transcript goes.
        """
        self.memory = memory
        self.answers = 0
        self.undreamt = False
        self.continued = False
        self.last_dream: datetime | None = None
        self.on_dream: Callable[[], None] = lambda: None
        self._agent = agent
        self._hook = hook
        self._store = store
        self._carrier = hook.carrier if hook else Carrier(memory, lambda: store)
        self._on = frozenset(settings.on) if hook is not None else frozenset[str]()
        self._idle = timedelta(minutes=settings.idle_minutes)
        self._every = settings.every
        self._queue: list[str | None] = []
        self.busy = False
        self._held = False
        self._last = workflow.now()
        self._talking: Callable[[], bool] = lambda: False
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def queued(self) -> bool:
        """Tell if a hook has yet to begin."""
        return bool(self._queue)

    @property
    def working(self) -> bool:
        """Tell if a hook runs or is queued."""
        return bool(self._queue) or self.busy

    def queue(self) -> None:
        """Queue a hook that the run before had no time for."""
        if self._hook is not None:
            self._queue.append(None)

    def hold(self, on: bool = True) -> None:
        """Begin no hook for now, or begin them again."""
        self._held = on

    def start(self) -> None:
        """Begin to run hooks."""
        if self._hook is not None:
            self._tasks.append(asyncio.create_task(self._work()))

    def watch(
        self, end_after_minutes: float, end: Callable[[], None], talking: Callable[[], bool]
    ) -> None:
        """Begin to watch for quiet times.

        Args:
            talking: Whether a turn is accepted and not over: such a time is not quiet.
            end_after_minutes: Call `end` after so many quiet minutes; 0 means never.
            end: Ends the session.
        """
        self._talking = talking
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
        self.answers += 1
        if "complete" in self._on and self.answers % self._every == 0:
            self._queue.append(text)

    async def paused(self) -> None:
        """Take note that a turn waits for a person."""
        if "pause" in self._on:
            self._queue.append(None)

    async def finish(self, patience: timedelta) -> None:
        """Bring what is new to memory, and start a dream of it if dreams are wanted at the end.

        Args:
            patience: How long whoever waits for the end waits for the store.
        """
        if self.working or self._is_ahead():
            if workflow.patched(PATCH):
                await self._carry_at_the_end(patience)
            else:
                await self._finish_as_before()
        for task in self._tasks:
            task.cancel()

    def _is_ahead(self) -> bool:
        """Tell whether memory lacks something that it is to have."""
        if self._hook is None:  # a transcript has the whole of a conversation, or none of it
            return self.continued and self.memory.is_ahead_of(self._store)
        return self.undreamt or self.memory.is_ahead_of(self._store)

    async def _carry_at_the_end(self, patience: timedelta) -> None:
        wanted = self.working or bool(self._on & {"end", "complete"})
        self._queue.clear()  # what was queued is done here
        try:
            await self._carry_in_time(patience, wanted)
        except asyncio.CancelledError:
            await self._carrier.leave(self._agent, dreams=wanted)
            raise

    async def _carry_in_time(self, patience: timedelta, wanted: bool) -> None:
        begun = workflow.now()
        if self.busy:
            try:
                await workflow.wait_condition(
                    lambda: not self.busy,
                    timeout=patience,
                    timeout_summary="a hook may take so long",
                )
            except TimeoutError:  # it may still come through; nothing is stored twice
                workflow.logger.warning("%s: a hook is not done", self._agent)
        if self.busy or self._is_ahead():
            left = patience - (workflow.now() - begun)
            await self._carry(left, dreams=wanted)

    async def _finish_as_before(self) -> None:
        """Do what runs did that were recorded before there were hand-overs."""
        await self.settle()
        if self._on & {"end", "complete"}:
            self._dream_if_ahead()
        await self.settle()
        if self.continued:
            await self.append_transcript()

    async def append_transcript(self, within: timedelta | None = None) -> None:
        """Append what the transcript lacks; a store that does not take it in time is a warning."""
        if not self.memory.is_ahead_of(self._store):
            return
        try:
            await self.memory.append_transcript(self._store, within=within)
            self.undreamt = True
        except ActivityError as error:
            raise_cancellation(error)
            workflow.logger.warning("the transcript was not appended: %s", describe(error))

    async def settle(self) -> None:
        """Wait for what is queued, 60 s at most."""
        if not self.working:
            return
        try:
            await workflow.wait_condition(
                lambda: not self.working,
                timeout=FINISH,
                timeout_summary="hooks may take so long",
            )
        except TimeoutError:
            workflow.logger.warning("%d hooks of the session are not done", len(self._queue) + 1)

    def _dream_if_ahead(self) -> None:
        # What the store has not confirmed counts, so a hook that failed is made good here.
        if not self.working and (self.undreamt or self.memory.is_ahead_of(self._store)):
            self._queue.append(None)

    async def _work(self) -> None:
        while True:
            await workflow.wait_condition(lambda: bool(self._queue) and not self._held)
            value = self._queue.pop(0)
            self.busy = True
            try:
                await self._dream(value)
            finally:
                self.busy = False

    async def _dream(self, value: str | None) -> None:
        if self._hook is None:
            return
        if workflow.patched(PATCH):
            await self._carry(None)  # nobody waits
            return
        before = self._hook.started
        await run_hooks([self._hook], self._agent, value)
        self._dreamt(self._hook.started > before)

    async def _carry(self, patience: timedelta | None, *, dreams: bool = True) -> None:
        started = await self._carrier.carry(self._agent, patience, dreams=dreams)
        if dreams and self._hook is not None:
            self._dreamt(started)

    def _dreamt(self, started: bool) -> None:
        self.undreamt = not started
        if started:
            self.last_dream = workflow.now()
            self.on_dream()

    async def _watch(self, quiet: timedelta, then: Callable[[], None]) -> None:
        """Call `then` once for each quiet time; one timer for each, not one a turn."""
        while True:
            await workflow.wait_condition(lambda: not self._talking())
            seen = self._last
            left = seen + quiet - workflow.now()
            await workflow.sleep(max(left, timedelta(seconds=1)))
            if self._last == seen and not self._talking():
                then()
                await workflow.wait_condition(lambda seen=seen: self._last != seen)
