"""A dream's draft: the frozen facts, and the changes proposed to them so far."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime
from typing import Self

from agentmem.dreaming.apply import alike, applied, reads, stands, steps, touched
from agentmem.dreaming.changes import Change, Finding
from agentmem.dreaming.rules.form import RuleContext, check_finding, judge, unburied
from agentmem.dreaming.rules.limits import finished
from agentmem.dreaming.rules.text import fold
from agentmem.dreaming.tools import MAX_FINDINGS
from agentmem.facts import Fact, Step, Tombstone
from agentmem.records import TranscriptRow
from agentmem.wire import JSONObject, Wire


class Draft:
    """The data that a dream's phases read, and the changes they propose; the store is not touched.

    Args:
        facts: The facts of the frozen snapshot, with their evidence.
        rows: The dream's messages by alias (`a1`, `a2`, ...), in the order shown.
        opened_at: When the dream began, aware.
        zone: The zone whose days count.
        findings: Findings that keep the rules of form, numbered.
        tombstones: What was forgotten or undone in this scope.
        nominated: Keys that code suggests to look at, with the reason.
    """

    def __init__(
        self,
        facts: Iterable[Fact],
        rows: Mapping[str, TranscriptRow],
        *,
        opened_at: datetime,
        zone: str = "UTC",
        findings: Sequence[Finding] = (),
        tombstones: Sequence[Tombstone] = (),
        nominated: Mapping[str, str] | None = None,
    ) -> None:
        self.before = {fact.key: fact for fact in sorted(facts, key=lambda fact: fact.key)}
        self.rows = dict(rows)
        self.opened_at = opened_at
        self.zone = zone
        self.findings = {finding.id: finding for finding in findings}
        self.tombstones = list(tombstones)
        self.nominated = dict(nominated or {})
        self.changes: list[Change] = []
        self._numbered = 0

    def view(self, *, again: bool = False) -> RuleContext:
        """Return what the rules see now."""
        return RuleContext(
            rows=self.rows,
            before=self.before,
            facts=self._facts(),
            changes=self._standing(),
            findings=self.findings,
            tombstones=self.tombstones,
            nominated=self.nominated,
            again=again,
            opened_at=self.opened_at,
            zone=self.zone,
        )

    def find(self, findings: Iterable[Finding], *, again: bool = False) -> list[Finding]:
        """Check findings, keep and number those that can stand, and return all as checked.

        Args:
            findings: As the model sent them.
            again: Whether it was told what was wrong with earlier ones.

        Returns:
            The findings in their order: kept ones have an id (`f1`, ...), that of the first which
            says the same; the others have none, and flags that say why.
        """
        return [self._keep(check_finding(finding, self.view(again=again))) for finding in findings]

    def propose(self, change: Change, phase: str, *, again: bool = False) -> Change:
        """Decide on a change's form and, if it stands, let later reads of the draft see it.

        Args:
            change: As the model sent it. `add` of a key that exists becomes `update`.
            phase: The phase that proposes it.
            again: Whether the phase repeats itself after a refusal: then the change takes the
                place of what the same phase proposed for its keys before.

        Returns:
            The change as decided: `status`, `code`, `message`, `fixable`, and what code fills in.
        """
        change = change.replace(phase=phase)
        decided = judge(change, self.view(again=again))
        if again and decided.code == "already_changed":
            decided = self._instead(change, touched(decided))
        if twin := self._twin(decided):
            return twin
        self._drop(lambda old: _settled(old, decided))
        decided = decided.replace(id=self._next_id(), reads=reads(decided, self.before))
        self.changes.append(decided)
        return decided

    def unverified(self) -> list[Change]:
        """Return the changes that stand and that no verification has answered."""
        return [change for change in self._standing() if not change.verdict]

    def decide(self, change: Change) -> None:
        """Put a change in the place of the one with its id."""
        self.changes = [change if old.id == change.id else old for old in self.changes]

    def without(self, change: Change) -> dict[str, Fact]:
        """Return the facts as they would be without a change, which is what it replaces."""
        others = [other for other in self._standing() if other.id != change.id]
        return applied(self.before, others, self.opened_at, self.zone)

    def recall(self, keys: Iterable[str]) -> list[Fact]:
        """Return the facts of these keys as the draft stands; a missing key is left out."""
        now = self._facts()
        return [now[key] for key in dict.fromkeys(keys) if key in now]

    def keys(self) -> list[str]:
        """Return the keys as the draft stands, sorted."""
        return [fact.key for fact in self.facts()]

    def facts(self) -> list[Fact]:
        """Return the facts as the draft stands, by key; a new one has version 0."""
        return list(self._facts().values())

    def bury(self, stones: Iterable[Tombstone]) -> None:
        """Hold what would bring back what was forgotten since the dream began."""
        self.tombstones += [stone for stone in stones if stone not in self.tombstones]
        view = self.view()
        self.changes = [
            unburied(change, view) if stands(change) else change for change in self.changes
        ]

    def finish(self, cap: int, used: Mapping[str, date] | None = None) -> list[Change]:
        """Apply the bounds and the cap, and return all changes.

        Survivors must stay, what is over a bound waits, what has passed its day goes, and at most
        `cap` facts are left: code removes the rest by score (reason `evicted`), or holds new
        ones. Calling it again changes nothing.

        Args:
            cap: The most facts that the scope may hold.
            used: When each key was last recalled by name or found by a search.
        """
        self.changes = [
            change if change.id else change.replace(id=self._next_id())
            for change in finished(self.changes, self.view(), cap, used or {})
        ]
        return list(self.changes)

    def steps(self) -> list[Step]:
        """Return what the store's commit takes: a step for each change that stands."""
        return steps(self.before, self._standing(), self.opened_at, self.zone)

    def counts(self) -> dict[str, int]:
        """Return how many changes have each status."""
        return dict(Counter(change.status for change in self.changes))

    def dump(self) -> JSONObject:
        """Return the draft without facts and messages, which the store holds, as JSON."""
        return _State(
            opened_at=self.opened_at,
            zone=self.zone,
            findings=list(self.findings.values()),
            changes=self.changes,
            numbered=self._numbered,
            tombstones=self.tombstones,
            nominated=self.nominated,
        ).model_dump(mode="json")

    @classmethod
    def load(
        cls, data: JSONObject, facts: Iterable[Fact], rows: Mapping[str, TranscriptRow]
    ) -> Self:
        """Return the draft that `dump` wrote, over the same facts and messages."""
        state = _State.model_validate(data)
        draft = cls(
            facts,
            rows,
            opened_at=state.opened_at,
            zone=state.zone,
            findings=state.findings,
            tombstones=state.tombstones,
            nominated=state.nominated,
        )
        draft.changes, draft._numbered = list(state.changes), state.numbered
        return draft

    def _facts(self) -> dict[str, Fact]:
        return applied(self.before, self._standing(), self.opened_at, self.zone)

    def _keep(self, finding: Finding) -> Finding:
        """Keep a finding; one that says the same as an earlier one gives it its evidence."""
        if not finding.evidence:
            return finding
        same = fold(finding.statement)
        earlier = next((one for one in self.findings.values() if fold(one.statement) == same), None)
        if earlier:
            evidence = list(dict.fromkeys([*earlier.evidence, *finding.evidence]))
            finding = finding.replace(id=earlier.id, evidence=evidence)
        elif len(self.findings) >= MAX_FINDINGS * 2:
            return finding.replace(evidence=[], flags=[*finding.flags, "too_many"])
        else:
            finding = finding.replace(id=f"f{len(self.findings) + 1}")
        self.findings[finding.id] = finding
        return finding

    def _standing(self) -> list[Change]:
        return [change for change in self.changes if stands(change)]

    def _next_id(self) -> str:
        self._numbered += 1
        return f"c{self._numbered}"

    def _instead(self, change: Change, keys: set[str]) -> Change:
        """Judge a change as if its phase had not changed its keys yet; drop that if it stands."""
        before = list(self.changes)
        self._drop(lambda old: old.phase == change.phase and not keys.isdisjoint(touched(old)))
        decided = judge(change, self.view(again=True))
        if not stands(decided):
            self.changes = before
        return decided

    def _drop(self, which: Callable[[Change], bool]) -> None:
        self.changes = [change for change in self.changes if not which(change)]

    def _twin(self, change: Change) -> Change | None:
        """Return the change that stands and does the same already, if there is one."""
        if change.code == "already_changed":
            return next((old for old in self._standing() if alike(old, change)), None)
        if change.code == "echo":
            return next((old for old in self._standing() if change.key in touched(old)), None)
        return None


def _settled(old: Change, new: Change) -> bool:
    """Tell if a new change shows how an old one ended: it was sent again, or corrected."""
    if stands(new) and new.op != "confirm":
        return old.fixable and (old.phase, old.key) == (new.phase, new.key)
    return alike(old, new) and (old.status == new.status or old.fixable)


class _State(Wire):
    """A draft as it lies in the store between phases."""

    opened_at: datetime
    zone: str = "UTC"
    findings: list[Finding] = []
    changes: list[Change] = []
    numbered: int = 0
    tombstones: list[Tombstone] = []
    nominated: dict[str, str] = {}
