"""Tombstones: what was forgotten or taken back, read out of the versions."""

from typing import Any

from sqlalchemy import Connection, Select, and_, bindparam, case, func, or_, select

from agentmem.facts import Tombstone
from agentmem.memory.providers.protocol import TOMBSTONES
from agentmem.memory.providers.rows import Place, value_of
from agentmem.memory.providers.schema import fact_evidence, fact_versions

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
