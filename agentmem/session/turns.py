"""The turns of a session: one at a time, in order of arrival, and none answered twice."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from temporalio import workflow
from temporalio.exceptions import is_cancelled_exception

from agentmem.contracts import Answer
from agentmem.error_text import describe
from agentmem.errors import AgentMemError, TurnFailed
from agentmem.wire import Wire

Ask: TypeAlias = Callable[[str], Awaitable[Answer]]
Ready: TypeAlias = Callable[[], Ask | AgentMemError | None]
"""Returns what answers a turn, or why nothing ever will; None as long as that is open."""

START = "start"
"""The turn id of a session's first message, which came with its start."""

OUTCOMES = 32
"""Turns whose outcome a session remembers. Temporal knows an update's id within one run only: sent
again after a change of runs it would be answered anew, and paid for."""

OUTCOMES_BYTES = 64 * 1024
"""Bytes of all outcomes that it remembers; of those over it only the ids are kept."""


_ANSWERED = "this turn was answered; its answer stands in the conversation"
_FAILED = "this turn failed; its reason was too long to keep, send the message as a new one"


class TurnOutcome(Wire):
    """The outcome of a turn.

    Attributes:
        id: The turn's id: its update's.
        answer: The answer; None where there is none, or where it is too long to keep.
        problem: Why there is none.
    """

    id: str
    answer: Answer | None = None
    problem: str = ""


class Turns:
    """The queue of a session's turns, and what became of the last ones.

    Attributes:
        count: How many turns began so far.
    """

    def __init__(self) -> None:
        self.count = 0
        self._open: list[int] = []  # places in the queue, the running turn's first
        self._places = 0
        self._running: asyncio.Future[Answer] | None = None
        self._cancelled = ""  # why, once it is
        self._outcomes: dict[str, TurnOutcome] = {}

    @property
    def open(self) -> int:
        """The number of turns that are accepted and not over."""
        return len(self._open)

    def restore(self, count: int, outcomes: Sequence[TurnOutcome]) -> None:
        """Go on where the run before stopped."""
        self.count = count
        self._outcomes = {outcome.id: outcome for outcome in outcomes}

    def queue(self) -> int:
        """Take the next place in the queue."""
        self._places += 1
        self._open.append(self._places)
        return self._places

    def leave(self, place: int) -> None:
        """Give a place up."""
        self._open.remove(place)

    def knows(self, turn: str) -> bool:
        """Tell whether a turn of this id is over."""
        return turn in self._outcomes

    def outcome(self, turn: str) -> Answer:
        """Return the answer of a turn that is over.

        Raises:
            TurnFailed: It failed, or its answer was too long to be kept.
        """
        outcome = self._outcomes[turn]
        if outcome.answer is None:
            raise TurnFailed(outcome.problem)
        return outcome.answer

    def outcomes(self) -> list[TurnOutcome]:
        """Return what the next run must know of the last turns, in 64 kB."""
        kept: list[TurnOutcome] = []
        size = 0
        for outcome in reversed(self._outcomes.values()):
            size += len(outcome.model_dump_json())
            why = _FAILED if outcome.answer is None else _ANSWERED
            kept.append(
                outcome if size <= OUTCOMES_BYTES else TurnOutcome(id=outcome.id, problem=why)
            )
        return kept[::-1]

    async def run(self, turn: str, text: str, place: int, ready: Ready) -> Answer:
        """Wait for the turns before, then answer.

        Args:
            turn: The turn's id.
            text: What the user said.
            place: In the queue; given up in the end.
            ready: Returns what answers.

        Raises:
            AgentMemError: There is no answer; the session goes on.
        """
        try:
            answer = await self._answer(text, await self._at_the_front(place, ready))
        except AgentMemError as error:
            self._remember(TurnOutcome(id=turn, problem=error.message))
            raise
        finally:
            self.leave(place)
        self._remember(TurnOutcome(id=turn, answer=answer))
        return answer

    def cancel(self, why: str = "the turn was cancelled") -> bool:
        """Cancel the running turn; returns whether there was one."""
        if self._running is None or not self._running.cancel():
            return False
        self._cancelled = why
        return True

    async def _at_the_front(self, place: int, ready: Ready) -> Ask:
        def is_next() -> bool:
            found = ready()
            return isinstance(found, AgentMemError) or (bool(found) and self._open[0] == place)

        await workflow.wait_condition(is_next)
        found = ready()
        if found is None or isinstance(found, AgentMemError):
            raise found or TurnFailed("the session could not start")
        return found

    async def _answer(self, text: str, ask: Ask) -> Answer:
        self.count += 1
        self._running = asyncio.ensure_future(ask(text))
        try:
            return await self._running
        except AgentMemError:
            raise
        except (Exception, asyncio.CancelledError) as error:
            if not is_cancelled_exception(error):
                raise TurnFailed(describe(error)) from error
            if not self._cancelled:
                raise
            raise TurnFailed(self._cancelled) from error
        finally:  # here, as a turn that never came to the front has nothing to clear
            self._running = None
            self._cancelled = ""

    def _remember(self, outcome: TurnOutcome) -> None:
        self._outcomes[outcome.id] = outcome
        while len(self._outcomes) > OUTCOMES:
            del self._outcomes[next(iter(self._outcomes))]
