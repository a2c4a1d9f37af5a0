"""Usage: on which day a fact was last asked for by its key."""

from collections.abc import Sequence
from datetime import date
from typing import Any

from sqlalchemy import Connection, select
from sqlalchemy.dialects import postgresql, sqlite

from agentmem.memory.providers.rows import Place
from agentmem.memory.providers.schema import fact_usage


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
