"""Reads of facts: statements that compare names exactly, and the days of their last use."""

from collections.abc import Sequence
from datetime import date
from typing import Any

from sqlalchemy import Connection, Select, bindparam, false, or_, select, tuple_
from sqlalchemy.dialects import postgresql, sqlite

from agentmem.facts import Evidence, Fact
from agentmem.storage.sql.history import Versions, is_copy
from agentmem.storage.sql.rows import Place, chunks, fact_of, now, value_of
from agentmem.storage.sql.schema import fact_evidence, fact_usage, fact_versions, facts
from agentmem.storage.sql.statements import Driver, Ready
from agentmem.wire import JSONObject, JSONValue

_LIVE = or_(facts.c.expires_at.is_(None), facts.c.expires_at > bindparam("now"))
_IN_SCOPE = (facts.c.agent == bindparam("agent"), facts.c.scope == bindparam("scope"))

_ONE = Ready(select(facts.c.value).where(*_IN_SCOPE, facts.c.key == bindparam("key"), _LIVE))
_ALL = Ready(select(facts.c.key, facts.c.value).where(*_IN_SCOPE, _LIVE).order_by(facts.c.key))
_KEYS = Ready(select(facts.c.key).where(*_IN_SCOPE, _LIVE).order_by(facts.c.key))
_SCOPES = select(facts.c.scope).where(_IN_SCOPE[0], _LIVE).distinct().order_by(facts.c.scope)
_ENTRIES = select(facts).where(*_IN_SCOPE).order_by(facts.c.key)
_ENTRIES_NAMED = _ENTRIES.where(facts.c.key.in_(bindparam("keys", expanding=True)))


def recall_one(driver: Driver, place: Place, key: str) -> JSONValue:
    """Return a key's value, None if it is missing or has expired."""
    rows = driver.rows(_ONE, _at(place) | {"key": key})
    return value_of(rows[0][0]) if rows else None


def recall_all(driver: Driver, place: Place) -> JSONObject:
    """Return the scope's values by key, in the order of the keys."""
    return {key: value_of(text) for key, text in driver.rows(_ALL, _at(place))}


def keys(driver: Driver, place: Place) -> list[str]:
    """Return the scope's keys, sorted."""
    return [key for (key,) in driver.rows(_KEYS, _at(place))]


def scopes(connection: Connection, agent: str) -> list[str]:
    """Return the agent's scopes that hold a fact, sorted."""
    return list(connection.execute(_SCOPES, {"agent": agent, "now": now()}).scalars())


def entries(connection: Connection, place: Place, named: Sequence[str] | None) -> list[Fact]:
    """Return current facts, ordered by key; expired ones too, since they still stand there."""
    if named is None:
        rows = connection.execute(_ENTRIES, place._asdict()).mappings()
        return [fact_of(row) for row in rows]
    found: list[Fact] = []
    for some in chunks(sorted(set(named))):
        rows = connection.execute(_ENTRIES_NAMED, place._asdict() | {"keys": some})
        found += [fact_of(row) for row in rows.mappings()]
    return found


def facts_at(connection: Connection, place: Place, versions: dict[str, int]) -> list[Fact]:
    """Return facts as they stood at these versions, with their evidence; removals are left out."""
    found: list[Fact] = []
    for some in chunks(sorted(versions.items())):
        evidence = _evidence(connection, place, some)
        rows = connection.execute(_versions_at(place, some)).mappings().all()
        copies = Versions(connection, place)
        copies.load((row["key"], row["version"]) for row in rows if is_copy(row))
        for row in rows:
            written = copies.writer(row["key"], row["version"]) if is_copy(row) else {}
            found.append(fact_of(row).replace(evidence=evidence.get(row["key"], []), **written))
    return found


def _versions_at(place: Place, wanted: Sequence[tuple[str, int]]) -> Select[Any]:
    table = fact_versions.c
    return (
        select(fact_versions)
        .where(table.agent == place.agent, table.scope == place.scope)
        .where(tuple_(table.key, table.version).in_(wanted) if wanted else false())
        .where(table.op == "set")
        .order_by(table.key)
    )


def _evidence(
    connection: Connection, place: Place, wanted: Sequence[tuple[str, int]]
) -> dict[str, list[Evidence]]:
    table = fact_evidence.c
    rows = connection.execute(
        select(fact_evidence)
        .where(table.agent == place.agent, table.scope == place.scope)
        .where(tuple_(table.key, table.version).in_(wanted))
        .order_by(table.key, table.place)
    )
    found: dict[str, list[Evidence]] = {}
    for row in rows.mappings():
        found.setdefault(row["key"], []).append(Evidence.model_validate(dict(row)))
    return found


def _at(place: Place) -> dict[str, Any]:
    return {"agent": place.agent, "scope": place.scope, "now": now()}


def use(connection: Connection, place: Place, keys: Sequence[str], day: date) -> None:
    """Note that facts were asked for on a day; a later day that is noted already stays."""
    rows = [place._asdict() | {"key": key, "last_used_on": day} for key in sorted(set(keys))]
    if rows:
        connection.execute(_UPSERTS[connection.dialect.name], rows)


def used(connection: Connection, place: Place) -> dict[str, date]:
    """Return the day of each key that was ever asked for."""
    wanted = select(fact_usage.c.key, fact_usage.c.last_used_on).filter_by(**place._asdict())
    return {row.key: row.last_used_on for row in connection.execute(wanted)}


def _upsert(dialect_insert: Any) -> Any:
    statement = dialect_insert(fact_usage)
    new = statement.excluded.last_used_on
    return statement.on_conflict_do_update(
        index_elements=list(fact_usage.primary_key),
        set_={"last_used_on": new},
        where=fact_usage.c.last_used_on < new,
    )


_UPSERTS = {"sqlite": _upsert(sqlite.insert), "postgresql": _upsert(postgresql.insert)}
