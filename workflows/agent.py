"""The `agent` workflow: the agent loop ready-made, started and talked to by the Temporal CLI."""

import asyncio
from typing import Any

from pydantic import ValidationError
from temporalio import workflow
from temporalio.exceptions import is_cancelled_exception

from agentmem.agent import Assistant
from agentmem.approvals import approvals
from agentmem.contracts import AgentInput, Answer
from agentmem.errors import AgentMemError, InvalidInput, SessionBusy, TurnFailed
from agentmem.failures import describe
from agentmem.inputs import parse_input, parse_text
from agentmem.memory.entries import page
from agentmem.session import Background, prepare
from agentmem.values import JSONObject

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
@workflow.defn(name="agent", failure_exception_types=[ValidationError])
class AgentWorkflow:
    """One conversation with an agent of the worker's configuration.

    Answers once and completes, or stays as a session until `end`. One turn at a time: sends wait
    for each other in order of arrival.
    """

    @workflow.init
    def __init__(self, *args: Any) -> None:
        self._request: AgentInput | None = None
        self._assistant: Assistant | None = None
        self._background: Background | None = None
        self._problem: AgentMemError | None = None
        self._approvals = approvals()
        self._running: asyncio.Task[Answer] | None = None
        self._open: list[int] = []  # places in the queue of turns, the running one first
        self._places = 0
        self._count = 0
        self._ending = False
        self._cancelling = False
        try:  # read here already: an update may be checked before `run` begins
            self._request = parse_input(AgentInput, args, "the input of agent")
            if self._request.message or not self._request.session:
                parse_text([self._request.message], "field 'message'")
                self._open.append(0)  # the start's message goes before every send
        except InvalidInput as error:
            self._problem = error

    @workflow.run
    async def run(self, *args: Any) -> Any:
        """Answer `message`, or stay for a session; the input is an `AgentInput`.

        Returns:
            The answer's text, or `{"turns": n}` for a session.
        """
        try:
            if self._problem is not None or self._request is None:
                raise self._problem or InvalidInput("the input of agent is missing")
            self._assistant, self._background = await prepare(self._request, self._approvals)
        except AgentMemError as error:
            self._problem = error
            self._open = [place for place in self._open if place]
            await workflow.wait_condition(workflow.all_handlers_finished)
            raise
        self._background.start()
        try:
            if self._request.session:
                return await self._stay(self._request, self._background)
            return _marked(await self._turn(self._request.message, 0))
        finally:
            await workflow.wait_condition(workflow.all_handlers_finished)
            await self._background.finish()

    async def _stay(self, request: AgentInput, background: Background) -> JSONObject:
        first = asyncio.create_task(self._first_turn(request.message))
        background.watch(request.end_after_minutes, self._end, lambda: bool(self._open))
        try:
            await workflow.wait_condition(lambda: self._ending)
            await workflow.wait_condition(lambda: not self._open)
        except asyncio.CancelledError:
            self._problem = TurnFailed("the session was cancelled")
            self._end()
            self._cancel_turn()
            raise
        finally:
            await first
        return {"turns": self._count}

    async def _first_turn(self, message: str) -> None:
        if not message:
            return
        try:
            await self._turn(message, 0)
        except AgentMemError as error:
            workflow.logger.warning("the first turn failed: %s", error.message)

    async def _turn(self, text: str, place: int) -> Answer:
        """Wait for the turns before, then answer."""
        try:
            await workflow.wait_condition(
                lambda: bool(self._problem or (self._assistant and self._open[0] == place))
            )
            if self._problem is not None or self._assistant is None:
                raise self._problem or InvalidInput("the session could not start")
            self._count += 1
            self._running = asyncio.create_task(self._assistant.ask(text))
            answer = await self._running
        except (Exception, asyncio.CancelledError) as error:
            if is_cancelled_exception(error) and not self._cancelling:
                raise
            if isinstance(error, AgentMemError):
                raise
            raise TurnFailed(_reason(error)) from error
        finally:
            self._open.remove(place)
            self._running = None
            self._cancelling = False
            if self._background is not None:
                self._background.touch()
        if self._background is not None:
            self._background.answered(answer.text)
        return answer

    async def _accepted(self, args: tuple[Any, ...]) -> Answer:
        text = parse_text(args, "the message")
        self._places += 1
        self._open.append(self._places)
        return await self._turn(text, self._places)

    def _check(self, what: str, args: tuple[Any, ...]) -> None:
        """Refuse a message before it reaches the history."""
        parse_text(args, what)
        if self._problem is not None:
            raise self._problem
        if self._request is not None and not self._request.session:
            raise InvalidInput('this agent answers once; start it with "session": true to talk')
        if self._ending:
            raise InvalidInput("the session is ending; start a new one")
        if len(self._open) >= OPEN_SENDS:
            raise SessionBusy(
                f"{len(self._open)} messages are waiting in this session already; "
                "send again when one is answered"
            )

    def _end(self) -> None:
        self._ending = True
        self._approvals.reject_all("the session ends")

    def _cancel_turn(self) -> bool:
        self._cancelling = self._running is not None and self._running.cancel()
        return self._cancelling

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
        return self._cancel_turn()

    @workflow.signal(name="cancel_turn", description="Cancel the running turn.")
    async def cancel_turn_by_signal(self, *_: Any) -> None:
        """Cancel the running turn, if there is one."""
        self._cancel_turn()

    @workflow.update(name="end", description="End the session after the accepted messages.")
    async def end(self, *_: Any) -> JSONObject:
        """End the session; returns how many turns it had once the accepted ones are answered."""
        self._end()
        await workflow.wait_condition(lambda: bool(self._problem or not self._open))
        return {"turns": self._count}

    @workflow.signal(name="end", description="End the session after the accepted messages.")
    async def end_by_signal(self, *_: Any) -> None:
        """End the session."""
        self._end()

    @workflow.query(name="messages", description="The conversation: optional offset and limit.")
    def messages(self, *args: Any) -> JSONObject:
        """Return the conversation in pages: `{"messages": [...], "total": n, "next": k}`."""
        memory = self._background.memory if self._background else None
        return page(memory.messages() if memory else [], args)

    @workflow.query(name="status", description="What the session is doing, and who it waits for.")
    def status(self) -> JSONObject:
        """Return agent, scope, turns, state and the calls that wait for approval."""
        request = self._request or AgentInput()
        state = "ending" if self._ending else "working" if self._open else "waiting"
        return {
            "agent": request.agent,
            "scope": request.scope,
            "model": self._assistant.definition.model if self._assistant else "",
            "state": state,
            "turns": self._count,
            "open": len(self._open),
            "approvals": self._approvals.waiting(),
        }

    @workflow.query(name="usage", description="Tokens and cost of the session so far.")
    def usage(self) -> JSONObject:
        """Return tokens, cost in US dollars and model requests so far."""
        return self._assistant.usage.full() if self._assistant else {}


def _reason(error: BaseException) -> str:
    if is_cancelled_exception(error):
        return "the turn was cancelled; the session goes on"
    return describe(error)


def _marked(answer: Answer) -> str:
    """Return the answer's text, marked where it is not a complete answer; JSON stays JSON."""
    return answer.text if answer.data is not None else answer.text + MARKS.get(answer.finish, "")
