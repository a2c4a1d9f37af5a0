"""The conclusions and proposals of a dream: orientation, findings, changes.

Models write these, so no field is required that code can supply, and what code alone may say is
marked so: a model's word for it is dropped when its hand-in is read.
"""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BeforeValidator

from agentmem.facts import Evidence, Read, Trust
from agentmem.wire import JSONValue, Wire


class Contradiction(Wire):
    """Keys whose values cannot all be true."""

    keys: list[str]
    why: str = ""


class Stale(Wire):
    """A key whose value has passed its time."""

    key: str
    why: str = ""


class Orientation(Wire):
    """The result that orient hands in: where the scope needs work.

    Attributes:
        source: By code: whether a model or code's own hints made it.
        topics: What the scope is about, at most 12.
        duplicates: Groups of keys that say the same.
        contradictions: Keys that disagree.
        stale: Keys that have passed their time.
        too_long: Keys whose values should be condensed.
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
        """The keys that need work."""
        return [
            *(key for group in self.duplicates for key in group),
            *(key for one in self.contradictions for key in one.keys),
            *(one.key for one in self.stale),
            *self.too_long,
        ]

    @property
    def issues(self) -> int:
        """The number of things that need work."""
        return sum(map(len, (self.duplicates, self.contradictions, self.stale, self.too_long)))


Kind = Literal[
    "correction",
    "decision",
    "preference",
    "profile",
    "event",
    "plan",
    "repeated",
    "stale",
    "retraction",
]
About = Literal["user", "agent", "project", "other"]
"""Whom a finding or a change concerns: the user, the agent itself, what it works on, others."""


class Finding(Wire):
    """Something that the new messages tell, with the messages that tell it.

    Attributes:
        id: By code: `f1`, `f2`, ...
        kind: What kind of thing it is.
        statement: It, in a sentence of at most 300 characters.
        about: Whom it concerns.
        keys: Keys that it touches, at most 5.
        evidence: Aliases of the messages (`a12`), 1 to 8.
        quote: A verbatim piece of one of them that holds the content.
        agreed: For what the assistant said: the alias of the user's next message that agrees.
        happened: When it happened: an ISO day, month, year or interval.
        until: The last day on which it is of use, ISO; empty for what has no end.
        importance: 1 (trivia) to 5 (vital).
        said_at: By code: when the quoted message was said.
        trust: By code: whose word the quoted message is.
        quoted: By code: the alias of the quoted message.
        flags: By code: what is odd about it.
    """

    id: str = ""
    kind: Kind = "event"
    statement: str = ""
    about: About = "user"
    keys: list[str] = []
    evidence: list[str] = []
    quote: str = ""
    agreed: str = ""
    happened: str = ""
    until: str = ""
    importance: int = 3
    said_at: datetime | None = None
    trust: Trust = Trust.TOOL
    quoted: str = ""
    flags: list[str] = []


Op = Literal["add", "update", "merge", "condense", "remove", "confirm"]
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
    "confirmed",
]
Status = Annotated[
    Literal["accepted", "tentative", "held", "deferred", "rejected", "conflict"],
    # Drafts of the first design say so of changes that were applied.
    BeforeValidator(lambda status: "accepted" if status == "flagged" else status),
]
Verdict = Literal["", "yes", "no", "unsure", "code"]
"""The verification's answer; `code` where code alone decides, empty before it was asked."""


class Change(Wire):
    """One proposed change of the store.

    Attributes:
        id: By code: `c1`, `c2`, ...
        op: What it does. `condense` says the same in fewer words; `confirm` adds evidence, may
            raise trust or settle a tentative fact, and never changes the value.
        key: The key that it writes.
        value: The new value, for add, update, merge and condense.
        sources: The keys that a merge takes in.
        by: For a removal, the key that holds what stays.
        reason: Why.
        about: Whom it concerns, from the finding where there is one.
        findings: The findings that it rests on.
        evidence: Aliases of the messages that it rests on.
        quote: A verbatim piece of one of them that holds the content.
        agreed: For what the assistant said: the alias of the user's next message that agrees.
        happened: When it happened, ISO.
        until: The last day on which the fact is of use, ISO; of a removal, the day that passed.
        importance: 1 to 5.
        kind: What kind of fact it makes, from the finding.
        phase: By code: the phase that proposed it.
        quoted: By code: the alias of the quoted message.
        witnesses: By code: the evidence itself.
        said_at: By code: when the quoted message was said.
        reads: By code: the versions that it rests on.
        trust: By code: whose word it rests on.
        verdict: By code: the answer of the verification.
        status: By code: what was decided.
        code: By code: the rule that decided, like `unknown_key`.
        message: By code: the decision in words, for the model and for people.
        fixable: By code: whether the model is told, and may hand it in again, corrected.
        told: By code: whether the model was told of a doubt about it once.
    """

    id: str = ""
    op: Op
    key: str
    value: JSONValue = None
    sources: list[str] = []
    by: str = ""
    reason: Reason | Literal[""] = ""
    about: About | Literal[""] = ""
    findings: list[str] = []
    evidence: list[str] = []
    quote: str = ""
    agreed: str = ""
    happened: str = ""
    until: str = ""
    importance: int = 3
    kind: str = ""
    phase: str = ""
    quoted: str = ""
    witnesses: list[Evidence] = []
    said_at: datetime | None = None
    reads: list[Read] = []
    trust: Trust = Trust.TOOL
    verdict: Verdict = ""
    status: Status = "accepted"
    code: str = ""
    message: str = ""
    fixable: bool = False
    told: bool = False


WRITING = ("add", "update", "merge", "condense")
"""Operations that leave a value under their key."""


def reject(change: Change, code: str, message: str, *, fixable: bool = True) -> Change:
    """Refuse a change for its form; the model is told once, and may hand it in corrected."""
    return change.replace(status="rejected", code=code, message=message, fixable=fixable)


def hold(change: Change, code: str, message: str) -> Change:
    """Hold a change back for a person, who may apply or discard it."""
    return change.replace(status="held", code=code, message=message, fixable=False)


def defer(change: Change, code: str, message: str) -> Change:
    """Leave a change to the next dream."""
    return change.replace(status="deferred", code=code, message=message, fixable=False)
