"""The four phases: the data of each, and the use of what its model hands in.

A phase with nothing to decide asks no model. The phases that propose changes end by verifying
them. Each leaves the draft and its own result under the dream's id, so that a phase that is tried
again repeats only the call in flight.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence

from agentmem.contracts import PhaseName, PhaseResult, PhaseRun
from agentmem.dreaming.blocks import (
    change_lines,
    cited_rows,
    count_lines,
    finding_lines,
    nominated_lines,
    orientation_lines,
    shortened,
    transcript_lines,
    value_lines,
)
from agentmem.dreaming.changes import Change, Orientation
from agentmem.dreaming.draft import Draft
from agentmem.dreaming.model_replies import Asker, Progress
from agentmem.dreaming.phase_run import (
    Blocks,
    Job,
    Lines,
    Talk,
    noted,
    nothing_handed_in,
    split,
    talk,
)
from agentmem.dreaming.phase_work import ChangeWork, GatherWork, OrientWork
from agentmem.dreaming.prompts import fact_line, whole_values
from agentmem.dreaming.report import in_words
from agentmem.dreaming.rules.limits import over_cap
from agentmem.dreaming.rules.similarity import Hints, declined_pairs, look
from agentmem.dreaming.snapshot import Desk, Oriented
from agentmem.dreaming.verification import VerificationResult, Verifier
from agentmem.errors import AgentMemError, DreamFailed, ModelCallError
from agentmem.llm.errors import lies_with_prompt
from agentmem.storage.protocol import TransactionalProvider
from agentmem.wire import JSONObject

PAGES = 10
"""Pages of a large scope that orient looks over; more are not read in one dream."""
LONG = 500
"""Characters at which a value of such a page is cut."""
CITED, BEFORE = 500, 160
"""Characters that consolidate sees of a cited message, and of the one before it."""

CORRECT = (
    "These changes were read again beside their messages, and doubted: why says what is wrong. "
    "Hand in each of them once more with submit_changes, corrected, or leave it out."
)


async def run_phase(
    name: PhaseName,
    phase: PhaseRun,
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
    except AgentMemError:
        raise
    except Exception:
        # What no rule foresaw would end each attempt: these messages are halved next time.
        await desk.stumbled(name)
        raise


async def orient(job: Job) -> PhaseResult:
    """Look over the scope. If the model hands in nothing, code's own hints are used.

    The model is not asked again on the same day about facts that have not changed since.
    """
    draft, kept = job.desk.draft, job.desk.kept
    facts = draft.facts()
    hints = look(facts, kept.declined, kept.offered)
    draft.nominated = hints.nominated({})
    held = None
    found = hints.orientation()
    now = Oriented(day=kept.day, facts=job.desk.record.snapshot)
    if kept.oriented == now and not kept.offered:
        found = Orientation(source="code")
    elif facts:
        work = OrientWork(draft, job.name)
        held = await _look_over(job, work, hints)
        if work.orientation is not None:
            found = work.orientation
            kept = kept.replace(oriented=now)
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
    lines = transcript_lines(new, kept.sizes.message, kept.zone)
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
    """Work the findings into the draft, and verify what was proposed."""
    draft, kept = job.desk.draft, job.desk.kept
    if not draft.findings and not kept.orientation.issues:
        return await job.end(kept, "nothing to consolidate", _tally(draft))
    work = ChangeWork(draft, job.name)
    before = ("ORIENTATION", orientation_lines(kept.orientation))
    lines = finding_lines(draft.findings.values(), draft.facts(), draft.rows)

    def blocks(part: Lines) -> Blocks:
        named = [key for line in part for key in (*line.get("keys", ()), *line.get("near", ()))]
        shown = _shown(job, [*kept.orientation.keys, *named])
        cited = [alias for line in part for alias in line.get("evidence", ())]
        return [before, *shown, _messages(job, cited), ("FINDINGS", part)]

    held = await talk(job, work, lines, blocks)
    if not held.handed_in:
        raise nothing_handed_in(job, held)
    return await _end_with_changes(job, work, held)


async def prune(job: Job) -> PhaseResult:
    """Tidy the draft, and verify what was proposed. Without a hand-in, code alone keeps the cap."""
    draft, cap, kept = job.desk.draft, job.phase.keys, job.desk.kept
    facts = draft.facts()
    hints = look(facts, kept.declined, kept.offered)
    present = set(draft.keys())
    stale = {one.key: one.why for one in kept.orientation.stale if one.key in present}
    draft.nominated = hints.nominated(stale, over_cap(facts, draft.view(), cap, kept.used))
    if not draft.nominated and len(facts) <= cap:
        return await job.end(kept, "nothing to prune", _tally(draft))
    work = ChangeWork(draft, job.name)
    rest = [*_shown(job, draft.nominated), ("COUNT", count_lines(len(facts), cap))]
    changed = ("CHANGES", change_lines(draft.changes))
    lines = nominated_lines(draft.nominated)
    held = await talk(job, work, lines, lambda part: [changed, ("NOMINATED", part), *rest])
    if held.handed_in:
        job.desk.kept = kept.replace(declined=_declined(job, hints))
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


def _messages(job: Job, cited: Iterable[str]) -> tuple[str, Sequence[JSONObject]]:
    """Return the cited messages with the one before each: "no, the 21st" says little alone."""
    kept, named = job.desk.kept, set(cited)
    shown = cited_rows(named, job.desk.draft.rows)
    lines = transcript_lines(shown, min(CITED, kept.sizes.message), kept.zone)
    return "MESSAGES", [
        line if line["id"] in named else {**line, "text": shortened(line["text"], BEFORE)}
        for line in lines
        if "text" in line
    ]


async def _end_with_changes(job: Job, work: ChangeWork, held: Talk) -> PhaseResult:
    """Verify what the phase proposed, and end it."""
    checked = await _verified(job, work, held)
    kept = job.desk.kept.replace(summary=work.summary or held.closing or job.desk.kept.summary)
    kept = kept.replace(checked=kept.checked.plus(checked))
    if work.problems:
        kept = kept.replace(refused={**kept.refused, job.name: work.problems})
    if not held.handed_in:
        kept = noted(kept, f"{job.name}: code alone, the model handed in nothing")
    counts = _tally(job.desk.draft)
    return await job.end(kept, in_words(counts, "changes", "held", "rejected"), counts, held)


async def _verified(job: Job, work: ChangeWork, held: Talk) -> VerificationResult:
    """Verify the draft's changes; what is doubted is told to the proposing model once."""
    verifier = Verifier(
        replies=job.replies,
        draft=job.desk.draft,
        model=job.phase.verifier,
        sizes=job.desk.kept.sizes,
    )
    doubted = await verifier.run()
    if doubted:
        await _correct(job, work, held, doubted)
        verifier.last = True
        await verifier.run()
    for change in job.desk.draft.changes:
        if change.code == "doubted" and change.fixable:
            job.desk.draft.decide(change.replace(fixable=False))
    held.trace += verifier.trace
    return verifier.checked


async def _correct(job: Job, work: ChangeWork, held: Talk, doubted: Sequence[Change]) -> None:
    draft = job.desk.draft
    names = {name for change in doubted for name in change.findings}
    findings = [finding for name, finding in draft.findings.items() if name in names]
    cited = [alias for change in doubted for alias in change.evidence]
    keys = [key for change in doubted for key in (change.key, *change.sources)]
    blocks: Blocks = [
        *_shown(job, keys),
        _messages(job, cited),
        ("FINDINGS", finding_lines(findings, draft.facts(), draft.rows)),
        ("CHANGES", change_lines(doubted)),
    ]
    exchange = job.exchange(work, blocks, calls=held.calls, halves=False, task=CORRECT)
    await exchange.run()
    held.add(exchange, whole=False)


def _declined(job: Job, hints: Hints) -> list[tuple[str, int, str, int]]:
    """Return the pairs that were suggested and left, by this dream and by earlier ones."""
    draft, kept = job.desk.draft, job.desk.kept
    changed = {change.key for change in draft.changes} | {
        key for change in draft.changes for key in (*change.sources, change.by)
    }
    pairs = [*kept.declined, *declined_pairs(hints, draft.before)]
    left = [pair for pair in pairs if changed.isdisjoint((pair[0], pair[2]))]
    return list(dict.fromkeys(left))


def _tally(draft: Draft) -> dict[str, int]:
    counts = draft.counts()
    return {
        "changes": counts.get("accepted", 0) + counts.get("tentative", 0),
        "held": counts.get("held", 0),
        "rejected": counts.get("rejected", 0),
        "facts": len(draft.facts()),
    }
