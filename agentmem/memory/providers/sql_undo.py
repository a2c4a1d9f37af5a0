"""Undo: a change, or all that a dream did, taken back where nothing has changed since.

Nothing is rewritten: what stood before is written again as a new version with the reason `undone`,
which says in `change_id` which version it restores. So an undo can itself be undone, and dreams can
be taken back one after the other, the newest first.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Select, select, tuple_

from agentmem.errors import ConfigurationError
from agentmem.journal import Undone
from agentmem.memory.providers.locks import hold
from agentmem.memory.providers.rows import Place, chunks, now
from agentmem.memory.providers.schema import dreams, fact_confirmations, fact_versions
from agentmem.memory.providers.sql_heads import heads
from agentmem.memory.providers.sql_restore import (
    Confirmation,
    restore,
    restored,
    take_back_confirmations,
)

_Key = tuple[str, int]


@dataclass
class _Change:
    """Writes that are undone together, or not at all: keys with the versions that they left."""

    writes: list[_Key] = field(default_factory=list[_Key])
    confirmations: list[Confirmation] = field(default_factory=list[Confirmation])

    @property
    def keys(self) -> set[str]:
        confirmed = {one["key"] for one in self.confirmations}
        return {key for key, _ in self.writes} | confirmed


def undo(connection: Connection, place: Place, change: str) -> Undone:
    """Take a change back; one that was taken back before stays so.

    Raises:
        ConfigurationError: There is no such change in this scope.
    """
    hold(connection, place)
    changes = _changes(connection, place, change)
    keys = {key for one in changes for key in one.keys}
    head = heads(connection, place, keys)
    pairs = {pair for one in changes for key, v in one.writes for pair in ((key, v), (key, v - 1))}
    rows = _rows(connection, place, pairs | {(key, head[key].version) for key in keys})
    stand = {key: restored(rows, key, head[key].version) for key in keys}
    before = dict(stand)
    standing = _take_back(changes, stand, rows)
    undone = [one for one in changes if one not in standing]
    confirmed = [row for one in undone for row in one.confirmations]
    take_back_confirmations(connection, place, confirmed, head)
    # A confirmation of a version that stands again as a copy: the copy is made anew.
    copied = {one["key"] for one in confirmed if head[one["key"]].version != one["version"]}
    moved = {key for key in keys if stand[key] != before[key]} | copied
    restore(connection, place, {key: stand[key] for key in sorted(moved)}, head, now())
    conflicts = {key for one in standing for key in one.keys}
    keys_undone = {key for one in undone for key in one.keys} - conflicts
    return Undone(keys=sorted(keys_undone), conflicts=sorted(conflicts))


def _take_back(
    changes: Sequence[_Change], stand: dict[str, int], rows: dict[_Key, dict[str, Any]]
) -> list[_Change]:
    """Move the keys to what stood before, the newest change first; return what conflicts."""
    pending = list(changes)
    while True:
        for one in pending:
            found = [stand[key] for key, _ in one.writes]
            left = [restored(rows, key, version) for key, version in one.writes]
            old = [restored(rows, key, version - 1) for key, version in one.writes]
            confirmed = all(_may_go(row, stand) for row in one.confirmations)
            if confirmed and found in (left, old):
                stand.update(zip((key for key, _ in one.writes), old, strict=True))
                pending.remove(one)
                break
        else:
            return pending


def _may_go(row: Confirmation, stand: dict[str, int]) -> bool:
    return stand[row["key"]] == row["version"] and not row["confirmed_since"]


def _changes(connection: Connection, place: Place, name: str) -> list[_Change]:
    """Return what a name means: a dream, one of its changes, or a version of a key."""
    whole, _, part = name.rpartition("/")
    found = [
        one
        for dream in (name, *_decisions(connection, place, name))
        for one in _of_dream(connection, place, dream)
    ] or _of_dream(connection, place, whole, part)
    if found or _is_dream(connection, place, name):
        return found
    key, _, version = name.rpartition("@")
    row = None
    if version.isascii() and version.isdigit() and len(version) < 19:
        row = _rows(connection, place, [(key, int(version))]).get((key, int(version)))
    if row is None:
        raise ConfigurationError(
            f"there is no change {name[:200]!r} in this scope: name a dream, <dream>/<change> or "
            "<key>@<version>, as the history of a key shows them"
        )
    if row["dream"]:
        return _of_dream(connection, place, row["dream"], row["change_id"])
    return [_Change([(key, int(version))])]


def _of_dream(
    connection: Connection, place: Place, dream: str, change: str | None = None
) -> list[_Change]:
    if not dream:
        return []
    found: dict[str, _Change] = {}
    for row in connection.execute(_in_dream(fact_versions, place, dream, change)).mappings():
        made = found.setdefault(row["change_id"], _Change())
        made.writes.append((row["key"], row["version"]))
    for row in connection.execute(_in_dream(fact_confirmations, place, dream, change)).mappings():
        made = found.setdefault(row["change_id"], _Change())
        since = _confirmed_since(connection, place, dict(row))
        made.confirmations.append({**row, "confirmed_since": since})
    return list(found.values())


def _confirmed_since(connection: Connection, place: Place, row: Confirmation) -> bool:
    """Whether another dream has confirmed the same version after this one."""
    table = fact_confirmations.c
    others = select(table.places).filter_by(
        **place._asdict(), key=row["key"], version=row["version"]
    )
    mine = max(json.loads(row["places"]), default=-1)
    found = connection.execute(others.where(table.dream != row["dream"])).scalars()
    return any(max(json.loads(places), default=-1) > mine for places in found)


def _in_dream(table: Any, place: Place, dream: str, change: str | None) -> Select[Any]:
    wanted = select(table).filter_by(**place._asdict(), dream=dream)
    return wanted if change is None else wanted.where(table.c.change_id == change)


def _decisions(connection: Connection, place: Place, dream: str) -> list[str]:
    """Return the ids under which people applied changes of a dream: `<dream>:<digest>`."""
    applied = select(dreams.c.id).filter_by(**place._asdict(), status="applied")
    names = connection.execute(applied).scalars()
    return [name for name in names if name.startswith(f"{dream}:")]


def _is_dream(connection: Connection, place: Place, name: str) -> bool:
    found = select(dreams.c.id).filter_by(**place._asdict(), id=name)
    return connection.execute(found).first() is not None


def _rows(
    connection: Connection, place: Place, wanted: Iterable[_Key]
) -> dict[_Key, dict[str, Any]]:
    table = fact_versions.c
    found: dict[_Key, dict[str, Any]] = {}
    for some in chunks(sorted(set(wanted)), 200):
        rows = connection.execute(
            select(fact_versions)
            .where(table.agent == place.agent, table.scope == place.scope)
            .where(tuple_(table.key, table.version).in_(some))
        )
        found |= {(row["key"], row["version"]): dict(row) for row in rows.mappings()}
    return found
