"""The crash: a worker killed in the middle of a model call, and what the history says of it."""

import asyncio
import signal
from dataclasses import dataclass
from typing import Any

from demo_screen import Screen
from demo_worker import DemoWorker
from temporalio.api.enums.v1 import PendingActivityState
from temporalio.client import WorkflowHandle

MODEL = "agentmem.model"

Session = WorkflowHandle[Any, Any]
Messages = list[dict[str, str]]


@dataclass(kw_only=True)
class ModelCall:
    """A model call as a history has it.

    Attributes:
        attempts: How often it was made.
        answers: How many answers are recorded.
        began: When its last attempt began, in seconds.
        seconds: How long that took.
    """

    attempts: int = 0
    answers: int = 0
    began: float = 0
    seconds: float = 0


@dataclass(frozen=True, kw_only=True)
class Crash:
    """What was there when the worker died.

    Attributes:
        messages: The conversation before the turn.
        calls: The model calls in the history, that of the turn included.
    """

    messages: Messages
    calls: dict[int, ModelCall]


async def strike(
    session: Session, worker: DemoWorker, turn: asyncio.Task[Any], after: str = ""
) -> bool:
    """Kill the worker while a model call of the session is under way.

    Args:
        session: The session.
        worker: The worker.
        turn: The turn that is being answered.
        after: A tool that must have been called before, if any.

    Returns:
        Whether it was killed; not if the calls ended too soon.
    """
    reached = not after
    while not turn.done():
        if not reached:
            reached = after in await _running(session)
            continue
        # In small steps: a call of the offline model is over in a few hundredths of a second.
        worker.send(signal.SIGSTOP)
        if MODEL in await _running(session):
            await asyncio.sleep(0.2)
            # A call that is open a moment later was surely under way.
            if MODEL in await _running(session):
                await worker.kill()
                return True
        worker.send(signal.SIGCONT)
        await asyncio.sleep(0.004)
    return False


async def model_calls(session: Session) -> dict[int, ModelCall]:
    """Return the model calls in a session's history, by the event that scheduled each."""
    calls: dict[int, ModelCall] = {}
    async for event in session.fetch_history_events():
        at = event.event_time.ToNanoseconds() / 1e9
        if event.activity_task_scheduled_event_attributes.activity_type.name == MODEL:
            calls[event.event_id] = ModelCall()
        started = event.activity_task_started_event_attributes
        if call := calls.get(started.scheduled_event_id):
            call.attempts, call.began = started.attempt, at
        completed = event.activity_task_completed_event_attributes
        if call := calls.get(completed.scheduled_event_id):
            call.answers, call.seconds = call.answers + 1, at - call.began
    return calls


def first_calls(calls: dict[int, ModelCall]) -> list[ModelCall]:
    """Return the first model call of each worker: the first one, and what was made again."""
    return [call for place, call in enumerate(calls.values()) if place == 0 or call.attempts > 1]


async def show_cost(session: Session, crash: Crash, messages: Messages, screen: Screen) -> None:
    """Show and check that a crash lost nothing, and had no recorded answer asked again.

    Args:
        session: The session.
        crash: The crash.
        messages: The conversation now.
        screen: Where it is shown.
    """
    calls = await model_calls(session)
    answered = [number for number, call in crash.calls.items() if call.answers]
    open_then = [number for number in crash.calls if number not in answered]
    attempts = sum(call.attempts for call in calls.values())
    screen.row("before it", f"{len(answered)} answers of the model recorded, 1 call under way")
    screen.row("by now", f"{len(calls)} answers recorded, in {attempts} attempts")
    kept = messages[: len(crash.messages)] == crash.messages
    screen.check(kept, "nothing is lost: every message from before is there, word for word")
    once = all(calls[number].attempts == 1 for number in answered)
    screen.check(once, "no recorded answer was asked for again")
    again = [number for number, call in calls.items() if call.attempts > 1]
    once_more = again == open_then and attempts == len(calls) + 1
    screen.check(once_more, "the call under way was made once more: attempt 2, and the only one")


async def _running(session: Session) -> set[str]:
    """Return the activities that a worker has begun and not ended."""
    started = PendingActivityState.PENDING_ACTIVITY_STATE_STARTED
    described = await session.describe()
    pending = described.raw_description.pending_activities
    return {activity.activity_type.name for activity in pending if activity.state == started}
