"""The outages that a dream waits for, and the errors that fail it."""

import pytest
from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    RetryState,
    TimeoutError,
    TimeoutType,
)

from agentmem.dreaming.patience import what_is_away
from agentmem.errors import (
    ConfigurationError,
    ContextOverflow,
    DreamFailed,
    ModelCallError,
    ModelUnavailable,
    ProviderError,
    StoreUnavailable,
)


def ended(cause: BaseException) -> ActivityError:
    """Return what a workflow gets of an activity that ended so."""
    error = ActivityError(
        "Activity task failed",
        scheduled_event_id=1,
        started_event_id=2,
        identity="",
        activity_type="",
        activity_id="",
        retry_state=RetryState.MAXIMUM_ATTEMPTS_REACHED,
    )
    error.__cause__ = cause
    return error


def timeout(kind: TimeoutType) -> TimeoutError:
    """Return a time-out as a workflow gets it."""
    return TimeoutError("activity timeout", type=kind, last_heartbeat_details=[])


@pytest.mark.parametrize(
    ("cause", "away"),
    [
        (ModelUnavailable("away"), "the model"),
        (StoreUnavailable("away"), "the store"),
        (ApplicationError("gone", type="WorkerShutdown"), "a worker"),
        (timeout(TimeoutType.HEARTBEAT), "a worker"),
        (ModelCallError("garbled"), ""),
        (ContextOverflow("too long"), ""),
        (ProviderError("a message was forgotten"), ""),
        (DreamFailed("nothing was handed in"), ""),
        (ConfigurationError("no such store"), ""),
        (ApplicationError("bug", type="KeyError"), ""),
        (ApplicationError("no type"), ""),
    ],
    ids=lambda value: getattr(value, "type", None) or str(value),
)
def test_an_outage_is_told_from_a_failure(cause: BaseException, away: str) -> None:
    """An outage ends; a failure may come again however long one waits."""
    assert what_is_away(ended(cause), asks_model=True) == away
    assert what_is_away(ended(cause), asks_model=False) == away


def test_a_slow_model_fails_and_a_slow_store_is_waited_for() -> None:
    """A phase without an answer in its time has failed; a store that hangs is away."""
    slow = ended(timeout(TimeoutType.START_TO_CLOSE))
    assert what_is_away(slow, asks_model=True) == ""
    assert what_is_away(slow, asks_model=False) == "the store"
