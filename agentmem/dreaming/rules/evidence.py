"""Rules 5 and 12, and trust: what a change rests on, and whether that is enough."""

from typing import Literal

from agentmem.dreaming.changes import Change, Reason
from agentmem.dreaming.effects import replaced, rests_on_facts
from agentmem.dreaming.language.text import content, fold, fold_key, printable, text_of
from agentmem.dreaming.rules.survivor import lost, lost_marks, told
from agentmem.dreaming.rules.view import View, flag, hold, reject
from agentmem.dreaming.trust import (
    RANK,
    attribute,
    evidence_of,
    strongest,
    supports,
    told_at,
    trust_of,
    usable,
)
from agentmem.facts import Fact, Tombstone, Trust
from agentmem.values import JSONValue

_NAME, _NAMES = 300, 100
"""Characters of a key or an id that are kept, and how many of them a list has."""
_LASTING_KINDS = ("preference", "profile", "decision", "event")


def completed(change: Change, view: View) -> Change:
    """Fill in what the findings that a change rests on say, and what only code may."""
    found = [view.findings[name] for name in change.findings if name in view.findings]
    first = found[0] if found else None
    old = view.facts.get(change.key)
    kinds = [change.kind, *(finding.kind for finding in found), old.kind if old else ""]
    evidence = change.evidence or [alias for finding in found for alias in finding.evidence]
    if change.importance == 3:  # what nobody chose
        chosen = [finding.importance for finding in found] + ([old.importance] if old else [])
        change = change.replace(importance=chosen[0] if chosen else 3)
    return change.replace(
        findings=[finding.id for finding in found],
        evidence=_brief(evidence),
        sources=_brief(change.sources),
        by=printable(change.by, _NAME),
        happened=printable(change.happened or (first.happened if first else ""), _NAME),
        words=printable(change.words or (first.words if first else ""), _NAME),
        kind=next((kind for kind in kinds if kind in _LASTING_KINDS), ""),
        importance=min(5, max(1, change.importance)),
        reason=_reason(change),
        witnesses=[],
        said_at=None,
        trust=Trust.TOOL,
    )


def _brief(names: list[str]) -> list[str]:
    return list(dict.fromkeys(printable(name, _NAME) for name in names[:_NAMES]))


def _reason(change: Change) -> Reason | Literal[""]:
    if change.reason == "evicted":  # the cap's word, not a model's
        return ""
    return "duplicate" if change.op == "merge" and not change.reason else change.reason


def witnessed(change: Change, view: View) -> Change:
    """Rule 5: evidence is 1 to 8 messages of this dream, spoken, not recalled, not forgotten.

    Where none that is cited says it, code looks for the message itself. What rewords stored facts
    rests on those, and a removal without evidence is for rule 10 to judge.
    """
    known = [alias for alias in change.evidence if alias in view.rows]
    if len(known) < len(change.evidence):
        change = flag(change, "unknown_evidence", "some of the evidence was not shown")
    cited = [alias for alias in known if usable(view.rows[alias])][: view.limits.evidence]
    if change.op in ("add", "update", "merge") and not rests_on_facts(change):
        text = text_of(change.value)
        if not any(supports(view.rows[one], text, change.key, view.limits) for one in cited):
            found = attribute(text, view.rows, view.rarity, view.limits)
            cited = list(
                dict.fromkeys([*cited[: view.limits.evidence - 1], found] if found else cited)
            )
        if not cited:
            return reject(
                change, "no_evidence", "cite the messages that say it, like a12", fixable=True
            )
    return _with_witnesses(change.replace(evidence=cited), view)


def _with_witnesses(change: Change, view: View) -> Change:
    rows = [view.rows[alias] for alias in change.evidence]
    statement, key = text_of(change.value), change.key
    if change.op in ("remove", "confirm") and key in view.facts:
        statement = text_of(view.facts[key].value)
    behind = [row for row in rows if supports(row, statement, key, view.limits)]
    said = [row.at for row in behind or rows]
    return change.replace(
        witnesses=[evidence_of(row) for row in rows],
        said_at=max(said, default=None),
        trust=strongest(behind),
    )


def resting(change: Change, view: View) -> Change:
    """Trust: what rewords stored facts has the trust of the weakest fact that it needs.

    So a tool's words do not become the user's by being merged into what the user said. What it
    adds to the facts needs evidence of its own.
    """
    if not rests_on_facts(change):
        return change
    facts, new = replaced(change, view.facts), Fact(key=change.key, value=change.value)
    for trust in (Trust.USER, Trust.ASSISTANT):
        strong = [fact for fact in facts if RANK[fact.trust] >= RANK[trust]]
        if strong and not lost(new, *strong, limits=view.limits):
            return change.replace(trust=trust, witnesses=[], evidence=[], said_at=None)
    if change.witnesses:
        return change
    old, text = " ".join(map(told, facts)), text_of(change.value)
    said, known = set(content(text)), set(content(old))
    what = lost_marks(text, old)
    if what or len(said & known) < view.limits.reworded * len(said):
        what = what or "much that the facts do not say"
        return reject(change, "adds_content", f"it adds {what}; cite who says so", fixable=True)
    return change.replace(trust=min((fact.trust for fact in facts), key=RANK.__getitem__))


def trusted(change: Change, view: View) -> Change:
    """Trust: only equal or higher trust replaces or removes; of equals, the later word wins."""
    for fact in replaced(change, view.facts):
        if RANK[change.trust] < RANK[fact.trust]:
            return hold(change, *_too_weak(change, fact))
        at = told_at(fact)
        if change.said_at and at and change.said_at < at and change.trust == fact.trust:
            return hold(change, "older", f"{fact.key!r} was said or written later than this")
    return change


def _too_weak(change: Change, fact: Fact) -> tuple[str, str]:
    if change.witnesses and change.trust == Trust.TOOL and not _has_tool(change):
        return "unsupported", f"none of the cited messages says this of {fact.key!r}"
    return (
        "lower_trust",
        f"{fact.key!r} rests on a {fact.trust}'s word, this on a {change.trust}'s",
    )


def _has_tool(change: Change) -> bool:
    return any(row.role not in ("user", "assistant") for row in change.witnesses)


def unburied(change: Change, view: View) -> Change:
    """Rule 12: older evidence does not bring back what was forgotten or undone."""
    if change.op not in ("add", "update", "merge"):
        return change
    for stone in view.tombstones:
        same_key = change.key not in view.before and fold_key(stone.key) == fold_key(change.key)
        same_value = stone.value is not None and _alike(stone.value, change.value)
        if (same_key or same_value) and not _said_since(stone, change, view):
            return hold(
                change, "forgotten", f"{stone.key!r} was forgotten after this was last said"
            )
    return change


def _said_since(stone: Tombstone, change: Change, view: View) -> bool:
    """Whether a word as good as the forgotten fact's says it since; rewordings have the facts'.

    An assistant may go on about what the user had it forget.
    """
    rows = [view.rows[alias] for alias in change.evidence]
    text = text_of(change.value)
    said = [
        row.at
        for row in rows
        if RANK[trust_of(row)] >= RANK[stone.trust] and supports(row, text, change.key, view.limits)
    ]
    told = [] if rows else [told_at(fact) for fact in replaced(change, view.facts)]
    return any(at > stone.at for at in (*said, *told) if at)


def _alike(one: JSONValue, other: JSONValue) -> bool:
    return fold(text_of(one)) == fold(text_of(other))
