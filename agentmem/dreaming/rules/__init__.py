"""The rules that a dream's changes must pass: the model proposes, code disposes.

Each rule is a pure function of a change and of what the draft shows. It returns the change as it
is, normalised, flagged, or decided (held or rejected); the first decision ends the row. `RULES` is
the table, `THRESHOLDS` the table of their numbers.
"""

from collections.abc import Callable

from agentmem.dreaming.changes import Change
from agentmem.dreaming.effects import stands
from agentmem.dreaming.rules import (
    confirming,
    evidence,
    grounding,
    proposal,
    removal,
    telling,
    when,
    wording,
)
from agentmem.dreaming.rules.view import View, flag, hold, reject
from agentmem.dreaming.thresholds import THRESHOLDS, Thresholds
from agentmem.facts import Tombstone

__all__ = [
    "RULES",
    "THRESHOLDS",
    "Rule",
    "Thresholds",
    "Tombstone",
    "View",
    "flag",
    "hold",
    "judge",
    "reject",
]

Rule = Callable[[Change, View], Change]

RULES: tuple[Rule, ...] = (
    evidence.completed,
    proposal.named,  # 2: near-equal keys
    proposal.storable,  # 2, and what no store holds
    proposal.known,  # 3
    proposal.echo,  # 18
    wording.paraphrase,  # 16
    proposal.once,  # 4
    proposal.pinned,
    proposal.sized,  # 23
    proposal.secret,  # 22
    wording.own_text,  # 19
    removal.whole,  # 15
    evidence.witnessed,  # 5
    wording.scripted,  # 21
    confirming.confirming,  # 18
    evidence.resting,  # trust of what rests on facts
    when.dated,  # 9
    grounding.grounded,  # 6
    evidence.unburied,  # 12
    removal.contained,  # 11, 15
    removal.removable,  # 10, 11
    evidence.trusted,
    telling.asserted,  # 6
    grounding.detailed,  # 7
    grounding.replacing,  # 17
    grounding.kinds,  # 24
)
"""The rules in their order: cheap and structural first, those that compare texts last."""


def judge(change: Change, view: View) -> Change:
    """Return a proposed change as decided: its status, and what code fills in."""
    change = change.replace(status="accepted", code="", message="", fixable=False)
    for rule in RULES:
        change = rule(change, view)
        if not stands(change):
            break
    return change
