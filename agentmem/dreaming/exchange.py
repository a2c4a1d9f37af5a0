"""How a phase talks with its model: calls and results until it hands in, within its limit."""

import asyncio
from dataclasses import dataclass, field
from typing import Protocol

from agentmem.contracts import Trace
from agentmem.dreaming.handins import HandIn, Unreadable, read_hand_in, read_text
from agentmem.dreaming.prompts import reminder
from agentmem.dreaming.replies import Replies, Reply
from agentmem.dreaming.tools import SUBMIT, WRITERS, allowed
from agentmem.messages import Message, Role, ToolCall
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
        halves: Whether a cut-off reply without a readable hand-in ends it: less is shown then.
        calls: Tool calls made.
        trace: What was called and how it went, without values.
        handed_in: Whether there is a hand-in.
        limit_reached: Whether the limit ended the phase.
        cut_off: Whether the last reply ended at the token limit.
        closing: The model's last text, after it worked by calls alone.
    """

    replies: Replies
    work: Work
    limit: int
    messages: list[Message]
    halves: bool = False
    calls: int = 0
    trace: list[Trace] = field(default_factory=list[Trace])
    handed_in: bool = False
    limit_reached: bool = False
    cut_off: bool = False
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
            self.cut_off = reply.finish == "length"
            # The rules compare texts, for seconds in a large scope: heartbeats go on meanwhile.
            read = self._calls if reply.message.calls else self._text
            going = await asyncio.to_thread(read, reply)

    def _calls(self, reply: Reply) -> bool:
        """Do a reply's calls; say whether the talk goes on."""
        was_handed_in = self.handed_in
        calls = reply.message.calls
        outcomes = [self._call(call) for call in calls]
        self.messages.append(reply.message)
        self.messages += map(_result, calls, outcomes)
        if was_handed_in:
            return False
        tried = any(call.name == self._submit for call in calls)
        if self.halves and self.cut_off and not self.handed_in:
            return False
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
        hand_in = read_text(self.replies.phase, reply.message.text)
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
            self.handed_in, self.closing = True, reply.message.text
            return False
        if self._reminded or self.cut_off:
            return False
        self._reminded = True
        self._say(reply, reminder(self.replies.phase, self._submit))
        return True

    def _call(self, call: ToolCall) -> Outcome:
        if call.name == self._submit:
            outcome = self._hand_in(call)
        elif self.calls >= self.limit:
            outcome = Outcome(text="no calls are left; hand in now", said="limit_reached")
        else:
            self.calls += 1
            outcome = self._memory_call(call)
        self._note(call.name, outcome)
        return outcome

    def _hand_in(self, call: ToolCall) -> Outcome:
        try:
            if call.problem:
                raise Unreadable(call.problem)
            hand_in = read_hand_in(self.replies.phase, call.arguments)
        except Unreadable as error:
            cut = "; it was cut off: hand in less, the most important first"
            text = f"{error}{cut if self.cut_off else ''}"
            return Outcome(text=text, said="unreadable", fixable=True)
        outcome = self.work.take(hand_in, again=self.handed_in)
        self.handed_in = True
        return outcome

    def _memory_call(self, call: ToolCall) -> Outcome:
        if call.name not in allowed(self.replies.phase):
            names = ", ".join(sorted(allowed(self.replies.phase)))
            return Outcome(text=f"not in this phase; there are {names}", said="not_allowed")
        if call.problem:
            return Outcome(text=call.problem, said="unreadable", fixable=True)
        return self.work.call(call.name, call.arguments)

    def _may_mend(self) -> bool:
        before, self._mended = self._mended, True
        return not before

    def _say(self, reply: Reply, text: str) -> None:
        self.messages.append(reply.message)
        name = f"{reply.message.id}-0"
        self.messages.append(Message(id=name, role=Role.USER, content=text))

    def _note(self, tool: str, outcome: Outcome) -> None:
        name = tool if tool in _KNOWN else "unknown"
        self.trace.append(Trace(tool=name, key=outcome.key, outcome=outcome.said))

    @property
    def _submit(self) -> str:
        return SUBMIT[self.replies.phase]


_KNOWN = frozenset[str]().union(*map(allowed, SUBMIT))


def _result(call: ToolCall, outcome: Outcome) -> Message:
    return Message(
        id=call.id, role=Role.TOOL_RESULT, content=outcome.text, call=call.id, name=call.name
    )
