"""The beginning of a dream: the failure gate, the new messages, the frozen snapshot.

If dreams failed on some messages, the next dream reads fewer of them at a time, and at last none.
Only failures of the input count: a model that submits nothing, or refuses the prompt. A model that
cannot be reached says nothing about the messages.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice

from agentmem.contracts import Begun, DreamInput, ScopeRef
from agentmem.dreaming.blocks import transcript_lines
from agentmem.dreaming.budgets import CHUNKS, EVIDENCE_ROWS, ContextBudgets, sizes
from agentmem.dreaming.carry_over import carried, is_committed, offered_again
from agentmem.dreaming.changes import Finding
from agentmem.dreaming.draft import Draft
from agentmem.dreaming.phase_run import split
from agentmem.dreaming.prompts import PROMPT_VERSION
from agentmem.dreaming.rules.form import VALUE_CHARACTERS
from agentmem.dreaming.rules.provenance import local_day
from agentmem.dreaming.rules.text import text_of
from agentmem.dreaming.snapshot import Kept, Oriented, by_alias
from agentmem.facts import Fact, Tombstone
from agentmem.records import DreamRecord, Range, ScopeState, TranscriptRow
from agentmem.storage.protocol import TransactionalProvider
from agentmem.wire import JSONObject, Wire

COOL_DOWNS = (timedelta(hours=1), timedelta(hours=6), timedelta(hours=24))
"""The time the gate stays shut after the failure that shut it, the next one, and all others."""


class Gate(Wire):
    """The gate's decision on whether a scope may dream.

    Attributes:
        open: Whether the scope may dream now.
        reason: Why not, in words.
        next_try: When one dream is let through.
    """

    open: bool = True
    reason: str = ""
    next_try: datetime | None = None


def gate(state: ScopeState, now: datetime, threshold: int = 3) -> Gate:
    """Say whether a scope may dream; ask before the new attempt is counted.

    After `threshold` attempts in a row that did not go well, one dream is let through after an
    hour, then after six, then every day. A dream that goes well opens the gate for good.

    Args:
        state: What the store knows of the scope.
        now: The time, aware.
        threshold: Failures in a row that shut the gate.
    """
    if state.failures < max(1, threshold) or state.last_attempt is None:
        return Gate()
    tries = state.failures - max(1, threshold)
    next_try = state.last_attempt + COOL_DOWNS[min(tries, len(COOL_DOWNS) - 1)]
    if now >= next_try:
        return Gate()
    return Gate(
        open=False,
        reason=f"{state.failures} dreams of this scope failed in a row; "
        f"the next one may try at {next_try.isoformat(timespec='minutes')}",
        next_try=next_try,
    )


class Portion(Wire):
    """The number of the new messages that a dream takes.

    Attributes:
        messages: The first so many.
        unreadable: Whether the first of them has failed alone, twice: it is passed over.
    """

    messages: int
    unreadable: bool = False


def portion(rows: Sequence[TranscriptRow], earlier: Sequence[DreamRecord]) -> Portion:
    """Return how many of these messages to take, after dreams that failed on them.

    The second failure on the same messages halves them. One that still fails, twice, is passed
    over, so that nothing blocks a scope for ever.

    Args:
        rows: The new messages, in order.
        earlier: The scope's dreams, the newest first.
    """
    sizes = [Kept.model_validate(one.data).messages for one in earlier if _failed_on(one, rows[0])]
    if not sizes:
        return Portion(messages=len(rows))
    if len(sizes) == 1 or sizes[1] != sizes[0]:
        return Portion(messages=min(len(rows), sizes[0]))
    if sizes[0] == 1:
        return Portion(messages=len(rows), unreadable=True)
    return Portion(messages=min(len(rows), sizes[0] // 2))


def passed_over(row: TranscriptRow) -> str:
    """Return what the report says of a message that was passed over."""
    return (
        f"unreadable: a message of {row.at.isoformat(timespec='minutes')} ({row.role}, "
        f"{row.session}/{row.memory}/{row.message}) failed dreams and was passed over"
    )


def _failed_on(record: DreamRecord, first: TranscriptRow) -> bool:
    if record.status != "running" or not record.data.get("failed") or not record.ranges:
        return False
    begin = record.ranges[0]
    return (begin.session, begin.memory, begin.first) == (first.session, first.memory, first.seq)


@dataclass(frozen=True, kw_only=True)
class Opening:
    """Which dream is to be opened, and where.

    Attributes:
        dream: Its id, the run's.
        store: The scope, its provider resolved.
        model: The model of its phases.
        zone: The zone whose days count.
        now: The time, aware.
        context: Tokens of the model's context, 0 if nobody knows.
        notes: What the report is to say of how its messages came.
    """

    dream: str
    store: ScopeRef
    model: str
    zone: str
    now: datetime
    context: int = 0
    notes: list[str] = field(default_factory=list[str])


@dataclass(frozen=True, kw_only=True)
class NewMessages:
    """The new messages that a dream may take, by the sizes that its model has room for."""

    rows: Sequence[TranscriptRow]
    more: bool
    fits: ContextBudgets


async def open_dream(
    provider: TransactionalProvider, request: DreamInput, opening: Opening
) -> Begun:
    """Open a dream, once by its id: gate, new evidence, frozen snapshot.

    The attempt is counted with the record, so that a dream that crashes counts; where nothing is
    new, or the gate is shut, nothing is stored.
    """
    agent, scope = opening.store.agent, opening.store.scope
    begun = Begun(dream=opening.dream, store=opening.store, model=opening.model)
    record = await provider.dream(agent, scope, opening.dream)
    if record is None:
        state = await provider.scope_state(agent, scope)
        answer = gate(state, opening.now, request.limits.failures)
        facts = await provider.entries(agent, scope)
        if not answer.open:
            shut = {"reason": answer.reason, "next_try": answer.next_try, "notes": opening.notes}
            return begun.replace(status="skipped", facts=len(facts), **shut)
        fits = sizes(request.limits.context or opening.context)
        evidence = await _evidence(provider, opening.store, fits)
        if not evidence.rows:
            return begun.replace(status="nothing_new", facts=len(facts), notes=opening.notes)
        fresh = await _fresh(provider, request, opening, facts, evidence)
        record = await provider.open_dream(agent, scope, fresh)
    kept = Kept.model_validate(record.data)
    return begun.replace(
        model=kept.model,
        facts=len(record.snapshot),
        messages=kept.messages,
        more_evidence=kept.more_evidence,
    )


async def _fresh(
    provider: TransactionalProvider,
    request: DreamInput,
    opening: Opening,
    facts: Sequence[Fact],
    evidence: NewMessages,
) -> DreamRecord:
    """Return the record that a dream begins with; `facts` were read before."""
    agent, scope = opening.store.agent, opening.store.scope
    # After the facts: what is forgotten in between stands in both, never in neither.
    stones = await provider.tombstones(agent, scope)
    earlier = await provider.dreams(agent, scope)
    used = await provider.used(agent, scope)
    along = await carried(provider, agent, scope, earlier)
    part = portion(evidence.rows, earlier)
    taken = evidence.rows[: part.messages]
    last = next((Kept.model_validate(one.data) for one in earlier if is_committed(one)), None)
    kept = Kept(
        day=local_day(opening.now, opening.zone).isoformat(),
        zone=opening.zone,
        model=opening.model,
        cap=request.limits.keys,
        mode=request.mode,
        sizes=evidence.fits,
        prompt_version=PROMPT_VERSION,
        messages=len(taken),
        more_evidence=evidence.more or len(taken) < len(evidence.rows),
        unreadable=["a1"] if part.unreadable else [],
        notes=[*opening.notes, *([passed_over(evidence.rows[0])] if part.unreadable else [])],
        used={fact.key: used[fact.key] for fact in facts if fact.key in used},
        carried_rows=along.rows,
        carried_attempts=along.attempts,
        declined=last.declined if last else [],
        oriented=last.oriented if last else Oriented(),
        offered=offered_again(earlier),
        draft=_draft(opening, stones, along.findings),
    )
    return DreamRecord(
        id=opening.dream,
        opened_at=opening.now,
        ranges=to_ranges(taken),
        snapshot={fact.key: fact.version for fact in facts},
        data=kept.model_dump(mode="json"),
    )


def to_ranges(rows: Sequence[TranscriptRow]) -> list[Range]:
    """Return rows as ranges, one for each stretch of a session's memory, in the rows' order."""
    ranges: list[Range] = []
    for row in rows:
        last = ranges[-1] if ranges else None
        if last is not None and (last.session, last.memory, last.last + 1) == (
            row.session,
            row.memory,
            row.seq,
        ):
            ranges[-1] = last.replace(last=row.seq)
        else:
            ranges.append(
                Range(session=row.session, memory=row.memory, first=row.seq, last=row.seq)
            )
    return ranges


async def _evidence(
    provider: TransactionalProvider, store: ScopeRef, fits: ContextBudgets
) -> NewMessages:
    """Return the rows that fit, one at least, where there are any."""
    found = await provider.unread(store.agent, store.scope, 2 * fits.evidence)
    size = 0
    for number, row in enumerate(found):
        size += len(row.text.encode())
        if number and (size > fits.evidence or number >= EVIDENCE_ROWS):
            found, more = found[:number], True
            break
    else:
        more = False
    taken = _in_chunks(found, fits)
    return NewMessages(rows=found[:taken], more=more or taken < len(found), fits=fits)


def _in_chunks(rows: Sequence[TranscriptRow], fits: ContextBudgets) -> int:
    """Return how many rows gather signal reads in its chunks; of short ones their frame counts."""
    lines = transcript_lines(by_alias(rows), fits.message)
    for chunk in islice(split(lines, fits.chunk), CHUNKS, None):
        return int(chunk[0]["id"][1:]) - 1
    return len(rows)


def _draft(
    opening: Opening, stones: Sequence[Tombstone], findings: Sequence[Finding]
) -> JSONObject:
    """Return the draft that a dream begins with: carried findings, and what is not to come back."""
    most = VALUE_CHARACTERS  # no dream writes a longer value, so none can be equal
    brief = [
        stone if len(text_of(stone.value)) <= most else stone.replace(value=None)
        for stone in stones
    ]
    begun = Draft(
        (), {}, opened_at=opening.now, zone=opening.zone, findings=findings, tombstones=brief
    )
    return begun.dump()
