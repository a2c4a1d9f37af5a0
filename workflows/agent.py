"""The `agent` workflow: the agent loop ready-made, started and talked to by the Temporal CLI."""

import asyncio
from typing import Any

from pydantic import ValidationError
from temporalio import workflow

from agentmem.agent.approvals import approvals
from agentmem.contracts import AgentInput, Answer
from agentmem.dreaming.hand_over import ANSWER_PATIENCE, END_PATIENCE
from agentmem.errors import AgentMemError, InvalidInput, SessionBusy, TurnFailed
from agentmem.inputs import NewerVersion, handed_on, parse_run, parse_text
from agentmem.memory.carried_state import restored
from agentmem.memory.entries import page
from agentmem.messages import Message
from agentmem.session.continue_as_new import Rollover, SessionState
from agentmem.session.session import Session, prepare, session_details
from agentmem.session.turns import START, Ask, Turns
from agentmem.wire import JSONObject

OPEN_SENDS = 4
"""Sends that a session holds at once, running or waiting: of the ten updates that Temporal lets be
in flight, some must stay free for `approve` and `end`."""

MARKS = {
    "length": "\n[The answer was cut off at the model's token limit.]",
    "content_filter": "\n[The model's provider refused or filtered the answer.]",
    "tool_limit": "\n[The limit of tool calls for this turn was reached.]",
}


# What no decoder takes (a lone surrogate, a number of 5,000 digits) is a pydantic error: it fails
# the workflow, and does not leave it with failing tasks.
#
# Temporal's sandbox would take a fifth of a worker's processor time, and of a replay half. What it
# looks for, the replay tests look for: they run this in the strict sandbox.
@workflow.defn(name="agent", sandboxed=False, failure_exception_types=[ValidationError])
class AgentWorkflow:
    """One conversation with an agent of the worker's configuration.

    Answers once and completes, or stays as a session until `end`. One turn at a time: sends wait
    for each other in order of arrival. A long session goes on in new runs, between turns.
    """

    @workflow.init
    def __init__(self, *args: Any) -> None:
        self._request: AgentInput | None = None
        self._state: SessionState | None = None
        self._session: Session | None = None
        self._problem: AgentMemError | None = None
        self._unreadable: NewerVersion | None = None
        self._approvals = approvals()
        self._turns = Turns()
        self._rollover = Rollover()
        self._ending = False
        self._changing = False
        self._preparing: asyncio.Task[None] | None = None
        self._holding = 0  # answers that wait for the change of runs
        self._first: int | None = None  # the place of the start's message
        try:  # read here already: an update may be checked before `run` begins
            self._request, self._state = parse_run(
                AgentInput, SessionState, args, "the input of agent"
            )
            if self._state is not None:
                self._turns.restore(self._state.turns, self._state.outcomes)
            elif self._request.message or not self._request.session:
                parse_text([self._request.message], "field 'message'")
                self._first = self._turns.queue()  # it goes before every send
        except InvalidInput as error:
            meaning = handed_on(error)
            if isinstance(meaning, InvalidInput):
                self._problem = meaning
            else:
                self._unreadable = meaning

    @workflow.run
    async def run(self, *args: Any) -> Any:
        """Answer `message`, or stay for a session; the input is an `AgentInput`.

        Returns:
            The answer's text, or `{"turns": n}` for a session.

        Raises:
            NewerVersion: A newer version handed the run on; it fails the task and not the run.
        """
        if self._unreadable is not None:
            raise self._unreadable
        try:
            if self._problem is not None or self._request is None:
                raise self._problem or InvalidInput("the input of agent is missing")
            self._session = await prepare(self._request, self._state, self._approvals)
        except AgentMemError as error:
            self._problem = error
            if self._first is not None:
                self._turns.leave(self._first)
            await workflow.wait_condition(workflow.all_handlers_finished)
            raise
        self._approvals.on_change = self._session.background.on_dream = self._show
        self._show()
        self._session.background.start()
        changing = False
        try:
            if self._request.session:
                return await self._stay(self._request, self._session)
            return _marked(await self._turn(START, self._request.message, self._first or 0))
        except workflow.ContinueAsNewError:
            changing = True
            raise
        finally:
            if not changing:
                await workflow.wait_condition(workflow.all_handlers_finished)
                patience = END_PATIENCE if self._request.session else ANSWER_PATIENCE
                await self._session.background.finish(patience)

    async def _stay(self, request: AgentInput, session: Session) -> JSONObject:
        first_turn = asyncio.create_task(self._first_turn(request.message))
        session.background.watch(
            request.end_after_minutes, self._end, lambda: bool(self._turns.open)
        )
        try:
            await self._until_the_end(request, session)
        except asyncio.CancelledError:
            self._problem = TurnFailed("the session was cancelled")
            self._end()
            self._turns.cancel(self._problem.message)
            raise
        finally:
            await first_turn
        return {"turns": self._turns.count}

    async def _until_the_end(self, request: AgentInput, session: Session) -> None:
        """Return when the session is to end; go on in a new run when that is due before."""
        while True:
            await workflow.wait_condition(lambda: self._ending or self._rollover.is_due)
            if self._rollover.stays_open and not self._ending:
                await self._change_when_quiet(request, session)
                continue
            await workflow.wait_condition(lambda: not self._turns.open)
            if self._ending:
                return
            self._changing = True  # only in runs of earlier versions, and their replay
            await session.settle()
            packed = session.pack(self._turns)
            # From here on no await: what comes now finds the next run, or this one again.
            await workflow.wait_condition(workflow.all_handlers_finished)
            self._changing = False
            if packed is None:
                self._rollover.postpone()
            elif not self._ending:
                self._rollover.go_on(request, packed)

    async def _change_when_quiet(self, request: AgentInput, session: Session) -> None:
        """Prepare while messages are taken, and change in the task that ends the last open turn.

        A message that comes in that task's time is not accepted yet, so the server gives it to the
        next run: nobody is refused.
        """
        preparing = self._preparing = asyncio.create_task(session.prepare_change())
        try:
            await workflow.wait_condition(lambda: self._ending or self._can_change(session))
        except asyncio.CancelledError:
            preparing.cancel()
            raise
        self._preparing = None
        if self._ending:
            preparing.cancel()
            return
        packed = session.pack(self._turns)  # no await from here on
        if packed is not None:
            self._rollover.go_on(request, packed)
        self._rollover.postpone()
        session.background.hold(False)

    def _can_change(self, session: Session) -> bool:
        return (
            self._is_prepared(session) and not self._turns.open and workflow.all_handlers_finished()
        )

    def _is_prepared(self, session: Session) -> bool:
        """Tell whether nothing but open turns keeps the session from changing its run."""
        preparing = self._preparing
        return preparing is not None and preparing.done() and not session.background.busy

    async def _first_turn(self, message: str) -> None:
        if self._first is None:
            return
        try:
            await self._turn(START, message, self._first)
        except AgentMemError as error:
            workflow.logger.warning("the first turn failed: %s", error.message)

    async def _turn(self, turn: str, text: str, place: int) -> Answer:
        """Wait for the turns before, then answer."""
        try:
            answer = await self._turns.run(turn, text, place, self._answerer)
            if self._session is not None:
                self._session.background.answered(answer.text)
            return answer
        finally:
            # A turn that is evicted ends here too, where there is no workflow any more.
            if self._session is not None and workflow.in_workflow():
                self._session.background.touch()
                limits = self._session.definition.run_limits
                self._rollover.after_turn(limits, self._approvals.answers)
                self._show()
                await self._held(self._session)

    async def _held(self, session: Session) -> None:
        """Hold an answer of a run that is overdue until no turn is open: then the run changes.

        A caller without its answer sends nothing, so the run gets quiet under any load. It is not
        held while a person is waited for, which may take a day.
        """
        if not self._holds(session):
            return
        self._holding += 1
        try:
            await workflow.wait_condition(lambda: not self._holds(session))
        finally:
            self._holding -= 1

    def _holds(self, session: Session) -> bool:
        return (
            self._rollover.is_overdue
            and bool(self._turns.open)
            and not self._ending
            and not self._approvals.waiting()
            and self._is_prepared(session)
        )

    def _show(self) -> None:
        if self._session is not None:
            workflow.set_current_details(session_details(self._session, self._turns.count))

    def _took_update(self) -> None:
        session = self._session
        self._rollover.took_update(session.definition.run_limits if session else None)

    def _answerer(self) -> Ask | AgentMemError | None:
        return self._problem or (self._session and self._session.assistant.ask)

    async def _accepted(self, args: tuple[Any, ...]) -> Answer:
        self._took_update()
        turn = _turn_id()
        if self._turns.knows(turn):
            return self._turns.outcome(turn)
        return await self._turn(turn, parse_text(args, "the message"), self._turns.queue())

    def _check(self, what: str, args: tuple[Any, ...]) -> None:
        """Refuse a message before it reaches the history."""
        parse_text(args, what)
        if self._turns.knows(_turn_id()):
            return
        if self._problem is not None:
            raise self._problem
        if self._request is not None and not self._request.session:
            raise InvalidInput('this agent answers once; start it with "session": true to talk')
        if self._ending:
            raise InvalidInput("the session is ending; start a new one")
        # A turn that waits for a person postpones the change, for a day maybe.
        is_due = self._rollover.is_due and not self._approvals.waiting()
        if self._changing or (is_due and not self._rollover.stays_open):
            raise SessionBusy("the session is changing to a new run; send again in a moment")
        self._rollover.check()
        if (waiting := self._turns.open + self._holding) >= OPEN_SENDS:
            raise SessionBusy(
                f"{waiting} messages are waiting in this session already; "
                "send again when one is answered"
            )

    def _end(self) -> None:
        self._ending = True
        self._approvals.reject_all("the session ends")

    @workflow.update(name="send", description="Send a message; returns the answer's text.")
    async def send(self, *args: Any) -> str:
        """Answer a message (one JSON string); the result is the answer's text."""
        return _marked(await self._accepted(args))

    @send.validator
    def _check_send(self, *args: Any) -> None:
        self._check("the message", args)

    @workflow.update(name="ask", description="Send a message; returns the whole answer.")
    async def ask(self, *args: Any) -> JSONObject:
        """Answer a message; the result has turn, text, finish, data and usage."""
        answer = await self._accepted(args)
        return answer.full()

    @ask.validator
    def _check_ask(self, *args: Any) -> None:
        self._check("the message", args)

    @workflow.update(name="cancel_turn", description="Cancel the running turn.")
    async def cancel_turn(self, *_: Any) -> bool:
        """Cancel the running turn; returns whether there was one."""
        self._took_update()
        return self._turns.cancel()

    @workflow.signal(name="cancel_turn", description="Cancel the running turn.")
    async def cancel_turn_by_signal(self, *_: Any) -> None:
        """Cancel the running turn, if there is one."""
        self._turns.cancel()

    @workflow.update(name="end", description="End the session after the accepted messages.")
    async def end(self, *_: Any) -> JSONObject:
        """End the session; returns how many turns it had once the accepted ones are answered."""
        self._took_update()
        self._end()
        await workflow.wait_condition(lambda: bool(self._problem or not self._turns.open))
        return {"turns": self._turns.count}

    @workflow.signal(name="end", description="End the session after the accepted messages.")
    async def end_by_signal(self, *_: Any) -> None:
        """End the session."""
        self._end()

    @workflow.query(name="messages", description="The conversation: optional offset and limit.")
    def messages(self, *args: Any) -> JSONObject:
        """Return the conversation in pages: `{"messages": [...], "total": n, "next": k}`."""
        return page(self._messages(), args)

    @workflow.query(name="status", description="What the session is doing, and who it waits for.")
    def status(self) -> JSONObject:
        """Return agent, scope, turns, state and the calls that wait for approval."""
        request, source = self._request or AgentInput(), self._session or self._state
        state = "ending" if self._ending else "working" if self._turns.open else "waiting"
        return {
            "agent": request.agent,
            "scope": request.scope,
            "model": source.definition.model if source else "",
            "state": state,
            "turns": self._turns.count,
            "open": self._turns.open,
            "approvals": self._approvals.waiting(),
        }

    @workflow.query(name="usage", description="Tokens and cost of the session so far.")
    def usage(self) -> JSONObject:
        """Return tokens, cost in US dollars and model requests so far."""
        if self._session is None:
            return self._state.usage.full() if self._state else {}
        return self._session.assistant.usage.full()

    def _messages(self) -> list[Message]:
        # A run that continues a session asks first what its agent is by now.
        if self._session is None:
            return restored(self._state.memory).full() if self._state else []
        return self._session.memory.messages()


def _turn_id() -> str:
    """Return the id of the running update, which is its turn's."""
    info = workflow.current_update_info()
    return info.id if info is not None else ""


def _marked(answer: Answer) -> str:
    """Return the answer's text, marked where it is not a complete answer; JSON stays JSON."""
    return answer.text if answer.data is not None else answer.text + MARKS.get(answer.finish, "")
