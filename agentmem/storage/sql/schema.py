"""The tables that facts, their history and their evidence live in.

Names compare byte by byte on every database (`C` on PostgreSQL, `BINARY` on SQLite), JSON is kept
as text so that it comes back exactly as it was, and times come back aware, in UTC.
"""

from datetime import UTC, datetime

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Date,
    DateTime,
    Dialect,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    text,
)
from sqlalchemy.types import TypeDecorator

metadata = MetaData()


class UtcTime(TypeDecorator[datetime]):
    """An aware instant, in UTC on every database."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Bring the time to UTC; SQLite keeps it without a zone."""
        if value is None:
            return None
        utc = value.astimezone(UTC)
        return utc.replace(tzinfo=None) if dialect.name == "sqlite" else utc

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Give the zone back."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def _name(column: str, *, primary_key: bool = False) -> Column[str]:
    exact = Text().with_variant(Text(collation="C"), "postgresql")
    return Column(column, exact, primary_key=primary_key, nullable=False)


def _text(column: str) -> Column[str]:
    return Column(column, Text, nullable=False)


def _number(column: str, *, primary_key: bool = False) -> Column[int]:
    return Column(column, BigInteger, primary_key=primary_key, autoincrement=False, nullable=False)


def _flag(column: str) -> Column[bool]:
    return Column(column, Boolean, nullable=False)


def _time(column: str, *, nullable: bool = False) -> Column[datetime]:
    return Column(column, UtcTime, nullable=nullable)


def _keys(*columns: str) -> list[Column[str]]:
    return [_name(column, primary_key=True) for column in columns]


def _said_of_a_fact() -> list[Column[object]]:
    # What a current fact and each of its versions both say.
    columns = [
        *(_text("trust"), Column("importance", Integer, nullable=False), _text("kind")),
        *(_flag("pinned"), _text("writer"), _time("recorded_at"), _time("said_at", nullable=True)),
        *(_text("valid_from"), _text("valid_to"), _time("expires_at", nullable=True)),
        *(_text("state"), Column("unconfirmed", Text), Column("was", Text), _text("author")),
    ]
    return list[Column[object]](columns)  # type: ignore[arg-type]


facts = Table(
    "agentmem_facts",
    metadata,
    *_keys("agent", "scope", "key"),
    _text("value"),
    _number("version"),
    *_said_of_a_fact(),
)
"""The current facts: one row a key."""

fact_versions = Table(
    "agentmem_fact_versions",
    metadata,
    *_keys("agent", "scope", "key"),
    _number("version", primary_key=True),
    _text("op"),
    Column("value", Text),  # none for a removal
    *_said_of_a_fact(),
    _text("reason"),
    _name("replaced_by"),
    _name("dream"),
    _name("change_id"),
    _name("idempotency"),
)
"""Every write ever made, removals too: journal, history and undo in one.

A row stays as it was written, but for what confirms it: a stronger trust, a later `said_at`.
"""

fact_evidence = Table(
    "agentmem_fact_evidence",
    metadata,
    *_keys("agent", "scope", "key"),
    _number("version", primary_key=True),
    _number("place", primary_key=True),
    *(_name("session"), _name("memory"), _name("message"), _text("role")),
    _time("said_at", nullable=True),
    *(_text("quote"), _flag("forgotten")),
    Index("agentmem_evidence_of_message", "agent", "scope", "session", "memory", "message"),
)
"""The messages that a version of a fact rests on; they outlive the transcript."""

fact_confirmations = Table(
    "agentmem_fact_confirmations",
    metadata,
    *_keys("agent", "scope", "key", "dream"),
    _number("version", primary_key=True),
    _name("change_id"),
    *(_text("trust"), _time("said_at", nullable=True), _text("places")),
)
"""The trust and time before a dream's confirmation, and the places of the evidence it added."""

fact_usage = Table(
    "agentmem_fact_usage",
    metadata,
    *_keys("agent", "scope", "key"),
    Column("last_used_on", Date, nullable=False),
)
"""When a fact was last asked for; apart, so that reading never changes a version."""

calls = Table(
    "agentmem_calls",
    metadata,
    *_keys("agent", "scope", "name"),
    _text("versions"),
    _time("at"),
)
"""The result of each named write, so that its repeat returns the same and changes nothing."""

transcript = Table(
    "agentmem_transcript",
    metadata,
    *_keys("agent", "scope", "session", "memory"),
    _number("seq", primary_key=True),
    *(_name("message"), _text("role"), _text("text"), _number("bytes")),
    *(_time("at"), Column("at_offset", Integer, nullable=False), _number("turn"), _text("name")),
    *(_flag("recalled"), _flag("forgotten"), _time("consumed_at", nullable=True)),
    Index(
        "agentmem_transcript_consumed",
        "consumed_at",
        postgresql_where=text("consumed_at IS NOT NULL"),
        sqlite_where=text("consumed_at IS NOT NULL"),
    ),
)
"""The messages, kept for the next dream; `at_offset` keeps the speaker's zone, in seconds."""

cursors = Table(
    "agentmem_cursors",
    metadata,
    *_keys("agent", "scope", "session", "memory"),
    _number("seq"),
    _name("dream"),
    _time("moved_at"),
)
"""The position up to which dreams have read each session's memory."""

dreams = Table(
    "agentmem_dreams",
    metadata,
    *_keys("agent", "scope", "id"),
    *(_text("status"), _time("opened_at"), _time("ended_at", nullable=True)),
    *(_text("model"), _text("prompt_version"), _time("previous_attempt", nullable=True)),
    *(_text("ranges"), _text("snapshot"), _text("data"), _text("applied"), _text("conflicts")),
)
"""Each dream's frozen view, its draft and how it ended."""

dream_steps = Table(
    "agentmem_dream_steps",
    metadata,
    *_keys("agent", "scope", "dream", "phase"),
    _number("step", primary_key=True),
    *(_text("digest"), _text("reply"), _time("saved_at")),
)
"""Each dream's paid model replies."""

scope_state = Table(
    "agentmem_scope_state",
    metadata,
    *_keys("agent", "scope"),
    _number("failures"),
    _time("last_attempt", nullable=True),
)
"""The counts of the failure gate."""

_PREFIX = "agentmem_"
_ORDER = (
    *("facts", "fact_versions", "fact_evidence", "fact_confirmations", "fact_usage", "calls"),
    *("transcript", "cursors", "dreams", "dream_steps", "scope_state"),
)
TABLES: dict[str, Table] = {name: metadata.tables[_PREFIX + name] for name in _ORDER}
"""Every table that holds something of a scope, by the name that rows give it."""
