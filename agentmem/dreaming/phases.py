"""The four phases: what each looks at, and what becomes of what its model says.

A phase with nothing to decide asks no model. Each leaves the draft and its own result under the
dream's id, so that a phase that is tried again repeats only the call in flight.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import date

from agentmem.contracts import Phase, PhaseName, PhaseResult
from agentmem.dreaming.blocks import (
    change_lines,
    count_lines,
    finding_lines,
    nominated_lines,
    orientation_lines,
    transcript_lines,
    value_lines,
)
from agentmem.dreaming.cap import protected, score
from agentmem.dreaming.counts import in_words
from agentmem.dreaming.draft import Draft
from agentmem.dreaming.hints import Hints, look
from agentmem.dreaming.job import Blocks, Job, Talk, noted, nothing_handed_in
from agentmem.dreaming.parts import Lines, split, talk
from agentmem.dreaming.prompts import fact_line, whole_values
from agentmem.dreaming.replies import Asker, Progress
from agentmem.dreaming.snapshot import Desk
from agentmem.dreaming.work import ChangeWork, GatherWork, OrientWork
from agentmem.errors import DreamFailed, ModelCallError
from agentmem.memory.providers.protocol import TransactionalProvider
from agentmem.models.failures import lies_with_prompt
from agentmem.values import JSONObject

PAGES = 10
"""Pages of a large scope that orient looks over; more are not read in one dream."""
LONG = 500
"""Characters at which a value of such a page is cut."""


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
    try:
        return await _PHASES[name](job)
    except (DreamFailed, ModelCallError) as error:
        if isinstance(error, DreamFailed) or lies_with_prompt(error):
            await desk.stumbled(name)
        raise


async def orient(job: Job) -> PhaseResult:
    """Look over the scope. Where the model hands in nothing, code's own hints stand in."""
    draft, kept = job.desk.draft, job.desk.kept
    facts = draft.facts()
    hints = look(facts, draft.view().today)
    draft.nominated = hints.nominated()
    held = None
    found = hints.orientation()
    if len(facts) > 1:
        work = OrientWork(draft, job.name)
        held = await _look_over(job, work, hints)
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
    if held is not None and held.parts > 1:
        counts["pages"] = held.parts
        if len(pages := list(split(_values(job), kept.sizes.chunk))) > PAGES:
            kept = noted(kept, f"orient: {PAGES} of {len(pages)} pages were looked over")
    summary = in_words(counts, "facts", "duplicates", "contradictions", "stale", "pages")
    return await job.end(kept.replace(orientation=found), summary, counts, held)


async def gather_signal(job: Job) -> PhaseResult:
    """Find what the new messages tell."""
    draft, kept = job.desk.draft, job.desk.kept
    new = {alias: row for alias, row in draft.rows.items() if alias not in kept.carried_rows}
    lines = transcript_lines(new, kept.sizes.message)
    if not any("text" in line for line in lines):
        return await job.end(kept, "nothing was said that is not known", {"findings": 0})
    work = GatherWork(draft, job.name)
    before = ("ORIENTATION", orientation_lines(kept.orientation))
    held = await talk(job, work, lines, lambda part: [before, ("TRANSCRIPT", part)])
    if not held.handed_in:
        raise nothing_handed_in(job, held)
    if work.refused:
        kept = kept.replace(refused={**kept.refused, job.name: work.refused})
    counts = {"findings": len(draft.findings), "messages": len(lines), "dropped": len(work.refused)}
    return await job.end(kept, in_words(counts, "findings", "dropped"), counts, held)


async def consolidate(job: Job) -> PhaseResult:
    """Work the findings into the draft."""
    draft, kept = job.desk.draft, job.desk.kept
    if not draft.findings and not kept.orientation.issues:
        return await job.end(kept, "nothing to consolidate", _tally(draft))
    work = ChangeWork(draft, job.name)
    facts = draft.facts()
    before = ("ORIENTATION", orientation_lines(kept.orientation))
    lines = finding_lines(draft.findings.values(), facts, draft.rows)

    def blocks(part: Lines) -> Blocks:
        named = [key for line in part for key in (*line.get("keys", ()), *line.get("near", ()))]
        shown = _shown(job, [*kept.orientation.keys, *named])
        return [before, *shown, ("FINDINGS", part)]

    held = await talk(job, work, lines, blocks)
    if not held.handed_in:
        raise nothing_handed_in(job, held)
    return await _end_with_changes(job, work, held)


async def prune(job: Job) -> PhaseResult:
    """Tidy the draft. Where the model hands in nothing, code alone keeps the cap."""
    draft, cap = job.desk.draft, job.phase.keys
    facts = draft.facts()
    draft.nominated = look(facts, draft.view().today).nominated(
        _over_cap(draft, cap, job.desk.kept.used)
    )
    if not draft.nominated and len(facts) <= cap:
        return await job.end(job.desk.kept, "nothing to prune", _tally(draft))
    work = ChangeWork(draft, job.name)
    rest = [*_shown(job, draft.nominated), ("COUNT", count_lines(len(facts), cap))]
    changed = ("CHANGES", change_lines(draft.changes))
    lines = nominated_lines(draft.nominated)
    held = await talk(job, work, lines, lambda part: [changed, ("NOMINATED", part), *rest])
    return await _end_with_changes(job, work, held)


_PHASES: dict[PhaseName, Callable[[Job], Awaitable[PhaseResult]]] = {
    "orient": orient,
    "gather_signal": gather_signal,
    "consolidate": consolidate,
    "prune": prune,
}


async def _look_over(job: Job, work: OrientWork, hints: Hints) -> Talk:
    """Let the model look over all facts: in the shared beginning, or in pages of their values."""

    def blocks(page: Lines) -> Blocks:
        if not page:
            return [("HINTS", hints.lines())]
        keys = {line["k"] for line in page}
        told = [hint for hint in hints.lines() if keys.intersection(hint["keys"])]
        return [("VALUES", page), ("HINTS", told)]

    return await talk(job, work, _values(job), blocks, PAGES)


def _values(job: Job) -> list[JSONObject]:
    """Return all facts with their values, if the shared beginning has no room for these."""
    facts = job.desk.draft.before
    if whole_values(list(facts.values()), job.desk.kept.sizes.prefix):
        return []
    return [fact_line(fact, LONG) for fact in facts.values()]


def _shown(job: Job, keys: Iterable[str]) -> Blocks:
    if not _values(job):
        return []
    room = job.desk.kept.sizes.chunk // 2
    return [("VALUES", value_lines(job.desk.draft.before, keys, room))]


async def _end_with_changes(job: Job, work: ChangeWork, held: Talk) -> PhaseResult:
    kept = job.desk.kept.replace(summary=work.summary or held.closing or job.desk.kept.summary)
    if work.problems:
        kept = kept.replace(refused={**kept.refused, job.name: work.problems})
    if not held.handed_in:
        kept = noted(kept, f"{job.name}: code alone, the model handed in nothing")
    counts = _tally(job.desk.draft)
    return await job.end(kept, in_words(counts, "changes", "held", "rejected"), counts, held)


def _tally(draft: Draft) -> dict[str, int]:
    counts = draft.counts()
    return {
        "changes": counts.get("accepted", 0) + counts.get("flagged", 0),
        "held": counts.get("held", 0),
        "rejected": counts.get("rejected", 0),
        "facts": len(draft.facts()),
    }


def _over_cap(draft: Draft, cap: int, used: Mapping[str, date]) -> list[str]:
    """Return the keys of least worth, as many as there are facts over the cap."""
    today = draft.view().today
    free = [fact for fact in draft.facts() if not protected(fact, draft.opened_at)]
    ranked = sorted(free, key=lambda fact: (score(fact, today, used), fact.key))
    return [fact.key for fact in ranked[: max(0, len(draft.facts()) - cap)]]
