"""An export before it is put back: a damaged one is refused as a whole, with the row that is wrong.

What a row says is read back as the store will read it, so that nothing is stored which a later
`entries`, `history` or dream could not read.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime
from typing import Any, cast

from pydantic import TypeAdapter, ValidationError
from sqlalchemy import BigInteger, Date, Integer, RowMapping, Table

from agentmem.errors import ConfigurationError
from agentmem.facts import Evidence, Trust, Write, checked_name, checked_value
from agentmem.records import ScopeState
from agentmem.storage.checks import aware, storable
from agentmem.storage.sql.dreams import record_of, reply_of
from agentmem.storage.sql.history import version_of
from agentmem.storage.sql.rows import Place, dump, fact_of, message_of
from agentmem.storage.sql.schema import TABLES, UtcTime
from agentmem.wire import JSONObject

JSON_COLUMNS = frozenset(
    (
        *("versions", "places", "ranges", "snapshot", "data", "applied", "conflicts", "reply"),
        *("unconfirmed", "was"),
    )
)
"""Columns that hold JSON as text; people read it as JSON."""

_NO_STATE: JSONObject = {"state": "settled", "unconfirmed": None, "was": None, "author": ""}
_LATER: dict[str, JSONObject] = {
    "fact_evidence": {"forgotten": False},
    "facts": _NO_STATE,
    "fact_versions": _NO_STATE,
}
"""The values, by table, of columns that exports of earlier schemas do not have."""

_NUMBERS = TypeAdapter(list[int])
_Row = dict[str, Any]

_READ: dict[str, Callable[[RowMapping], object]] = {
    "facts": fact_of,
    "fact_versions": lambda row: version_of(row, []),
    "fact_evidence": lambda row: Evidence.model_validate(dict(row)),
    "fact_confirmations": lambda row: (_numbers(row["places"]), Trust(row["trust"])),
    "calls": lambda row: _numbers(row["versions"]),
    "transcript": message_of,
    "dreams": record_of,
    "dream_steps": reply_of,
    "scope_state": lambda row: ScopeState.model_validate(dict(row)),
}


def checked_export(place: Place, rows: Sequence[JSONObject]) -> dict[str, list[_Row]]:
    """Return the rows of an export by table, as the database takes them.

    Raises:
        ConfigurationError: A row is none that an export gives, or others that belong to it lack.
        InvalidFact: A name or a value cannot be stored.
    """
    stored: dict[str, list[_Row]] = {name: [] for name in TABLES}
    there: set[tuple[Any, ...]] = set()
    for number, row in enumerate(rows, 1):
        name = _table(row, number)
        columns = place._asdict() | _columns(TABLES[name], row, number)
        mark = (name, *(columns[column.name] for column in TABLES[name].primary_key))
        if mark in there:
            raise ConfigurationError(f"row {number} ({name}) is there twice")
        there.add(mark)
        stored[name].append(columns)
    _whole(stored)
    return stored


def exported_writes(rows: Iterable[JSONObject]) -> list[Write]:
    """Return the writes that store the facts of an export, with their evidence, not their history.

    Raises:
        ConfigurationError: A fact is none that an export gives.
    """
    listed = list(rows)
    quoted: dict[tuple[object, object], list[JSONObject]] = {}
    for row in listed:
        if row.get("table") == "fact_evidence":
            quoted.setdefault((row.get("key"), row.get("version")), []).append(row)
    writes: list[Write] = []
    for row in listed:
        if row.get("table") != "facts":
            continue
        key, value = row.get("key"), row.get("value")
        evidence = quoted.get((key, row.get("version")), [])
        said = {"writer": "unknown", "evidence": evidence} | row | {"key": "", "value": None}
        try:
            write = Write.model_validate(said)
        except ValidationError as error:
            raise ConfigurationError(f"the fact {key!r:.80} holds what it cannot") from error
        writes.append(write.replace(key=key, value=value))
    return writes


def _whole(stored: Mapping[str, list[_Row]]) -> None:
    newest: dict[str, _Row] = {}
    for row in stored["fact_versions"]:
        if row["key"] not in newest or newest[row["key"]]["version"] < row["version"]:
            newest[row["key"]] = row
    standing = {key: row["version"] for key, row in newest.items() if row["op"] == "set"}
    for row in stored["facts"]:
        if standing.pop(row["key"], None) != row["version"]:
            raise ConfigurationError(
                f"the file is not whole: fact {row['key']!r} is not its key's newest version"
            )
    if standing:
        raise ConfigurationError(f"the file is not whole: it lacks the fact {min(standing)!r}")


def _table(row: Mapping[str, Any], number: int) -> str:
    name = row.get("table")
    if not isinstance(name, str) or name not in TABLES:
        raise ConfigurationError(f"row {number} is of no table that an export has: {name!r:.80}")
    return name


def _columns(table: Table, row: Mapping[str, Any], number: int) -> dict[str, Any]:
    wanted = {column.name for column in table.c} - set(Place._fields)
    row = _LATER.get(str(row["table"]), {}) | dict(row)
    if set(row) - {"table"} != wanted:
        odd = ", ".join(sorted(set(row) - {"table"} ^ wanted))
        raise ConfigurationError(f"row {number} ({row['table']}) lacks, or has too much: {odd}")
    try:
        columns = {name: _stored(table, name, row) for name in wanted}
        if read := _READ.get(str(row["table"])):
            read(cast(RowMapping, columns))  # as the store will
        return columns
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(error, ConfigurationError):
            raise
        raise ConfigurationError(f"row {number} ({row['table']}) holds what it cannot") from error


def _stored(table: Table, name: str, row: Mapping[str, Any]) -> Any:
    value: Any = row[name]
    column = table.c[name]
    if name == "value":
        return None if row.get("op") == "remove" else checked_value(value, str(row["key"]))
    if value is None and column.nullable:
        return None
    if name in JSON_COLUMNS:
        return dump(value)
    if isinstance(column.type, UtcTime):
        return aware(datetime.fromisoformat(str(value)), name)
    if isinstance(column.type, Date):
        return date.fromisoformat(str(value))
    if name == "key":
        return checked_name(value, "key")
    if not isinstance(value, column.type.python_type):
        raise TypeError(f"{name} is a {type(value).__name__}")
    if isinstance(column.type, Integer):
        return _whole_number(value, 2**63 if isinstance(column.type, BigInteger) else 2**31, name)
    return storable(value) if isinstance(value, str) else value


def _whole_number(value: Any, limit: int, name: str) -> int:
    least = -limit if name == "at_offset" else 0
    if isinstance(value, bool) or not least <= value < limit:
        raise ValueError(f"{name} is out of range")
    return value


def _numbers(text: str) -> list[int]:
    return _NUMBERS.validate_python(json.loads(text), strict=True)
