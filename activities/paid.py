"""The usage of an activity's attempts: a reply that is refused is paid for all the same."""

from typing import Any

from temporalio import activity

from agentmem.contracts import FailedCall, Usage
from agentmem.errors import ModelCallError
from agentmem.models.plain import as_mapping


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
