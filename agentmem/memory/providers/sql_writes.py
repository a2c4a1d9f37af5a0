"""Writing facts: each write changes what is current and appends a version that says so."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, bindparam, delete, insert, literal, null, select
from sqlalchemy.dialects import postgresql, sqlite

from agentmem.memory.providers.checks import CheckedWrite
from agentmem.memory.providers.locks import hold
from agentmem.memory.providers.rows import SAID, Place, chunks, dump, now, said_by
from agentmem.memory.providers.schema import calls, fact_evidence, fact_versions, facts
from agentmem.memory.providers.sql_confirm import (
    Confirmed,
    evidence_rows,
    store_confirmed,
    strengthened,
)
from agentmem.memory.providers.sql_heads import Head, heads


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
_WITNESS = insert(fact_evidence)


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
