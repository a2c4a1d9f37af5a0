"""A deadline for work in workflow code, with the same commands in the same order on every Python.

`asyncio.wait_for` makes a task of a coroutine on Python 3.11 and none from 3.12 on. In a workflow
that moves commands that are issued side by side, and a history that was recorded on one Python does
not replay on another. `asyncio.timeout` is the same on all of them.
"""

import asyncio
from collections.abc import Awaitable
from datetime import timedelta
from typing import Any, TypeVar

from temporalio import workflow

T = TypeVar("T")

_PATCH = "deadline-without-task"


async def within(limit: timedelta, work: Awaitable[T]) -> T:
    """Wait for work in a workflow, no longer than a limit; what runs over it is cancelled.

    Raises:
        TimeoutError: The work was not done in time.
    """
    seconds = limit.total_seconds()
    if not workflow.patched(_PATCH):
        return await _wait_for_of_3_11(work, seconds)
    async with asyncio.timeout(seconds):
        return await work


async def _wait_for_of_3_11(work: Awaitable[T], seconds: float) -> T:
    """Do what `asyncio.wait_for` does on Python 3.11, step by step, on every Python.

    Histories that were recorded before the patch replay with it. It can go with the last of them.
    """
    loop = asyncio.get_running_loop()
    waiter: asyncio.Future[None] = loop.create_future()
    timer = loop.call_later(seconds, _release, waiter)
    task = asyncio.ensure_future(work)

    def release(_: Any) -> None:
        _release(waiter)

    task.add_done_callback(release)
    try:
        try:
            await waiter
        except asyncio.CancelledError:
            if task.done():
                return task.result()
            task.remove_done_callback(release)
            await _cancel(task)
            raise
        if task.done():
            return task.result()
        task.remove_done_callback(release)
        await _cancel(task)
        try:
            return task.result()
        except asyncio.CancelledError as error:
            raise TimeoutError from error
    finally:
        timer.cancel()


async def _cancel(task: "asyncio.Future[Any]") -> None:
    waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def release(_: Any) -> None:
        _release(waiter)

    task.add_done_callback(release)
    try:
        task.cancel()
        await waiter
    finally:
        task.remove_done_callback(release)


def _release(waiter: "asyncio.Future[None]") -> None:
    if not waiter.done():
        waiter.set_result(None)
