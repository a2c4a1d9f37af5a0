"""Rules 10, 11 and 15: what may go, and what must be kept when something else stays for it."""
# ruff: noqa: RUF001 - words of many scripts

import re
from datetime import date

from agentmem.dreaming.changes import Change
from agentmem.dreaming.effects import REWORDING, replaced, result
from agentmem.dreaming.language.cues import takes_back
from agentmem.dreaming.language.dates import nearest
from agentmem.dreaming.language.text import content, names, negated, negates, stems, text_of, tokens
from agentmem.dreaming.rules.survivor import lost, lost_marks, same_topic, told
from agentmem.dreaming.rules.view import View, hold, reject
from agentmem.dreaming.trust import RANK, evidence_of, supports, told_at, trust_of, usable
from agentmem.facts import Fact, Trust

NOMINATED_TO_GO = ("expired", "evidence_forgotten", "over_cap")
"""Code's nominations that need no survivor; the others ask for one, or for condensing."""

OVERTURNING = ("correction", "decision", "superseded")
"""Reasons that let a later word replace an earlier one."""

_PLACEHOLDER = re.compile(
    r"(?:^|\s)(?:\.{3}|…)\s*$|\b(?:rest|remainder|everything else|other \w+)\b[^.]{0,20}\b"
    r"(?:unchanged|as before|the same)\b|\[(?:\.{3}|…|unchanged|truncated)\]"
    r"|\b(?:same|as) (?:as )?before\b|\brest\b[^.]{0,20}\b(?:unverändert|gleich|wie bisher)\b"
    r"|\b(?:reste|resto)\b[^.]{0,20}\b"  # codespell:ignore reste
    r"(?:inchangé|sin cambios|igual|invariato|inalterado)\b"
    r"|\bостальное\b[^.]{0,20}\b(?:без изменений|то же|как было)\b"
    r"|其余(?:不变|同上)|その他は?(?:同じ|変更なし)",
    re.IGNORECASE | re.MULTILINE,
)


def expired(fact: Fact, today: date) -> bool:
    """Whether a fact has passed the date it was stored with; that a trip is over keeps it true."""
    return fact.expires_at is not None and fact.expires_at.date() < today


def removable(change: Change, view: View) -> Change:
    """Rule 10: a removal has one of the reasons that count, shown by more than a model's word.

    A user's cited retraction or request; the fact's own date; a survivor that stays, which code
    finds itself for a duplicate; or that code nominated the key.
    """
    if change.op != "remove":
        return change
    fact = view.facts[change.key]
    if change.reason in ("retracted", "asked_to_forget"):
        return _taken_back(change, fact, view)
    if expired(fact, view.today):
        return change.replace(reason="expired", trust=Trust.USER)
    if (why := view.nominated.get(change.key)) in NOMINATED_TO_GO:
        return _nominated(change, why, view)
    if change.reason in ("superseded", "correction", "decision") and change.by:
        return _superseded(change, fact, view)
    if change.by == change.key:
        return hold(change, "no_survivor", f"{change.key!r} cannot stay for itself")
    if change.reason in REWORDING or change.by:
        return _duplicate(change, fact, view)
    return hold(change, "unproven", "no cited request, no passed date, nothing that stays for it")


def contained(change: Change, view: View) -> Change:
    """Rule 11 for merges, 15 for rewordings: what is taken in is still there afterwards.

    A merge by a later word may leave out what that word overturns.
    """
    if change.op not in ("update", "merge"):
        return change
    new = result(change, view.facts)
    for fact in replaced(change, view.facts):
        if change.op == "update" and change.reason not in REWORDING:
            continue
        if change.reason in OVERTURNING and _overturned(fact, new, change, view):
            continue
        long = len(text_of(fact.value)) >= view.limits.condensed_from
        if change.op == "update" and long:
            if what := _cut(text_of(fact.value), text_of(change.value), view):
                return reject(change, "cut_content", what, fixable=True)
        elif what := lost(fact, new, limits=view.limits):
            return hold(change, "survivor_lacks", f"{change.key!r} would not hold {what}")
    return change


def whole(change: Change, view: View) -> Change:
    """Rule 15: a long value is not replaced by a text that says the rest is as it was."""
    old = view.facts.get(change.key)
    if change.op != "update" or not old:
        return change
    if len(text_of(old.value)) >= view.limits.condensed_from and _PLACEHOLDER.search(
        text_of(change.value)
    ):
        return reject(
            change, "cut_content", "write the whole value, not a placeholder", fixable=True
        )
    return change


def _cut(old: str, new: str, view: View) -> str:
    if len(new) < view.limits.condensed_to * len(old):
        return f"{len(new)} of {len(old)} characters are left"
    if marks := lost_marks(old, new):
        return f"{marks} is lost"
    mine = names(old)
    missing = mine - set(stems(new)) - names(new)
    if len(missing) > (1 - view.limits.condensed_names) * len(mine):
        return f"{len(missing)} of {len(mine)} names are lost"
    return ""


def _nominated(change: Change, why: str, view: View) -> Change:
    if why != "over_cap":
        return change.replace(trust=Trust.USER)
    gone = sum(other.reason == "evicted" for other in view.changes)
    if gone >= int(view.limits.evicted_share * len(view.before)):
        return hold(change, "over_budget", "at most half of a scope goes for the cap in one dream")
    return change.replace(reason="evicted", trust=Trust.USER)


def _taken_back(change: Change, fact: Fact, view: View) -> Change:
    for alias in change.evidence or view.rows:
        row = view.rows[alias]
        if row.role == "user" and usable(row) and _takes_back(row.text, fact):
            return change.replace(
                evidence=[alias],
                witnesses=[evidence_of(row)],
                said_at=row.at,
                trust=Trust.USER,
                by="",  # it goes because it was taken back; nothing stays for it
            )
    return hold(change, "not_asked", "no cited message of the user takes this back")


def _takes_back(text: str, fact: Fact) -> bool:
    """Whether a text takes a fact back: in so many words, or by negating it and saying no more.

    Who says more tells what holds instead, and that must stand before the fact goes.
    """
    words, about = set(content(told(fact))), nearest(text, told(fact), 1)
    if takes_back(about) and words & set(content(about)):
        return True
    said = " ".join(token for token in tokens(text) if not negates(token))
    return not words.isdisjoint(negated(text)) and words.issuperset(content(said))


def _superseded(change: Change, fact: Fact, view: View) -> Change:
    heir = view.facts[change.by]
    if not _overturned(fact, heir, change, view):
        return hold(change, "not_superseded", f"nothing newer says {change.by!r} of {change.key!r}")
    return change.replace(trust=heir.trust, said_at=told_at(heir))


def _overturned(fact: Fact, heir: Fact, change: Change, view: View) -> bool:
    """Whether a later word puts one fact in the place of another.

    It is about the same: by their keys, or since a message that says the new one names what only
    the old one has. And it is later: that message, or the new fact itself.
    """
    rows = [view.rows[alias] for alias in change.evidence]
    saying = [row for row in rows if supports(row, text_of(heir.value), heir.key, view.limits)]
    saying = [row for row in saying if RANK[trust_of(row)] >= RANK[fact.trust]]
    old = set(content(told(fact))) - set(content(told(heir)))
    named = any(old & set(content(row.text)) for row in saying)
    if not (named or same_topic(fact.key, heir.key)):
        return False
    at, said = told_at(fact), [*(row.at for row in saying), told_at(heir)]
    return any(when and (at is None or when > at) for when in said)


def _duplicate(change: Change, fact: Fact, view: View) -> Change:
    if change.by:
        if what := lost(fact, view.facts[change.by], limits=view.limits):
            return hold(change, "survivor_lacks", f"{change.by!r} does not hold {what}")
        heir = view.facts[change.by]
    else:
        words = set(content(text_of(fact.value)))
        near = [
            other
            for other in view.facts.values()
            if other.key != change.key and (not words or words & set(content(told(other))))
        ]
        holding = [other for other in near if not lost(fact, other, limits=view.limits)]
        if not holding:
            return hold(change, "no_survivor", f"no other fact holds what {change.key!r} says")
        heir = max(holding, key=lambda other: RANK[other.trust])
    return change.replace(by=heir.key, reason="duplicate", trust=heir.trust, said_at=None)
