"""Facts of long-term memory: their fields, the checks of what may be stored, and their history."""

import unicodedata
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from typing import Any, Literal, cast
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from agentmem.errors import InvalidFact
from agentmem.wire import JSONValue, Wire, dump_json, encoded_size

KEY_BYTES = 512
"""The longest key, agent or scope, in bytes of UTF-8."""
VALUE_BYTES = 64 * 1024
"""The largest value, in bytes of its JSON."""
LEVELS = 100
"""The most lists and objects within each other in a value: a fact can travel, whatever reads it."""


class Trust(StrEnum):
    """Whose word a fact rests on, strongest first: a user's, an assistant's, a tool's."""

    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


RANK = {Trust.USER: 3, Trust.ASSISTANT: 2, Trust.TOOL: 1}
"""Trust as a number: more is stronger."""

Writer = Literal["code", "agent", "dream", "person", "unknown"]
"""Who wrote a version: the user's code, an agent's tool call, a dream, a person by hand, or, for
a store of five methods that keeps no record of it, nobody knows."""

State = Literal["settled", "tentative"]
"""The state of a fact: verified or written on purpose (settled), or not confirmed (tentative)."""


class Evidence(Wire):
    """A message that a fact rests on.

    Attributes:
        session: The run in which the conversation began.
        memory: The working memory within it, `wm0`, ...
        message: The message's id, `m7`.
        role: Who said it.
        said_at: When, by the session's clock.
        quote: At most 300 characters of it; outlives the transcript.
        forgotten: Whether it was taken away on request: it supports nothing any more.
    """

    session: str
    memory: str
    message: str
    role: str = "user"
    said_at: datetime | None = None
    quote: str = ""
    forgotten: bool = False


class Unconfirmed(Wire):
    """A new value that a user's words seem to give a fact, shown beside the old one.

    Attributes:
        value: The new value.
        trust: Whose word it rests on.
        said_at: When its newest supporting message was said.
        valid_from: The first day on which it holds, as the fact's own.
        valid_to: The last day on which it holds, as the fact's own.
        expires_at: When it stops being recalled, as the fact's own.
        evidence: The messages that it rests on, with their quotes.
    """

    value: JSONValue = None
    trust: Trust = Trust.USER
    said_at: datetime | None = None
    valid_from: str = ""
    valid_to: str = ""
    expires_at: datetime | None = None
    evidence: list[Evidence] = []


class EarlierValue(Wire):
    """The value that a verified update replaced, kept in view for 30 days.

    Attributes:
        value: The value.
        replaced_at: When it was replaced.
    """

    value: JSONValue = None
    replaced_at: datetime


class Fact(Wire):
    """A key and its value in long-term memory, as it stands now.

    Attributes:
        key: The key, NFC-normalised, otherwise exactly as written.
        value: Any JSON value.
        version: Grows with each write of the key and never restarts, not even after `forget`.
        trust: The strongest witness behind it.
        importance: 1 (trivia) to 5 (vital).
        kind: preference, profile, decision, event, ... or empty when nobody said.
        pinned: Whether no dream may touch it.
        writer: Who wrote this version.
        recorded_at: When this version was written.
        said_at: When its newest supporting message was said.
        valid_from: Since when it holds in the world, an ISO date, month or year; often unknown.
        valid_to: Until when it held or holds.
        expires_at: When it stops being recalled: the end of the day that `until` names.
        evidence: The messages that it rests on, where they were asked for.
        state: `settled`, or `tentative` while it is not confirmed.
        unconfirmed: A newer value that is not confirmed, shown beside this one.
        was: The value that a verified update replaced; shown for 30 days.
        author: The person who wrote this version, for the writer `person`.
    """

    key: str
    value: JSONValue = None
    version: int = 1
    trust: Trust = Trust.USER
    importance: int = 3
    kind: str = ""
    pinned: bool = False
    writer: Writer = "code"
    recorded_at: datetime | None = None
    said_at: datetime | None = None
    valid_from: str = ""
    valid_to: str = ""
    expires_at: datetime | None = None
    evidence: list[Evidence] = []
    state: State = "settled"
    unconfirmed: Unconfirmed | None = None
    was: EarlierValue | None = None
    author: str = ""


class Tombstone(Wire):
    """A fact that somebody forgot or took back: older evidence cannot bring it back.

    Attributes:
        key: Its key.
        value: What it said.
        trust: The strongest witness that it had.
        at: When it went.
    """

    key: str
    value: JSONValue = None
    trust: Trust = Trust.TOOL
    at: datetime


class Write(Wire):
    """One write to a key: the new value, its removal, or more evidence for what stands there.

    Attributes:
        op: `set` or `remove`; or `confirm`, which gives the current version more evidence, and
            this trust where it is stronger, and changes neither value nor version.
        key: The key.
        value: The new value, for `set`.
        reason: new, correction, decision, duplicate, condensed, superseded, expired, evicted,
            retracted, asked_to_forget, or empty.
        replaced_by: For a removal, the key that holds what stays.
    """

    op: Literal["set", "remove", "confirm"] = "set"
    key: str
    value: JSONValue = None
    reason: str = ""
    replaced_by: str = ""
    writer: Writer = "code"
    trust: Trust = Trust.USER
    importance: int = 3
    kind: str = ""
    said_at: datetime | None = None
    valid_from: str = ""
    valid_to: str = ""
    expires_at: datetime | None = None
    evidence: list[Evidence] = []
    state: State = "settled"
    unconfirmed: Unconfirmed | None = None
    was: EarlierValue | None = None
    author: str = ""


def until_end(until: str, zone: str = "UTC") -> datetime:
    """Return the instant at which a fact with this `until` expires: the end of that day.

    Args:
        until: The last day on which the fact is of use: an ISO day (`2026-05-09`), month or year,
            whose last day counts; or an aware ISO instant, taken as it is.
        zone: The IANA time zone whose days count.

    Raises:
        InvalidFact: The text is none of these, or the zone is unknown.
    """
    text = until.strip()
    try:
        if len(text) > 10:
            instant = datetime.fromisoformat(text)
            if instant.tzinfo is None:
                raise ValueError("an instant needs an offset, like 2026-05-09T18:00+02:00")
            return instant
        parts = [int(part) for part in text.split("-")]
        year, month, day = parts + [0] * (3 - len(parts))
        first = date(year, month or 1, day or 1)
        after = first + timedelta(days=1) if day else _next_month(first, whole_year=not month)
        # UTC needs no file of the system, so that workflow code may check a date.
        place = UTC if zone == "UTC" else ZoneInfo(zone)
        return datetime(after.year, after.month, after.day, tzinfo=place)
    except (ValueError, OverflowError, ZoneInfoNotFoundError) as error:
        raise InvalidFact(
            f"until {until!r} is no ISO day, month or year, like 2026-05-09 or 2026-05: {error}"
        ) from error


def _next_month(first: date, *, whole_year: bool) -> date:
    months = first.year * 12 + (12 if whole_year else first.month)
    return date(months // 12, months % 12 + 1, 1)


class Read(Wire):
    """The version of a key that a change has seen; it is 0 for a key that was not there."""

    key: str
    version: int = 0


class Step(Wire):
    """Writes that stand or fall together, with the versions that they rest on.

    Attributes:
        id: The change's id within its change set.
        reads: The keys that must not have moved since.
        writes: What it does.
    """

    id: str
    reads: list[Read] = []
    writes: list[Write] = []


def checked_name(value: Any, what: str) -> str:
    """Return an agent, scope or key in its stored form (NFC), or say what is wrong with it.

    Args:
        value: The text.
        what: What it is, for the message: `key`, `scope` or `agent`.

    Raises:
        InvalidFact: It is not text, empty or only spaces, holds a NUL or a lone surrogate, or
            takes over 512 bytes of UTF-8.
    """
    if not isinstance(value, str):
        raise InvalidFact(f"{what} must be text, got {type(value).__name__}")
    if not value.strip():
        raise InvalidFact(f"{what} is empty; give it a name")
    text = unicodedata.normalize("NFC", value)
    _refuse_unstorable(text, what)
    size = len(text.encode())
    if size > KEY_BYTES:
        raise InvalidFact(f"{what} takes {size} bytes, the limit is {KEY_BYTES}: {text[:40]!r}...")
    return text


def checked_value(value: Any, key: str) -> str:
    """Return a value's JSON text as every store holds it, or say what is wrong with it.

    Raises:
        InvalidFact: The value is not JSON (NaN and infinities are not), holds a NUL or a lone
            surrogate, its JSON takes over 64 KiB, or it is nested over 100 levels deep.
    """
    try:
        text = dump_json(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidFact(f"the value of {key!r} is not JSON: {error}") from error
    _refuse_unstorable(text, f"the value of {key!r}")
    size = len(text.encode())
    if size > VALUE_BYTES:
        raise InvalidFact(
            f"the value of {key!r} takes {size} bytes as JSON, the limit is {VALUE_BYTES}; "
            "split it over several keys"
        )
    # Brackets in texts count here too: only what may be too deep is walked through.
    if text.count("[") + text.count("{") > LEVELS and _levels(value) > LEVELS:
        raise InvalidFact(
            f"the value of {key!r} is nested over {LEVELS} levels deep; make it flatter"
        )
    return text


def _levels(value: object) -> int:
    found, level = 0, [value]
    while any(isinstance(item, dict | list | tuple) for item in level):
        found += 1
        level = [inside for item in level for inside in _inside(item)]
    return found


def _inside(item: object) -> Iterable[object]:
    if isinstance(item, dict):
        return cast("dict[str, object]", item).values()
    return cast("list[object]", item) if isinstance(item, list | tuple) else ()


def _refuse_unstorable(text: str, what: str) -> None:
    # PostgreSQL's text holds no NUL, UTF-8 no lone surrogate: refused alike on every store.
    if "\x00" in text or "\\u0000" in text.replace("\\\\", ""):
        raise InvalidFact(f"{what} holds a NUL character; remove it")
    if text.isascii():
        return
    try:
        encoded_size(text)
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidFact(f"{what} holds a lone surrogate; it is not valid Unicode") from error


class FactVersion(Fact):
    """One write to a key, as its history keeps it: the fact that it left, and how it came about.

    Attributes:
        op: `set`, or `remove` for one that took the fact away; its `value` is None then.
        reason: new, correction, decision, duplicate, condensed, superseded, expired, evicted,
            retracted, asked_to_forget, confirmed, pinned, unpinned, undone, or empty.
        replaced_by: For a removal, the key that holds what stays.
        dream: The dream that wrote it, empty if none did.
        change: What `undo` takes to take it back: `<dream>/<change>`, or `<key>@<version>`.
    """

    op: Literal["set", "remove"] = "set"
    reason: str = ""
    replaced_by: str = ""
    dream: str = ""
    change: str = ""


class Undone(Wire):
    """The result of an undo.

    Attributes:
        keys: Keys that stand again as before; those that did so already are among them.
        conflicts: Keys that changed meanwhile: they were left as they are, and so was everything
            else that the same change did.
    """

    keys: list[str] = []
    conflicts: list[str] = []
