"""The effects of a change: the fact that it leaves, and the writes that it makes."""

from collections.abc import Iterable, Mapping
from datetime import datetime

from agentmem.dreaming.changes import Change
from agentmem.dreaming.rules.dates import bounds
from agentmem.dreaming.rules.provenance import told_at
from agentmem.facts import (
    RANK,
    EarlierValue,
    Evidence,
    Fact,
    Read,
    State,
    Step,
    Unconfirmed,
    Write,
    until_end,
)

REWORDING = ("duplicate", "condensed")
"""Reasons that say the same in other words: what was known of the old fact still holds."""

NEVER_TRUE = ("correction", "retracted", "asked_to_forget")
"""Reasons after which the old value is not shown as an earlier one."""


def stands(change: Change) -> bool:
    """Tell if a change is to be committed, as confirmed or not."""
    return change.status in ("accepted", "tentative")


def gone(change: Change) -> list[str]:
    """Return the keys that a change takes away."""
    if change.op == "remove":
        return [change.key]
    return [key for key in change.sources if key != change.key] if change.op == "merge" else []


def touched(change: Change) -> set[str]:
    """Return the keys that a change writes or takes away; a confirmation touches none."""
    return set() if change.op == "confirm" else {change.key, *gone(change)}


def alike(one: Change, other: Change) -> bool:
    """Tell if two changes would do the same, whatever reasons they give."""
    if (
        one.op in ("remove", "confirm") or other.op in ("remove", "confirm")
    ) and one.op != other.op:
        return False
    if one.op == "confirm" and set(one.evidence) != set(other.evidence):
        return False
    mine, others = (one.key, one.value, one.by), (other.key, other.value, other.by)
    return mine == others and sorted(one.sources) == sorted(other.sources)


def rests_on_facts(change: Change) -> bool:
    """Tell if a change only rewords what is stored, so that the facts are its evidence."""
    return change.op in ("merge", "condense")


def replaced(change: Change, facts: Mapping[str, Fact]) -> list[Fact]:
    """Return the facts that a change replaces or takes away."""
    keys = dict.fromkeys([change.key, *gone(change)]) if change.op != "confirm" else {}
    return [facts[key] for key in keys if key in facts]


def result(change: Change, facts: Mapping[str, Fact], at: datetime, zone: str = "UTC") -> Fact:
    """Return the fact that a change leaves under its key; not for `remove`.

    Args:
        change: The change; a tentative one leaves a tentative fact, or an unconfirmed value beside
            the value that is there.
        facts: The facts before it, by key.
        at: When the dream began; an earlier value is shown for some time from then on.
        zone: The zone in which the day of `until` ends.
    """
    here = facts.get(change.key)
    if change.op == "confirm" and here:
        return _confirmed(change, here)
    if here and change.status == "tentative" and change.op == "update":
        return here.replace(writer="dream", unconfirmed=_unconfirmed(change, zone))
    old = replaced(change, facts)
    kept = old if rests_on_facts(change) else []
    said = [day for day in (change.said_at, *map(told_at, kept)) if day]
    start, end = bounds(change.happened) if change.happened else ("", "")
    was = here.was if here and rests_on_facts(change) else None
    if here and here.state == "settled" and change.op == "update":
        was = (
            None if change.reason in NEVER_TRUE else EarlierValue(value=here.value, replaced_at=at)
        )
    until = until_end(change.until, zone) if change.until else None
    return Fact(
        key=change.key,
        value=change.value,
        version=here.version if here else 0,
        trust=change.trust,
        importance=change.importance,
        kind=change.kind,
        writer="dream",
        recorded_at=here.recorded_at if here else None,
        said_at=max(said, default=None),
        valid_from=start or next((fact.valid_from for fact in kept if fact.valid_from), ""),
        valid_to=end or next((fact.valid_to for fact in kept if fact.valid_to), ""),
        expires_at=until or _last_end(kept),
        evidence=_distinct([*(row for fact in kept for row in fact.evidence), *change.witnesses]),
        state=_state(change, kept),
        was=was,
    )


def applied(
    facts: Mapping[str, Fact], changes: Iterable[Change], at: datetime, zone: str = "UTC"
) -> dict[str, Fact]:
    """Return the facts as they are after these changes, by key in order."""
    after = dict(facts)
    for change in changes:
        if change.op == "confirm" and change.key not in after:
            continue
        left = None if change.op == "remove" else result(change, after, at, zone)
        for key in gone(change):
            after.pop(key, None)
        if left:
            after[change.key] = left
    return dict(sorted(after.items()))


def steps(
    facts: Mapping[str, Fact], changes: Iterable[Change], at: datetime, zone: str = "UTC"
) -> list[Step]:
    """Return changes that stand as the store commits them, each whole or not at all.

    A confirmation without a message adds nothing, and is left out.

    Args:
        facts: The facts of the snapshot, whose versions the changes have read.
        changes: The changes, in order.
        at: When the dream began.
        zone: The zone in which the day of `until` ends.
    """
    found: list[Step] = []
    for change in changes:
        writes = _writes(change, facts, at, zone)
        if writes and (change.op != "confirm" or change.witnesses):
            found.append(Step(id=change.id, reads=change.reads, writes=writes))
        facts = applied(facts, [change], at, zone)
    return found


def reads(change: Change, facts: Mapping[str, Fact]) -> list[Read]:
    """Return what a change rests on: its keys, sources and survivor, at the snapshot's versions."""
    others = set[str]() if change.op == "confirm" else {change.by, *change.sources}
    keys = sorted(filter(None, {change.key, *others}))
    return [Read(key=key, version=facts[key].version if key in facts else 0) for key in keys]


def _state(change: Change, kept: list[Fact]) -> State:
    # Equal values unite into the surest of them; others are confirmed alike.
    tentative = change.status == "tentative" or (
        bool(kept) and all(fact.state == "tentative" for fact in kept)
    )
    return "tentative" if tentative else "settled"


def _last_end(kept: list[Fact]) -> datetime | None:
    """Return when what facts say together ends: never, if one of them has no end."""
    ends = [fact.expires_at for fact in kept]
    return max((end for end in ends if end), default=None) if all(ends) else None


def _unconfirmed(change: Change, zone: str) -> Unconfirmed:
    start, end = bounds(change.happened) if change.happened else ("", "")
    return Unconfirmed(
        value=change.value,
        trust=change.trust,
        said_at=change.said_at,
        valid_from=start,
        valid_to=end,
        expires_at=until_end(change.until, zone) if change.until else None,
        evidence=change.witnesses,
    )


def _writes(change: Change, facts: Mapping[str, Fact], at: datetime, zone: str) -> list[Write]:
    if change.op == "confirm":
        if change.key not in facts:
            return []
        if change.reason == "confirmed":  # it settles the fact, which is a version of its own
            return [_written(_confirmed(change, facts[change.key]), "confirmed")]
        return [_confirmation(change)]
    removals = [
        _removal(change, key, change.key if change.op == "merge" else change.by)
        for key in gone(change)
    ]
    if change.op == "remove":
        return removals
    # The new value first: a store without transactions never holds neither.
    return [_written(result(change, facts, at, zone), change.reason), *removals]


def _confirmed(change: Change, fact: Fact) -> Fact:
    """Return a fact after a confirmation."""
    if not change.witnesses:
        return fact
    settled = change.reason == "confirmed"
    return fact.replace(
        trust=max(fact.trust, change.trust, key=RANK.__getitem__),
        said_at=max((at for at in (fact.said_at, change.said_at) if at), default=None),
        evidence=_distinct([*fact.evidence, *change.witnesses]),
        state="settled" if settled else fact.state,
        unconfirmed=None if settled else fact.unconfirmed,
    )


def _confirmation(change: Change) -> Write:
    return Write(
        op="confirm",
        key=change.key,
        writer="dream",
        trust=change.trust,
        said_at=change.said_at,
        evidence=change.witnesses,
    )


def _removal(change: Change, key: str, by: str) -> Write:
    return Write(
        op="remove",
        key=key,
        reason=change.reason or ("duplicate" if by else ""),
        replaced_by=by,
        writer="dream",
        trust=change.trust,
        said_at=change.said_at,
        evidence=change.witnesses,
    )


def _written(fact: Fact, reason: str) -> Write:
    return Write(
        key=fact.key,
        value=fact.value,
        reason=reason,
        writer="dream",
        trust=fact.trust,
        importance=fact.importance,
        kind=fact.kind,
        said_at=fact.said_at,
        valid_from=fact.valid_from,
        valid_to=fact.valid_to,
        expires_at=fact.expires_at,
        evidence=fact.evidence,
        state=fact.state,
        unconfirmed=fact.unconfirmed,
        was=fact.was,
    )


def _distinct(evidence: Iterable[Evidence]) -> list[Evidence]:
    return list({(row.session, row.memory, row.message): row for row in evidence}.values())
