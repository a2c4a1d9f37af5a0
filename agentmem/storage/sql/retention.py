"""Letting go of what was said: messages on request, and in time all that dreams have read."""

from collections.abc import Iterable
from datetime import datetime
from typing import cast

from sqlalchemy import Connection, Table, delete, exists, select, tuple_, update

from agentmem.facts import Evidence
from agentmem.memory.quotes import find_quote
from agentmem.records import DreamRecord, MessageId
from agentmem.storage.checks import Message, cited
from agentmem.storage.sql.dreams import record_of
from agentmem.storage.sql.locks import hold
from agentmem.storage.sql.rows import Place, chunks, dump, value_of
from agentmem.storage.sql.schema import (
    dream_steps,
    dreams,
    fact_evidence,
    fact_versions,
    facts,
    transcript,
)
from agentmem.wire import JSONObject, JSONValue

_WITH_NEW = (facts, fact_versions)


def forget_message(connection: Connection, place: Place, message: MessageId) -> int:
    """Blank a message's text in the transcript and its quotes; return how many rows held it.

    Drafts of dreams lose it too, and their paid replies go: they may hold it in any words.
    """
    hold(connection, place)  # a commit that goes on beside would quote it again
    which = place._asdict() | message.model_dump()
    text = connection.execute(select(transcript.c.text).filter_by(**which)).scalar() or ""
    row = update(transcript).filter_by(**which).where(~transcript.c.forgotten)
    blanked = connection.execute(row.values(text="", bytes=0, forgotten=True)).rowcount
    quotes = update(fact_evidence).filter_by(**which).where(~fact_evidence.c.forgotten)
    blanked += connection.execute(quotes.values(quote="", forgotten=True)).rowcount
    blanked += sum(_blank_unconfirmed(connection, place, message, table) for table in _WITH_NEW)
    return blanked + _blank_dreams(connection, place, message, text)


def _blank_unconfirmed(
    connection: Connection, place: Place, message: MessageId, table: Table
) -> int:
    """Take a message's quotes out of values that are not confirmed; return how many held one."""
    found = 0
    quoting = select(table).filter_by(**place._asdict()).where(table.c.unconfirmed.is_not(None))
    for row in connection.execute(quoting).mappings().all():
        new = value_of(row["unconfirmed"])
        if (kept := _without(new, message, "")) != new:
            which = {column.name: row[column.name] for column in table.primary_key}
            blank = update(table).filter_by(**which).values(unconfirmed=dump(kept))
            found += connection.execute(blank).rowcount
    return found


def _blank_dreams(connection: Connection, place: Place, message: MessageId, text: str) -> int:
    """Take a message out of what the scope's dreams have kept; return how many held it."""
    found = 0
    for dream in connection.execute(select(dreams).filter_by(**place._asdict())).mappings().all():
        reads = _reads(record_of(dream), message)
        if reads:
            steps = delete(dream_steps).filter_by(**place._asdict(), dream=dream["id"])
            connection.execute(steps)
        data = cast("JSONObject", value_of(dream["data"]))
        kept = cast("JSONObject", _without(data, message, text))
        found += kept != data
        if dream["status"] == "running" and (reads or kept != data):
            # What its phase has read by now is not to be saved.
            kept = {**kept, "forgets": data.get("forgets", 0) + 1}
        if kept != data:
            which = update(dreams).filter_by(**place._asdict(), id=dream["id"])
            connection.execute(which.values(data=dump(kept)))
    return found


def expire(connection: Connection, before: datetime) -> int:
    """Delete what dreams had read, and what models replied to them, before a time; in all scopes.

    A row's number is not given again: the cursor remembers how far its session was.
    """
    rows = delete(transcript).where(transcript.c.consumed_at < before)
    table, step = dreams.c, dream_steps.c
    ended = select(table.id).where(
        *(table.agent == step.agent, table.scope == step.scope, table.id == step.dream),
        *(table.status != "running", table.ended_at < before),
    )
    steps = delete(dream_steps).where(exists(ended))
    return connection.execute(rows).rowcount + connection.execute(steps).rowcount


def forgotten_among(
    connection: Connection, place: Place, evidence: Iterable[Evidence]
) -> set[Message]:
    """Return which of these messages were forgotten on request."""
    messages = sorted(set(map(cited, evidence)))
    found: set[Message] = set()
    for some in chunks(messages):
        for table in (transcript, fact_evidence):
            names = [table.c[name] for name in MessageId.model_fields]
            wanted = select(*names).filter_by(**place._asdict(), forgotten=True)
            rows = connection.execute(wanted.where(tuple_(*names).in_(some)))
            found |= {(row.session, row.memory, row.message) for row in rows}
    return found


def _reads(record: DreamRecord, message: MessageId) -> bool:
    return any(
        (some.session, some.memory) == (message.session, message.memory) for some in record.ranges
    )


def _is_of(quote: str, text: str) -> bool:
    return bool(quote) and (quote in text or find_quote(quote, text))


def _names_message(kept: JSONObject) -> bool:
    """Tell if a quote says which message it is of; those of findings and changes do not."""
    return kept.keys() >= MessageId.model_fields.keys()


def _without(value: JSONValue, message: MessageId, text: str) -> JSONValue:
    """Return what a dream has kept without a message: its text, and the quotes of it."""
    if isinstance(value, list):
        return [_without(item, message, text) for item in value]
    if not isinstance(value, dict):
        return value
    kept = {name: _without(item, message, text) for name, item in value.items()}
    quote = kept.get("quote")
    if all(kept.get(name) == part for name, part in message.full().items()):
        kept |= {name: "" for name in ("quote", "text") if name in kept} | {"forgotten": True}
    elif isinstance(quote, str) and not _names_message(kept) and _is_of(quote, text):
        kept["quote"] = ""
    return kept
