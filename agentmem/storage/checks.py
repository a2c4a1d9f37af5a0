"""The checks of every store before it touches its database: names, values, times, text."""

import json
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Self

from agentmem.errors import ConfigurationError, InvalidFact
from agentmem.facts import (
    EarlierValue,
    Evidence,
    Read,
    Step,
    Unconfirmed,
    Write,
    checked_name,
    checked_value,
)
from agentmem.records import DreamRecord, MessageId, Range, ReplyRecord, TranscriptRow
from agentmem.storage.sql.rows import Place

RESERVED = "agentmem/"
"""Agents whose names begin so are our own: stores keep no facts of a user under them."""


class OwnAgent(str):
    """The name of an agent of our own, made by our code: under it we may keep what we know."""

    __slots__ = ()


Message = tuple[str, str, str]
"""A message's session, memory and id."""

_UNSTORABLE = re.compile(r"[\x00\ud800-\udfff]")


@dataclass(frozen=True)
class CheckedWrite:
    """A write that may be stored.

    Attributes:
        write: The write, its names in their stored form.
        text: The value's JSON; empty for a removal.
        dream: The dream that commits it, if one does.
        change: That dream's change.
        idempotency: The name of the call that makes it, if it has one.
    """

    write: Write
    text: str
    dream: str = ""
    change: str = ""
    idempotency: str = ""

    def without(self, messages: Collection[Message]) -> Self:
        """Return the write without the words of these messages."""
        write, new = self.write, self.write.unconfirmed
        write = write.replace(evidence=_unquoted(write.evidence, messages))
        if new:
            new = new.replace(evidence=_unquoted(new.evidence, messages))
            write = write.replace(unconfirmed=new)
        return replace(self, write=write)

    @property
    def cited(self) -> list[Evidence]:
        """The messages that it quotes."""
        new = self.write.unconfirmed
        return [*self.write.evidence, *(new.evidence if new else ())]


@dataclass(frozen=True)
class CheckedStep:
    """A step of a dream's commit that may be stored."""

    id: str
    reads: list[Read]
    writes: list[CheckedWrite]

    @property
    def read(self) -> set[str]:
        """The keys that it rests on."""
        return {read.key for read in self.reads}

    @property
    def written(self) -> set[str]:
        """The keys whose value it changes or takes away."""
        return {one.write.key for one in self.writes if one.write.op != "confirm"}

    @property
    def touched(self) -> set[str]:
        """The keys that it reads or writes."""
        return self.read | self.written


def fact_place(agent: str, scope: str) -> Place:
    """Return where facts live.

    Raises:
        InvalidFact: A name cannot be stored, or belongs to agentmem itself.
    """
    place = Place(checked_name(agent, "agent"), checked_name(scope, "scope"))
    if place.agent.startswith(RESERVED) and not isinstance(agent, OwnAgent):
        raise InvalidFact(
            f"agent {place.agent[:40]!r}: names that begin with {RESERVED!r} are ours"
        )
    return place


def session_place(agent: str, scope: str) -> Place:
    """Return where transcripts and dreams live; a session without long-term memory has no scope."""
    return Place(checked_name(agent, "agent"), checked_name(scope, "scope") if scope else "")


def checked_write(
    write: Write, *, dream: str = "", change: str = "", idempotency: str = ""
) -> CheckedWrite:
    """Return a write as every store takes it.

    Raises:
        InvalidFact: Its key or value cannot be stored, or a time has no zone.
    """
    key = checked_name(write.key, "key")
    text = checked_value(write.value, key) if write.op == "set" else ""
    stored = write.replace(
        key=key,
        replaced_by=checked_name(write.replaced_by, "key") if write.replaced_by else "",
        reason=storable(write.reason),
        kind=storable(write.kind),
        valid_from=storable(write.valid_from),
        valid_to=storable(write.valid_to),
        said_at=aware(write.said_at, f"said_at of {key!r}"),
        expires_at=aware(write.expires_at, f"expires_at of {key!r}"),
        evidence=[_evidence(item) for item in write.evidence],
        unconfirmed=_unconfirmed(write.unconfirmed, key),
        was=_earlier(write.was, key),
        author=storable(write.author),
    )
    return CheckedWrite(stored, text, dream, change, idempotency)


def checked_step(dream: str, step: Step) -> CheckedStep:
    """Return a dream's step as every store takes it.

    Raises:
        InvalidFact: A key or value cannot be stored, or a time has no zone.
    """
    reads = [read.replace(key=checked_name(read.key, "key")) for read in step.reads]
    change = storable(step.id)
    writes = [checked_write(write, dream=dream, change=change) for write in step.writes]
    return CheckedStep(change, reads, writes)


def checked_dream(record: DreamRecord) -> DreamRecord:
    """Return a dream's record as every store takes it.

    Raises:
        InvalidFact: Its id cannot be stored, or its time has no zone.
    """
    opened_at = aware(record.opened_at, f"opened_at of dream {record.id!r}")
    return record.replace(
        id=checked_name(record.id, "dream"),
        status=storable(record.status),
        opened_at=opened_at,
        ranges=checked_ranges(record.ranges),
    )


def checked_reply(reply: ReplyRecord) -> ReplyRecord:
    """Return a model's reply as every store takes it."""
    return reply.replace(phase=storable(reply.phase), digest=storable(reply.digest))


def checked_rows(rows: Sequence[TranscriptRow]) -> list[TranscriptRow]:
    """Return rows of one session's memory in the order of their numbers, as every store takes them.

    Raises:
        InvalidFact: A name cannot be stored, or a time has no zone.
        ConfigurationError: They are of several memories.
    """
    if len({(row.session, row.memory) for row in rows}) > 1:
        raise ConfigurationError("append: give the rows of one session's memory at a time")
    return [
        row.replace(
            session=checked_name(row.session, "session"),
            memory=checked_name(row.memory, "memory"),
            message=storable(row.message),
            role=storable(row.role),
            name=storable(row.name),
            text=storable(row.text),
            at=aware(row.at, f"the time of message {row.message!r}"),
        )
        for row in sorted(rows, key=lambda row: row.seq)
    ]


def checked_text(value: Any, what: str) -> str:
    """Return what somebody asks for, so that every database looks for the same.

    Raises:
        InvalidFact: It is not text.
    """
    if not isinstance(value, str):
        raise InvalidFact(f"{what} must be text, got {type(value).__name__}")
    return storable(value)


def checked_message(message: MessageId) -> MessageId:
    """Return which message is meant, as every store takes it."""
    return message.replace(
        session=storable(message.session),
        memory=storable(message.memory),
        message=storable(message.message),
    )


def checked_ranges(ranges: Sequence[Range]) -> list[Range]:
    """Return ranges of rows as every store takes them."""
    return [
        one.replace(session=storable(one.session), memory=storable(one.memory)) for one in ranges
    ]


def storable(text: str) -> str:
    """Return a message's text as every database can hold it.

    NUL and lone surrogates are not text to PostgreSQL; a message is kept with U+FFFD in their
    place, where a fact would be refused.
    """
    return _UNSTORABLE.sub("\ufffd", text)


def aware(time: datetime | None, what: str) -> datetime | None:
    """Return a time if it says its zone.

    Raises:
        InvalidFact: It does not; two machines would read two instants from it.
    """
    if time is not None and time.utcoffset() is None:
        raise InvalidFact(f"{what} has no time zone: {time.isoformat()}; give it one")
    return time


def _unconfirmed(new: Unconfirmed | None, key: str) -> Unconfirmed | None:
    if new is None:
        return None
    return new.replace(
        value=json.loads(checked_value(new.value, key)),
        valid_from=storable(new.valid_from),
        valid_to=storable(new.valid_to),
        said_at=aware(new.said_at, f"said_at of the new value of {key!r}"),
        expires_at=aware(new.expires_at, f"expires_at of the new value of {key!r}"),
        evidence=[_evidence(item) for item in new.evidence],
    )


def _earlier(was: EarlierValue | None, key: str) -> EarlierValue | None:
    if was is None:
        return None
    replaced_at = aware(was.replaced_at, f"replaced_at of {key!r}")
    return was.replace(value=json.loads(checked_value(was.value, key)), replaced_at=replaced_at)


def _evidence(item: Evidence) -> Evidence:
    return item.replace(
        session=storable(item.session),
        memory=storable(item.memory),
        message=storable(item.message),
        role=storable(item.role),
        said_at=aware(item.said_at, f"said_at of message {item.message!r}"),
        quote=storable(item.quote),
    )


def _unquoted(evidence: Sequence[Evidence], messages: Collection[Message]) -> list[Evidence]:
    return [
        item.replace(quote="", forgotten=True) if cited(item) in messages else item
        for item in evidence
    ]


def cited(item: Evidence) -> Message:
    """Return which message it is: session, memory and id."""
    return item.session, item.memory, item.message
