"""Bounds that meter: so many changes per dream, the best first, and at most so many facts.

What is over a bound waits for the next dream; it is neither refused nor lost. Only what code alone
decides is decided here: a passed day, 30 days without confirmation, the cap. All of it can be
undone.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta

from agentmem.dreaming.apply import applied, gone, reads, stands, touched
from agentmem.dreaming.changes import Change, defer, hold
from agentmem.dreaming.rules.form import EVICTED_SHARE, RuleContext, is_expired
from agentmem.dreaming.rules.text import fold, text_of
from agentmem.facts import RANK, Fact, Trust

REWORDINGS, REWORDINGS_SHARE = 2, 0.05
"""Removals and merges of near-duplicates per dream: two, or this share of the facts."""
DISAPPEARING, DISAPPEARING_SHARE = 5, 0.3
"""Keys that may go per dream, merged ones included: five, or this share of the facts."""
ADDS, ADDS_PER_MESSAGE = 20, 1
"""New facts per dream: 20, and one for each message."""
PROTECTED_HOURS = 24
"""The number of hours that a new fact is safe from the cap."""
USED_DAYS = 30
"""The number of days that a use of a fact counts."""
TENTATIVE_DAYS = 30
"""The number of days that a tentative fact stays if it does not rest on a user's words."""

_EPOCH = datetime.min.replace(tzinfo=UTC)


def score(fact: Fact, today: date, used: Mapping[str, date], days: int = USED_DAYS) -> int:
    """Return what a fact is worth: its trust, its importance, and how well it proved itself.

    Args:
        fact: The fact, with its evidence.
        today: The day of the dream.
        used: When each key was last recalled by name or found by a search.
        days: How long a use counts.
    """
    if fact.state == "tentative":
        return 0
    sessions = {row.session for row in fact.evidence}
    recent = fact.key in used and today - used[fact.key] <= timedelta(days=days)
    return RANK[fact.trust] + fact.importance + (len(sessions) > 1) + recent


def protected(fact: Fact, opened_at: datetime) -> bool:
    """Tell if the cap never takes a fact: pinned, written by people or programs, or very young."""
    young = fact.recorded_at is not None and opened_at - fact.recorded_at < timedelta(
        hours=PROTECTED_HOURS
    )
    return fact.pinned or fact.writer in ("code", "person") or young


def finished(
    changes: Sequence[Change], view: RuleContext, cap: int, used: Mapping[str, date]
) -> list[Change]:
    """Return a dream's changes after all that concerns the whole set.

    First the bounds, then what has ended, then the cap. A removal whose survivor does not stay is
    held; that is looked at once more after the cap, which may take a survivor.
    """
    changes = surviving(_metered(_metered_adds(changes, view), view), view)
    return surviving(_capped(_ended(changes, view), view, cap, used), view)


def surviving(changes: Sequence[Change], view: RuleContext) -> list[Change]:
    """Hold each removal whose survivor does not stay."""
    changes = list(changes)
    while True:
        after = _after(view, changes)
        heirs = _heirs(changes)
        checked = [_with_survivor(change, heirs, after) for change in changes]
        if checked == changes:
            return changes
        changes = checked  # what is held keeps its key, so that fewer things go: it ends


def over_cap(
    facts: Sequence[Fact], view: RuleContext, cap: int, used: Mapping[str, date]
) -> list[str]:
    """Return the keys of least worth, as many as there are facts over the cap."""
    free = [fact for fact in facts if not protected(fact, view.opened_at)]
    ranked = sorted(free, key=lambda fact: (score(fact, view.today, used), fact.key))
    return [fact.key for fact in ranked[: max(0, len(facts) - cap)]]


def _metered(changes: Sequence[Change], view: RuleContext) -> list[Change]:
    """Let through so many removals and merges, the best supported first; the others wait."""
    facts = len(view.before)
    rewordings = max(REWORDINGS, int(REWORDINGS_SHARE * facts))
    disappearing = max(DISAPPEARING, int(DISAPPEARING_SHARE * facts))
    late: dict[str, str] = {}
    counted = [one for one in changes if stands(one) and gone(one) and not _is_unbounded(one, view)]
    for change in sorted(counted, key=_strength, reverse=True):
        without_words = change.op == "merge" or bool(change.by)
        if without_words and rewordings < 1:
            late[change.id] = "near-duplicates: more than a dream may unite; the rest comes next"
        elif len(gone(change)) > disappearing:
            late[change.id] = "removals: more keys than may go in one dream; the rest comes next"
        else:
            rewordings -= without_words
            disappearing -= len(gone(change))
    return [
        defer(change, "over_bound", late[change.id]) if change.id in late else change
        for change in changes
    ]


def _metered_adds(changes: Sequence[Change], view: RuleContext) -> list[Change]:
    said = sum(row.role in ("user", "assistant") for row in view.rows.values())
    most = ADDS + ADDS_PER_MESSAGE * said
    adds = [change for change in changes if stands(change) and change.op == "add"]
    late = {change.id for change in sorted(adds, key=_strength, reverse=True)[most:]}
    why = f"{len(adds)} new facts from {said} messages, {most} per dream; the rest comes next"
    return [defer(one, "over_bound", why) if one.id in late else one for one in changes]


def _strength(change: Change) -> tuple[bool, int, int, datetime]:
    """Order changes by their evidence: confirmed, by whose word, how important, how new."""
    confirmed = change.status == "accepted"
    return confirmed, RANK[change.trust], change.importance, change.said_at or _EPOCH


def _is_unbounded(change: Change, view: RuleContext) -> bool:
    """Tell if no bound counts a change: code's own, a user's request, or equal values."""
    if change.verdict == "code":
        return True
    if change.op == "remove" and not change.by:
        return change.trust == Trust.USER and bool(change.quoted)
    stays = view.before.get(change.by or change.key)
    values = {fold(text_of(view.before[key].value)) for key in gone(change) if key in view.before}
    if change.op == "merge":
        values.add(fold(text_of(change.value)))
    elif stays is not None:
        values.add(fold(text_of(stays.value)))
    return len(values) == 1


def _ended(changes: Sequence[Change], view: RuleContext) -> list[Change]:
    """Remove what has passed its day, and what nobody confirmed for 30 days."""
    after = _after(view, changes)
    fixed = {key for change in changes if stands(change) for key in touched(change)}
    removals: list[Change] = []
    ended: dict[str, str] = {}
    for fact in after.values():
        if fact.pinned or not (why := _end_of(fact, view.opened_at)):
            continue
        if fact.key in fixed:
            ended[fact.key] = why
        else:
            removals.append(_removal(fact, "expired", "expired", why, view))
    kept = [
        # A new fact whose day has passed is not worth storing; an old one goes with the next dream.
        change.replace(status="rejected", code="expired", message=ended[change.key])
        if stands(change) and change.op == "add" and change.key in ended
        else change
        for change in changes
    ]
    return kept + removals


def _end_of(fact: Fact, now: datetime) -> str:
    if is_expired(fact, now):
        return "its day has passed"
    told = any(row.role == "user" for row in fact.evidence)
    old = fact.recorded_at is not None and now - fact.recorded_at > timedelta(days=TENTATIVE_DAYS)
    if fact.state == "tentative" and old and not told:
        return f"nobody confirmed it for {TENTATIVE_DAYS} days"
    return ""


def _capped(
    changes: Sequence[Change], view: RuleContext, cap: int, used: Mapping[str, date]
) -> list[Change]:
    """Evict what is worth least until the cap is kept; what this dream adds is not protected.

    At most half of the scope goes in one dream. If only protected facts are left, new ones wait.
    """
    standing = [change for change in changes if stands(change)]
    after = _after(view, changes)
    evicted = sum(change.reason == "evicted" for change in standing)
    room = int(EVICTED_SHARE * len(view.before)) - evicted
    over = len(after) - cap
    leaving: list[Change] = []
    late: dict[str, str] = {}
    for fact, worth, new in _ranked(standing, after, view, used) if over > 0 else ():
        if len(leaving) + len(late) == over:
            break
        why = f"the scope holds at most {cap} facts, and this one is worth {worth}"
        if new:
            late[fact.key] = why
        elif len(leaving) < room:
            leaving.append(_removal(fact, "evicted", "over_cap", why, view))
    kept = [
        hold(change, "over_cap", late[change.key])
        if stands(change) and change.op == "add" and change.key in late
        else change
        for change in changes
    ]
    return kept + leaving


def _ranked(
    standing: Sequence[Change],
    after: Mapping[str, Fact],
    view: RuleContext,
    used: Mapping[str, date],
) -> Iterator[tuple[Fact, int, bool]]:
    """Yield the facts that may go, the least worth first: fact, worth, whether it is new."""
    adds = {change.key for change in standing if change.op == "add"}
    fixed = ({key for change in standing for key in touched(change)} - adds) | set(
        _heirs(standing).values()
    )

    def rank(fact: Fact) -> tuple[int, int, bool, datetime, str]:
        # Of equal worth the older one goes: what was said last is more likely to matter.
        at = view.opened_at if fact.key in adds else fact.recorded_at or _EPOCH
        worth = score(fact, view.today, used)
        return worth, fact.importance, fact.key in adds, at, fact.key

    for fact in sorted(after.values(), key=rank):
        new = fact.key in adds
        if fact.key not in fixed and (new or not protected(fact, view.opened_at)):
            yield fact, score(fact, view.today, used), new


def _removal(fact: Fact, reason: str, code: str, why: str, view: RuleContext) -> Change:
    change = Change.model_validate(
        {"op": "remove", "key": fact.key, "reason": reason, "phase": "prune", "code": code}
    )
    change = change.replace(message=why, trust=Trust.USER, verdict="code")
    return change.replace(reads=reads(change, view.before))


def _heirs(changes: Sequence[Change]) -> dict[str, str]:
    """Map each key that goes to the one that stays for it."""
    return {
        key: heir
        for change in changes
        if stands(change) and (heir := change.key if change.op == "merge" else change.by)
        for key in gone(change)
    }


def _with_survivor(change: Change, heirs: dict[str, str], after: Mapping[str, Fact]) -> Change:
    if not stands(change) or change.op != "remove" or not change.by:
        return change
    heir, seen = change.by, {change.key}
    while heir in heirs and heir not in seen:
        seen.add(heir)
        heir = heirs[heir]
    if heir not in after:
        return hold(change, "no_survivor", f"{change.by!r}, which is to stay, does not")
    return change


def _after(view: RuleContext, changes: Sequence[Change]) -> dict[str, Fact]:
    return applied(view.before, filter(stands, changes), view.opened_at, view.zone)
