"""The history of a key: every version that it ever had, each with its evidence."""

from typing import Any

from sqlalchemy import Connection, RowMapping, bindparam, select

from agentmem.facts import Evidence
from agentmem.journal import FactVersion
from agentmem.memory.providers.rows import Place, fact_fields
from agentmem.memory.providers.schema import fact_evidence, fact_versions


def history(connection: Connection, place: Place, key: str) -> list[FactVersion]:
    """Return a key's versions, oldest first, with their evidence."""
    of_key = place._asdict() | {"key": key}
    quotes: dict[int, list[Evidence]] = {}
    for row in connection.execute(_EVIDENCE, of_key).mappings():
        quotes.setdefault(row["version"], []).append(Evidence.model_validate(dict(row)))
    rows = connection.execute(_VERSIONS, of_key).mappings()
    return [version_of(row, quotes.get(row["version"], [])) for row in rows]


def change_of(row: RowMapping) -> str:
    """Return the name by which the change that wrote a version is undone."""
    if row["dream"]:
        return f"{row['dream']}/{row['change_id']}"
    return f"{row['key']}@{row['version']}"


def version_of(row: RowMapping, evidence: list[Evidence]) -> FactVersion:
    """Make a version of a row, with its evidence."""
    said = {"evidence": evidence, "change": change_of(row)}
    return FactVersion.model_validate(fact_fields(row) | said)


def _of_key(table: Any) -> tuple[Any, ...]:
    return tuple(table.c[name] == bindparam(name) for name in ("agent", "scope", "key"))


_VERSIONS = select(fact_versions).where(*_of_key(fact_versions)).order_by(fact_versions.c.version)
_EVIDENCE = (
    select(fact_evidence)
    .where(*_of_key(fact_evidence))
    .order_by(fact_evidence.c.version, fact_evidence.c.place)
)
