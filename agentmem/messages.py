"""Messages of a conversation, and the groups in which they move."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from enum import StrEnum
from typing import TypeAlias

from agentmem.wire import JSONObject, Wire, dump_json

IMAGE_TOKENS = 1_000
"""The number of tokens that an image part counts, whatever its bytes: providers price an image by
its size on screen, and a data URI counted as text would be hundreds of thousands of tokens."""

CODE_CALLS = "t0."
"""Begins the ids of calls that code memorized: they belong to no turn of an agent."""


THOUGHT = "thought"
"""The type of a reasoning part that is never sent: what a model thought inside of its text."""

IN_CONTENT = ("thinking", "redacted_thinking", "reasoning")
"""The types of reasoning that may stand among the parts of a reply's content."""


class Role(StrEnum):
    """Who speaks in a message."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL_RESULT = "tool_result"
    SUMMARY = "summary"


class ToolCall(Wire):
    """A model's wish to run a tool.

    Attributes:
        id: The call's position, `t3.s1.c0`: turn, step, call. Never taken from the model.
        name: The tool's name as the model wrote it.
        arguments: The arguments; empty when the model sent none.
        problem: Why the call cannot run (broken arguments), in words for the model.
        fields: What the provider attached to the call, sent back unchanged.
        bound: The arguments as the tool gets them, defaults included, for a call that needs a
            person's approval; empty where they are just the arguments.
    """

    id: str
    name: str
    arguments: JSONObject = {}
    problem: str = ""
    fields: JSONObject = {}
    bound: JSONObject = {}

    @property
    def given(self) -> JSONObject:
        """The arguments that a person is shown and that the tool runs with."""
        return self.bound or self.arguments


class Message(Wire):
    """One entry of working memory; never changed once it is made.

    Attributes:
        id: `m0`, `m1`, ... in order of creation, never reused; `s0`, ... for system prompts.
        role: Who speaks.
        content: The text, or a list of content parts as providers take them.
        at: When it arrived, by the workflow's clock.
        turn: The turn that it belongs to, from 1; 0 outside of turns.
        calls: The tool calls of an assistant message.
        reasoning: The provider's reasoning parts, sent back unchanged.
        fields: Other provider fields of the message, sent back unchanged.
        call: The call that a tool result answers.
        name: The tool that gave a tool result.
        failed: Whether a tool result reports an error.
        recalled: Whether a tool result shows what long-term memory already knows.
        vendor: Whose `reasoning` and `fields` are, those of its calls too: no other vendor gets
            them. Empty where there are none, and in what older versions wrote.
        attempt: Which attempt of its activity made it; 0 where workflow code made it in place of
            an activity that gave none. Part of a message's identity in caches:
            an attempt whose answer was lost may have made another one under that id.
    """

    id: str
    role: Role
    content: str | list[JSONObject] = ""
    at: datetime | None = None
    turn: int = 0
    calls: list[ToolCall] = []
    reasoning: list[JSONObject] = []
    fields: JSONObject = {}
    call: str = ""
    name: str = ""
    failed: bool = False
    recalled: bool = False
    vendor: str = ""
    attempt: int = 1

    def without_calls(self) -> "Message":
        """Return the text alone of a reply whose calls are not to run.

        Reasoning goes with them: signed for the whole reply, it is refused beside a part of it.
        """
        return self.replace(calls=[], reasoning=[], fields={})

    @property
    def text(self) -> str:
        """The message's text; parts that are not text show as `[image_url]`."""
        if isinstance(self.content, str):
            return self.content
        return "".join(map(_part_text, self.content))


def _part_text(part: JSONObject) -> str:
    if part.get("type") == "text":
        return str(part.get("text") or "")
    return f"[{part.get('type', 'part')}]"


def estimate_tokens(message: Message) -> int:
    """Estimate a message's tokens: bytes of UTF-8 / 4, a constant for each image.

    For plain English that is the rule of thumb of four characters a token; counting bytes keeps
    it right for Chinese and emoji too. At least 1.
    """
    size = len(message.text.encode("utf-8", "replace"))
    for call in message.calls:
        size += len(call.name) + len(dump_json(call.arguments).encode("utf-8", "replace"))
    sent = [part for part in message.reasoning if part.get("type") != THOUGHT]
    size += sum(len(dump_json(part).encode("utf-8", "replace")) for part in sent)
    images = 0
    if not isinstance(message.content, str):
        images = sum(part.get("type") != "text" for part in message.content)
    return max(1, size // 4) + images * IMAGE_TOKENS


Group: TypeAlias = Sequence[Message]
"""Messages that stand or fall together: an assistant message with all results of its calls."""


def groups(messages: Iterable[Message]) -> list[Group]:
    """Split a conversation into its groups, in order.

    A tool result belongs to the nearest assistant message before it that made its call. A result
    that answers no call is left out: no provider takes it.
    """
    found: list[list[Message]] = []
    for message in messages:
        if message.role is not Role.TOOL_RESULT:
            found.append([message])
        elif found and any(call.id == message.call for call in found[-1][0].calls):
            found[-1].append(message)
    return list(found)


def in_order(ids: Iterable[str]) -> list[str]:
    """Sort ids of one kind by their numbers."""
    return sorted(ids, key=lambda item: int(item[1:]))


def to_ranges(ids: Sequence[str]) -> list[str]:
    """Write ids shortly: `["s0", "m0", "m1", "m2"]` becomes `["s0", "m0-2"]`."""
    ranges: list[tuple[str, int, int]] = []
    for item in ids:
        kind, number = item[0], int(item[1:])
        if ranges and ranges[-1][0] == kind and ranges[-1][2] == number - 1:
            ranges[-1] = (kind, ranges[-1][1], number)
        else:
            ranges.append((kind, number, number))
    return [f"{k}{a}" if a == b else f"{k}{a}-{b}" for k, a, b in ranges]


def from_ranges(ranges: Iterable[str]) -> Iterator[str]:
    """Read what `to_ranges` wrote, one id at a time: a range may name more than there is.

    Raises:
        ValueError: A range is malformed; when the reading comes to it.
    """
    for item in ranges:
        first, _, last = item[1:].partition("-")
        for number in range(int(first), int(last or first) + 1):
            yield f"{item[0]}{number}"
