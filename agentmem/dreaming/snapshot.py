"""A dream as its phases work on it, and what they keep from each other under its id."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Self

from agentmem.contracts import Mode, PhaseResult, PhaseRun, ScopeRef
from agentmem.dreaming.budgets import ContextBudgets
from agentmem.dreaming.changes import Orientation
from agentmem.dreaming.draft import Draft
from agentmem.dreaming.prompts import prefix
from agentmem.dreaming.verification import VerificationResult
from agentmem.errors import DreamFailed
from agentmem.messages import Message
from agentmem.records import DreamRecord, TranscriptRow
from agentmem.storage.protocol import TransactionalProvider
from agentmem.wire import JSONObject, Wire


class Oriented(Wire):
    """The facts that orient looked over when it last asked a model.

    Attributes:
        day: The dream's date.
        facts: Key to version.
    """

    day: str = ""
    facts: dict[str, int] = {}


class Kept(Wire):
    """The data that a dream's phases keep for each other, in the store.

    Attributes:
        day: The dream's date, in its zone.
        zone: The time zone whose days count.
        model: The model of the phases that name none.
        cap: The most facts that the scope may hold.
        sizes: How much fits into one request.
        mode: Whether its commit applies the draft, or keeps it as a proposal.
        prompt_version: Of the prompts that its phases read.
        messages: New messages that it looks at.
        more_evidence: Whether messages are left for the next round.
        forgets: By the store: how often a message was forgotten while the dream ran.
        failed: The phase that failed, for a reason that lies with the messages.
        unreadable: Aliases of messages that are passed over.
        used: When each key was last asked for, frozen with the facts.
        carried_rows: Messages of earlier dreams that carried findings cite, by `p1`, `p2`, ...
        carried_attempts: How often each carried finding was carried, by its id.
        declined: Pairs of keys that were suggested as duplicates and left as they were, with the
            versions of then: `[key, version, key, version]`.
        offered: Keys of changes that were held before, and are offered once more.
        oriented: The facts, key to version, that orient looked over last, and on which day.
        orientation: What orient handed in.
        checked: How the verification went.
        draft: The draft, as it dumps itself; at first, what is not to come back.
        phases: The results of the phases that are done.
        refused: Items of hand-ins that could not be read, by phase.
        notes: What else to know of how it went.
        summary: What was done, in the model's words.
    """

    day: str
    zone: str = "UTC"
    model: str = ""
    cap: int = 100
    sizes: ContextBudgets = ContextBudgets()
    mode: Mode = "commit"
    prompt_version: str = ""
    messages: int = 0
    more_evidence: bool = False
    forgets: int = 0
    failed: str = ""
    unreadable: list[str] = []
    used: dict[str, date] = {}
    carried_rows: dict[str, TranscriptRow] = {}
    carried_attempts: dict[str, int] = {}
    declined: list[tuple[str, int, str, int]] = []
    offered: list[str] = []
    oriented: Oriented = Oriented()
    orientation: Orientation = Orientation()
    checked: VerificationResult = VerificationResult()
    draft: JSONObject = {}
    phases: dict[str, PhaseResult] = {}
    refused: dict[str, list[str]] = {}
    notes: list[str] = []
    summary: str = ""


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
    store: ScopeRef
    record: DreamRecord
    kept: Kept
    draft: Draft
    prefix: list[Message]

    @classmethod
    async def load(cls, provider: TransactionalProvider, phase: PhaseRun) -> Self:
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
        rows |= {name: rows[name].replace(forgotten=True) for name in kept.unreadable}
        rows |= kept.carried_rows
        draft = Draft.load(kept.draft, facts, rows)
        before = list(draft.before.values())
        return cls(
            provider=provider,
            store=phase.store,
            record=record,
            kept=kept,
            draft=draft,
            prefix=prefix(record.id, kept.day, kept.zone, kept.cap, before, kept.sizes.prefix),
        )

    @property
    def proposes(self) -> bool:
        """Tell if the draft is kept as a proposal instead of applied."""
        return self.kept.mode == "propose"

    async def stumbled(self, name: str) -> None:
        """Keep that a phase failed on these messages, for the dreams that come."""
        data = self.kept.replace(failed=name).model_dump(mode="json")
        agent, scope = self.store.agent, self.store.scope
        await self.provider.save_dream(agent, scope, self.record.replace(data=data))

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
