"""A scope as a whole: taken out as rows, put back as it was, erased."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any

from sqlalchemy import Connection, Date, Table, delete, insert, select

from agentmem.errors import ConfigurationError
from agentmem.facts import checked_name, checked_value
from agentmem.memory.providers.checks import aware, storable
from agentmem.memory.providers.locks import hold
from agentmem.memory.providers.rows import Place, chunks, dump, value_of
from agentmem.memory.providers.schema import UtcTime, metadata
from agentmem.values import JSONObject

_PREFIX = "agentmem_"
_ORDER = (
    *("facts", "fact_versions", "fact_evidence", "fact_confirmations", "fact_usage", "calls"),
    *("transcript", "cursors", "dreams", "dream_steps", "scope_state"),
)
TABLES: dict[str, Table] = {name: metadata.tables[_PREFIX + name] for name in _ORDER}
"""Every table that holds something of a scope, by the name that rows give it."""

_PLACE = Place._fields

# Columns that hold JSON as text; people read it as JSON.
_JSON = {
    *("versions", "places", "ranges", "snapshot", "data", "applied", "conflicts", "reply"),
}


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
    for name, table in TABLES.items():
        columns = [
            place._asdict() | _columns(table, row, number)
            for number, row in enumerate(rows, 1)
            if _table(row, number) == name
        ]
        for some in chunks(columns):
            connection.execute(insert(table), list(some))
    return len(rows)


def _shown(column: str, value: Any) -> Any:
    if isinstance(value, datetime | date):
        return value.isoformat()
    if column == "value" or column in _JSON:
        return value_of(value)
    return value


def _table(row: Mapping[str, Any], number: int) -> str:
    name = row.get("table")
    if not isinstance(name, str) or name not in TABLES:
        raise ConfigurationError(f"row {number} is of no table that an export has: {name!r:.80}")
    return name


def _columns(table: Table, row: Mapping[str, Any], number: int) -> dict[str, Any]:
    wanted = {column.name for column in table.c} - set(_PLACE)
    if set(row) - {"table"} != wanted:
        odd = ", ".join(sorted(set(row) - {"table"} ^ wanted))
        raise ConfigurationError(f"row {number} ({row['table']}) lacks, or has too much: {odd}")
    try:
        return {name: _stored(table, name, row) for name in wanted}
    except (TypeError, ValueError) as error:
        if isinstance(error, ConfigurationError):
            raise
        raise ConfigurationError(f"row {number} ({row['table']}) holds what it cannot") from error


def _stored(table: Table, name: str, row: Mapping[str, Any]) -> Any:
    value: Any = row[name]
    column = table.c[name]
    if name == "value":
        return None if row.get("op") == "remove" else checked_value(value, str(row["key"]))
    if name in _JSON:
        return dump(value)
    if value is None and column.nullable:
        return None
    if isinstance(column.type, UtcTime):
        return aware(datetime.fromisoformat(str(value)), name)
    if isinstance(column.type, Date):
        return date.fromisoformat(str(value))
    if name == "key":
        return checked_name(value, "key")
    if not isinstance(value, column.type.python_type):
        raise TypeError(f"{name} is a {type(value).__name__}")
    return storable(value) if isinstance(value, str) else value
