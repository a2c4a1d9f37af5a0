"""Versions that hold what an earlier one held: those of undos and pins."""

from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import Connection, RowMapping, select, tuple_

from agentmem.memory.providers.rows import Place, chunks
from agentmem.memory.providers.schema import fact_versions
from agentmem.memory.providers.sql_tombstones import PINS, UNDONE

RESTORES = "restores "
KEEPS = "keeps "

Key = tuple[str, int]
"""A key and one of its versions."""


class Versions:
    """Rows of versions, read when they are asked for.

    Args:
        connection: In a transaction.
        place: The scope.
    """

    def __init__(self, connection: Connection, place: Place) -> None:
        self.connection = connection
        self.place = place
        self._rows: dict[Key, dict[str, Any] | None] = {}

    def load(self, wanted: Iterable[Key]) -> None:
        """Read these versions and those whose content they hold, many in one statement."""
        pending = set(wanted) - self._rows.keys()
        while pending:
            found = self._read(pending)
            self._rows |= {one: found.get(one) for one in pending}
            sources = {(key, _source(row)) for (key, _), row in found.items()}
            pending = sources - self._rows.keys()

    def forget(self) -> None:
        """Read everything anew from now on."""
        self._rows.clear()

    def row(self, key: str, version: int) -> dict[str, Any] | None:
        """Return a version's row, None if there is none."""
        self.load([(key, version)])
        return self._rows[key, version]

    def held(self, key: str, version: int) -> int:
        """Return the version that first held the content of this one; often itself."""
        row = self.row(key, version)
        while row is not None and _source(row) != version:
            version = _source(row)
            row = self.row(key, version)
        return version

    def writer(self, key: str, version: int) -> dict[str, Any]:
        """Return who wrote the content of a version, as columns; empty for one that never was."""
        row = self.row(key, self.held(key, version))
        return {} if row is None else {name: row[name] for name in ("writer", "author")}

    def _read(self, wanted: Iterable[Key]) -> dict[Key, dict[str, Any]]:
        table = fact_versions.c
        found: dict[Key, dict[str, Any]] = {}
        for some in chunks(sorted(wanted), 200):
            rows = self.connection.execute(
                select(fact_versions)
                .where(table.agent == self.place.agent, table.scope == self.place.scope)
                .where(tuple_(table.key, table.version).in_(some))
            )
            found |= {(row["key"], row["version"]): dict(row) for row in rows.mappings()}
        return found


def is_copy(row: RowMapping | Mapping[str, Any]) -> bool:
    """Tell if a version holds what an earlier one held."""
    return _source(row) != row["version"]


def _source(row: RowMapping | Mapping[str, Any]) -> int:
    change = str(row["change_id"])
    for mark, reasons in ((RESTORES, (UNDONE,)), (KEEPS, PINS.values())):
        if row["reason"] in reasons and change.startswith(mark):
            return int(change.removeprefix(mark))
    if row["reason"] in PINS.values() and not change:  # pinned before pins said what they keep
        return row["version"] - 1
    return row["version"]
