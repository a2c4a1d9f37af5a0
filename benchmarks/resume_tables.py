"""The results of `benchmarks/resume.py`: its tables, its ratios, its goals."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.paired import quartiles
from benchmarks.report import Figures, Goal, Sheet
from benchmarks.stage import FLOOR, FREE, OURS

KILLED_TURNS = 100

DEFAULT = " turns, default limits"
"""Ours alone: such a session goes on in a new run at about turn 180, so that less is replayed."""

NOTICED = 11.0
"""Seconds after a kill from when a session's task no longer waits for the dead worker: the server
has then seen no poll of it for 10 s. Before, each session's next task waits 2 s."""

WAIT = 2.0
"""Seconds for which the server may keep a session's task for a worker that is dead."""

KINDS = (FLOOR, FREE, OURS)

Found = dict[str, list[float]]


def session_name(turns: int) -> str:
    """Return what sessions of a length are called in figures and tables."""
    return f"{turns} turns"


def sheets(figures: Figures) -> list[Sheet]:
    """Return the tables."""
    return [
        Sheet(
            title="The next answer of a session whose worker is a new one, seconds",
            columns=(
                *("session", *KINDS, "agentmem / held", "middle half"),
                *("agentmem / held, free", "middle half"),
            ),
            rows=[row.cells() for row in _next_answers(figures)],
        ),
        Sheet(
            title=f"The first answer after SIGKILL, at {KILLED_TURNS} turns, seconds from when the "
            "new worker is running",
            columns=("until", *KINDS, "agentmem, all"),
            rows=_first_answers(figures["first"]),
        ),
        Sheet(
            title="SIGKILL in the middle of a model call, seconds",
            columns=("what", "median", "all"),
            rows=[
                [what, f"{statistics.median(seconds):.1f}", _all(seconds)]
                for what, seconds in _in_call(figures).items()
            ],
        ),
    ]


def ratios(figures: Figures) -> dict[str, float]:
    """Return the time of our next answer to that of each floor."""
    return {
        f"{row.name}, to {floor}": row.against(floor)[1]
        for row in _next_answers(figures)
        for floor in (FLOOR, FREE)
    }


def sizes(figures: Figures) -> dict[str, float]:
    """Return seconds after a kill: they have a limit of their own, and not a floor's."""
    first = figures["first"]
    until = {
        f"first answer after SIGKILL, {kind}: until it is {what}, s": first[f"{what}/{kind}"]
        for kind in KINDS
        for what in ("accepted", "answered")
    }
    in_call = {f"SIGKILL in a model call, {what}, s": s for what, s in _in_call(figures).items()}
    return {what: statistics.median(seconds) for what, seconds in (until | in_call).items()}


def goals(figures: Figures) -> list[Goal]:
    """Return the goals of the next answer, and of kills between turns and in a model call."""
    rows = [row for row in _next_answers(figures) if DEFAULT not in row.name]
    slowest = max(rows, key=lambda row: row.against(FLOOR)[1])
    killed, in_call = figures["killed"][OURS], figures["in_call"][OURS]
    first, floor = (figures["first"][f"answered/{kind}"] for kind in (OURS, FLOOR))
    return [
        Goal(
            what=f"the next answer of a new worker at most 1.3 of the floor's, `{FLOOR}`",
            limit=1.3,
            worst=slowest.against(FLOOR)[1],
            where=slowest.name,
        ),
        Goal(
            what="after SIGKILL an answer within 4 s of a worker that has loaded litellm",
            limit=4,
            worst=max(killed) + WAIT,
            where=f"measured {max(killed):.2f} s, the slowest of {len(killed)} answers "
            f"{NOTICED:.0f} s after the kill; added {WAIT:.0f} s, for which the server may until "
            "then keep a task for the dead worker",
        ),
        Goal(
            what="after SIGKILL an answer within 4 s of a worker's start to poll",
            limit=4,
            worst=max(first),
            where=f"the slowest of {len(first)}; of `{FLOOR}` {max(floor):.1f}",
        ),
        Goal(
            what="an answer within 15 s of SIGKILL in the middle of a model call",
            limit=15,
            worst=max(in_call),
            where=f"the slowest of {len(in_call)}",
        ),
    ]


@dataclass(frozen=True, kw_only=True)
class _Row:
    """The seconds of next answers, by contender, in pairs."""

    name: str
    seconds: Found

    def against(self, floor: str) -> tuple[float, float, float]:
        """Return the lower quartile, the median and the upper one of ours to a floor's."""
        pairs = zip(self.seconds[OURS], self.seconds[floor], strict=True)
        return quartiles([mine / theirs for mine, theirs in pairs])

    def cells(self) -> list[str]:
        """Return the row as people read it."""
        cells = [f"{statistics.median(self.seconds[kind]):.2f}" for kind in KINDS]
        for floor in (FLOOR, FREE):
            low, middle, high = self.against(floor)
            cells += [f"{middle:.2f}", f"{low:.2f} to {high:.2f}"]
        return [self.name, *cells]


def _next_answers(figures: Figures) -> list[_Row]:
    cold, killed = figures["cold"], figures["killed"]
    rows: list[_Row] = []
    for name in dict.fromkeys(key.partition("/")[0] for key in cold):
        same = name.removesuffix(DEFAULT) + " turns" * (DEFAULT in name)
        names = {FLOOR: same, FREE: same, OURS: name}
        seconds = {kind: cold[f"{one}/{kind}"] for kind, one in names.items()}
        rows.append(_Row(name=name, seconds=seconds))
    return [*rows, _Row(name=f"{session_name(KILLED_TURNS)}, SIGKILL", seconds=killed)]


def _first_answers(first: Found) -> list[list[str]]:
    """Return the time until the replay, the wait for litellm and the call, and both together."""
    accepted, answered = (
        {kind: first[f"{what}/{kind}"] for kind in KINDS} for what in ("accepted", "answered")
    )
    waited = {
        kind: [end - begin for begin, end in zip(accepted[kind], answered[kind], strict=True)]
        for kind in KINDS
    }
    rows = {
        "it has replayed the session": accepted,
        "then the answer: the rest of litellm's import, and the call": waited,
        "the answer, in all": answered,
    }
    return [
        [what, *(f"{statistics.median(found[kind]):.2f}" for kind in KINDS), _all(found[OURS])]
        for what, found in rows.items()
    ]


def _in_call(figures: Figures) -> Found:
    return {
        "from the kill to the answer": figures["in_call"][OURS],
        "from the kill to the new worker's first poll": figures["ready"][OURS],
    }


def _all(seconds: Sequence[float]) -> str:
    return ", ".join(f"{one:.1f}" for one in seconds)
