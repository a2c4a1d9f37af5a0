"""The time of an activity's work, over its attempts: from a slot on, and not without one."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from temporalio.testing import ActivityEnvironment

from activities.attempts import FailureCount
from agentmem.contracts import FailedCall
from agentmem.errors import ModelCallError


async def attempt(work: Callable[[], Any], **times: Any) -> tuple[Any, list[Any]]:
    """Run work as a second attempt; times are seconds since the activity was scheduled."""
    environment = ActivityEnvironment()
    beats: list[Any] = []
    environment.on_heartbeat = lambda *details: beats.extend(details)
    now = environment.info.scheduled_time
    environment.info = replace(
        environment.info,
        attempt=2,
        current_attempt_scheduled_time=now + timedelta(seconds=times["scheduled"]),
        started_time=now + timedelta(seconds=times["started"]),
        start_to_close_timeout=timedelta(seconds=times["bound"]),
        schedule_to_close_timeout=timedelta(days=1),
        heartbeat_details=[{"waited": times["waited"]}],
    )

    async def run() -> Any:
        count = FailureCount(5)
        async with count.counting():
            await work()
        return count.waited

    return await environment.run(run), beats


async def test_waits_add_up_and_are_no_work() -> None:
    """Of 50 seconds 39 were waits for a slot: of 12 seconds of work one is left, and it is done."""
    waited, beats = await attempt(
        lambda: asyncio.sleep(0), scheduled=41, started=50, bound=12, waited=30.0
    )
    assert waited == 39.0
    assert beats[0] == {"waited": 39.0}  # before a worker can die of anything


async def test_an_attempt_without_time_left_ends() -> None:
    """Eleven seconds of work are done of twelve: the second attempt ends within one."""
    with pytest.raises(ModelCallError, match="did not end in time") as caught:
        await attempt(lambda: asyncio.sleep(60), scheduled=41.5, started=50, bound=12, waited=30.0)
    assert caught.value.non_retryable
    assert caught.value.details == (FailedCall(kind="late", waited=38.5),)


async def test_no_retry_is_begun_that_has_no_time() -> None:
    """A failure whose wait is longer than what is left is the last, and says what failed."""

    async def fails() -> None:
        raise ModelCallError("overloaded", next_retry_delay=timedelta(seconds=30))

    with pytest.raises(ModelCallError, match="overloaded") as caught:
        await attempt(fails, scheduled=41, started=50, bound=20, waited=30.0)
    assert caught.value.non_retryable
