"""The four phases: what each looks at, and what becomes of what its model says.

A phase with nothing to decide asks no model. Each leaves the draft and its own result under the
dream's id, so that a phase that is tried again repeats only the call in flight.
"""

from collections.abc import Awaitable, Callable

from agentmem.contracts import Phase, PhaseResult
from agentmem.dreaming.blocks import (
    change_lines,
    count_lines,
    finding_lines,
    nominated_lines,
    orientation_lines,
    transcript_lines,
)
from agentmem.dreaming.cap import protected, score
from agentmem.dreaming.counts import in_words
from agentmem.dreaming.draft import Draft
from agentmem.dreaming.exchange import Exchange
from agentmem.dreaming.hints import look
from agentmem.dreaming.job import Job, noted, nothing_handed_in
from agentmem.dreaming.replies import Asker, Progress
from agentmem.dreaming.snapshot import Desk
from agentmem.dreaming.tools import PhaseName
from agentmem.dreaming.work import ChangeWork, GatherWork, OrientWork
from agentmem.memory.providers.protocol import TransactionalProvider


async def run_phase(
    name: PhaseName,
    phase: Phase,
    provider: TransactionalProvider,
    ask: Asker,
    progress: Progress = lambda counters: None,
) -> PhaseResult:
    """Run a phase of a dream, once by the dream's id.

    Args:
        name: Which phase.
        phase: The dream, its scope, model and limits.
        provider: The store, which also keeps the dream's state.
        ask: Asks the model.
        progress: Told small counters while it runs.

    Raises:
        DreamFailed: The model handed in nothing where code cannot stand in; trying again would
            replay the same replies.
        ModelCallError: A model call failed.
    """
    desk = await Desk.load(provider, phase)
    if name in desk.kept.phases:
        return desk.kept.phases[name]
    job = Job(name=name, phase=phase, desk=desk, ask=ask, progress=progress)
    return await _PHASES[name](job)


async def orient(job: Job) -> PhaseResult:
    """Look over the scope. Where the model hands in nothing, code's own hints stand in."""
    draft, kept = job.desk.draft, job.desk.kept
    facts = draft.facts()
    hints = look(facts, draft.view().today)
    draft.nominated = hints.nominated()
    exchange = None
    found = hints.orientation()
    if len(facts) > 1:
        work = OrientWork(draft, job.name)
        exchange = await job.talk(work, [("HINTS", hints.lines())])
        if work.orientation is not None:
            found = work.orientation
        else:
            kept = noted(kept, "orient: code's hints, the model handed in nothing")
    counts = {
        "facts": len(facts),
        "duplicates": len(found.duplicates),
        "contradictions": len(found.contradictions),
        "stale": len(found.stale),
        "unknown_keys": found.unknown_keys,
    }
    summary = in_words(counts, "facts", "duplicates", "contradictions", "stale")
    return await job.end(kept.replace(orientation=found), summary, counts, exchange)


async def gather_signal(job: Job) -> PhaseResult:
    """Find what the new messages tell."""
    draft, kept = job.desk.draft, job.desk.kept
    lines = transcript_lines(draft.rows)
    if not any("text" in line for line in lines):
        return await job.end(kept, "nothing was said that is not known", {"findings": 0})
    work = GatherWork(draft, job.name)
    blocks = [("ORIENTATION", orientation_lines(kept.orientation)), ("TRANSCRIPT", lines)]
    exchange = await job.talk(work, blocks)
    if not exchange.handed_in:
        raise nothing_handed_in(job, exchange)
    if work.refused:
        kept = kept.replace(refused={**kept.refused, job.name: work.refused})
    counts = {"findings": len(draft.findings), "messages": len(lines), "dropped": len(work.refused)}
    return await job.end(kept, in_words(counts, "findings", "dropped"), counts, exchange)


async def consolidate(job: Job) -> PhaseResult:
    """Work the findings into the draft."""
    draft, kept = job.desk.draft, job.desk.kept
    if not draft.findings and not kept.orientation.issues:
        return await job.end(kept, "nothing to consolidate", _tally(draft))
    work = ChangeWork(draft, job.name)
    facts = draft.facts()
    blocks = [
        ("ORIENTATION", orientation_lines(kept.orientation)),
        ("FINDINGS", finding_lines(draft.findings.values(), facts, draft.rows)),
    ]
    exchange = await job.talk(work, blocks)
    if not exchange.handed_in:
        raise nothing_handed_in(job, exchange)
    return await _end_with_changes(job, work, exchange)


async def prune(job: Job) -> PhaseResult:
    """Tidy the draft. Where the model hands in nothing, code alone keeps the cap."""
    draft, cap = job.desk.draft, job.phase.keys
    facts = draft.facts()
    draft.nominated = look(facts, draft.view().today).nominated(_over_cap(draft, cap))
    if not draft.nominated and len(facts) <= cap:
        return await job.end(job.desk.kept, "nothing to prune", _tally(draft))
    work = ChangeWork(draft, job.name)
    blocks = [
        ("CHANGES", change_lines(draft.changes)),
        ("NOMINATED", nominated_lines(draft.nominated)),
        ("COUNT", count_lines(len(facts), cap)),
    ]
    exchange = await job.talk(work, blocks)
    return await _end_with_changes(job, work, exchange)


_PHASES: dict[PhaseName, Callable[[Job], Awaitable[PhaseResult]]] = {
    "orient": orient,
    "gather_signal": gather_signal,
    "consolidate": consolidate,
    "prune": prune,
}


async def _end_with_changes(job: Job, work: ChangeWork, exchange: Exchange) -> PhaseResult:
    kept = job.desk.kept.replace(summary=work.summary or exchange.closing or job.desk.kept.summary)
    if work.problems:
        kept = kept.replace(refused={**kept.refused, job.name: work.problems})
    if not exchange.handed_in:
        kept = noted(kept, f"{job.name}: code alone, the model handed in nothing")
    counts = _tally(job.desk.draft)
    return await job.end(kept, in_words(counts, "changes", "held", "rejected"), counts, exchange)


def _tally(draft: Draft) -> dict[str, int]:
    counts = draft.counts()
    return {
        "changes": counts.get("accepted", 0) + counts.get("flagged", 0),
        "held": counts.get("held", 0),
        "rejected": counts.get("rejected", 0),
        "facts": len(draft.facts()),
    }


def _over_cap(draft: Draft, cap: int) -> list[str]:
    """Return the keys of least worth, as many as there are facts over the cap."""
    today = draft.view().today
    free = [fact for fact in draft.facts() if not protected(fact, draft.opened_at)]
    ranked = sorted(free, key=lambda fact: (score(fact, today, {}), fact.key))
    return [fact.key for fact in ranked[: max(0, len(draft.facts()) - cap)]]
