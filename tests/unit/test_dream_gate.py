"""The failure gate of a scope."""

from datetime import UTC, datetime, timedelta

import pytest

from agentmem.dreaming.begin import gate
from agentmem.records import ScopeState

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)


@pytest.mark.parametrize("failures", [0, 1, 2])
def test_fewer_failures_than_the_threshold_leave_it_open(failures: int) -> None:
    """Two failures in a row do not shut a gate whose threshold is three."""
    assert gate(ScopeState(failures=failures, last_attempt=NOW), NOW).open


@pytest.mark.parametrize(("failures", "hours"), [(3, 1), (4, 6), (5, 24), (6, 24), (1_000_000, 24)])
def test_the_cool_down_grows_with_each_failure(failures: int, hours: int) -> None:
    """After three failures a dream is let through in 1 h, then in 6 h, then every 24 h."""
    state = ScopeState(failures=failures, last_attempt=NOW)
    shut = gate(state, NOW + timedelta(hours=hours) - timedelta(seconds=1))
    assert not shut.open
    assert shut.next_try == NOW + timedelta(hours=hours)
    assert str(failures) in shut.reason
    assert "2026-03-1" in shut.reason
    assert gate(state, NOW + timedelta(hours=hours)).open


def test_a_dream_that_went_well_opens_it_for_good() -> None:
    """The count that a commit zeroes leaves no cool-down behind."""
    assert gate(ScopeState(failures=0, last_attempt=NOW), NOW).open


def test_the_threshold_is_a_setting() -> None:
    """With a threshold of one, the first failure shuts the gate; nothing below one is taken."""
    state = ScopeState(failures=1, last_attempt=NOW)
    assert not gate(state, NOW, threshold=1).open
    assert not gate(state, NOW, threshold=0).open
    assert gate(state, NOW, threshold=2).open


def test_a_clock_that_runs_behind_keeps_it_shut_until_the_time_it_names() -> None:
    """A worker whose clock is an hour slow waits longer, and does not fail."""
    state = ScopeState(failures=3, last_attempt=NOW)
    assert gate(state, NOW - timedelta(hours=1)).next_try == NOW + timedelta(hours=1)
