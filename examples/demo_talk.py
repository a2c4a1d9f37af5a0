"""A conversation on the screen: what is said, which tools are called, what each turn takes."""

import asyncio
import json
import time
from collections.abc import Sequence
from typing import Any

from demo_crash import Crash, Messages, Session, model_calls, strike
from demo_screen import Screen
from demo_script import Turn
from demo_worker import DemoFailed, DemoWorker
from temporalio.client import WorkflowUpdateFailedError

from agentmem import Answer
from agentmem.client import ask
from agentmem.wire import JSONObject

PATIENCE = 300
"""Seconds that an answer may take."""

PAGE = 200
"""More messages than any conversation of the demo has."""


class Talk:
    """A conversation with a session.

    Args:
        session: The session.
        worker: The worker that runs it.
        screen: Where it is shown.

    Attributes:
        session: The session.
        messages: The messages so far, as the session has them.
        crash: What was there when the worker was killed; None if it was not.
    """

    def __init__(self, session: Session, worker: DemoWorker, screen: Screen) -> None:
        self.session = session
        self.messages: Messages = []
        self.crash: Crash | None = None
        self._worker = worker
        self._screen = screen
        self._crash_due = False
        self._failure = ""

    async def hold(self, turns: Sequence[Turn]) -> None:
        """Say all of it, one turn after the other.

        Raises:
            DemoFailed: A turn gets no answer.
        """
        for number, turn in enumerate(turns, 1):
            self._screen.row("Ada", turn.says, number=str(number), style="bold green")
            began = time.monotonic()
            answer = await self._answer(turn)
            await self._show(answer, time.monotonic() - began)
            if turn.expects.casefold() not in answer.text.casefold():
                self._screen.check(False, f"the answer should tell of {turn.expects!r}")

    async def _answer(self, turn: Turn) -> Answer:
        answering = asyncio.create_task(ask(self.session, turn.says))
        try:
            async with asyncio.timeout(PATIENCE):
                self._crash_due = self._crash_due or bool(turn.crash_after)
                if self._crash_due and self.crash is None:
                    await self._crash(answering, turn.crash_after)
                with self._screen.waiting("..."):
                    while not answering.done():
                        self._worker.check()
                        await self._show_failure()
                        await asyncio.wait([answering], timeout=0.5)
            return answering.result()
        except WorkflowUpdateFailedError as error:
            raise DemoFailed(f"the turn failed: {error.cause}") from error
        except TimeoutError as error:
            raise self._worker.failure(f"no answer to {turn.says!r} in {PATIENCE} s") from error
        finally:
            answering.cancel()

    async def _crash(self, answering: asyncio.Task[Any], after: str) -> None:
        pid = self._worker.pid
        if not await strike(self.session, self._worker, answering, after):
            return  # too fast for us: the next turn will do
        self.crash = Crash(messages=self.messages, calls=await model_calls(self.session))
        dead = f"worker {pid}, in the middle of a model call"
        self._screen.row("kill -9", dead, style="bold red")
        await self._worker.start()
        waits = "it gets the call when 10 s have passed without a heartbeat of the dead one"
        self._screen.row("new worker", f"{self._worker.pid}; {waits}", style="bold red")

    async def _show_failure(self) -> None:
        for pending in (await self.session.describe()).raw_description.pending_activities:
            why = pending.last_failure.message
            if why and why != self._failure:
                self._failure = why
                again = (
                    f"{pending.activity_type.name} again, attempt {pending.attempt}, after: {why}"
                )
                self._screen.row("Temporal", again, style="yellow")

    async def _show(self, answer: Answer, seconds: float) -> None:
        found: JSONObject = await self.session.query("messages", args=[0, PAGE])
        new, self.messages = found["messages"][len(self.messages) :], found["messages"]
        for what in _tool_calls(new):
            self._screen.row("tool", what, style="magenta")
        tokens = answer.usage.prompt + answer.usage.completion
        took = f"{tokens:,} tokens {seconds:6.2f} s"
        self._screen.row("assistant", answer.text, took=took, style="bold cyan")


def _tool_calls(messages: Messages) -> list[str]:
    """Return the tool calls among messages, each with its result, as lines."""
    told = [(m["role"], json.loads(m["content"])) for m in messages if "tool" in m["role"]]
    outputs = {body["call_id"]: body["output"] for role, body in told if role == "tool_result"}
    calls = [call for role, body in told if role == "tool_call" for call in body["calls"]]
    return [
        f"{call['name']}({_arguments(call['arguments'])}) → {_short(outputs.get(call['id']))}"
        for call in calls
    ]


def _arguments(given: JSONObject) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in given.items())


def _short(output: object) -> str:
    """Return a result in one line; of recalled facts, which stand as JSON lines, how many."""
    lines = str(output).splitlines() or [""]
    facts = [line for line in lines if line.startswith("{")]
    return f"{len(facts)} facts" if facts else lines[0][:120]
