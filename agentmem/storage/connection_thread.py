"""A thread with a connection of its own, for a database whose calls block.

The event loop is crossed twice an operation, there and back, however many statements it has; and
all operations that wait when the thread is free cross together. One that is cancelled while it runs
still ends as a whole.
"""

import asyncio
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any, NamedTuple

from sqlalchemy import Connection, Engine

from agentmem.errors import ProviderError
from agentmem.storage.database import Result, Work

TOGETHER = 32
"""The most operations that the thread takes at once."""

IDLE_SECONDS = 60.0
"""The number of seconds that a thread waits for work before it ends: a worker may be asked for
stores of many names, each once."""


@dataclass(frozen=True)
class OperationResult:
    """The outcome of an operation: its result, or the error that it raised."""

    result: Any = None
    error: BaseException | None = None


Run = Callable[[Connection, Sequence[Work[Any]]], list[OperationResult]]
"""Runs several operations on the connection and returns an outcome for each."""


class _Job(NamedTuple):
    work: Work[Any]
    done: "asyncio.Future[Any]"


_Queue = SimpleQueue[_Job | None]


class Lane:
    """A thread and its connection, made when there is work, given up when there was none for long.

    Args:
        engine: Where the connection comes from.
        run: How the thread runs the operations that have come together.
    """

    def __init__(self, engine: Engine, run: Run) -> None:
        self._jobs: _Queue = SimpleQueue()
        self._state = _State()
        self._engine = engine
        self._make = partial(_Thread, self._jobs, self._state, engine, run)
        self._closed = False
        # A store that nobody closes does not keep its thread.
        self._end = weakref.finalize(self, self._jobs.put, None)
        self._end.atexit = False

    @property
    def busy(self) -> int:
        """Operations that are running or wait for the thread."""
        return self._state.busy + self._jobs.qsize()

    async def run(self, work: Work[Result]) -> Result:
        """Run an operation and return its result."""
        if self._closed:
            raise ProviderError("this SQLite store was closed; open it again")
        done: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        with self._state.lock:
            if self._state.thread is None:
                thread = self._make()
                thread.start()  # or there is no memory for it, and nothing waits for it
                self._state.thread = thread
            self._jobs.put(_Job(work, done))
        return await done

    async def close(self) -> None:
        """Let what waits end, then give back the connection and end the thread."""
        self._closed = True
        with self._state.lock:
            thread = self._state.thread
            if thread is not None:
                self._end()
        if thread is None:
            self._end.detach()
            await asyncio.to_thread(self._engine.dispose)
        else:
            await asyncio.to_thread(thread.join)


@dataclass
class _State:
    """The state that a lane and its thread share.

    Attributes:
        lock: Held while an operation is put in the queue, and while a thread decides to end.
        thread: The thread that takes operations; None if none does.
        busy: Operations that it is running.
    """

    lock: Lock = field(default_factory=Lock)
    thread: "_Thread | None" = None
    busy: int = 0


class _Thread(Thread):
    def __init__(self, jobs: _Queue, state: _State, engine: Engine, run: Run) -> None:
        # Whoever awaits a result keeps the process alive, nothing else does.
        super().__init__(name="agentmem-sqlite", daemon=True)
        self._jobs = jobs
        self._state = state
        self._engine = engine
        self._operate = run
        self._over = False

    def run(self) -> None:
        connection: Connection | None = None
        while (jobs := self._next()) is not None:
            try:
                connection = connection or self._engine.connect()
                outcomes = self._operate(connection, [job.work for job in jobs])
            except BaseException as error:
                outcomes = [OperationResult(error=error)] * len(jobs)
            self._state.busy = 0
            _answer(jobs, outcomes)
        if connection is not None:
            connection.close()
        if self._over:
            self._engine.dispose()

    def _next(self) -> list[_Job] | None:
        """Wait for operations and take all that are there; None at the end."""
        jobs: list[_Job] = []
        job = self._first()
        while job is not None:
            self._state.busy += 1
            jobs.append(job)
            if len(jobs) == TOGETHER or self._jobs.empty():
                return [job for job in jobs if not job.done.cancelled()]
            job = self._jobs.get()
        if jobs:
            self._jobs.put(None)  # the end comes after them
        return jobs or None

    def _first(self) -> _Job | None:
        """Wait for an operation; None at the end, and when there was none for long."""
        while True:
            try:
                job = self._jobs.get(timeout=IDLE_SECONDS)
            except Empty:
                with self._state.lock:
                    if self._jobs.empty():
                        self._state.thread = None
                        return None
                continue
            self._over = job is None
            return job


def outcome(work: Work[Any], connection: Connection) -> OperationResult:
    """Run one operation."""
    try:
        return OperationResult(work(connection))
    except BaseException as error:
        return OperationResult(error=error)


def _answer(jobs: Sequence[_Job], outcomes: Sequence[OperationResult]) -> None:
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[_Job, OperationResult]]] = {}
    for job, one in zip(jobs, outcomes, strict=True):
        by_loop.setdefault(job.done.get_loop(), []).append((job, one))
    for loop, some in by_loop.items():
        with suppress(RuntimeError):  # the loop has ended, and with it who waited
            loop.call_soon_threadsafe(_tell, some)


def _tell(answers: Sequence[tuple[_Job, OperationResult]]) -> None:
    for job, one in answers:
        if job.done.done():
            continue
        if one.error is None:
            job.done.set_result(one.result)
        else:
            job.done.set_exception(one.error)
