"""One key set to one value: what almost every write is, in as few statements as the database can.

On PostgreSQL one statement is the whole transaction: it waits for the key's lock, writes the fact
and appends its version. It sees the rows from before it waited, but an upsert meets the row as it
is now and counts on from that. Only for a key that was removed meanwhile would its version be one
that is taken: the table refuses it, and a transaction that locks first takes its place.
"""

from datetime import datetime
from typing import Any

from sqlalchemy import (
    CTE,
    BigInteger,
    Connection,
    bindparam,
    false,
    func,
    insert,
    literal_column,
    select,
)
from sqlalchemy.dialects import postgresql, sqlite

from agentmem.storage.checks import CheckedWrite
from agentmem.storage.sql.locks import hold, numbers
from agentmem.storage.sql.rows import SAID, Place, said_by
from agentmem.storage.sql.schema import fact_versions, facts
from agentmem.storage.sql.statements import Driver, Ready
from agentmem.storage.sql.writes import apply

_KEY = ("agent", "scope", "key")
_GIVEN = (*_KEY, "value", "recorded_at", *SAID)


def may_set(checked: CheckedWrite) -> bool:
    """Tell if a write is a set and nothing else: it has no evidence, and its call has no name."""
    write = checked.write
    return write.op == "set" and not write.evidence and not checked.idempotency


def set_one(driver: Driver, place: Place, checked: CheckedWrite, at: datetime) -> int:
    """Store a value under a key and append its version; return that version."""
    write = checked.write
    row = said_by(write)
    row |= {"agent": place.agent, "scope": place.scope, "key": write.key}
    row |= {"value": checked.text, "recorded_at": at}
    row["reason"] = write.reason
    if driver.dialect.name == "postgresql":
        scope, key = numbers(place, write.key)
        row |= {"scope_lock": scope, "key_lock": key}
        ((version,),) = driver.rows(_AT_ONCE, row)
    else:
        ((version,),) = driver.rows(_UPSERT, row)
        driver.rows(_APPEND, row)
    return version


def set_if_missing(
    connection: Connection, place: Place, checked: CheckedWrite, at: datetime
) -> int:
    """Do the same in a transaction, unless it was done already; return the version."""
    key = checked.write.key
    hold(connection, place, [key])
    found = connection.execute(_DONE, {**place._asdict(), "key": key, "recorded_at": at}).all()
    done = [row.version for row in found if row.value == checked.text]
    return done[0] if done else apply(connection, place, [checked], at)[0]


def _upsert(dialect_insert: Any, held: CTE | None = None) -> Any:
    newest = (
        select(func.max(fact_versions.c.version))
        .where(*(fact_versions.c[name] == bindparam(name) for name in _KEY))
        .scalar_subquery()
    )
    next_version = select(func.coalesce(newest, literal_column("0")) + literal_column("1"))
    if held is not None:
        next_version = next_version.select_from(held)
    values: dict[str, Any] = {name: bindparam(name, type_=facts.c[name].type) for name in _GIVEN}
    values |= {"version": next_version.scalar_subquery(), "pinned": false()}
    statement = dialect_insert(facts).values(values)
    replaced = {name: statement.excluded[name] for name in _GIVEN if name not in _KEY}
    replaced["version"] = facts.c.version + literal_column("1")
    return statement.on_conflict_do_update(index_elements=list(_KEY), set_=replaced)


def _append(fact: Any) -> Any:
    row: dict[str, Any] = {column.name: fact[column.name] for column in facts.c}
    row |= {
        "op": literal_column("'set'"),
        "reason": bindparam("reason", type_=fact_versions.c.reason.type),
    }
    row |= {
        column.name: literal_column("''") for column in fact_versions.c if column.name not in row
    }
    return list(row), select(*row.values())


def _at_once() -> Any:
    held = select(
        func.pg_advisory_xact_lock_shared(bindparam("scope_lock", type_=BigInteger)).label("scope"),
        func.pg_advisory_xact_lock(bindparam("key_lock", type_=BigInteger)).label("key"),
    ).cte("held")
    fact = _upsert(postgresql.insert, held).returning(*facts.c).cte("fact")
    return insert(fact_versions).from_select(*_append(fact.c)).returning(fact_versions.c.version)


def _append_stored() -> Any:
    names, fact = _append(facts.c)
    return insert(fact_versions).from_select(
        names, fact.where(*(facts.c[name] == bindparam(name) for name in _KEY))
    )


# Another write of the key that shares the microsecond, and the value too, does no harm.
_DONE = select(fact_versions.c.version, fact_versions.c.value).where(
    *(fact_versions.c[name] == bindparam(name) for name in (*_KEY, "recorded_at"))
)
_AT_ONCE = Ready(_at_once())
_UPSERT = Ready(_upsert(sqlite.insert).returning(facts.c.version))
_APPEND = Ready(_append_stored())
