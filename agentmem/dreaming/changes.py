"""What a dream thinks and proposes: orientation, findings, changes.

Models write these, so no field is required that code can supply, and what code alone may say is
marked so: a model's word for it is dropped when its hand-in is read.
"""

from datetime import datetime
from typing import Literal

from agentmem.facts import Evidence, Read, Trust
from agentmem.values import JSONValue, Wire


class Contradiction(Wire):
    """Keys whose values cannot all be true."""

    keys: list[str]
    why: str = ""


class Stale(Wire):
    """A key whose value has passed its time."""

    key: str
    why: str = ""


class Orientation(Wire):
    """What orient hands in: where the scope needs work.

    Attributes:
        source: By code: whether a model or code's own hints made it.
        topics: What the scope is about, at most 12.
        duplicates: Groups of keys that say the same.
        contradictions: Keys that disagree.
        stale: Keys that have passed their time.
        too_long: Keys whose values want condensing.
        unknown_keys: By code: keys named that are not in the scope, left out.
    """

    source: Literal["model", "code"] = "model"
    topics: list[str] = []
    duplicates: list[list[str]] = []
    contradictions: list[Contradiction] = []
    stale: list[Stale] = []
    too_long: list[str] = []
    unknown_keys: int = 0

    @property
    def keys(self) -> list[str]:
        """The keys that want work."""
        return [
            *(key for group in self.duplicates for key in group),
            *(key for one in self.contradictions for key in one.keys),
            *(one.key for one in self.stale),
            *self.too_long,
        ]

    @property
    def issues(self) -> int:
        """How many things want work."""
        return sum(map(len, (self.duplicates, self.contradictions, self.stale, self.too_long)))


Kind = Literal[
    "correction",
    "decision",
    "preference",
    "profile",
    "event",
    "repeated",
    "stale",
    "retraction",
]


class Finding(Wire):
    """Something that the new messages tell, with the messages that tell it.

    Attributes:
        id: By code: `f1`, `f2`, ...
        kind: What kind of thing it is.
        statement: It, in a sentence of at most 300 characters.
        about: Whom it concerns.
        keys: Keys that it touches, at most 5.
        evidence: Aliases of the messages (`a12`), 1 to 8.
        quote: The words that say it, at most 200 characters.
        happened: When it happened: an ISO day, month, year or interval.
        words: The time words as they were said ("yesterday").
        importance: 1 (trivia) to 5 (vital).
        said_at: By code: when its newest evidence was said.
        trust: By code: the strongest witness that supports it.
        attributed: By code: whether code found the evidence itself.
        flags: By code: what is odd about it.
    """

    id: str = ""
    kind: Kind = "event"
    statement: str = ""
    about: Literal["user", "agent", "project", "other"] = "user"
    keys: list[str] = []
    evidence: list[str] = []
    quote: str = ""
    happened: str = ""
    words: str = ""
    importance: int = 3
    said_at: datetime | None = None
    trust: Trust = Trust.TOOL
    attributed: bool = False
    flags: list[str] = []


Op = Literal["add", "update", "merge", "remove", "confirm"]
Reason = Literal[
    "new",
    "correction",
    "decision",
    "duplicate",
    "condensed",
    "superseded",
    "expired",
    "retracted",
    "asked_to_forget",
    "evicted",
]
Status = Literal["accepted", "flagged", "held", "rejected", "conflict"]


class Change(Wire):
    """One proposed change of the store.

    Attributes:
        id: By code: `c1`, `c2`, ...
        op: What it does; `confirm` adds evidence, may raise trust, and never changes the value.
        key: The key that it writes.
        value: The new value, for add, update and merge.
        sources: The keys that a merge takes in.
        by: For a removal, the key that holds what stays.
        reason: Why.
        findings: The findings that it rests on.
        evidence: Aliases of the messages that it rests on.
        happened: When it happened, ISO.
        words: The time words as they were said.
        importance: 1 to 5.
        kind: What kind of fact it makes, from the finding.
        phase: By code: the phase that proposed it.
        witnesses: By code: the evidence itself.
        said_at: By code: when its newest supporting message was said.
        reads: By code: the versions that it rests on.
        trust: By code: the strongest supporting witness.
        status: By code: what the rules decided.
        code: By code: the rule that decided, like `unknown_key`.
        message: By code: the decision in words, for the model and for people.
        fixable: By code: whether the model may send it again, mended.
    """

    id: str = ""
    op: Op
    key: str
    value: JSONValue = None
    sources: list[str] = []
    by: str = ""
    reason: Reason | Literal[""] = ""
    findings: list[str] = []
    evidence: list[str] = []
    happened: str = ""
    words: str = ""
    importance: int = 3
    kind: str = ""
    phase: str = ""
    witnesses: list[Evidence] = []
    said_at: datetime | None = None
    reads: list[Read] = []
    trust: Trust = Trust.TOOL
    status: Status = "accepted"
    code: str = ""
    message: str = ""
    fixable: bool = False
