"""Opening a dream, and what its phases keep from each other under its id."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Self

from agentmem.contracts import Begun, DreamInput, Phase, PhaseResult, Store
from agentmem.dreaming.changes import Orientation
from agentmem.dreaming.dates import local_day
from agentmem.dreaming.draft import Draft
from agentmem.dreaming.gate import gate
from agentmem.dreaming.prompts import PROMPT_VERSION, prefix
from agentmem.errors import DreamFailed
from agentmem.memory.providers.protocol import (
    DreamRecord,
    Range,
    TransactionalProvider,
    TranscriptRow,
)
from agentmem.values import JSONObject, Wire

EVIDENCE_BYTES = 200_000
"""Bytes of text that one round reads; what is left waits for the next."""
EVIDENCE_ROWS = 500


class Kept(Wire):
    """What a dream's phases keep from each other, in the store.

    Attributes:
        day: The dream's date, in its zone.
        zone: The time zone whose days count.
        model: The model of its phases.
        cap: The most facts that the scope may hold.
        prompt_version: Of the prompts that its phases read.
        messages: New messages that it looks at.
        more_evidence: Whether messages are left for the next round.
        orientation: What orient handed in.
        draft: The draft, as it dumps itself.
        phases: The results of the phases that are done.
        refused: Items of hand-ins that could not be read, by phase.
        notes: What else to know of how it went.
        summary: What was done, in the model's words.
    """

    day: str
    zone: str = "UTC"
    model: str = ""
    cap: int = 100
    prompt_version: str = ""
    messages: int = 0
    more_evidence: bool = False
    orientation: Orientation = Orientation()
    draft: JSONObject = {}
    phases: dict[str, PhaseResult] = {}
    refused: dict[str, list[str]] = {}
    notes: list[str] = []
    summary: str = ""


@dataclass(frozen=True, kw_only=True)
class Opening:
    """Which dream is to be opened, and where.

    Attributes:
        dream: Its id, the run's.
        store: The scope, its provider resolved.
        model: The model of its phases.
        zone: The zone whose days count.
        now: The time, aware.
    """

    dream: str
    store: Store
    model: str
    zone: str
    now: datetime


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
            return begun.replace(status="skipped", reason=answer.reason, facts=len(facts))
        rows, more = await _evidence(provider, opening.store)
        if not rows:
            return begun.replace(status="nothing_new", facts=len(facts))
        fresh = DreamRecord(
            id=opening.dream,
            opened_at=opening.now,
            ranges=to_ranges(rows),
            snapshot={fact.key: fact.version for fact in facts},
            data=_kept(request, opening, len(rows), more).model_dump(mode="json"),
        )
        record = await provider.open_dream(agent, scope, fresh)
    kept = Kept.model_validate(record.data)
    return begun.replace(
        model=kept.model,
        facts=len(record.snapshot),
        messages=kept.messages,
        more_evidence=kept.more_evidence,
    )


@dataclass(kw_only=True)
class Desk:
    """A running dream as a phase works on it.

    Attributes:
        provider: The store.
        store: The scope.
        record: The dream's record.
        kept: What earlier phases left.
        draft: The draft.
        prefix: The messages that begin each request.
    """

    provider: TransactionalProvider
    store: Store
    record: DreamRecord
    kept: Kept
    draft: Draft
    prefix: list[JSONObject]

    @classmethod
    async def load(cls, provider: TransactionalProvider, phase: Phase) -> Self:
        """Load a dream; the same bytes come out however often and by whichever worker.

        Raises:
            DreamFailed: There is no such dream.
        """
        agent, scope = phase.store.agent, phase.store.scope
        record = await provider.dream(agent, scope, phase.dream)
        if record is None:
            raise DreamFailed(f"there is no dream {phase.dream} of this scope in the store")
        kept = Kept.model_validate(record.data)
        facts = await provider.facts_at(agent, scope, record.snapshot)
        rows = by_alias(await provider.transcript(agent, scope, record.ranges))
        if kept.draft:
            draft = Draft.load(kept.draft, facts, rows)
        else:
            draft = Draft(facts, rows, opened_at=record.opened_at, zone=kept.zone)
        before = list(draft.before.values())
        return cls(
            provider=provider,
            store=phase.store,
            record=record,
            kept=kept,
            draft=draft,
            prefix=prefix(record.id, kept.day, kept.zone, kept.cap, before),
        )

    async def save(self, kept: Kept, name: str, result: PhaseResult) -> PhaseResult:
        """Keep a phase's result and the draft, before the result is reported.

        Returns:
            The result; that of another attempt at the phase if it was faster, which is possible
            when a worker was thought dead. Nothing of its work is overwritten.
        """
        agent, scope = self.store.agent, self.store.scope
        record = await self.provider.dream(agent, scope, self.record.id)
        there = Kept.model_validate(record.data) if record else self.kept
        if there.phases.keys() != self.kept.phases.keys():
            return there.phases.get(name, result)
        phases = {**self.kept.phases, name: result}
        kept = kept.replace(draft=self.draft.dump(), phases=phases)
        await self.provider.save_dream(
            agent, scope, self.record.replace(data=kept.model_dump(mode="json"))
        )
        return result


def by_alias(rows: Sequence[TranscriptRow]) -> dict[str, TranscriptRow]:
    """Return a dream's messages by alias: `a1` is the first of its evidence ranges.

    The ranges are frozen with the dream, so an alias means the same message in each phase.
    """
    return {f"a{number}": row for number, row in enumerate(rows, 1)}


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
    provider: TransactionalProvider, store: Store
) -> tuple[list[TranscriptRow], bool]:
    """Return the rows that fit, one at least, and whether there are more."""
    found = await provider.unread(store.agent, store.scope, 2 * EVIDENCE_BYTES)
    size = 0
    for number, row in enumerate(found):
        size += len(row.text.encode())
        if number and (size > EVIDENCE_BYTES or number >= EVIDENCE_ROWS):
            return found[:number], True
    return found, False


def _kept(request: DreamInput, opening: Opening, messages: int, more: bool) -> Kept:
    return Kept(
        day=local_day(opening.now, opening.zone).isoformat(),
        zone=opening.zone,
        model=opening.model,
        cap=request.limits.keys,
        prompt_version=PROMPT_VERSION,
        messages=messages,
        more_evidence=more,
    )
