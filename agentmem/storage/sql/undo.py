"""Undo and pins: a change, or all that a dream did, is reversed if nothing has changed since.

Nothing is rewritten: the earlier value is written again as a new version with the reason `undone`,
which says in `change_id` which version it restores. So an undo can itself be undone, and dreams can
be reversed one after the other, the newest first.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Select, delete, insert, select, update

from agentmem.errors import ConfigurationError
from agentmem.facts import Trust, Undone
from agentmem.storage.sql.history import KEEPS, PINS, RESTORES, UNDONE, Head, Key, Versions, heads
from agentmem.storage.sql.locks import hold
from agentmem.storage.sql.rows import Place, now
from agentmem.storage.sql.schema import (
    dreams,
    fact_confirmations,
    fact_evidence,
    fact_versions,
    facts,
)

Confirmation = dict[str, Any]
"""A row of `fact_confirmations`."""


@dataclass(frozen=True)
class Deed:
    """Why a version that holds what an earlier one held is written.

    Attributes:
        reason: `undone`, `pinned` or `unpinned`.
        change: Which version it holds, as its column `change_id` says it.
        pinned: Whether the fact is pinned from now on; None leaves that as it is.
        by: The person who does it; empty for code.
    """

    reason: str
    change: str
    pinned: bool | None = None
    by: str = ""


def restore(
    versions: Versions,
    targets: Mapping[str, int],
    head: Mapping[str, Head],
    at: datetime,
    by: str = "",
) -> None:
    """Write for each key a version that holds what an earlier one did, its evidence too.

    A pin stays as it is.

    Args:
        versions: Of the scope, in a transaction that holds it.
        targets: The versions to restore; 0, or a removal, takes the fact away.
        head: Where the keys stand.
        at: The time.
        by: The person who undoes; empty for code.
    """
    for key, target in targets.items():
        deed = Deed(UNDONE, f"{RESTORES}{versions.held(key, target)}", by=by)
        copy_version(versions, key, head[key], target, deed, at)


def copy_version(
    versions: Versions, key: str, head: Head, target: int, deed: Deed, at: datetime
) -> int:
    """Write a version like an earlier one, and make its content what is current.

    The version says who wrote it, the fact who wrote its content.

    Returns:
        The version that it left; 0 where there was nothing to take away.
    """
    connection, of_key = versions.connection, versions.place._asdict() | {"key": key}
    row, newest = versions.row(key, target), versions.row(key, head.version)
    gone = row is None or row["op"] == "remove"
    if gone and head.current is None:
        return 0
    pinned = deed.pinned if deed.pinned is not None else bool(newest and newest["pinned"])
    made: dict[str, Any] = {
        **{column.name: "" for column in fact_versions.c},
        **(head.current or {}),
        **(row or {}),
        **versions.writer(key, target),
        **dict.fromkeys(("dream", "idempotency", "replaced_by"), ""),
        "reason": deed.reason,
        "change_id": deed.change,
        "pinned": pinned,
        "op": "remove" if gone else "set",
        "version": head.version + 1,
        "recorded_at": at,
    }
    if gone:
        made |= {"value": None, "writer": "code", "trust": str(Trust.USER), "author": ""}
    deeds = {"writer": "person", "author": deed.by} if deed.by else {}
    connection.execute(insert(fact_versions), made | deeds)
    connection.execute(delete(facts).filter_by(**of_key))
    if not gone:
        connection.execute(insert(facts), {column.name: made[column.name] for column in facts.c})
        _copy_evidence(connection, of_key, target, made["version"])
    return made["version"]


def take_back_confirmations(
    connection: Connection,
    place: Place,
    confirmed: Sequence[Confirmation],
    head: Mapping[str, Head],
) -> None:
    """Give versions the trust and the time that they had, and take the added evidence away."""
    for one in confirmed:
        of_key = place._asdict() | {"key": one["key"]}
        of_version = of_key | {"version": one["version"]}
        before = {name: one[name] for name in ("trust", "said_at")}
        connection.execute(update(fact_versions).filter_by(**of_version).values(before))
        if head[one["key"]].version == one["version"]:
            connection.execute(update(facts).filter_by(**of_key).values(before))
        places = json.loads(one["places"])
        added = delete(fact_evidence).filter_by(**of_version)
        connection.execute(added.where(fact_evidence.c.place.in_(places)))
        row = delete(fact_confirmations).filter_by(**of_version, dream=one["dream"])
        connection.execute(row)


def _copy_evidence(
    connection: Connection, of_key: Mapping[str, Any], version: int, to: int
) -> None:
    wanted = select(fact_evidence).filter_by(**of_key, version=version)
    rows = connection.execute(wanted).mappings()
    copies = [{**row, "version": to} for row in rows]
    if copies:
        connection.execute(insert(fact_evidence), copies)


def pin(connection: Connection, place: Place, key: str, pinned: bool, by: str = "") -> int:
    """Pin a fact or unpin it; return the version that stands, 0 if there is no such fact."""
    hold(connection, place)
    head = heads(connection, place, [key])[key]
    if head.current is None:
        return 0
    if bool(head.current["pinned"]) == pinned:
        return head.version
    versions = Versions(connection, place)
    kept = f"{KEEPS}{versions.held(key, head.version)}"
    deed = Deed(PINS[pinned], kept, pinned=pinned, by=by)
    return copy_version(versions, key, head, head.version, deed, now())


@dataclass
class _Change:
    """Writes that are undone together, or not at all: keys with the versions that they left."""

    writes: list[Key] = field(default_factory=list[Key])
    confirmations: list[Confirmation] = field(default_factory=list[Confirmation])

    @property
    def keys(self) -> set[str]:
        confirmed = {one["key"] for one in self.confirmations}
        return {key for key, _ in self.writes} | confirmed


def undo(connection: Connection, place: Place, change: str, by: str = "") -> Undone:
    """Take a change back; one that was taken back before stays so.

    Args:
        connection: In a transaction.
        place: The scope.
        change: What to take back.
        by: The person who does it; empty for code.

    Raises:
        ConfigurationError: There is no such change in this scope.
    """
    hold(connection, place)
    versions = Versions(connection, place)
    changes = _changes(versions, change)
    if pinning := _pinning(versions, changes):
        return _take_pin_back(versions, pinning, by)
    keys = {key for one in changes for key in one.keys}
    head = heads(connection, place, keys)
    pairs = {pair for one in changes for key, v in one.writes for pair in ((key, v), (key, v - 1))}
    versions.load(pairs | {(key, head[key].version) for key in keys})
    stand = {key: head[key].version for key in keys}
    standing = _take_back(changes, stand, versions)
    undone = [one for one in changes if one not in standing]
    confirmed = [row for one in undone for row in one.confirmations]
    take_back_confirmations(connection, place, confirmed, head)
    # A confirmation of a version that stands again as a copy: the copy is made anew.
    targets = {one["key"]: one["version"] for one in confirmed}
    targets |= {key: version for key, version in stand.items() if version != head[key].version}
    moved = {key: targets[key] for key in sorted(targets) if targets[key] != head[key].version}
    versions.forget()  # confirmations have changed rows since they were read
    restore(versions, moved, head, now(), by)
    conflicts = {key for one in standing for key in one.keys}
    keys_undone = {key for one in undone for key in one.keys} - conflicts
    return Undone(keys=sorted(keys_undone), conflicts=sorted(conflicts))


def _take_back(
    changes: Sequence[_Change], stand: dict[str, int], versions: Versions
) -> list[_Change]:
    """Move the keys to what stood before, the newest change first; return what conflicts.

    What counts is the content: a version that only pins, or restores, is none of its own.
    """
    pending = list(changes)
    while True:
        for one in pending:
            found = [versions.held(key, stand[key]) for key, _ in one.writes]
            left = [versions.held(key, version) for key, version in one.writes]
            old = [versions.held(key, version - 1) for key, version in one.writes]
            confirmed = all(_may_go(row, stand, versions) for row in one.confirmations)
            if confirmed and found in (left, old):
                if found == left:
                    stand.update((key, version - 1) for key, version in one.writes)
                pending.remove(one)
                break
        else:
            return pending


def _may_go(row: Confirmation, stand: dict[str, int], versions: Versions) -> bool:
    held = versions.held(row["key"], stand[row["key"]])
    same = held == versions.held(row["key"], row["version"])
    return same and not row["confirmed_since"]


def _pinning(versions: Versions, changes: Sequence[_Change]) -> Key | None:
    """Return the version that a change wrote, if it only pins a fact or unpins it."""
    writes = [write for one in changes for write in one.writes]
    row = versions.row(*writes[0]) if len(writes) == 1 else None
    return writes[0] if row is not None and row["reason"] in PINS.values() else None


def _take_pin_back(versions: Versions, pinning: Key, by: str) -> Undone:
    """Pin or unpin a fact as it was before a version that pinned or unpinned it."""
    key, version = pinning
    row = versions.row(key, version)
    pinned = bool(row and row["pinned"])
    if pin(versions.connection, versions.place, key, not pinned, by):
        return Undone(keys=[key])
    return Undone(conflicts=[key])


def _changes(versions: Versions, name: str) -> list[_Change]:
    """Return what a name means: a dream, one of its changes, or a version of a key."""
    connection, place = versions.connection, versions.place
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
        row = versions.row(key, int(version))
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
    """Tell if another dream has confirmed the same version after this one."""
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
