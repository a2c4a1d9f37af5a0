"""Waiting for a person: tool calls that need approval."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, cast

from temporalio import workflow

from agentmem.errors import InvalidInput
from agentmem.inputs import parse_input
from agentmem.messages import ToolCall
from agentmem.values import JSONObject, Wire

APPROVAL_TIMEOUT = timedelta(hours=24)
"""How long a call waits for a person before it counts as not approved."""


class Approval(Wire):
    """A person's answer, as the update and the signal `approve` take it.

    Attributes:
        call: The waiting call, like `t3.s1.c0`; the query `status` lists them.
        ok: Whether it may run.
        reason: For the model, why not.
    """

    call: str
    ok: bool
    reason: str = ""


@dataclass(kw_only=True)
class _Waiting:
    name: str
    arguments: JSONObject
    answer: Approval | None = None


class Approvals:
    """The calls of one workflow that wait for a person; several may be open at once."""

    def __init__(self) -> None:
        self._waiting: dict[str, _Waiting] = {}
        self._closed = ""

    async def ask(self, call: ToolCall, memory: str) -> Approval:
        """Wait until a person has answered, or a day has passed (then: not approved)."""
        name = call.id if memory == "wm0" else f"{memory}.{call.id}"
        if self._closed:
            return Approval(call=name, ok=False, reason=self._closed)
        entry = self._waiting[name] = _Waiting(name=call.name, arguments=call.arguments)
        try:
            await workflow.wait_condition(
                lambda: entry.answer is not None,
                timeout=APPROVAL_TIMEOUT,
                timeout_summary=f"{call.name} waits for approval",
            )
        except TimeoutError:
            return Approval(call=name, ok=False, reason="nobody answered within a day")
        finally:
            del self._waiting[name]
        return cast(Approval, entry.answer)

    def waiting(self) -> list[JSONObject]:
        """Return the open calls with what they would do, for people to decide."""
        return [
            {"call": call, "tool": entry.name, "arguments": entry.arguments}
            for call, entry in self._waiting.items()
            if entry.answer is None
        ]

    def reject_all(self, reason: str) -> None:
        """Answer every open call with no, and every later one."""
        self._closed = reason
        for call, entry in self._waiting.items():
            entry.answer = entry.answer or Approval(call=call, ok=False, reason=reason)

    def check(self, *args: Any) -> None:
        """Refuse an answer to no open call before it reaches the history.

        Raises:
            InvalidInput: It is malformed, or no such call waits.
        """
        answer = parse_input(Approval, args, "the input of approve")
        entry = self._waiting.get(answer.call)
        if entry is None or entry.answer is not None:
            waiting = ", ".join(str(call["call"]) for call in self.waiting()) or "none"
            raise InvalidInput(f"no call {answer.call!r} waits for approval; waiting: {waiting}")

    async def approve(self, *args: Any) -> bool:
        """Answer an open call: the update `approve`."""
        self.check(*args)
        answer = parse_input(Approval, args, "the input of approve")
        self._waiting[answer.call].answer = answer
        return answer.ok

    async def approve_by_signal(self, *args: Any) -> None:
        """Answer an open call: the signal `approve`; what it cannot take is one warning."""
        try:
            await self.approve(*args)
        except InvalidInput as error:
            workflow.logger.warning("signal approve ignored: %s", error.message)


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
