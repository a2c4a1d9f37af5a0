"""Attempts of activities that ask a model: which count, what they cost, what follows."""

import asyncio
import random
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.heartbeat import heartbeating, slot_wait
from agentmem.contracts import FailedCall, Usage
from agentmem.errors import AgentMemError, ModelCallError
from agentmem.llm.errors import next_wait
from agentmem.wire import as_mapping


class Paid:
    """The usage of the running activity's attempts so far, handed on by heartbeats.

    Attributes:
        counters: What the activity's heartbeats carry; the fields of `Usage` are among them from
            the first usage on.
    """

    def __init__(self, counters: dict[str, float]) -> None:
        """Begin with what earlier attempts left.

        Args:
            counters: What the activity's heartbeats carry, to be added to in place.
        """
        details = list(activity.info().heartbeat_details)
        kept = as_mapping(details[0]) if details else {}
        counters |= {name: value for name, value in kept.items() if name in Usage.model_fields}
        self.counters = counters

    @property
    def usage(self) -> Usage:
        """The usage that was paid for so far."""
        return Usage.model_validate(
            {name: value for name, value in self.counters.items() if name in Usage.model_fields}
        )

    def add(self, usage: Usage) -> None:
        """Count what a reply took."""
        self.counters |= self.usage.plus(usage).model_dump()

    def told(self, error: ModelCallError, budget: int | None = None) -> ModelCallError:
        """Return an error with all that was paid for as its detail, and pass that on.

        Args:
            error: What the attempt fails by; its own usage is counted here.
            budget: The tokens that there are; where they are used up, no retry follows.
        """
        failed = next((one for one in error.details if isinstance(one, FailedCall)), FailedCall())
        if failed.paid != Usage():
            self.add(failed.paid)
        if self.counters:
            activity.heartbeat(dict(self.counters))
        spent = self.usage.prompt + self.usage.completion
        is_spent = budget is not None and spent >= budget and not error.non_retryable
        options: dict[str, Any] = {
            "non_retryable": error.non_retryable or is_spent,
            "next_retry_delay": None if is_spent else error.next_retry_delay,
        }
        used_up = f"; it is not asked again, as the {budget} tokens left of the budget are used up"
        message = f"{error.message.rstrip('.')}{used_up}" if is_spent else error.message
        return type(error)(message, failed.replace(paid=self.usage), **options)


MODEL_FAILURES = 5
"""The most failures of a model call. Restarts of workers do not count."""

SUMMARY_FAILURES = 3
"""The same for a summary, without which the user's turn continues."""

LATE = "late"
"""The kind of a failed call whose attempts had no time left."""

_FAILURES = "failures"
_WAITED = "waited"
_SHORT = 0.5  # seconds that nobody waits in earnest


class FailureCount:
    """The failures and the time of an activity's own work, over all its attempts.

    Temporal counts every attempt, also one that a worker's restart cut short, and all the time,
    also that without a free slot. This counts only what the work itself raised, and the time from
    a slot on: the attempts, and the waits between them. The counts travel in the heartbeats'
    details, which the server gives to the next attempt, on whichever worker that runs.

    Attributes:
        counters: What the activity's heartbeats carry.
        waited: Seconds that its attempts waited for a slot so far.

    Args:
        most: How many such failures the activity may have. The last one is not retried.
        work: The time of all attempts together. By default it is what Temporal gives to one.
    """

    def __init__(self, most: int, work: timedelta | None = None) -> None:
        info = activity.info()
        self._most = most
        details: Any = next(iter(info.heartbeat_details), None)
        kept = as_mapping(details)
        before, waited = kept.get(_FAILURES, 0), kept.get(_WAITED, 0.0)
        self.counters: dict[str, float] = {_FAILURES: before} if before else {}
        now = slot_wait().total_seconds()
        self.waited = round(waited + (now if now >= _SHORT else 0), 1)
        if self.waited:
            self.counters[_WAITED] = self.waited
        earlier = info.current_attempt_scheduled_time - info.scheduled_time
        all_work = (work or info.start_to_close_timeout or timedelta.max).total_seconds()
        self._left = all_work - max(0.0, earlier.total_seconds() - waited)
        self._ends = asyncio.get_running_loop().time() + self._left
        self._is_first = info.attempt == 1

    @asynccontextmanager
    async def counting(self) -> AsyncGenerator[None]:
        """Heartbeat while the body runs, and count what it raises.

        Raises:
            ModelCallError: What the body raised, with a spread wait before the next attempt; not
                retryable if it was the last failure that the activity may have, or no time is left
                for another attempt. Or the attempts took all their time.
            AgentMemError: What the body raised; it is no failure of the model and does not count.
            Exception: Any other error counts too: it would come again at each attempt.
        """
        # Temporal ends the first attempt itself.
        most = None if self._is_first else timedelta(seconds=max(0.0, self._left))
        async with heartbeating(self.counters, most=most):
            if self.waited:  # a worker that dies before the first beat must not lose it
                activity.heartbeat(dict(self.counters))
            bound = asyncio.timeout(None if most is None else most.total_seconds())
            try:
                async with bound:
                    yield
            except ModelCallError as error:
                raise self._failed(error) from None
            except AgentMemError:
                raise
            except Exception as error:
                if bound.expired():
                    raise self._late() from None
                if self._count() < self._most:
                    raise
                kind = getattr(error, "type", None) or type(error).__name__
                raise ApplicationError(str(error), type=kind, non_retryable=True) from error

    def _failed(self, error: ModelCallError) -> ModelCallError:
        if self.waited:
            error = _told(error, self.waited)
        if error.non_retryable:
            return error
        count = self._count()
        wait = next_wait(error.next_retry_delay, count, random.random)
        now = asyncio.get_running_loop().time()
        if count >= self._most or now + wait.total_seconds() >= self._ends:
            return type(error)(error.message, *error.details, non_retryable=True)
        return type(error)(error.message, *error.details, next_retry_delay=wait)

    def _late(self) -> ModelCallError:
        return ModelCallError(
            "it did not end in time (all attempts together)",
            FailedCall(kind=LATE, waited=self.waited),
            non_retryable=True,
        )

    def _count(self) -> int:
        count = int(self.counters.get(_FAILURES, 0)) + 1
        self.counters[_FAILURES] = count
        # The SDK sends what a failed attempt reported last before it reports the failure.
        activity.heartbeat(dict(self.counters))
        return count


def _told(error: ModelCallError, waited: float) -> ModelCallError:
    """Return an error whose detail says how long its activity waited for a slot."""
    call = next((one for one in error.details if isinstance(one, FailedCall)), FailedCall())
    return type(error)(
        error.message,
        call.replace(waited=waited),
        non_retryable=error.non_retryable,
        next_retry_delay=error.next_retry_delay,
    )
