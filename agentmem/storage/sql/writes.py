"""Writes of facts: each changes what is current and appends a version that says so.

A confirmation adds evidence to the current version, and trust if the evidence is stronger.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, bindparam, delete, insert, literal, null, select, tuple_, update
from sqlalchemy.dialects import postgresql, sqlite

from agentmem.facts import RANK, Evidence, Trust, Write
from agentmem.storage.checks import CheckedWrite, Message, cited
from agentmem.storage.sql.history import Head, heads
from agentmem.storage.sql.locks import hold
from agentmem.storage.sql.rows import SAID, Place, chunks, dump, now, said_by
from agentmem.storage.sql.schema import (
    calls,
    fact_confirmations,
    fact_evidence,
    fact_versions,
    facts,
)

_VERSION = ("agent", "scope", "key", "version")
_EVIDENCE = tuple(Evidence.model_fields)

# Statements stand ready: building one costs more than running it.
_WITNESS = insert(fact_evidence)
_INVERSE = insert(fact_confirmations)
_KNOWN = (
    select(fact_evidence)
    .where(fact_evidence.c.agent == bindparam("agent"), fact_evidence.c.scope == bindparam("scope"))
    .where(
        tuple_(fact_evidence.c.key, fact_evidence.c.version).in_(
            bindparam("versions", expanding=True)
        )
    )
)
_STRENGTHEN = (
    update(fact_versions)
    .where(*(fact_versions.c[name] == bindparam(f"of_{name}") for name in _VERSION))
    .values(trust=bindparam("new_trust"), said_at=bindparam("new_said_at"))
)


@dataclass
class Confirmed:
    """A version that was confirmed.

    Attributes:
        row: It, as it is now.
        before: It, as it was.
        dream: The dream that confirms it, if one does.
        change: That dream's change.
        evidence: The messages that confirm it.
    """

    row: dict[str, Any]
    before: dict[str, Any]
    dream: str = ""
    change: str = ""
    evidence: list[Evidence] = field(default_factory=list[Evidence])


def strengthened(row: Mapping[str, Any], write: Write) -> dict[str, Any]:
    """Return a fact's row after a confirmation; one by weaker trust leaves it as it was."""
    trust, said = Trust(row["trust"]), [at for at in (row["said_at"], write.said_at) if at]
    if RANK[write.trust] < RANK[trust]:
        return dict(row)
    return {**row, "trust": str(write.trust), "said_at": max(said, default=None)}


def store_confirmed(connection: Connection, place: Place, confirmed: Sequence[Confirmed]) -> None:
    """Store what confirmations add to versions that lie in their tables; twice adds nothing."""
    strong = [
        {f"of_{name}": one.row[name] for name in _VERSION}
        | {f"new_{name}": one.row[name] for name in ("trust", "said_at")}
        for one in confirmed
    ]
    connection.execute(_STRENGTHEN, strong)
    there = _there(connection, place, confirmed)
    added: list[dict[str, Any]] = []
    inverse: list[dict[str, Any]] = []
    for one in confirmed:
        known = there.get((one.row["key"], one.row["version"]), {})
        new = {cited(item): item for item in one.evidence if cited(item) not in known}
        rows = evidence_rows(one.row, new.values(), max(known.values(), default=-1) + 1)
        added += rows
        if one.dream:
            inverse.append(_inverse(one, [row["place"] for row in rows]))
    if added:
        connection.execute(_WITNESS, added)
    if inverse:
        connection.execute(_INVERSE, inverse)


def evidence_rows(
    row: Mapping[str, Any], evidence: Iterable[Evidence], first: int = 0
) -> list[dict[str, Any]]:
    """Return the rows of a version's evidence, numbered from `first`."""
    of_version = {name: row[name] for name in _VERSION}
    return [
        of_version | {"place": number, **{name: getattr(item, name) for name in _EVIDENCE}}
        for number, item in enumerate(evidence, first)
    ]


def _inverse(one: Confirmed, places: list[int]) -> dict[str, Any]:
    return {
        **{name: one.row[name] for name in _VERSION},
        **{name: one.before[name] for name in ("trust", "said_at")},
        "dream": one.dream,
        "change_id": one.change,
        "places": dump(places),
    }


def _there(
    connection: Connection, place: Place, confirmed: Sequence[Confirmed]
) -> dict[tuple[str, int], dict[Message, int]]:
    """Return the messages behind these versions, by (key, version), each with its place."""
    found: dict[tuple[str, int], dict[Message, int]] = {}
    for some in chunks((one.row["key"], one.row["version"]) for one in confirmed):
        for row in connection.execute(_KNOWN, place._asdict() | {"versions": some}):
            message = (row.session, row.memory, row.message)
            found.setdefault((row.key, row.version), {})[message] = row.place
    return found


def _upsert(dialect_insert: Any) -> Any:
    statement = dialect_insert(facts)
    names = [column.name for column in facts.c if not column.primary_key]
    new = {name: statement.excluded[name] for name in names}
    return statement.on_conflict_do_update(index_elements=list(facts.primary_key), set_=new)


def _remove_all() -> Any:
    row: dict[str, Any] = {column.name: column for column in facts.c} | {
        "version": facts.c.version + 1,
        "op": literal("remove"),
        "value": null(),
        "writer": literal("code"),
        "author": literal(""),
        "recorded_at": bindparam("now", type_=facts.c.recorded_at.type),
    }
    row |= {column.name: literal("") for column in fact_versions.c if column.name not in row}
    return insert(fact_versions).from_select(list(row), select(*row.values()).where(*_IN_SCOPE))


# Statements stand ready: building one costs more than running it.
_IN_SCOPE = (facts.c.agent == bindparam("agent"), facts.c.scope == bindparam("scope"))
_CALL = select(calls.c.versions).where(
    *(getattr(calls.c, name) == bindparam(name) for name in ("agent", "scope", "name"))
)
_NOTE = insert(calls)
_UPSERTS = {"sqlite": _upsert(sqlite.insert), "postgresql": _upsert(postgresql.insert)}
_DELETE_ALL = delete(facts).where(*_IN_SCOPE)
_DELETE = _DELETE_ALL.where(facts.c.key.in_(bindparam("keys", expanding=True)))
_REMOVE_ALL = _remove_all()
_APPEND = insert(fact_versions)


@dataclass
class _Rows:
    versions: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    evidence: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    confirmed: dict[tuple[str, int], Confirmed] = field(
        default_factory=dict[tuple[str, int], Confirmed]
    )


def write(
    connection: Connection, place: Place, writes: Sequence[CheckedWrite], idempotency: str
) -> list[int]:
    """Apply a call's writes; a call that has been made already returns what it returned."""
    hold(connection, place, [checked.write.key for checked in writes])
    made = _made(connection, place, idempotency)
    if made is not None:
        return made
    left = apply(connection, place, writes)
    _note(connection, place, idempotency, left)
    return left


def clear(connection: Connection, place: Place, idempotency: str) -> None:
    """Remove every fact of a scope, each with a version that says so; once by the call's name."""
    hold(connection, place)
    if _made(connection, place, idempotency) is None:
        connection.execute(_REMOVE_ALL, place._asdict() | {"now": now()})
        connection.execute(_DELETE_ALL, place._asdict())
        _note(connection, place, idempotency, [])


def _made(connection: Connection, place: Place, name: str) -> list[int] | None:
    """Return what a call returned that was made already, None if it was not."""
    if not name:
        return None
    made = connection.execute(_CALL, place._asdict() | {"name": name}).scalar_one_or_none()
    return None if made is None else json.loads(made)


def _note(connection: Connection, place: Place, name: str, versions: list[int]) -> None:
    if name:
        call = place._asdict() | {"name": name, "versions": dump(versions), "at": now()}
        connection.execute(_NOTE, call)


def apply(
    connection: Connection, place: Place, writes: Sequence[CheckedWrite], at: datetime | None = None
) -> list[int]:
    """Apply writes in order, in a bounded number of statements.

    Returns:
        The version that each left, 0 where there was nothing to remove or confirm.
    """
    at = at or now()
    stand = heads(connection, place, (checked.write.key for checked in writes))
    before = {key for key, head in stand.items() if head.current}
    rows, left = _Rows(), list[int]()
    for checked in writes:
        key = checked.write.key
        head = stand[key]
        if checked.write.op != "set" and head.current is None:
            left.append(0)
            continue
        if checked.write.op == "confirm" and head.current:
            stand[key] = _confirm(checked, head.current, rows)
            left.append(head.version)
            continue
        version = _version(place, checked, head, at)
        rows.versions.append(version)
        rows.evidence += evidence_rows(version, checked.write.evidence)
        removed = checked.write.op == "remove"
        stand[key] = Head(version["version"], None if removed else version)
        left.append(version["version"])
    _store(connection, place, stand, before, rows)
    return left


def _version(place: Place, checked: CheckedWrite, head: Head, at: datetime) -> dict[str, Any]:
    write = checked.write
    said = said_by(write)
    pinned = bool(head.current and head.current["pinned"])
    if write.op == "remove" and head.current:
        # A tombstone keeps what was said of the fact, with the writer and trust of its removal.
        said = {name: head.current[name] for name in SAID}
        said |= {"writer": write.writer, "trust": str(write.trust), "author": write.author}
    return {
        **place._asdict(),
        "key": write.key,
        "version": head.version + 1,
        "op": write.op,
        "value": None if write.op == "remove" else checked.text,
        **said,
        "pinned": pinned,
        "recorded_at": at,
        "reason": write.reason,
        "replaced_by": write.replaced_by,
        "dream": checked.dream,
        "change_id": checked.change,
        "idempotency": checked.idempotency,
    }


def _confirm(checked: CheckedWrite, current: dict[str, Any], rows: _Rows) -> Head:
    row = strengthened(current, checked.write)
    new = Confirmed(row, current, checked.dream, checked.change)
    confirmed = rows.confirmed.setdefault((checked.write.key, row["version"]), new)
    confirmed.row = row
    confirmed.evidence += checked.write.evidence
    return Head(row["version"], row)


def _store(
    connection: Connection, place: Place, stand: dict[str, Head], before: set[str], rows: _Rows
) -> None:
    touched = {version["key"] for version in rows.versions} | {key for key, _ in rows.confirmed}
    if not touched:
        return
    columns = facts.c.keys()
    current = [
        {name: head.current[name] for name in columns}
        for key, head in stand.items()
        if head.current and key in touched
    ]
    gone = [key for key in before & touched if stand[key].current is None]
    if current:
        connection.execute(_UPSERTS[connection.dialect.name], current)
    for some in chunks(gone):
        connection.execute(_DELETE, place._asdict() | {"keys": some})
    if rows.versions:
        connection.execute(_APPEND, rows.versions)
    if rows.evidence:
        connection.execute(_WITNESS, rows.evidence)
    if rows.confirmed:
        store_confirmed(connection, place, list(rows.confirmed.values()))
