"""Stopping a process: gracefully on the first signal, at once on a second Ctrl-C."""

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine
from typing import Any


def run_until_stopped(work: Coroutine[Any, Any, None], stopping: Callable[[], None]) -> None:
    """Run until the work ends, or SIGTERM or SIGINT cancels it and it has cleaned up.

    A second SIGINT ends the process at once, with 130. Threads that still run are not waited for:
    the caller ends the process.

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
