"""How a phase talks with its model: calls and results until it hands in, within its limit."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from agentmem.contracts import Trace
from agentmem.dreaming.handins import HandIn, Unreadable, read_arguments, read_hand_in, read_text
from agentmem.dreaming.prompts import reminder
from agentmem.dreaming.replies import Made, Replies, Reply
from agentmem.dreaming.tools import SUBMIT, WRITERS, allowed
from agentmem.values import JSONObject


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a call or a hand-in went.

    Attributes:
        text: What the model reads.
        said: In a word, for the trace: `ok`, or the rule that refused it.
        key: The fact that it was about.
        fixable: Whether the model may send it again, mended.
    """

    text: str
    said: str = "ok"
    key: str = ""
    fixable: bool = False


class Work(Protocol):
    """What a phase does with what its model says."""

    @property
    def has_changes(self) -> bool:
        """Whether calls have changed the draft in this phase."""
        ...

    def call(self, tool: str, arguments: JSONObject) -> Outcome:
        """Do a call of one of the memory tools."""
        ...

    def take(self, hand_in: HandIn, *, again: bool) -> Outcome:
        """Take a hand-in; `again` says that it mends an earlier one."""
        ...


@dataclass(kw_only=True)
class Exchange:
    """One phase's talk with its model.

    A phase ends with the reply that hands in. What is refused but can be mended earns one further
    request, and prose one reminder; both at most once. At the limit of tool calls, the draft so
    far counts as handed in; a phase that only reads is asked once more to hand in.

    Attributes:
        replies: Asks the model.
        work: Does what it says.
        limit: Tool calls that it may make; handing in is not counted.
        messages: The talk so far.
        calls: Tool calls made.
        trace: What was called and how it went, without values.
        handed_in: Whether there is a hand-in.
        limit_reached: Whether the limit ended the phase.
        closing: The model's last text, after it worked by calls alone.
    """

    replies: Replies
    work: Work
    limit: int
    messages: list[JSONObject]
    calls: int = 0
    trace: list[Trace] = field(default_factory=list[Trace])
    handed_in: bool = False
    limit_reached: bool = False
    closing: str = ""
    _mended: bool = False
    _reminded: bool = False
    _last: bool = False

    async def run(self) -> None:
        """Talk until the phase ends; `handed_in` says how.

        Raises:
            ModelCallError: A model call failed.
        """
        going = True
        while going:
            reply = await self.replies.next(self.messages)
            going = self._calls(reply) if reply.calls else self._text(reply)

    def _calls(self, reply: Reply) -> bool:
        """Do a reply's calls; say whether the talk goes on."""
        was_handed_in = self.handed_in
        outcomes = [self._call(call, reply.finish) for call in reply.calls]
        self.messages.append(reply.message)
        self.messages += map(_result, reply.calls, outcomes)
        if was_handed_in:
            return False
        tried = any(call.name == self._submit for call in reply.calls)
        if tried:
            return any(outcome.fixable for outcome in outcomes) and self._may_mend()
        if self.calls < self.limit:
            return True
        self.limit_reached = True
        if self.replies.phase in WRITERS:
            self.handed_in = True
            return False
        asked, self._last = self._last, True
        return not asked

    def _text(self, reply: Reply) -> bool:
        """Read a reply without calls; say whether the talk goes on."""
        again = self.handed_in
        hand_in = read_text(self.replies.phase, reply.text)
        if hand_in is not None:
            outcome = self.work.take(hand_in, again=again)
            self._note(self._submit, outcome)
            self.handed_in = True
            if not outcome.fixable or again or not self._may_mend():
                return False
            self._say(reply, outcome.text)
            return True
        if again:
            return False
        if self.work.has_changes:
            self.handed_in, self.closing = True, reply.text
            return False
        if self._reminded or reply.finish == "length":
            return False
        self._reminded = True
        self._say(reply, reminder(self.replies.phase, self._submit))
        return True

    def _call(self, call: Made, finish: str) -> Outcome:
        arguments = read_arguments(call.arguments)
        if call.name == self._submit:
            outcome = self._hand_in(arguments, finish)
        elif self.calls >= self.limit:
            outcome = Outcome(text="no calls are left; hand in now", said="limit_reached")
        else:
            self.calls += 1
            outcome = self._memory_call(call.name, arguments)
        self._note(call.name, outcome)
        return outcome

    def _hand_in(self, arguments: JSONObject | None, finish: str) -> Outcome:
        try:
            if arguments is None:
                raise Unreadable("the arguments are no JSON object; hand in again")
            hand_in = read_hand_in(self.replies.phase, arguments)
        except Unreadable as error:
            cut = "; it was cut off: hand in less, the most important first"
            text = f"{error}{cut if finish == 'length' else ''}"
            return Outcome(text=text, said="unreadable", fixable=True)
        outcome = self.work.take(hand_in, again=self.handed_in)
        self.handed_in = True
        return outcome

    def _memory_call(self, tool: str, arguments: JSONObject | None) -> Outcome:
        if tool not in allowed(self.replies.phase):
            names = ", ".join(sorted(allowed(self.replies.phase)))
            return Outcome(text=f"not in this phase; there are {names}", said="not_allowed")
        if arguments is None:
            return Outcome(text="the arguments are no JSON object", said="unreadable", fixable=True)
        return self.work.call(tool, arguments)

    def _may_mend(self) -> bool:
        before, self._mended = self._mended, True
        return not before

    def _say(self, reply: Reply, text: str) -> None:
        if reply.text.strip():  # no provider takes an empty message back
            self.messages.append(reply.message)
        self.messages.append({"role": "user", "content": text})

    def _note(self, tool: str, outcome: Outcome) -> None:
        name = tool if tool in _KNOWN else "unknown"
        self.trace.append(Trace(tool=name, key=outcome.key, outcome=outcome.said))

    @property
    def _submit(self) -> str:
        return SUBMIT[self.replies.phase]


_KNOWN: frozenset[str] = frozenset[str]().union(*map(allowed, SUBMIT))


def _result(call: Made, outcome: Outcome) -> JSONObject:
    return {"role": "tool", "tool_call_id": call.id, "content": outcome.text}


def refusals(lines: Sequence[str]) -> str:
    """Return what the model reads of a hand-in: that it was taken, or what to mend."""
    if not lines:
        return "taken"
    return "\n".join(["taken, but for these; hand in only them again, mended:", *lines])
