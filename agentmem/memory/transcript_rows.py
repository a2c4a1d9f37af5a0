"""The part of a message kept for dreams: what was said, shortened if it is long, no secrets."""

from collections.abc import Collection, Sequence
from datetime import UTC, datetime

from agentmem.memory.providers.protocol import TranscriptRow
from agentmem.messages import Message, Role
from agentmem.redaction import Redactor
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
    redact: Redactor = redacted,
) -> list[TranscriptRow]:
    """Return the rows of consecutive messages.

    What users and assistants said is kept whole up to 32 KiB, and over that its beginning and end;
    a tool call's arguments and a tool result are shortened; reasoning is left out, and so is the
    text of results that show what long-term memory knows already: a dream would learn it again.

    Args:
        messages: The messages, in order.
        session: The run in which the conversation began.
        memory: The working memory.
        first: The sequence number of the first message.
        forgotten: Ids of messages whose text is left out.
        redact: Takes out what must not be kept.
    """
    return [
        TranscriptRow(
            session=session,
            memory=memory,
            seq=seq,
            message=message.id,
            role=_role(message),
            text="" if message.id in forgotten else kept_text(message, redact),
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


def kept_text(message: Message, redact: Redactor = redacted) -> str:
    """Return what is kept of a message's text: redacted first, then shortened."""
    # In this order: a secret that is cut has no shape any more.
    if message.role is Role.TOOL_RESULT:
        return "" if message.recalled else _kept(_shortened(redact(message.text)))
    calls = [
        f"{call.name} {redact(dump_json(call.arguments))[:ARGUMENTS]}" for call in message.calls
    ]
    return _kept("\n".join(filter(None, [redact(message.text), *calls])))


def _kept(text: str) -> str:
    clean = text.replace("\x00", " ")
    data = clean.encode("utf-8", "replace")
    if len(data) <= SAID_HEAD + SAID_TAIL:
        return clean
    head, tail = (part.decode("utf-8", "ignore") for part in (data[:SAID_HEAD], data[-SAID_TAIL:]))
    return f"{head} [... {len(data)} bytes in full ...] {tail}"


def _shortened(text: str) -> str:
    if len(text) <= RESULT_HEAD + RESULT_TAIL:
        return text
    return f"{text[:RESULT_HEAD]} [... {len(text)} characters in full ...] {text[-RESULT_TAIL:]}"
