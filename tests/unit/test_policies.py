"""The bounds of an activity, and the bounds that it must not have."""

from datetime import timedelta

import pytest

from agentmem.contracts import DreamLimits, PhaseSettings, ToolSpec
from agentmem.contracts.dream_settings import PHASES_MINUTES
from agentmem.policies import (
    BEGIN,
    COMMIT,
    COMPACT,
    COMPACT_WORK,
    DREAM_WORK,
    FREE_SLOT,
    MEMORY,
    PHASE,
    ActivityOptions,
    attempt_options,
    dream_run_timeout,
    model_options,
    phase_options,
    tool_options,
)


@pytest.mark.parametrize("options", [MEMORY, BEGIN, COMMIT], ids=["memory", "begin", "commit"])
def test_a_store_call_waits_for_a_worker_however_long(options: ActivityOptions) -> None:
    """Attempts and their time are bounded; the time without any worker fails no session."""
    assert "schedule_to_close_timeout" not in options
    assert options.get("start_to_close_timeout", timedelta.max) <= timedelta(seconds=30)
    assert (policy := options.get("retry_policy")) is not None
    assert policy.maximum_attempts == 5


def test_the_wait_for_a_slot_is_part_of_no_bound_on_work() -> None:
    """What a call may take is bounded from a slot on; a day of waiting comes on top."""
    bound = [
        (model_options(timedelta(minutes=3)), timedelta(minutes=3)),
        (tool_options(ToolSpec(name="t", timeout=timedelta(seconds=9))), timedelta(seconds=9)),
        (COMPACT, COMPACT_WORK),
    ]
    for options, work in bound:
        assert options.get("start_to_close_timeout", timedelta.max) <= work
        assert options.get("schedule_to_close_timeout") == work + FREE_SLOT


def test_a_phase_is_bounded_as_a_whole() -> None:
    """A phase asks a model again and again: it has a quarter of an hour in all."""
    assert PHASE.get("schedule_to_close_timeout") == timedelta(minutes=15)


def test_a_phase_has_its_own_attempts_and_time() -> None:
    """The settings of a dream for a phase bound each attempt, and all of them together."""
    options = phase_options(PhaseSettings(attempts=4, minutes=2.5))
    assert options.get("start_to_close_timeout") == timedelta(minutes=2.5)
    assert options.get("schedule_to_close_timeout") == timedelta(minutes=10)
    assert (policy := options.get("retry_policy")) is not None
    assert policy.maximum_attempts == 4
    assert options.keys() == PHASE.keys()


def test_phases_that_take_all_their_time_leave_some_for_the_commit() -> None:
    """A dream's run does not time out while its phases keep within theirs."""
    commit = COMMIT.get("start_to_close_timeout", timedelta.max) * 5
    assert timedelta(minutes=PHASES_MINUTES) + commit < DREAM_WORK


def test_an_attempt_waits_for_a_worker_however_long() -> None:
    """A patient dream counts attempts itself: the time without any worker is none of them."""
    options = attempt_options(PhaseSettings(attempts=4, minutes=2.5))
    assert options.get("start_to_close_timeout") == timedelta(minutes=2.5)
    assert "schedule_to_close_timeout" not in options
    assert (policy := options.get("retry_policy")) is not None
    assert policy.maximum_attempts == 1


def test_a_dreams_run_has_time_for_its_work_and_its_patience() -> None:
    """The timeout of a run grows by what the dream may wait."""
    assert dream_run_timeout(DreamLimits()) == timedelta(hours=24) + DREAM_WORK
    assert dream_run_timeout(DreamLimits(patience_hours=0)) == DREAM_WORK
