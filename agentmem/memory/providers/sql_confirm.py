"""Confirmations: more evidence for a version that stands, and its trust where it is stronger."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, bindparam, insert, select, tuple_, update

from agentmem.facts import RANK, Evidence, Trust, Write
from agentmem.memory.providers.checks import Message, cited
from agentmem.memory.providers.rows import Place, chunks, dump
from agentmem.memory.providers.schema import (
    fact_confirmations,
    fact_evidence,
    fact_versions,
)

_VERSION = ("agent", "scope", "key", "version")
_EVIDENCE = tuple(Evidence.model_fields)

# Statements stand ready: building one costs more than running it.
_WITNESS = insert(fact_evidence)
_INVERSE = insert(fact_confirmations)
_KNOWN = (
    select(fact_evidence)
    .where(fact_evidence.c.agent == bindparam("agent"), fact_evidence.c.scope == bindparam("scope"))
    .where(
        tuple_(fact_evidence.c.key, fact_evidence.c.version).in_(
            bindparam("versions", expanding=True)
        )
    )
)
_STRENGTHEN = (
    update(fact_versions)
    .where(*(fact_versions.c[name] == bindparam(f"of_{name}") for name in _VERSION))
    .values(trust=bindparam("new_trust"), said_at=bindparam("new_said_at"))
)


@dataclass
class Confirmed:
    """A version that was confirmed.

    Attributes:
        row: It, as it is now.
        before: It, as it was.
        dream: The dream that confirms it, if one does.
        change: That dream's change.
        evidence: The messages that confirm it.
    """

    row: dict[str, Any]
    before: dict[str, Any]
    dream: str = ""
    change: str = ""
    evidence: list[Evidence] = field(default_factory=list[Evidence])


def strengthened(row: Mapping[str, Any], write: Write) -> dict[str, Any]:
    """Return a fact's row after a confirmation; one by weaker trust leaves it as it was."""
    trust, said = Trust(row["trust"]), [at for at in (row["said_at"], write.said_at) if at]
    if RANK[write.trust] < RANK[trust]:
        return dict(row)
    return {**row, "trust": str(write.trust), "said_at": max(said, default=None)}


def store_confirmed(connection: Connection, place: Place, confirmed: Sequence[Confirmed]) -> None:
    """Store what confirmations add to versions that lie in their tables; twice adds nothing."""
    strong = [
        {f"of_{name}": one.row[name] for name in _VERSION}
        | {f"new_{name}": one.row[name] for name in ("trust", "said_at")}
        for one in confirmed
    ]
    connection.execute(_STRENGTHEN, strong)
    there = _there(connection, place, confirmed)
    added: list[dict[str, Any]] = []
    inverse: list[dict[str, Any]] = []
    for one in confirmed:
        known = there.get((one.row["key"], one.row["version"]), {})
        new = {cited(item): item for item in one.evidence if cited(item) not in known}
        rows = evidence_rows(one.row, new.values(), max(known.values(), default=-1) + 1)
        added += rows
        if one.dream:
            inverse.append(_inverse(one, [row["place"] for row in rows]))
    if added:
        connection.execute(_WITNESS, added)
    if inverse:
        connection.execute(_INVERSE, inverse)


def evidence_rows(
    row: Mapping[str, Any], evidence: Iterable[Evidence], first: int = 0
) -> list[dict[str, Any]]:
    """Return the rows of a version's evidence, numbered from `first`."""
    of_version = {name: row[name] for name in _VERSION}
    return [
        of_version | {"place": number, **{name: getattr(item, name) for name in _EVIDENCE}}
        for number, item in enumerate(evidence, first)
    ]


def _inverse(one: Confirmed, places: list[int]) -> dict[str, Any]:
    return {
        **{name: one.row[name] for name in _VERSION},
        **{name: one.before[name] for name in ("trust", "said_at")},
        "dream": one.dream,
        "change_id": one.change,
        "places": dump(places),
    }


def _there(
    connection: Connection, place: Place, confirmed: Sequence[Confirmed]
) -> dict[tuple[str, int], dict[Message, int]]:
    """Return the messages behind these versions, by (key, version), each with its place."""
    found: dict[tuple[str, int], dict[Message, int]] = {}
    for some in chunks((one.row["key"], one.row["version"]) for one in confirmed):
        for row in connection.execute(_KNOWN, place._asdict() | {"versions": some}):
            message = (row.session, row.memory, row.message)
            found.setdefault((row.key, row.version), {})[message] = row.place
    return found
