"""Timeouts and retries of every activity, with their reasons, in one place."""

from datetime import timedelta
from typing import TypedDict

from temporalio.common import RetryPolicy

from agentmem.contracts.calls import ToolSpec
from agentmem.contracts.dream_settings import DreamLimits, PhaseSettings

PAYLOADS_TOO_LARGE = "PayloadsTooLarge"
"""The error type that a worker reports for a result over Temporal's payload limit."""

# It stays over the limit, however often it is made.
_TOO_LARGE = [PAYLOADS_TOO_LARGE]


class ActivityOptions(TypedDict, total=False):
    """The options that `workflow.execute_activity` takes as keywords."""

    start_to_close_timeout: timedelta
    schedule_to_close_timeout: timedelta
    heartbeat_timeout: timedelta
    retry_policy: RetryPolicy


FREE_SLOT = timedelta(days=1)
"""The longest time that a call waits for a worker with a free slot.

Waiting for one is no work, and counts against no bound of work: a worker that is full must fail no
turn. Nothing waits for ever, though.
"""

HEARTBEAT = timedelta(seconds=10)
"""A worker that died in the middle of an activity is noticed after this long."""

# Without a bound on attempts: a worker's restart ends one, and is no failure of the model. The
# worker counts the model's own failures, and does not retry the last (`activities/attempts.py`);
# what bounds the attempts together is their time, which the worker counts too: Temporal's bound on
# all attempts would count the time without a free slot. The model's failures name their own waits,
# so the interval is for restarts.
_RESTARTED = RetryPolicy(
    maximum_interval=timedelta(seconds=2), non_retryable_error_types=_TOO_LARGE
)


# An attempt that took all the time leaves none for another, which would wait for a slot to say so.
_FIRST_HAS_ALL = RetryPolicy(
    maximum_interval=timedelta(seconds=2),
    non_retryable_error_types=[*_TOO_LARGE, "TemporalTimeout:StartToClose"],
)


def model_options(left: timedelta) -> ActivityOptions:
    """Return the options for one model call of a turn: Temporal owns the retries, not litellm.

    Args:
        left: Of the time that the turn's model calls may take together. All attempts have it
            together (`activities/attempts.py`), without the time that they wait for a slot.
    """
    # An attempt may wait for the provider's rate limit first. The request itself has a timeout of
    # its own, and heartbeats tell of a worker that died.
    return {
        "start_to_close_timeout": left,
        "schedule_to_close_timeout": left + FREE_SLOT,
        "heartbeat_timeout": HEARTBEAT,
        "retry_policy": _FIRST_HAS_ALL,
    }


COMPACT_WORK = timedelta(minutes=10)
"""The time that all attempts at a summary may take together, without the wait for a slot."""

# The user's turn waits for it, and goes on without a summary.
COMPACT: ActivityOptions = {
    "start_to_close_timeout": timedelta(minutes=5),
    "schedule_to_close_timeout": COMPACT_WORK + FREE_SLOT,
    "heartbeat_timeout": HEARTBEAT,
    "retry_policy": _RESTARTED,
}

# Short statements on a store: slow means broken, and a retry may find it mended. Attempts bound
# them, and no schedule-to-close timeout: that counts the time without any worker too, and a restart
# of all of them must fail no session.
MEMORY: ActivityOptions = {
    "start_to_close_timeout": timedelta(seconds=10),
    "retry_policy": RetryPolicy(maximum_attempts=5, non_retryable_error_types=_TOO_LARGE),
}

# A store is told of a session that begins, for a second at the most. A worker that does not know
# the agent says itself whether another one may.
RESOLVE: ActivityOptions = {
    "start_to_close_timeout": timedelta(seconds=10),
    "retry_policy": RetryPolicy(
        initial_interval=timedelta(milliseconds=500),
        maximum_interval=timedelta(seconds=2),
        maximum_attempts=400,
        non_retryable_error_types=_TOO_LARGE,
    ),
}
# Temporal takes no timeout of zero.
_SHORTEST = timedelta(milliseconds=100)


def memory_within(left: timedelta | None) -> ActivityOptions:
    """Return the options for a statement on a store that must be over in time.

    Args:
        left: How long somebody waits for it, a free worker included; None if nobody does.
    """
    return MEMORY if left is None else {**MEMORY, "schedule_to_close_timeout": max(left, _SHORTEST)}


BEGIN = MEMORY


def phase_options(settings: PhaseSettings) -> ActivityOptions:
    """Return the options for one phase of a dream: five minutes, three times, by default."""
    one = timedelta(minutes=settings.minutes)
    return {
        "start_to_close_timeout": one,
        "schedule_to_close_timeout": one * settings.attempts,
        "heartbeat_timeout": HEARTBEAT,
        "retry_policy": RetryPolicy(
            maximum_attempts=settings.attempts, non_retryable_error_types=_TOO_LARGE
        ),
    }


PHASE = phase_options(PhaseSettings())


def attempt_options(settings: PhaseSettings) -> ActivityOptions:
    """Return the options for one attempt at a phase, for dreams that count attempts themselves.

    An attempt waits for a worker however long, and what ends it tells how to continue: a model,
    store or worker that is away is waited for and takes up no attempt.
    """
    return {
        "start_to_close_timeout": timedelta(minutes=settings.minutes),
        "heartbeat_timeout": HEARTBEAT,
        "retry_policy": RetryPolicy(maximum_attempts=1, non_retryable_error_types=_TOO_LARGE),
    }


# Nothing depends on it: a dream that gave up is counted as failed if its store is away too.
GIVE_UP: ActivityOptions = {
    "start_to_close_timeout": timedelta(seconds=10),
    "schedule_to_close_timeout": timedelta(seconds=30),
    "retry_policy": RetryPolicy(maximum_attempts=3),
}

# One transaction over a whole change set.
COMMIT: ActivityOptions = {
    "start_to_close_timeout": timedelta(seconds=30),
    "retry_policy": RetryPolicy(maximum_attempts=5, non_retryable_error_types=_TOO_LARGE),
}

# Nobody waits for a hand-over. An attempt is short, so that a store that hangs keeps no slot of the
# worker; the wait between two grows to ten minutes and adds no event. The worker's setting says
# when the activity gives up, and no timeout here: it would stand in the history.
HAND_OVER: ActivityOptions = {
    "start_to_close_timeout": timedelta(minutes=2),
    "heartbeat_timeout": HEARTBEAT,
    "retry_policy": RetryPolicy(
        maximum_interval=timedelta(minutes=10), non_retryable_error_types=_TOO_LARGE
    ),
}

HAND_OVER_RUN_TIMEOUT = timedelta(days=31)
"""A hand-over that no worker knows would wait for ever."""

DREAM_WORK = timedelta(minutes=75)
"""The time that one run of a dream may take, without the time that it waits."""


def dream_run_timeout(limits: DreamLimits) -> timedelta:
    """Return how long one run of a dream may take: its work, and its patience.

    Whoever starts a dream sets it: one of a type that no worker knows would hold its scope for
    ever.
    """
    return DREAM_WORK + timedelta(hours=limits.patience_hours)


DREAM_ROUNDS = 5
"""After so many rounds in a row, what is left waits for the next trigger."""

TASK_TIMEOUT = timedelta(seconds=30)
"""The timeout of a workflow task: replaying a long run under load may exceed the default 10 s."""


def tool_options(spec: ToolSpec) -> ActivityOptions:
    """Return the options for one call of a tool.

    One attempt unless the tool says that it is idempotent: a mail is not sent twice. A call waits
    for a free slot for a day at most.
    """
    attempts = spec.retries + 1
    return {
        "start_to_close_timeout": spec.timeout,
        "schedule_to_close_timeout": spec.timeout * attempts + FREE_SLOT,
        "heartbeat_timeout": HEARTBEAT,
        "retry_policy": RetryPolicy(
            maximum_attempts=attempts, non_retryable_error_types=_TOO_LARGE
        ),
    }
