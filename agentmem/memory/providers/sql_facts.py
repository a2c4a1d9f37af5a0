"""Reading facts: statements that compare names exactly and see one row set."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Select, bindparam, false, or_, select, tuple_

from agentmem.facts import Evidence, Fact
from agentmem.memory.providers.ready import Driver, Ready
from agentmem.memory.providers.rows import Place, chunks, fact_of, now, value_of
from agentmem.memory.providers.schema import fact_evidence, fact_versions, facts
from agentmem.memory.providers.sql_versions import Versions, is_copy
from agentmem.values import JSONObject, JSONValue

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
