"""Changing a session to a new run, before its history gets too long for Temporal.

A run's history is bounded by Temporal (51,200 events or 50 MB end it, 2,000 updates are all it
takes) and by the time in which a worker must be able to replay it. So a session goes on in a new
run from time to time, between two turns, and takes along what the next turns need.
"""

from datetime import datetime
from typing import NoReturn

from temporalio import workflow

from agentmem.contracts import AgentInput, Definition, RunLimits, Usage
from agentmem.errors import SessionBusy
from agentmem.memory.carried_state import CarriedMemory
from agentmem.policies import TASK_TIMEOUT
from agentmem.session.turns import TurnOutcome
from agentmem.wire import Wire

POSTPONED_EVENTS = 500
"""Events until the next try, after one that could not be."""

FULL_UPDATES = 1_900
"""Updates after which a run is long overdue: at 2,000 the server takes no more."""

PATCH = "change-while-open"
"""Histories without this mark were recorded when a session that was due to change refused messages
until it had changed."""

FULL_BYTES = 40 * 1024 * 1024
"""History at which a session that cannot change its run takes no more messages: at 50 MB the
server ends it, and what no transcript has would be lost."""


class SessionState(Wire):
    """The state that a session hands on to its next run.

    Attributes:
        definition: The agent, as it was resolved when the session began.
        turns: How many there were.
        usage: Of all of them.
        outcomes: Of the last ones.
        answers: How many there were.
        undreamt: Whether the transcript has messages that no dream was told of.
        queued: Whether a hook had not begun.
        last_dream: When the session last started one.
        memory: The conversation.
    """

    definition: Definition
    turns: int = 0
    usage: Usage = Usage()
    outcomes: list[TurnOutcome] = []
    answers: int = 0
    undreamt: bool = False
    queued: bool = False
    last_dream: datetime | None = None
    memory: CarriedMemory = CarriedMemory()


class Rollover:
    """Says when a session is to go on in a new run.

    Attributes:
        is_due: Whether it is. Temporal is asked at the end of a turn, and at no other time: a
            message that is refused wakes the workflow too, but leaves no event, so on
            replay a condition on the history's length would come true at another moment.
        is_overdue: Whether the run has twice what it should have: then answers wait for the change.
        stays_open: Whether messages are taken while it is due. Runs that became due in an earlier
            version refuse them.
        updates: Updates that this run has taken.
    """

    def __init__(self) -> None:
        self.is_due = False
        self.is_overdue = False
        self.stays_open = True
        self.updates = 0
        self._not_before = 0

    def took_update(self, limits: RunLimits | None) -> None:
        """Take note of an update: Temporal takes few, and not every one makes a turn."""
        self.updates += 1
        if limits is not None and self.updates == limits.updates:
            self._become_due()

    def after_turn(self, limits: RunLimits, answers: int) -> None:
        """Take note that a turn ended: only then can the history's length make it due.

        Args:
            limits: The agent's.
            answers: What people answered to calls that waited, updates too.
        """
        info = workflow.info()
        events, size = info.get_current_history_length(), info.get_current_history_size()
        updates = self.updates + answers
        self.is_due = events >= self._not_before and (
            events >= limits.events
            or size >= limits.history_bytes
            or updates >= limits.updates
            or info.is_continue_as_new_suggested()
            or info.is_target_worker_deployment_version_changed()
        )
        if not self.is_due:
            return
        self._become_due()
        self.is_overdue = self.stays_open and (
            events >= 2 * limits.events
            or size >= 2 * limits.history_bytes
            or updates >= min(2 * limits.updates, FULL_UPDATES)
        )

    def _become_due(self) -> None:
        self.is_due = True
        self.stays_open = workflow.patched(PATCH)

    def postpone(self) -> None:
        """Take note that it cannot be now; it is due again in a while."""
        self.is_due = self.is_overdue = False
        self._not_before = workflow.info().get_current_history_length() + POSTPONED_EVENTS

    def go_on(self, request: AgentInput, packed: bytes) -> NoReturn:
        """Change to the new run.

        Args:
            request: What the session was started with; its message was answered.
            packed: What is handed on: an argument of its own, at most 1 MiB.
        """
        workflow.continue_as_new(
            args=[request.replace(message=""), packed],
            task_timeout=TASK_TIMEOUT,
            # A session that is pinned to a worker's version goes to the current one here.
            initial_versioning_behavior=workflow.ContinueAsNewVersioningBehavior.AUTO_UPGRADE,
        )

    def check(self) -> None:
        """Refuse a message when the history is all but full.

        Raises:
            SessionBusy: It is.
        """
        if workflow.info().get_current_history_size() >= FULL_BYTES:
            raise SessionBusy(
                "this session's history is full, and it cannot go on in a new run while the store "
                "of its transcript does not take messages; mend the store, then send again"
            )
