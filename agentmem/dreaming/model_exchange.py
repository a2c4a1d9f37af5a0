"""The exchange of a phase with its model: calls and results until its hand-in, within its limit."""

import asyncio
from dataclasses import dataclass, field
from typing import Protocol

from agentmem.contracts import PhaseName, Trace
from agentmem.dreaming.model_replies import PhaseReply, Replies
from agentmem.dreaming.prompts import reminder
from agentmem.dreaming.submissions import HandIn, Unreadable, read_hand_in, read_text
from agentmem.dreaming.tools import SUBMIT, WRITERS, allowed
from agentmem.messages import Message, Role, ToolCall
from agentmem.wire import JSONObject

RESTS = 3
"""The number of times that the rest of a reply that ended at its token limit is asked for."""


@dataclass(frozen=True, kw_only=True)
class CallOutcome:
    """The outcome of a call or a hand-in.

    Attributes:
        text: What the model reads.
        said: In a word, for the trace: `ok`, or the rule that refused it.
        key: The fact that it was about.
        fixable: Whether the model is told, and may hand it in again, corrected.
        usable: Whether anything of a hand-in could be used; an empty one can.
    """

    text: str
    said: str = "ok"
    key: str = ""
    fixable: bool = False
    usable: bool = True


class Work(Protocol):
    """The part of a phase that does what its model says."""

    @property
    def has_changes(self) -> bool:
        """Tell if calls have changed the draft in this phase."""
        ...

    def call(self, tool: str, arguments: JSONObject) -> CallOutcome:
        """Do a call of one of the memory tools."""
        ...

    def take(self, hand_in: HandIn, *, again: bool) -> CallOutcome:
        """Take a hand-in; `again` says that it corrects an earlier one."""
        ...


@dataclass(kw_only=True)
class PhaseConversation:
    """One phase's talk with its model.

    A phase ends with the reply that hands in; the last readable hand-in of a finished reply
    counts. What is refused for its form, or holds nothing usable, is told once and may be handed
    in again; prose earns one reminder. A reply that ended at its token limit is never whole: its
    rest is asked for, or less is shown. At the limit of tool calls, the draft so far counts as
    handed in; a phase that only reads is asked once more to hand in.

    Attributes:
        replies: Asks the model.
        work: Does what it says.
        limit: Tool calls that it may make; handing in is not counted.
        messages: The talk so far.
        halves: Whether a reply that was cut off ends it, since less will be shown then.
        calls: Tool calls made.
        trace: What was called and how it went, without values.
        handed_in: Whether there is a whole hand-in with something usable in it.
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
    _told: bool = False
    _reminded: bool = False
    _last: bool = False
    _rests: int = 0

    async def run(self) -> None:
        """Talk until the phase ends; `handed_in` says how.

        Raises:
            ModelCallError: A model call failed.
        """
        going = True
        while going:
            force = self._submit if self._reminded else ""
            reply = await self.replies.next(self.messages, force=force)
            self.cut_off = reply.finish == "length"
            # Quotes are looked up in every message: heartbeats go on meanwhile.
            going = await asyncio.to_thread(self._read, reply)

    def _read(self, reply: PhaseReply) -> bool:
        """Take what a reply hands in and do its calls; say whether the talk goes on."""
        if self.cut_off and self.halves:
            return False
        calls = reply.message.calls
        submitted = [call for call in calls if call.name == self._submit]
        read = [_read_call(self.replies.phase, call) for call in submitted]
        whole = [one for one in read if isinstance(one, HandIn)]
        hand_in = whole[-1] if whole else None
        if not calls:
            hand_in = read_text(self.replies.phase, reply.message.text)
        taken = self.work.take(hand_in, again=self._told) if hand_in else None
        self.messages.append(reply.message)
        problems = dict(zip((call.id for call in submitted), read, strict=True))
        for call in calls:
            outcome = self._outcome(call, problems.get(call.id), hand_in, taken)
            self._note(call.name, outcome)
            self.messages.append(_result(call, outcome))
        if taken is not None:
            if not calls:
                self._note(self._submit, taken)
            return self._after_hand_in(taken, by_call=bool(calls))
        if submitted:
            return self._tell()
        return self._after_calls() if calls else self._after_prose(reply.message.text)

    def _after_hand_in(self, taken: CallOutcome, *, by_call: bool) -> bool:
        if self.cut_off:
            self._rests += 1
            self._say(_REST)
            return self._rests <= RESTS
        self.handed_in = self.handed_in or taken.usable
        if not (taken.fixable or not taken.usable) or self._told:
            return False
        if not by_call:
            self._say(taken.text)
        return self._tell()

    def _after_calls(self) -> bool:
        if self.calls < self.limit:
            return True
        self.limit_reached = True
        if self.replies.phase in WRITERS:
            self.handed_in = True
            return False
        asked, self._last = self._last, True
        return not asked

    def _after_prose(self, text: str) -> bool:
        if self._told:
            return False
        if self.work.has_changes and not self.cut_off:
            self.handed_in, self.closing = True, text
            return False
        if self._reminded:
            return False
        self._reminded = True
        self._say(reminder(self.replies.phase, self._submit))
        return True

    def _tell(self) -> bool:
        """Say whether the model may hand in once more, after it was told what is wrong."""
        before, self._told = self._told, True
        return not before

    def _outcome(
        self,
        call: ToolCall,
        read: HandIn | str | None,
        hand_in: HandIn | None,
        taken: CallOutcome | None,
    ) -> CallOutcome:
        if isinstance(read, str):
            cut = "; it was cut off: hand in less, the most important first"
            text = f"{read}{cut if self.cut_off else ''}"
            return CallOutcome(text=text, said="unreadable", fixable=True)
        if read is not None:
            later = CallOutcome(text="a later hand-in of this reply counts", said="superseded")
            return taken if taken is not None and read is hand_in else later
        if self.cut_off:
            return CallOutcome(text="not done: the reply was cut off", said="cut_off")
        if self.calls >= self.limit:
            return CallOutcome(text="no calls are left; hand in now", said="limit_reached")
        self.calls += 1
        return self._memory_call(call)

    def _memory_call(self, call: ToolCall) -> CallOutcome:
        if call.name not in allowed(self.replies.phase):
            names = ", ".join(sorted(allowed(self.replies.phase)))
            return CallOutcome(text=f"not in this phase; there are {names}", said="not_allowed")
        if call.problem:
            return CallOutcome(text=call.problem, said="unreadable", fixable=True)
        return self.work.call(call.name, call.arguments)

    def _say(self, text: str) -> None:
        name = f"{self.messages[-1].id}-0"
        self.messages.append(Message(id=name, role=Role.USER, content=text))

    def _note(self, tool: str, outcome: CallOutcome) -> None:
        name = tool if tool in _KNOWN else "unknown"
        self.trace.append(Trace(tool=name, key=outcome.key, outcome=outcome.said))

    @property
    def _submit(self) -> str:
        return SUBMIT[self.replies.phase]


_REST = (
    "Your reply ended at its length limit; what could be read of it was taken. Hand in the rest, "
    "and nothing twice."
)


def _read_call(phase: PhaseName, call: ToolCall) -> HandIn | str:
    """Read a call of the submit tool; a text says why it is none."""
    if call.problem:
        return call.problem
    try:
        return read_hand_in(phase, call.arguments)
    except Unreadable as error:
        return str(error)


_KNOWN = frozenset[str]().union(*map(allowed, SUBMIT))


def _result(call: ToolCall, outcome: CallOutcome) -> Message:
    return Message(
        id=call.id, role=Role.TOOL_RESULT, content=outcome.text, call=call.id, name=call.name
    )
