"""The work of phases on what their model says: calls work on the draft, hand-ins are taken."""

from collections.abc import Iterable
from typing import Any

from agentmem.contracts import PhaseName
from agentmem.dreaming.apply import stands
from agentmem.dreaming.changes import Change, Finding, Orientation
from agentmem.dreaming.draft import Draft
from agentmem.dreaming.model_exchange import CallOutcome
from agentmem.dreaming.prompts import fact_line
from agentmem.dreaming.submissions import HandIn, read_change, texts
from agentmem.wire import JSONObject, clip, dump_json

RESULT_BYTES = 64 * 1024
"""The longest result of a call, in encoded bytes."""
_READ_KEYS = 50
_LISTED_KEYS = 500
_TOPICS = 12
_WHOLE = 1 << 30


class MemoryCalls:
    """The four memory tools, on the draft. Which phase may use which is checked before.

    Args:
        draft: The draft.
        phase: The phase that calls.
    """

    def __init__(self, draft: Draft, phase: PhaseName) -> None:
        self.draft = draft
        self.phase = phase
        self.has_changes = False

    def call(self, tool: str, arguments: JSONObject) -> CallOutcome:
        """Do a call."""
        if tool == "recall_memory":
            return self._recall(texts(arguments.get("keys") or arguments.get("key")))
        if tool == "list_memory_keys":
            return self._list(arguments.get("after"))
        return self._propose(_as_change(tool, arguments, self.draft.keys()))

    def _recall(self, keys: list[str]) -> CallOutcome:
        facts = self.draft.recall(keys[:_READ_KEYS])
        missing = [key for key in keys if key not in {fact.key for fact in facts}]
        lines = [dump_json(fact_line(fact, _WHOLE)) for fact in facts]
        lines += [dump_json({"k": key, "missing": True}) for key in missing[:_READ_KEYS]]
        text = clip("\n".join(lines) or "name the keys to read", RESULT_BYTES)
        return CallOutcome(text=text, key=keys[0] if len(keys) == 1 else "")

    def _list(self, after: Any) -> CallOutcome:
        first = after if isinstance(after, str) else ""
        keys = [fact.key for fact in self.draft.facts() if fact.key > first]
        return CallOutcome(text=clip(dump_json(keys[:_LISTED_KEYS]), RESULT_BYTES))

    def _propose(self, change: Change | str) -> CallOutcome:
        if isinstance(change, str):
            return CallOutcome(text=change, said="unreadable", fixable=True)
        decided = self.draft.propose(change, self.phase)
        self.has_changes = self.has_changes or stands(decided)
        return CallOutcome(
            text=_decision(decided),
            said=":".join(filter(None, (decided.status, decided.code))),
            key=decided.key,
            fixable=decided.fixable,
        )


class OrientWork(MemoryCalls):
    """Takes an orientation; keys that are not there are left out and counted.

    Attributes:
        orientation: What was handed in, of all pages.
    """

    orientation: Orientation | None = None

    def take(self, hand_in: HandIn, *, again: bool) -> CallOutcome:
        """Take a hand-in."""
        found = known_only(hand_in.orientation, self.draft.keys())
        self.orientation = joined(self.orientation, found) if self.orientation else found
        return CallOutcome(text="taken")


class GatherWork(MemoryCalls):
    """Takes findings; those that are wrong in form may be sent once more.

    Attributes:
        refused: Findings that cannot stand, with the reason.
    """

    refused: list[str] = []
    _last: int = 0

    def take(self, hand_in: HandIn, *, again: bool) -> CallOutcome:
        """Take a hand-in."""
        checked = self.draft.find(hand_in.findings, again=again)
        dropped = [finding for finding in checked if not finding.id]
        lines = [f"{finding.statement!r:.80}: {', '.join(finding.flags)}" for finding in dropped]
        lines += hand_in.problems
        refused = [f"finding dropped: {line:.300}" for line in lines]
        # A corrected hand-in takes the place of the one before, another part's is added to it.
        kept = self.refused[: -self._last] if again and self._last else self.refused
        self.refused, self._last = [*kept, *refused], len(refused)
        wrong = [one for one in dropped if not _rests_on_recalled(one)]
        usable = len(wrong) < len(checked) or not (checked or hand_in.problems)
        return CallOutcome(
            text=_refusals(lines), said=_said(lines), fixable=bool(lines), usable=usable
        )


class ChangeWork(MemoryCalls):
    """Takes changes, for consolidate and prune.

    Attributes:
        summary: What the model says was done.
        problems: What could not be read.
    """

    summary: str = ""
    problems: list[str] = []
    _last: int = 0

    def take(self, hand_in: HandIn, *, again: bool) -> CallOutcome:
        """Take a hand-in."""
        decided = [
            self.draft.propose(change, self.phase, again=again) for change in hand_in.changes
        ]
        self.summary = hand_in.summary or self.summary
        kept = self.problems[: -self._last] if again and self._last else self.problems
        self.problems, self._last = [*kept, *hand_in.problems], len(hand_in.problems)
        lines = [_decision(change) for change in decided if change.fixable] + hand_in.problems
        return CallOutcome(
            text=_refusals(lines),
            said=_said(lines),
            fixable=bool(lines),
            usable=hand_in.usable,
        )


def _rests_on_recalled(finding: Finding) -> bool:
    return any(flag.startswith("recalled") for flag in finding.flags)


def known_only(orientation: Orientation, keys: Iterable[str]) -> Orientation:
    """Return an orientation about stored keys alone, with the number of others."""
    known = set(keys)
    duplicates = [_distinct(group, known) for group in orientation.duplicates]
    contradictions = [
        one.replace(keys=_distinct(one.keys, known), why=one.why[:200])
        for one in orientation.contradictions
    ]
    return Orientation(
        source=orientation.source,
        topics=[topic[:80] for topic in orientation.topics[:_TOPICS]],
        duplicates=[group for group in duplicates if len(group) > 1],
        contradictions=[one for one in contradictions if len(one.keys) > 1],
        stale=[one.replace(why=one.why[:200]) for one in orientation.stale if one.key in known],
        too_long=_distinct(orientation.too_long, known),
        unknown_keys=sum(key not in known for key in orientation.keys),
    )


def joined(one: Orientation, other: Orientation) -> Orientation:
    """Return the orientations of two pages as one."""
    return one.replace(
        topics=list(dict.fromkeys([*one.topics, *other.topics]))[:_TOPICS],
        duplicates=[
            *one.duplicates,
            *(keys for keys in other.duplicates if keys not in one.duplicates),
        ],
        contradictions=[*one.contradictions, *other.contradictions],
        stale=[*one.stale, *other.stale],
        too_long=list(dict.fromkeys([*one.too_long, *other.too_long])),
        unknown_keys=one.unknown_keys + other.unknown_keys,
    )


def _as_change(tool: str, arguments: JSONObject, keys: list[str]) -> Change | str:
    if tool == "forget_memory":
        op = "remove"
    elif arguments.get("sources"):
        op = "merge"
    else:
        op = "update" if arguments.get("key") in keys else "add"
    return read_change({**arguments, "op": op})


def _distinct(keys: list[str], known: set[str]) -> list[str]:
    return [key for key in dict.fromkeys(keys) if key in known]


def _decision(change: Change) -> str:
    why = f": {change.message}" if change.message else ""
    return f"{change.op} {change.key!r:.120} {change.status}{why}"


def _said(lines: list[str]) -> str:
    return f"{len(lines)} to correct" if lines else "ok"


def _refusals(lines: list[str]) -> str:
    if not lines:
        return "taken"
    return "\n".join(["taken, but for these; hand in only these again, corrected:", *lines])
