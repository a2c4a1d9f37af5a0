"""Event loops in threads of their own, for code that is not ours: it may block."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import TypeVar, cast

T = TypeVar("T")

CLEANUP_SECONDS = 3.0
"""The number of seconds that a cancelled caller waits for the cancelled work to clean up."""


class GuestLoop:
    """Runs a user's coroutines where a blocking call holds up nothing but its neighbours.

    The loop that heartbeats for activities must not stop: the server would take the worker for
    dead, and everybody's calls would be made again. The thread starts with the first coroutine,
    and does not keep the process alive.

    Args:
        name: The thread's name.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def run(self, work: Callable[[], Awaitable[T]]) -> T:
        """Call a function in the thread, and wait here for what it gives.

        The context variables are the caller's. Cancelling the wait cancels the work, and waits
        three seconds at most for it to clean up.

        Raises:
            BaseException: What the work raised.
        """
        guest = _Guest(work)
        loop = self._started()
        ending = asyncio.wrap_future(asyncio.run_coroutine_threadsafe(guest.run(), loop))
        try:
            error, result = await asyncio.shield(ending)
        except asyncio.CancelledError:
            loop.call_soon_threadsafe(guest.cancel)
            await asyncio.wait([ending], timeout=CLEANUP_SECONDS)
            raise
        if error is not None:
            raise error
        return cast("T", result)

    def close(self) -> None:
        """Stop the loop; the next coroutine starts another one."""
        with self._lock:
            loop, self._loop = self._loop, None
        if loop is not None:
            loop.call_soon_threadsafe(loop.stop)

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                thread = threading.Thread(
                    target=_serve, args=(self._loop,), name=self._name, daemon=True
                )
                thread.start()
            return self._loop


class _Guest:
    """One piece of work, which may be cancelled before it began."""

    def __init__(self, work: Callable[[], Awaitable[object]]) -> None:
        self._work = work
        self._task: asyncio.Task[object] | None = None
        self._is_cancelled = False

    async def run(self) -> tuple[BaseException | None, object]:
        """Return what was raised, and what was given."""
        self._task = cast("asyncio.Task[object]", asyncio.current_task())
        try:
            if self._is_cancelled:
                raise asyncio.CancelledError
            return None, await self._work()
        except BaseException as error:  # one that ends a process would end the thread
            return error, None

    def cancel(self) -> None:
        """Cancel it, in its own thread."""
        self._is_cancelled = True
        if self._task is not None:
            self._task.cancel()


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        loop.close()
