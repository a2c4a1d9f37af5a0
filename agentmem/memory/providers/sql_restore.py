"""Writing again what a key held before, and taking back what confirmed it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
from agentmem.memory.providers.sql_versions import RESTORES, Versions

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
