"""A scope as a whole: taken out as rows, put back as it was, erased."""

from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

from sqlalchemy import Connection, delete, insert, select

from agentmem.errors import ConfigurationError
from agentmem.storage.exports import JSON_COLUMNS, checked_export
from agentmem.storage.sql.locks import hold
from agentmem.storage.sql.rows import Place, chunks, value_of
from agentmem.storage.sql.schema import TABLES
from agentmem.wire import JSONObject

_PLACE = Place._fields


def erase(connection: Connection, place: Place) -> dict[str, int]:
    """Delete everything of a scope; return how many rows of each table that was."""
    hold(connection, place)
    return {
        name: connection.execute(delete(table).filter_by(**place._asdict())).rowcount
        for name, table in TABLES.items()
    }


def export(connection: Connection, place: Place) -> list[JSONObject]:
    """Return every row of a scope as JSON, its table under `table`."""
    hold(connection, place)  # nobody writes meanwhile: the rows are of one moment
    found: list[JSONObject] = []
    for name, table in TABLES.items():
        wanted = select(table).filter_by(**place._asdict()).order_by(*table.primary_key)
        for row in connection.execute(wanted).mappings():
            shown = {key: _shown(key, value) for key, value in row.items() if key not in _PLACE}
            found.append({"table": name, **shown})
    return found


def restore(connection: Connection, place: Place, rows: Sequence[JSONObject]) -> int:
    """Put exported rows into an empty scope; return how many.

    Raises:
        ConfigurationError: The scope is not empty, or a row is none that an export gives.
        InvalidFact: A name or a value cannot be stored.
    """
    hold(connection, place)
    for name, table in TABLES.items():
        if connection.execute(select(table).filter_by(**place._asdict()).limit(1)).first():
            raise ConfigurationError(
                f"agent {place.agent!r}, scope {place.scope!r} is not empty ({name}): erase it "
                "first, or choose another scope"
            )
    stored = checked_export(place, rows)
    for name, table in TABLES.items():
        for some in chunks(stored[name]):
            connection.execute(insert(table), list(some))
    return len(rows)


def _shown(column: str, value: Any) -> Any:
    if isinstance(value, datetime | date):
        return value.isoformat()
    if column == "value" or column in JSON_COLUMNS:
        return value_of(value)
    return value
