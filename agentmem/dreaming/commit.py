"""The commit of a dream, and what it reports: counts and keys, no values."""

from collections import Counter

from agentmem.contracts import DreamReport, PhaseRun, Usage
from agentmem.dreaming.apply import applied, stands
from agentmem.dreaming.carry_over import left_over
from agentmem.dreaming.changes import Change
from agentmem.dreaming.report import APPLIED, SUMMARY_BYTES, fitting
from agentmem.dreaming.snapshot import Desk
from agentmem.dreaming.verification import unsure
from agentmem.storage.protocol import TransactionalProvider
from agentmem.wire import clip

_KEY_BYTES = 80
_LINE_BYTES = 200
_HELD = 20
_NOT_DONE = ("held", "deferred", "rejected")

_DONE = {
    "add": "added",
    "update": "updated",
    "merge": "merged",
    "condense": "condensed",
    "remove": "removed",
}


async def commit_dream(provider: TransactionalProvider, phase: PhaseRun) -> DreamReport:
    """Commit a dream's draft in one transaction, once by its id, and report it.

    Raises:
        DreamFailed: There is no such dream.
        ProviderError: The store failed, or another dream has consumed the same messages; nothing
            was changed.
    """
    desk = await Desk.load(provider, phase)
    if desk.record.status == "running":
        desk.draft.bury(await provider.tombstones(phase.store.agent, phase.store.scope))
        # A draft of the first design has no verdicts: its rules decided, and it commits as it is.
        if desk.kept.prompt_version != "1":
            for change in desk.draft.unverified():
                desk.draft.decide(unsure(change, desk.draft.view()))
        used = await provider.used(phase.store.agent, phase.store.scope)
        desk.draft.finish(phase.keys, used)
        kept = desk.kept.replace(draft=desk.draft.dump())
        record = desk.record.replace(status=_status(desk), data=kept.model_dump(mode="json"))
        steps = [] if desk.proposes else desk.draft.steps()
        await provider.commit(phase.store.agent, phase.store.scope, record, steps)
        # What the store now holds is what is reported, also by a retry of this commit.
        desk = await Desk.load(provider, phase)
    return report(desk)


def report(desk: Desk) -> DreamReport:
    """Report a committed dream, in at most 4 kB."""
    lost = set(desk.record.conflicts)
    changes = [
        change.replace(status="conflict", message="changed meanwhile")
        if change.id in lost
        else change
        for change in desk.draft.changes
    ]
    standing = [change for change in changes if stands(change)]
    refused = [line for lines in desk.kept.refused.values() for line in lines]
    counts = Counter(change.status for change in changes)
    if refused:
        counts["rejected"] += len(refused)
    before = desk.draft.before
    done = [] if desk.proposes else standing
    after = applied(before, done, desk.draft.opened_at, desk.draft.zone)
    lines = [line_of(one) for one in standing if one.op != "confirm"][:APPLIED]
    offered = sum(1 for _ in left_over(desk.record))
    carry = [f"carry_over: {offered} findings are offered to the next dream"] if offered else []
    checked = desk.kept.checked
    if checked.passed:
        carry.append(
            f"verification: {desk.kept.model} said yes to {checked.passed} of {checked.controls} "
            "altered changes; what it read beside them counts as not confirmed"
        )
    usage = Usage()
    for result in desk.kept.phases.values():
        usage = usage.plus(result.usage)
    return fitting(
        DreamReport(
            status=_status(desk, conflicts=len(lost)),
            summary=_summary(standing, desk.kept.summary, "proposed: " if desk.proposes else ""),
            dream=desk.record.id,
            keys_before=len(before),
            keys_after=len(after),
            changes=dict(counts),
            applied=[] if desk.proposes else lines,
            proposed=lines if desk.proposes else [],
            held=[_refusal(one) for one in changes if one.status in _NOT_DONE][:_HELD]
            + [clip(line, _LINE_BYTES) for line in refused[:_HELD]],
            waiting=counts["held"] + counts["deferred"],
            conflicts=[clip(one.key, _KEY_BYTES) for one in changes if one.id in lost],
            notes=[*desk.kept.notes, *carry, *_over_cap(len(after), desk.kept.cap)],
            usage=usage,
        )
    )


def _status(desk: Desk, conflicts: int = 0) -> str:
    counts = desk.draft.counts()
    if desk.proposes and counts.keys() - {"rejected"}:
        return "proposed"
    if conflicts or desk.kept.refused or counts.keys() & set(_NOT_DONE):
        return "completed_with_rejections"
    if not desk.draft.findings and not desk.draft.changes:
        return "nothing_learned"
    return "completed"


def _summary(standing: list[Change], said: str, first: str) -> str:
    counts = Counter(_DONE[change.op] for change in standing if change.op in _DONE)
    done = ", ".join(f"{counts[name]} {name}" for name in _DONE.values() if counts[name])
    text = f"{first}{done or 'nothing changed'}. {' '.join(said.split())}".strip()
    return clip(text, SUMMARY_BYTES)


def line_of(change: Change) -> str:
    """Return a change as a report names it: operation, key, reason."""
    reason = f": {change.reason}" if change.reason else ""
    if change.status == "tentative":
        reason += " (not confirmed)"
    return f"{change.op} {clip(change.key, _KEY_BYTES)}{reason}"


def _refusal(change: Change) -> str:
    return clip(f"{change.status} {line_of(change)}: {change.message or change.code}", _LINE_BYTES)


def _over_cap(after: int, cap: int) -> list[str]:
    return [f"over_cap: {after} facts, the cap is {cap}"] if after > cap else []
