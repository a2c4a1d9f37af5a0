"""Waiting for a person: tool calls that need approval, and questions to the user."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, cast

from temporalio import workflow

from agentmem.errors import InvalidInput
from agentmem.inputs import parse_input
from agentmem.messages import ToolCall
from agentmem.wire import JSONObject, Wire, clip, dump_json, encoded_size

APPROVAL_TIMEOUT = timedelta(hours=24)
"""The time that a call waits for a person, unless its agent says otherwise."""

UNIQUE_IDS = "unique-approval-ids"
"""The patch from which on calls wait under names that do not repeat."""

ANSWER_BYTES = 64 * 1024
"""Encoded bytes of what a person writes: it becomes a tool's result."""

_SHOWN_BYTES = 300


class Approval(Wire):
    """A person's answer, as the update and the signal `approve` take it.

    Attributes:
        call: The waiting call, like `t3.s1.c0-9f31c2aa`; the query `status` lists them.
        ok: Whether it may run; for a question, whether the user answers it.
        reason: For the model, why not.
        answer: To a question of the tool `ask_user`.
    """

    call: str
    ok: bool
    reason: str = ""
    answer: str = ""


@dataclass(kw_only=True)
class _Waiting:
    name: str
    arguments: JSONObject
    answer: Approval | None = None


class Approvals:
    """The calls of one workflow that wait for a person; several may be open at once.

    Attributes:
        answers: How many people have given.
        on_change: Called when a call begins to wait, and when it no longer does.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, _Waiting] = {}
        self._closed = ""
        self.answers = 0
        self.on_change: Callable[[], None] = lambda: None

    async def ask(
        self, call: ToolCall, memory: str, patience: timedelta = APPROVAL_TIMEOUT
    ) -> Approval:
        """Wait until a person has answered, or the time is over (then: not approved).

        The call waits under a name that no other run of this workflow id has: an answer that is
        meant for an earlier run's call finds none here.
        """
        name = call.id if memory == "wm0" else f"{memory}.{call.id}"
        if self._closed:
            return Approval(call=name, ok=False, reason=self._closed)
        if workflow.patched(UNIQUE_IDS):
            name = f"{name}-{workflow.random().getrandbits(32):08x}"
        entry = self._waiting[name] = _Waiting(name=call.name, arguments=call.given)
        self.on_change()
        try:
            await workflow.wait_condition(
                lambda: entry.answer is not None,
                timeout=patience,
                timeout_summary=f"{call.name} waits for approval",
            )
        except TimeoutError:
            return Approval(
                call=name, ok=False, reason=f"nobody answered within {_words(patience)}"
            )
        finally:
            del self._waiting[name]
            if workflow.in_workflow():  # not where the workflow is evicted
                self.on_change()
        return cast(Approval, entry.answer)

    def waiting(self) -> list[JSONObject]:
        """Return the open calls with what they would do, for people to decide."""
        return [
            {"call": call, "tool": entry.name, "arguments": entry.arguments}
            for call, entry in self._waiting.items()
            if entry.answer is None
        ]

    def lines(self) -> list[str]:
        """Return the open calls, a line each, for the details that the Temporal UI shows."""
        return [
            f"`{one['call']}` {one['tool']} {clip(dump_json(one['arguments']), _SHOWN_BYTES)}"
            for one in self.waiting()
        ]

    def reject_all(self, reason: str) -> None:
        """Answer every open call with no, and every later one."""
        self._closed = reason
        for call, entry in self._waiting.items():
            entry.answer = entry.answer or Approval(call=call, ok=False, reason=reason)

    def check(self, *args: Any) -> None:
        """Refuse an answer to no open call before it reaches the history.

        Raises:
            InvalidInput: It is malformed or too long, or no such call waits.
        """
        self._read(args)

    async def approve(self, *args: Any) -> bool:
        """Answer an open call: the update `approve`."""
        answer = self._read(args)
        self.answers += 1
        self._waiting[answer.call].answer = answer
        return answer.ok

    async def approve_by_signal(self, *args: Any) -> None:
        """Answer an open call: the signal `approve`; what it cannot take is one warning."""
        try:
            await self.approve(*args)
        except InvalidInput as error:
            workflow.logger.warning("signal approve ignored: %s", error.message)

    def _read(self, args: tuple[Any, ...]) -> Approval:
        answer = parse_input(Approval, args, "the input of approve")
        entry = self._waiting.get(answer.call)
        if entry is None or entry.answer is not None:
            waiting = ", ".join(str(call["call"]) for call in self.waiting()) or "none"
            raise InvalidInput(f"no call {answer.call!r} waits for approval; waiting: {waiting}")
        for field in ("reason", "answer"):
            size = encoded_size(getattr(answer, field))
            if size > ANSWER_BYTES:
                raise InvalidInput(
                    f"field {field!r} takes {size} bytes encoded, the limit is {ANSWER_BYTES}"
                )
        return answer


def approvals() -> Approvals:
    """Return the running workflow's, registering update and signal `approve` at the first call.

    A workflow that has handlers of that name keeps them and answers through what it was given.
    """
    handler = cast(object, workflow.get_update_handler("approve"))
    owner = getattr(handler, "__self__", None)
    if isinstance(owner, Approvals):
        return owner
    made = Approvals()
    if handler is None:
        workflow.set_update_handler("approve", made.approve, validator=made.check)
        workflow.set_signal_handler("approve", made.approve_by_signal)
    return made


def _words(time: timedelta) -> str:
    minutes = time.total_seconds() / 60
    return f"{minutes / 60:g} hours" if minutes >= 60 else f"{minutes:g} minutes"
