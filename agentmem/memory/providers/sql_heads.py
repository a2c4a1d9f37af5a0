"""Where keys stand before they are written: their newest version, and what they hold now."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, bindparam, func, select

from agentmem.memory.providers.rows import Place, chunks
from agentmem.memory.providers.schema import fact_versions, facts


@dataclass(frozen=True)
class Head:
    """Where a key stands.

    Attributes:
        version: Its newest version, a removal's too; 0 if it never was.
        current: Its row in `facts`, None if it holds no value.
    """

    version: int = 0
    current: dict[str, Any] | None = None


# Statements stand ready: building one costs more than running it.
_CURRENT = (
    select(facts)
    .where(facts.c.agent == bindparam("agent"), facts.c.scope == bindparam("scope"))
    .where(facts.c.key.in_(bindparam("keys", expanding=True)))
)
_NEWEST = (
    select(fact_versions.c.key, func.max(fact_versions.c.version))
    .where(fact_versions.c.agent == bindparam("agent"))
    .where(fact_versions.c.scope == bindparam("scope"))
    .where(fact_versions.c.key.in_(bindparam("keys", expanding=True)))
    .group_by(fact_versions.c.key)
)


def heads(connection: Connection, place: Place, keys: Iterable[str]) -> dict[str, Head]:
    """Return where each of these keys stands."""
    found: dict[str, Head] = {}
    for some in chunks(sorted(set(keys))):
        rows = connection.execute(_CURRENT, place._asdict() | {"keys": some})
        found |= {row["key"]: Head(row["version"], dict(row)) for row in rows.mappings()}
        if absent := [key for key in some if key not in found]:
            removed = connection.execute(_NEWEST, place._asdict() | {"keys": absent})
            found |= dict.fromkeys(absent, Head())
            found |= {key: Head(version) for key, version in removed}
    return found
