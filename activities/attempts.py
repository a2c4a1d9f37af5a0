"""Attempts of activities that ask a model: which of them count, and what follows the last one."""

import random
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.heartbeat import heartbeating
from agentmem.errors import AgentMemError, ModelCallError
from agentmem.models.plain import as_mapping
from agentmem.models.waits import next_wait

MODEL_FAILURES = 5
"""The most failures of a model call. Restarts of workers do not count."""

SUMMARY_FAILURES = 3
"""The same for a summary, without which the user's turn continues."""

_FAILURES = "failures"


class FailureCount:
    """The failures of an activity's own work, over all its attempts.

    Temporal counts every attempt, also one that a worker's restart cut short. This counts only
    what the work itself raised. The count travels in the heartbeats' details, which the server
    gives to the next attempt, on whichever worker that runs.

    Args:
        most: How many such failures the activity may have. The last one is not retried.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        details: Any = next(iter(activity.info().heartbeat_details), None)
        before = as_mapping(details).get(_FAILURES, 0)
        self.counters: dict[str, float] = {_FAILURES: before} if before else {}

    @asynccontextmanager
    async def counting(self) -> AsyncGenerator[None]:
        """Heartbeat while the body runs, and count what it raises.

        Raises:
            ModelCallError: What the body raised, with a spread wait before the next attempt; not
                retryable if it was the last failure that the activity may have.
            AgentMemError: What the body raised; it is no failure of the model and does not count.
            Exception: Any other error counts too: it would come again at each attempt.
        """
        async with heartbeating(self.counters):
            try:
                yield
            except ModelCallError as error:
                raise self._failed(error) from None
            except AgentMemError:
                raise
            except Exception as error:
                if self._count() < self._most:
                    raise
                kind = getattr(error, "type", None) or type(error).__name__
                raise ApplicationError(str(error), type=kind, non_retryable=True) from error

    def _failed(self, error: ModelCallError) -> ModelCallError:
        if error.non_retryable:
            return error
        count = self._count()
        if count >= self._most:
            return type(error)(error.message, *error.details, non_retryable=True)
        wait = next_wait(error.next_retry_delay, count, random.random)
        return type(error)(error.message, *error.details, next_retry_delay=wait)

    def _count(self) -> int:
        count = int(self.counters.get(_FAILURES, 0)) + 1
        self.counters[_FAILURES] = count
        # The SDK sends what a failed attempt reported last before it reports the failure.
        activity.heartbeat(dict(self.counters))
        return count
