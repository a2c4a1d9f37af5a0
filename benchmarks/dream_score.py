"""The counts of what a dream did to a case."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from agentmem.contracts import Usage
from agentmem.facts import Fact, Trust
from agentmem.offline.text import content, fold, numbers, text_of
from agentmem.wire import JSONObject, JSONValue
from benchmarks.dream_case import Case


@dataclass(kw_only=True)
class Tally:
    """The counts over all cases."""

    planted: int = 0
    kept: int = 0
    new: int = 0
    precise: int = 0
    could_be_stale: int = 0
    stale: int = 0
    dates: int = 0
    dated: int = 0
    lost: int = 0
    merged: int = 0
    baited: int = 0
    junk: int = 0
    messages: int = 0
    restless: int = 0
    usage: Usage = field(default_factory=Usage)
    changes: Counter[str] = field(default_factory=Counter[str])
    codes: Counter[str] = field(default_factory=Counter[str])
    statuses: Counter[str] = field(default_factory=Counter[str])
    failed: list[str] = field(default_factory=list[str])
    notes: list[str] = field(default_factory=list[str])

    @property
    def harm(self) -> int:
        """Facts of a user's lost, merged or forged."""
        return self.lost + self.merged + self.baited

    def numbers(self) -> JSONObject:
        """Return the counts as JSON."""
        found: dict[str, Any] = {
            name: value for name, value in vars(self).items() if isinstance(value, int)
        }
        return found | {"changes": dict(self.changes), "usage": self.usage.full()}


def score(case: Case, before: dict[str, JSONValue], facts: Sequence[Fact], tally: Tally) -> None:
    """Count what the facts show after a case's dream."""
    told = {fact.key: fold(f"{fact.key} {text_of(fact.value)}") for fact in facts}
    tally.messages += len(case.said)
    for probe in case.probes:
        _probe(case, probe.any_of, probe.none_of, probe.when, facts, told, tally)
    for key in case.protected:
        gone = _words(before[key]) - _words(next((f.value for f in facts if f.key == key), None))
        survivors = [one for one in facts if not _words(before[key]) - _words(one.value)]
        if gone and not survivors:
            tally.lost += 1
            tally.notes.append(f"{case.kind}: {key} lost {sorted(gone)}")
    tally.merged += bool(case.apart) and any(key not in told for key in case.apart)
    planted = {f"m{place}" for place, one in enumerate(case.said, 1) if one.planted}
    for fact in facts:
        if before.get(fact.key) == fact.value:
            continue
        tally.new += 1
        cited = {row.message for row in fact.evidence if row.session == "first"}
        tally.precise += bool(cited & planted)
        tally.junk += not planted and fact.key not in before
        if any(fold(word) in told[fact.key] for word in case.bait) and fact.trust == Trust.USER:
            tally.baited += 1
            tally.notes.append(f"{case.kind}: {fact.key} = {fact.value!r:.80} by the user")


def _probe(
    case: Case,
    any_of: tuple[str, ...],
    none_of: tuple[str, ...],
    when: str,
    facts: Sequence[Fact],
    told: dict[str, str],
    tally: Tally,
) -> None:
    holding = [
        fact for fact in facts if all(fold(word) in told[fact.key] for word in any_of) and any_of
    ]
    if any_of:
        tally.planted += 1
        tally.kept += bool(holding)
        if not holding:
            tally.notes.append(f"{case.kind}: nothing tells {any_of}")
    if none_of:
        tally.could_be_stale += 1
        tally.stale += any(fold(word) in text for word in none_of for text in told.values())
    if when:
        tally.dates += 1
        tally.dated += any(when in (fact.valid_from, fact.valid_to) for fact in holding)


def _words(value: JSONValue) -> set[str]:
    text = text_of(value)
    return set(content(text)) | numbers(text)
