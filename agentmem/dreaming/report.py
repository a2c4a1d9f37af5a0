"""The report of a dream: counts in words, and one report for several rounds, kept short."""

from collections import Counter
from collections.abc import Mapping

from agentmem.contracts import DreamReport
from agentmem.wire import clip, encoded_size

_ONE = {
    "facts": "fact",
    "messages": "new message",
    "findings": "finding",
    "changes": "change",
    "duplicates": "duplicate",
    "contradictions": "contradiction",
}
_MANY = {"messages": "new messages"}


def in_words(counts: Mapping[str, int], *names: str) -> str:
    """Return counts in words, like `12 findings, 40 facts`.

    Args:
        counts: Numbers by name.
        names: Which of them; the first is always told, the others unless they are zero.
    """
    told = [name for place, name in enumerate(names) if counts.get(name) or place == 0]
    return ", ".join(
        f"{(number := counts.get(name, 0))} {(_ONE if number == 1 else _MANY).get(name, name)}"
        for name in told
    )


REPORT_BYTES = 4_000
"""A report lands in the history of a parent that still runs."""
SUMMARY_BYTES = 600
APPLIED = 40
"""Lines of what was applied, at most."""

_LISTS = ("applied", "proposed", "held", "conflicts", "notes")
# How a dream ended whose rounds ended differently: the first of these that one of them has.
_STATUSES = (
    "proposed",
    "completed_with_rejections",
    "completed",
    "skipped",
    "nothing_learned",
    "nothing_new",
)


def added_up(before: DreamReport, last: DreamReport) -> DreamReport:
    """Return one report of the rounds before and of the last one, in at most 4 kB.

    Changes and usage are summed, lines are in the rounds' order, the facts before are the first
    round's. What an earlier round deferred has been offered again since, and no longer waits. A
    last round that found nothing new adds nothing.
    """
    if last.status == "nothing_new":
        return before
    statuses = (before.status, last.status)
    learned = [one.summary for one in (before, last) if one.status in _STATUSES[:3]]
    return fitting(
        last.replace(
            status=next((status for status in _STATUSES if status in statuses), last.status),
            summary=clip(" ".join(learned) or last.summary, SUMMARY_BYTES),
            reason=last.reason or before.reason,
            keys_before=before.keys_before,
            changes=dict(Counter(before.changes) + Counter(last.changes)),
            applied=[*before.applied, *last.applied][:APPLIED],
            proposed=[*before.proposed, *last.proposed][:APPLIED],
            held=[*before.held, *last.held][:APPLIED],
            waiting=before.waiting - before.changes.get("deferred", 0) + last.waiting,
            conflicts=list(dict.fromkeys([*before.conflicts, *last.conflicts])),
            notes=list(dict.fromkeys([*before.notes, *last.notes])),
            usage=before.usage.plus(last.usage),
        )
    )


def fitting(whole: DreamReport) -> DreamReport:
    """Shorten the longest list until the report fits; the counts still tell how many there were."""
    while encoded_size(whole.model_dump_json()) > REPORT_BYTES:
        lists = {name: getattr(whole, name) for name in _LISTS}
        longest = max(lists, key=lambda name: len("".join(lists[name])))
        if not lists[longest]:
            break
        whole = whole.replace(**{longest: lists[longest][:-1]})
    return whole
