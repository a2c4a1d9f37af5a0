"""The history of facts: versions with evidence, the newest per key, restores and tombstones."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    Connection,
    RowMapping,
    Select,
    and_,
    bindparam,
    case,
    func,
    or_,
    select,
    tuple_,
)

from agentmem.facts import Evidence, FactVersion, Tombstone
from agentmem.storage.protocol import TOMBSTONES
from agentmem.storage.sql.rows import Place, chunks, fact_fields, value_of
from agentmem.storage.sql.schema import fact_evidence, fact_versions, facts


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


UNDONE = "undone"
"""Why an undo writes a version: what the one before it said is taken back."""
PINS = {True: "pinned", False: "unpinned"}
"""Why a pin writes a version, by whether it pins."""

_TAKEN_BACK = ("retracted", "asked_to_forget")
"""Why a dream or an agent removes what somebody does not want to be known any more."""


def tombstones(connection: Connection, place: Place) -> list[Tombstone]:
    """Return the tombstones of a scope, newest first."""
    rows = connection.execute(_TOMBSTONES, place._asdict()).mappings()
    return [Tombstone.model_validate({**row, "value": value_of(row["value"])}) for row in rows]


def _tombstones() -> Select[*tuple[Any, ...]]:
    gone, then, newer = (fact_versions.alias(name) for name in ("gone", "then", "newer"))
    evidence = fact_evidence.c
    asked_at = (
        select(func.max(evidence.said_at))
        .where(evidence.agent == gone.c.agent, evidence.scope == gone.c.scope)
        .where(evidence.key == gone.c.key, evidence.version == gone.c.version)
        .scalar_subquery()
    )
    by_dream = or_(gone.c.writer == "dream", gone.c.dream != "")  # or by who decided on its changes
    by_agent = gone.c.writer == "agent"
    # A dream comes after the words that it obeys, and may come after others that overturn them.
    undone = gone.c.reason == UNDONE  # takes back what the version before it said
    at = case(
        (and_(by_dream, ~undone), func.coalesce(asked_at, gone.c.recorded_at)),
        else_=gone.c.recorded_at,
    )
    asked_for = or_(~(by_dream | by_agent), gone.c.reason.in_(_TAKEN_BACK))
    same = [(then.c[name], newer.c[name], gone.c[name]) for name in ("agent", "scope", "key")]
    pins = newer.c.reason.in_(PINS.values())
    later = select(newer.c.key).where(*(there == here for _, there, here in same))
    return (
        select(gone.c.key, then.c.value, then.c.trust, at.label("at"))
        .where(*(there == here for there, _, here in same), then.c.version == gone.c.version - 1)
        .where(gone.c.agent == bindparam("agent"), gone.c.scope == bindparam("scope"))
        .where(then.c.op == "set")
        .where(or_(undone, and_(gone.c.op == "remove", gone.c.replaced_by == "", asked_for)))
        .where(~later.where(newer.c.version > gone.c.version, ~pins).exists())
        .order_by(gone.c.recorded_at.desc(), gone.c.key)
        .limit(TOMBSTONES)
    )


_TOMBSTONES = _tombstones()


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
