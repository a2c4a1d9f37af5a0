"""What a rule sees, and the words in which it decides."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime

from agentmem.dreaming.changes import Change, Finding
from agentmem.dreaming.language.dates import local_day
from agentmem.dreaming.language.text import Rarity
from agentmem.dreaming.thresholds import THRESHOLDS, Thresholds
from agentmem.facts import Fact, Tombstone
from agentmem.memory.providers.protocol import TranscriptRow


@dataclass(frozen=True, kw_only=True)
class View:
    """All that a rule may look at.

    Attributes:
        before: The facts of the frozen snapshot, by key.
        facts: The facts as the draft stands, by key.
        rows: The dream's messages by their aliases, in the order in which they were shown.
        changes: The changes that stand so far.
        findings: The findings by id.
        tombstones: What was forgotten or undone.
        nominated: Keys that code itself found fit to go, with the reason.
        refused: By key, the rules that refused a change of it in this phase.
        opened_at: When the dream began.
        zone: The zone whose days count where a message has none of its own.
        rarity: How rare words are in the dream's messages.
        limits: The table of thresholds.
    """

    rows: Mapping[str, TranscriptRow]
    before: Mapping[str, Fact] = field(default_factory=dict[str, Fact])
    facts: Mapping[str, Fact] = field(default_factory=dict[str, Fact])
    changes: Sequence[Change] = ()
    findings: Mapping[str, Finding] = field(default_factory=dict[str, Finding])
    tombstones: Sequence[Tombstone] = ()
    nominated: Mapping[str, str] = field(default_factory=dict[str, str])
    refused: Mapping[str, Collection[str]] = field(default_factory=dict[str, Collection[str]])
    opened_at: datetime
    zone: str = "UTC"
    rarity: Rarity = field(default_factory=lambda: Rarity(()))
    limits: Thresholds = THRESHOLDS

    @property
    def today(self) -> date:
        """The day of the dream, in its zone."""
        return local_day(self.opened_at, self.zone)


def reject(change: Change, code: str, message: str, *, fixable: bool = False) -> Change:
    """Refuse a change; a fixable one may be sent again, mended."""
    return change.replace(status="rejected", code=code, message=message, fixable=fixable)


def hold(change: Change, code: str, message: str) -> Change:
    """Hold a change back: it stays in the report, and people may apply it."""
    return change.replace(status="held", code=code, message=message, fixable=False)


def flag(change: Change, code: str, message: str) -> Change:
    """Let a change pass, and say what is odd about it."""
    codes, messages = filter(None, (change.code, code)), filter(None, (change.message, message))
    return change.replace(status="flagged", code=",".join(codes), message="; ".join(messages))
