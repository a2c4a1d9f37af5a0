"""Writing again what a key held before, and taking back what confirmed it."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, delete, insert, select, update

from agentmem.facts import Trust
from agentmem.memory.providers.rows import Place
from agentmem.memory.providers.schema import (
    fact_confirmations,
    fact_evidence,
    fact_versions,
    facts,
)
from agentmem.memory.providers.sql_heads import Head
from agentmem.memory.providers.sql_tombstones import UNDONE

Confirmation = dict[str, Any]
"""A row of `fact_confirmations`."""

_RESTORES = "restores "


def restored(rows: Mapping[tuple[str, int], dict[str, Any]], key: str, version: int) -> int:
    """Return the version whose content a version holds: itself, or what an undo restored."""
    row = rows.get((key, version))
    if row is not None and row["reason"] == UNDONE:
        return int(row["change_id"].removeprefix(_RESTORES))
    return version


def restore(
    connection: Connection,
    place: Place,
    targets: Mapping[str, int],
    head: Mapping[str, Head],
    at: datetime,
) -> None:
    """Write for each key a version that holds what an earlier one did, evidence and pin too.

    Args:
        connection: In a transaction that holds the scope.
        place: The scope.
        targets: The versions to restore; 0, or a removal, takes the fact away.
        head: Where the keys stand.
        at: The time.
    """
    for key, target in targets.items():
        copy_version(connection, place, key, head[key], target, _as_undone(target), at)


def copy_version(
    connection: Connection,
    place: Place,
    key: str,
    head: Head,
    target: int,
    changed: Mapping[str, Any],
    at: datetime,
) -> int:
    """Write a version like an earlier one with some columns changed, and make it what stands.

    Returns:
        The version that it left; 0 where there was nothing to take away.
    """
    of_key = place._asdict() | {"key": key}
    row = _version(connection, of_key, target)
    gone = row is None or row["op"] == "remove"
    if gone and head.current is None:
        return 0
    made: dict[str, Any] = {
        **{column.name: "" for column in fact_versions.c},
        **(head.current or {}),
        **(row or {}),
        **dict.fromkeys(("dream", "idempotency", "replaced_by"), ""),
        **changed,
        "op": "remove" if gone else "set",
        "version": head.version + 1,
        "recorded_at": at,
    }
    if gone:
        made |= {"value": None, "writer": "code", "trust": str(Trust.USER)}
    connection.execute(insert(fact_versions), made)
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


def _as_undone(target: int) -> dict[str, Any]:
    return {"reason": UNDONE, "change_id": f"{_RESTORES}{target}"}


def _version(
    connection: Connection, of_key: Mapping[str, Any], version: int
) -> dict[str, Any] | None:
    wanted = select(fact_versions).filter_by(**of_key, version=version)
    row = connection.execute(wanted).mappings().one_or_none()
    return None if row is None else dict(row)


def _copy_evidence(
    connection: Connection, of_key: Mapping[str, Any], version: int, to: int
) -> None:
    wanted = select(fact_evidence).filter_by(**of_key, version=version)
    rows = connection.execute(wanted).mappings()
    copies = [{**row, "version": to} for row in rows]
    if copies:
        connection.execute(insert(fact_evidence), copies)
