"""The sessions that a turn is measured in: contenders, their tools, the size of what is said."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from benchmarks.stage import BARE, FLOOR, FREE, NAIVE, OURS

MARKS = (10, 100, 500, 1_000)
"""The turns that are looked at."""

USUAL = {BARE: 100, FLOOR: 1_000, FREE: 100, OURS: 1_000}
"""Contenders, and how many turns each takes at most."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A kind of session.

    Attributes:
        name: For the command line and the table.
        agent: Of ours; the floors' model is offered the same tools.
        calls: Of tools in each turn.
        size: Characters of each message and answer.
        kinds: The contenders, and how many turns each takes at most.
    """

    name: str
    agent: str = "plain"
    calls: int = 0
    size: int = 1_000
    kinds: Mapping[str, int] = field(default_factory=lambda: dict(USUAL))

    @property
    def dreams(self) -> bool:
        """Return whether each answer of ours starts a dream."""
        return self.agent == "dreamer"


CASES = {
    case.name: case
    for case in (
        # At 50 MB of history Temporal ends a session: for `naive` soon after turn 200, with
        # messages of 20,000 characters for all soon after turn 600.
        Case(name="plain", kinds={BARE: 1_000, FLOOR: 1_000, FREE: 1_000, NAIVE: 100, OURS: 1_000}),
        Case(name="1 tool call", agent="tools", calls=1, kinds={**USUAL, NAIVE: 100}),
        Case(name="4 tool calls", agent="tools", calls=4),
        Case(name="memory tools", agent="memory"),
        Case(
            name="memory tools, 1 recall",
            agent="memory",
            calls=1,
            kinds=dict.fromkeys((BARE, FLOOR, FREE, OURS), 100),
        ),
        Case(name="100 characters", size=100),
        Case(name="20,000 characters", size=20_000, kinds={**USUAL, FLOOR: 500, OURS: 500}),
        Case(
            name="dreams",
            agent="dreamer",
            kinds=dict.fromkeys((BARE, FLOOR, FREE, OURS), 100),
        ),
    )
}
