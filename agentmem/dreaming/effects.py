"""What a change does: the fact that it leaves, and the writes that it makes."""

from collections.abc import Iterable, Mapping

from agentmem.dreaming.changes import Change
from agentmem.dreaming.language.dates import bounds
from agentmem.dreaming.trust import told_at
from agentmem.facts import Evidence, Fact, Read, Step, Write

REWORDING = ("duplicate", "condensed")
"""Reasons that say the same in other words: what was known of the old fact still holds."""


def stands(change: Change) -> bool:
    """Whether a change is to be committed."""
    return change.status in ("accepted", "flagged")


def gone(change: Change) -> list[str]:
    """Return the keys that a change takes away."""
    if change.op == "remove":
        return [change.key]
    return [key for key in change.sources if key != change.key] if change.op == "merge" else []


def touched(change: Change) -> set[str]:
    """Return the keys that a change writes or takes away; a confirmation touches none."""
    return set() if change.op == "confirm" else {change.key, *gone(change)}


def alike(one: Change, other: Change) -> bool:
    """Whether two changes would do the same, whatever they say of why."""
    if (
        one.op in ("remove", "confirm") or other.op in ("remove", "confirm")
    ) and one.op != other.op:
        return False
    if one.op == "confirm" and set(one.evidence) != set(other.evidence):
        return False
    mine, others = (one.key, one.value, one.by), (other.key, other.value, other.by)
    return mine == others and sorted(one.sources) == sorted(other.sources)


def rests_on_facts(change: Change) -> bool:
    """Whether a change only rewords what is stored, so that the facts are its evidence."""
    return change.op in ("update", "merge") and change.reason in REWORDING


def replaced(change: Change, facts: Mapping[str, Fact]) -> list[Fact]:
    """Return the facts that a change replaces or takes away."""
    keys = dict.fromkeys([change.key, *gone(change)]) if change.op != "confirm" else {}
    return [facts[key] for key in keys if key in facts]


def result(change: Change, facts: Mapping[str, Fact]) -> Fact:
    """Return the fact that an add, update or merge leaves under its key."""
    old = replaced(change, facts)
    here = facts.get(change.key)
    kept = old if rests_on_facts(change) else []
    said = [at for at in (change.said_at, *map(told_at, kept)) if at]
    start, end = bounds(change.happened) if change.happened else ("", "")
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
        expires_at=next((fact.expires_at for fact in kept if fact.expires_at), None),
        evidence=_distinct([*(row for fact in kept for row in fact.evidence), *change.witnesses]),
    )


def applied(facts: Mapping[str, Fact], changes: Iterable[Change]) -> dict[str, Fact]:
    """Return the facts as they are after these changes, by key in order."""
    after = dict(facts)
    for change in changes:
        if change.op == "confirm":
            if change.key in after:
                after[change.key] = _confirmed(change, after[change.key])
            continue
        left = None if change.op == "remove" else result(change, after)
        for key in gone(change):
            after.pop(key, None)
        if left:
            after[change.key] = left
    return dict(sorted(after.items()))


def steps(facts: Mapping[str, Fact], changes: Iterable[Change]) -> list[Step]:
    """Return changes that stand as the store commits them, each whole or not at all.

    A confirmation without a message adds nothing, and is left out.

    Args:
        facts: The facts of the snapshot, whose versions the changes have read.
        changes: The changes, in order.
    """
    found: list[Step] = []
    for change in changes:
        if change.op != "confirm" or change.witnesses:
            found.append(Step(id=change.id, reads=change.reads, writes=_writes(change, facts)))
        facts = applied(facts, [change])
    return found


def reads(change: Change, facts: Mapping[str, Fact]) -> list[Read]:
    """Return what a change rests on: its keys, sources and survivor, at the snapshot's versions."""
    others = set[str]() if change.op == "confirm" else {change.by, *change.sources}
    keys = sorted(filter(None, {change.key, *others}))
    return [Read(key=key, version=facts[key].version if key in facts else 0) for key in keys]


def _writes(change: Change, facts: Mapping[str, Fact]) -> list[Write]:
    if change.op == "confirm":
        return [_confirmation(change)]
    writes = [
        _removal(change, key, change.key if change.op == "merge" else change.by)
        for key in gone(change)
    ]
    if change.op != "remove":
        writes.append(_written(result(change, facts), change.reason))
    return writes


def _confirmed(change: Change, fact: Fact) -> Fact:
    """Return a fact after a confirmation; the rules let none by a weaker word through."""
    if not change.witnesses:
        return fact
    return fact.replace(
        trust=change.trust,
        said_at=max((at for at in (fact.said_at, change.said_at) if at), default=None),
        evidence=_distinct([*fact.evidence, *change.witnesses]),
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
    )


def _distinct(evidence: Iterable[Evidence]) -> list[Evidence]:
    return list({(row.session, row.memory, row.message): row for row in evidence}.values())
