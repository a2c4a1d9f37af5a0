"""The cap: at most so many facts after a dream, the least worth keeping going first."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta

from agentmem.dreaming.changes import Change
from agentmem.dreaming.effects import applied, reads, stands, touched
from agentmem.dreaming.rules.removal import expired
from agentmem.dreaming.rules.view import View, hold
from agentmem.dreaming.rules.whole import surviving, survivors, within_adds, within_budgets
from agentmem.dreaming.trust import RANK
from agentmem.facts import Fact, Trust

_EPOCH = datetime.min.replace(tzinfo=UTC)


def score(fact: Fact, today: date, used: Mapping[str, date], days: int = 30) -> int:
    """Return what a fact is worth: its trust, its importance, and how well it proved itself.

    Args:
        fact: The fact, with its evidence.
        today: The day of the dream.
        used: When each key was last recalled by name or found by a search.
        days: How long a use counts.
    """
    sessions = {row.session for row in fact.evidence}
    recent = fact.key in used and today - used[fact.key] <= timedelta(days=days)
    return RANK[fact.trust] + fact.importance + (len(sessions) > 1) + recent


def protected(fact: Fact, opened_at: datetime, hours: int = 24) -> bool:
    """Whether the cap never takes a fact: pinned, written by people or programs, or very young."""
    young = fact.recorded_at is not None and opened_at - fact.recorded_at < timedelta(hours=hours)
    return fact.pinned or fact.writer == "code" or young


def finished(
    changes: Sequence[Change], view: View, cap: int, used: Mapping[str, date]
) -> list[Change]:
    """Return a dream's changes after the rules for the whole set, and the cap.

    Budgets first, then survivors, then the cap; what the cap holds back may have been somebody's
    survivor, so these are looked at once more.
    """
    changes = surviving(within_adds(within_budgets(changes, view), view), view)
    return surviving(_capped(changes, view, cap, used), view)


def _capped(
    changes: Sequence[Change], view: View, cap: int, used: Mapping[str, date]
) -> list[Change]:
    """Evict what is worth least, or hold it if this dream would add it, until the cap is kept.

    At most half of the scope goes in one dream. If only protected facts are left, the cap gives
    way.
    """
    standing = [change for change in changes if stands(change)]
    after = applied(view.before, standing)
    evicted = sum(change.reason == "evicted" for change in standing)
    room = int(view.limits.evicted_share * len(view.before)) - evicted
    over = len(after) - cap
    leaving: list[Change] = []
    held: dict[str, str] = {}
    for fact, worth, new in _ranked(standing, after, view, used) if over > 0 else ():
        if len(leaving) + len(held) == over:
            break
        why = f"the scope holds at most {cap} facts, and this one is worth {worth}"
        if new:
            held[fact.key] = why
        elif len(leaving) < room:
            leaving.append(_eviction(fact, why, view))
    kept = [
        hold(change, "over_cap", held[change.key])
        if stands(change) and change.op == "add" and change.key in held
        else change
        for change in changes
    ]
    return kept + leaving


def _ranked(
    standing: Sequence[Change], after: Mapping[str, Fact], view: View, used: Mapping[str, date]
) -> Iterator[tuple[Fact, int, bool]]:
    """Yield the facts that may go, the least worth first: fact, worth, whether it is new."""
    adds = {change.key for change in standing if change.op == "add"}
    fixed = ({key for change in standing for key in touched(change)} - adds) | survivors(standing)
    days, hours = view.limits.used_days, view.limits.protected_hours

    def rank(fact: Fact) -> tuple[bool, int, int, datetime, str]:
        at = view.opened_at if fact.key in adds else fact.recorded_at or _EPOCH
        worth = score(fact, view.today, used, days)
        return not expired(fact, view.today), worth, fact.importance, at, fact.key

    for fact in sorted(after.values(), key=rank):
        new = fact.key in adds
        if fact.key not in fixed and (new or not protected(fact, view.opened_at, hours)):
            yield fact, score(fact, view.today, used, days), new


def _eviction(fact: Fact, why: str, view: View) -> Change:
    change = Change(
        op="remove",
        key=fact.key,
        reason="expired" if expired(fact, view.today) else "evicted",
        phase="prune",
        code="over_cap",
        message=why,
        trust=Trust.USER,
    )
    return change.replace(reads=reads(change, view.before))
