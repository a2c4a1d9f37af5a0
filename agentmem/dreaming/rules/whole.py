"""Rules 11, 13 and 14 on the whole set: survivors that stay, budgets for what goes and comes."""

from collections.abc import Sequence

from agentmem.dreaming.changes import Change
from agentmem.dreaming.effects import REWORDING, applied, gone, stands
from agentmem.dreaming.rules.removal import NOMINATED_TO_GO, expired
from agentmem.dreaming.rules.survivor import lost
from agentmem.dreaming.rules.view import View, hold
from agentmem.facts import Fact


def within_budgets(changes: Sequence[Change], view: View) -> list[Change]:
    """Rule 13: hold every removal of a class that is over its budget; the rest stays.

    Removals without new evidence, which are those of duplicates: at most two or 5 % of the facts.
    Keys that disappear, merged ones included: at most five or 30 %. What code itself found to go
    (expired by its own date, over the cap, its evidence forgotten) does not count.
    """
    limits, facts = view.limits, len(view.before)
    counted = [one for one in changes if stands(one) and gone(one) and not _by_code(one, view)]
    unproven = [one for one in counted if one.op == "remove" and one.reason in REWORDING]
    most = max(limits.removals, int(limits.removals_share * facts))
    held: dict[str, str] = {}
    if len(unproven) > most:
        why = f"{len(unproven)} removals without new evidence, at most {most} a dream"
        held = {change.id: why for change in unproven}
    left = [change for change in counted if change.id not in held]
    most = max(limits.disappearing, int(limits.disappearing_share * facts))
    leaving = sum(len(gone(change)) for change in left)
    if leaving > most:
        held |= {change.id: f"{leaving} keys would go, at most {most} a dream" for change in left}
    return [
        hold(change, "over_budget", held[change.id]) if change.id in held else change
        for change in changes
    ]


def within_adds(changes: Sequence[Change], view: View) -> list[Change]:
    """Rule 14: at most five new facts, and one for every two messages; the least important wait."""
    limits = view.limits
    said = sum(row.role in ("user", "assistant") for row in view.rows.values())
    most = int(limits.adds + limits.adds_a_message * said)
    adds = [change for change in changes if stands(change) and change.op == "add"]
    ranked = sorted(adds, key=lambda change: -change.importance)  # of equals the first stay
    over = {change.id for change in ranked[most:]}
    why = f"{len(adds)} new facts from {said} messages, at most {most}"
    return [hold(one, "over_budget", why) if one.id in over else one for one in changes]


def surviving(changes: Sequence[Change], view: View) -> list[Change]:
    """Rule 11: hold each removal whose survivor does not stay, or no longer says the same."""
    changes = list(changes)
    while True:
        after = applied(view.before, filter(stands, changes))
        heirs = _heirs(changes)
        checked = [_with_survivor(change, heirs, after, view) for change in changes]
        if checked == changes:
            return changes
        changes = checked  # what is held keeps its key, so that fewer things go: it ends


def survivors(changes: Sequence[Change]) -> set[str]:
    """Return the keys that hold what a change that stands takes away."""
    return set(_heirs(changes).values())


def _heirs(changes: Sequence[Change]) -> dict[str, str]:
    """Map each key that goes to the one that stays for it."""
    return {
        key: heir
        for change in changes
        if stands(change) and (heir := change.key if change.op == "merge" else change.by)
        for key in gone(change)
    }


def _with_survivor(
    change: Change, heirs: dict[str, str], after: dict[str, Fact], view: View
) -> Change:
    if not stands(change) or change.op != "remove" or not change.by:
        return change
    heir, seen = change.by, {change.key}
    while heir in heirs and heir not in seen:
        seen.add(heir)
        heir = heirs[heir]
    if heir not in after:
        return hold(change, "no_survivor", f"{change.by!r}, which is to stay, does not")
    if change.reason in REWORDING and (
        what := lost(view.before[change.key], after[heir], limits=view.limits)
    ):
        return hold(change, "survivor_lacks", f"{heir!r} does not hold {what}")
    return change


def _by_code(change: Change, view: View) -> bool:
    """Whether code itself found that a key goes: a model's word was not needed."""
    return change.op == "remove" and (
        change.reason == "evicted"
        or view.nominated.get(change.key) in NOMINATED_TO_GO
        or expired(view.before[change.key], view.today)
    )
