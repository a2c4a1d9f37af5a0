"""Stopping a process: gracefully on the first signal, at once on a second Ctrl-C."""

import asyncio
import faulthandler
import os
import signal
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, NoReturn

STOP_SECONDS = 25
"""The seconds that a process may take to end once it was told to, or has failed: fewer than its
supervisor waits before it kills it (Docker Compose here 30 s, Kubernetes by default 30 s)."""

HANG_SECONDS = 90
"""The seconds for which the event loop of a process may stand still before the process ends."""

BEAT_SECONDS = 10
"""The seconds between two signs of life."""

_LAST_RESORT_SECONDS = 3

_ending = False


def end_in_time() -> None:
    """Have the process end after 25 seconds, whatever it does until then.

    Called again, it changes nothing.
    """
    global _ending
    if not _ending:
        _ending = True
        _end_after(STOP_SECONDS)


async def live_on() -> NoReturn:
    """Give signs of life; the process ends when there is none for 90 seconds.

    After a panic in a native library, for lack of memory say, the interpreter may stand still for
    ever: then no Python code runs, a signal's handler neither.
    """
    while True:
        if not _ending:
            _end_after(HANG_SECONDS)
        await asyncio.sleep(BEAT_SECONDS)


def _end_after(seconds: float) -> None:
    """Have the process end after these seconds, unless this is called again before.

    Its threads' tracebacks go to standard error then, and it exits with 1. Where even that cannot
    be done, since there is no memory for another thread say, the kernel ends it by SIGALRM.
    """
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, seconds + _LAST_RESORT_SECONDS)
    with suppress(RuntimeError, MemoryError):
        faulthandler.dump_traceback_later(seconds, exit=True)


def run_until_stopped(work: Coroutine[Any, Any, None], stopping: Callable[[], None]) -> None:
    """Run until the work ends, or SIGTERM or SIGINT cancels it and it has cleaned up.

    Cleaning up may take 25 seconds. A second SIGINT ends the process at once, with 130. Threads
    that still run are not waited for: the caller ends the process.

    Args:
        work: What to run. It is cancelled once, on the first signal.
        stopping: Called on that signal.
    """

    async def main() -> None:
        task = asyncio.create_task(work)
        stopped = False

        def stop() -> None:
            nonlocal stopped
            if not stopped:
                stopped = True
                end_in_time()
                stopping()
                task.cancel()

        def interrupt() -> None:
            if stopped:
                os._exit(130)
            stop()

        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, stop)
        loop.add_signal_handler(signal.SIGINT, interrupt)
        await asyncio.wait([task])
        if not (stopped and task.cancelled()):
            await task

    # Closing the runner, as `asyncio.run` does, would wait for a thread that hangs.
    asyncio.Runner().run(main())
