"""What of a message is kept for dreams: what was said, shortened where it is long, no secrets."""

from collections.abc import Collection, Sequence
from datetime import UTC, datetime

from agentmem.memory.providers.protocol import TranscriptRow
from agentmem.messages import Message, Role, ToolCall
from agentmem.secret_shapes import redacted
from agentmem.values import dump_json, printable

ARGUMENTS = 500
"""Characters kept of a tool call's arguments."""
RESULT_HEAD, RESULT_TAIL = 700, 300
"""Characters kept of a tool result's beginning and end."""
SAID_HEAD, SAID_TAIL = 24 * 1024, 8 * 1024
"""Bytes of UTF-8 kept of the beginning and end of what a user or an assistant said.

A dream reads at least one message a round: one that no model can take would stop a scope's dreams.
"""


def transcript_rows(
    messages: Sequence[Message],
    *,
    session: str,
    memory: str,
    first: int,
    forgotten: Collection[str],
) -> list[TranscriptRow]:
    """Return the rows of consecutive messages.

    What users and assistants said is kept whole up to 32 KiB, and over that its beginning and end;
    a tool call's arguments and a tool result are shortened; reasoning is left out, and so is the
    text of results that show what long-term memory knows already: a dream would learn it again.

    Args:
        messages: The messages, in order.
        session: The session's first run id.
        memory: The working memory.
        first: The sequence number of the first message.
        forgotten: Ids of messages whose text is left out.
    """
    return [
        TranscriptRow(
            session=session,
            memory=memory,
            seq=seq,
            message=message.id,
            role=_role(message),
            text="" if message.id in forgotten else _kept(_text(message)),
            at=message.at or datetime.fromtimestamp(0, UTC),
            turn=message.turn,
            name=printable(message.name or ", ".join(call.name for call in message.calls)),
            recalled=message.recalled,
            forgotten=message.id in forgotten,
        )
        for seq, message in enumerate(messages, first)
    ]


def _role(message: Message) -> str:
    return "tool_call" if message.calls else message.role.value


def _text(message: Message) -> str:
    if message.role is Role.TOOL_RESULT:
        return "" if message.recalled else _shortened(message.text)
    return "\n".join(filter(None, [message.text, *map(_call, message.calls)]))


def _call(call: ToolCall) -> str:
    return f"{call.name} {dump_json(call.arguments)[:ARGUMENTS]}"


def _kept(text: str) -> str:
    clean = redacted(text).replace("\x00", " ")  # first: a secret that is cut has no shape any more
    data = clean.encode("utf-8", "replace")
    if len(data) <= SAID_HEAD + SAID_TAIL:
        return clean
    head, tail = (part.decode("utf-8", "ignore") for part in (data[:SAID_HEAD], data[-SAID_TAIL:]))
    return f"{head} [... {len(data)} bytes in full ...] {tail}"


def _shortened(text: str) -> str:
    if len(text) <= RESULT_HEAD + RESULT_TAIL:
        return text
    return f"{text[:RESULT_HEAD]} [... {len(text)} characters in full ...] {text[-RESULT_TAIL:]}"
