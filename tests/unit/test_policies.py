"""What bounds an activity, and what must not."""

from datetime import timedelta

import pytest

from agentmem.policies import BEGIN, COMMIT, MEMORY, PHASE, ActivityOptions


@pytest.mark.parametrize("options", [MEMORY, BEGIN, COMMIT], ids=["memory", "begin", "commit"])
def test_a_store_call_waits_for_a_worker_however_long(options: ActivityOptions) -> None:
    """Attempts and their time are bounded; the time without any worker fails no session."""
    assert "schedule_to_close_timeout" not in options
    assert options.get("start_to_close_timeout", timedelta.max) <= timedelta(seconds=30)
    assert (policy := options.get("retry_policy")) is not None
    assert policy.maximum_attempts == 5


def test_a_phase_is_bounded_as_a_whole() -> None:
    """A phase asks a model again and again: it has a quarter of an hour in all."""
    assert PHASE.get("schedule_to_close_timeout") == timedelta(minutes=15)
