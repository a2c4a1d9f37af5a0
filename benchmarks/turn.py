"""Measure what a turn of a session costs, against bare Temporal.

    python -m benchmarks.turn --turns 1000 --only plain

All contenders take the same turn one after another, in an order that changes, so that whatever
slows the machine down slows all. Ratios are to `held`: one update and one activity that makes the
same litellm call, its messages in the worker's memory. A ratio is the median over the last ten
turns before a mark of all sessions, pair by pair, and its spread the middle half of them; a long
case has one session, and thirty turns before a mark. Needs Linux (/proc).
"""

import argparse
import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import chain, pairwise
from pathlib import Path

from benchmarks.model import question
from benchmarks.report import Benchmark, Figures, Sheet
from benchmarks.stage import (
    BARE,
    FLOOR,
    FREE,
    NAIVE,
    OURS,
    Contender,
    Talk,
    cpu_seconds,
    stage,
)

MARKS = (10, 30, 100, 200, 500, 1_000)
PAIRS = 30
"""Of turns, for a ratio."""

SESSIONS = 3
"""Of each case, one after another; one where it has over a hundred turns."""

NAIVE_TURNS = 200
"""At 50 MB of history Temporal ends a session: for `naive` soon after this many turns."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """What sessions are measured with.

    Attributes:
        name: For the command line and the table.
        agent: Of ours; the floors' model is offered the same tools.
        calls: Of tools in each turn.
        size: Characters of each message and answer.
        turns: How many, `--turns` left aside.
        marks: Where a turn is looked at, besides the last.
        kinds: The contenders.
    """

    name: str
    agent: str = "plain"
    calls: int = 0
    size: int = 1_000
    turns: int = 30
    marks: Sequence[int] = MARKS
    kinds: Sequence[str] = (FLOOR, OURS)


CASES = {
    case.name: case
    for case in (
        Case(name="plain", turns=100, kinds=(BARE, FLOOR, FREE, NAIVE, OURS)),
        Case(name="long", turns=1_000, marks=(200, 500, 1_000)),
        Case(name="1 tool call", agent="tools", calls=1, kinds=(BARE, FLOOR, NAIVE, OURS)),
        Case(name="4 tool calls", agent="tools", calls=4),
        Case(name="memory tools", agent="memory"),
        Case(name="100 characters", size=100),
        Case(name="20,000 characters", size=20_000),
        Case(name="dreams", agent="dreamer"),
    )
}


@dataclass(frozen=True, kw_only=True)
class Turn:
    """What one turn took: seconds, and the session's history after it."""

    wall: float
    worker: float
    server: float
    bytes: int
    events: int


@dataclass(frozen=True, kw_only=True)
class Row:
    """A contender at a mark: medians of a turn, and ratios to the floor with the middle half."""

    case: str
    turn: int
    contender: str
    wall_ms: float
    wall_ratio: tuple[float, float, float]
    worker_ms: float
    worker_ratio: float
    server_ms: float
    bytes: float
    bytes_ratio: float
    bytes_all: float
    events: float


async def measure(options: argparse.Namespace) -> Figures:
    """Hold the sessions of each case."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        async with (
            stage(Path(folder)) as made,
            made.contenders([BARE, FLOOR, FREE, NAIVE, OURS]) as contenders,
        ):
            for name in options.only or CASES:
                case = CASES[name]
                rows += await _case(contenders, case, options.turns or case.turns)
    return {"rows": [asdict(row) for row in rows]}


async def _case(contenders: Sequence[Contender], case: Case, turns: int) -> list[Row]:
    taking = [
        one
        for one in contenders
        if one.kind in case.kinds and (one.kind != NAIVE or turns <= NAIVE_TURNS)
    ]
    sessions = [await talk(taking, case, turns) for _ in range(SESSIONS if turns <= 100 else 1)]
    found = {one.kind: [session[one.kind] for session in sessions] for one in taking}
    marks = {mark for mark in case.marks if mark < turns} | {turns}
    return [row(found, kind, case.name, mark) for mark in sorted(marks) for kind in found]


async def talk(contenders: Sequence[Contender], case: Case, turns: int) -> dict[str, list[Turn]]:
    """Hold a session with each contender, turn by turn; returns what each turn took."""
    found: dict[str, list[Turn]] = {one.kind: [] for one in contenders}
    pairs = [(one, await one.open(case.agent)) for one in contenders]
    for number in range(1, turns + 1):
        text = question(number, case.calls, case.size)
        first = number % len(pairs)
        for contender, session in pairs[first:] + pairs[:first]:
            found[contender.kind].append(await _turn(contender, session, text))
    for _, session in pairs:
        await session.handle.terminate()
    return found


async def _turn(contender: Contender, session: Talk, text: str) -> Turn:
    pids = (*contender.pids, contender.stage.server)
    before = [cpu_seconds(pid) for pid in pids]
    wall = await session.say(text)
    worker, server = (cpu_seconds(pid) - was for pid, was in zip(pids, before, strict=True))
    size, events = await session.history()
    return Turn(wall=wall, worker=worker, server=server, bytes=size, events=events)


def row(found: dict[str, list[list[Turn]]], kind: str, case: str, mark: int) -> Row:
    """Sum up the turns before a mark; processor time, whose clock is coarse, over all so far."""
    window = PAIRS // len(found[FLOOR])
    windows, floors = ([one[:mark][-window:] for one in found[name]] for name in (kind, FLOOR))
    pairs = zip(chain(*windows), chain(*floors), strict=True)
    low, middle, high = statistics.quantiles(
        [ours.wall / theirs.wall for ours, theirs in pairs], n=4, method="inclusive"
    )
    turns, held = ([turn for one in found[name] for turn in one[:mark]] for name in (kind, FLOOR))
    worker = statistics.mean(turn.worker for turn in turns)
    size = _growth([[turn.bytes for turn in window] for window in windows])
    return Row(
        case=case,
        turn=mark,
        contender=kind,
        wall_ms=1000 * statistics.median(turn.wall for turn in chain(*windows)),
        wall_ratio=(middle, low, high),
        worker_ms=1000 * worker,
        worker_ratio=worker / statistics.mean(turn.worker for turn in held),
        server_ms=1000 * statistics.mean(turn.server for turn in turns),
        bytes=size,
        bytes_ratio=size / _growth([[turn.bytes for turn in floor] for floor in floors]),
        bytes_all=statistics.mean(window[-1].bytes / mark for window in windows),
        events=_growth([[turn.events for turn in window] for window in windows]),
    )


def _growth(sessions: Sequence[Sequence[int]]) -> float:
    """Return what a turn adds; where a session goes on in a new run, `bytes_all` shows it."""
    return statistics.median(
        later - before for values in sessions for before, later in pairwise(values)
    )


COLUMNS = (
    *("session", "turn", "contender", "ms", "ms / held", "middle half"),
    *("worker CPU ms", "CPU / held", "server CPU ms"),
    *("history kB", "kB / held", "kB, mean of all", "events"),
)


def sheets(figures: Figures) -> list[Sheet]:
    """Return the table."""
    rows: list[list[str]] = []
    for made in figures["rows"]:
        middle, low, high = made["wall_ratio"]
        rows.append(
            [
                *(made["case"], str(made["turn"]), made["contender"]),
                *(f"{made['wall_ms']:.0f}", f"{middle:.2f}", f"{low:.2f} to {high:.2f}"),
                *(f"{made['worker_ms']:.0f}", f"{made['worker_ratio']:.2f}"),
                *(f"{made['server_ms']:.0f}", f"{made['bytes'] / 1000:.2f}"),
                *(f"{made['bytes_ratio']:.2f}", f"{made['bytes_all'] / 1000:.2f}"),
                f"{made['events']:.0f}",
            ]
        )
    return [Sheet(title="A turn, against bare Temporal", columns=COLUMNS, rows=rows)]


def ratios(figures: Figures) -> dict[str, float]:
    """Return what ours takes of the floor's: time, processor time of the worker, bytes."""
    found: dict[str, float] = {}
    for made in figures["rows"]:
        if made["contender"] == OURS:
            name = f"{made['case']}, turn {made['turn']}"
            found[f"{name}: time"] = made["wall_ratio"][0]
            found[f"{name}: worker CPU"] = made["worker_ratio"]
            found[f"{name}: bytes"] = made["bytes_ratio"]
    return found


def options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this benchmark."""
    parser.add_argument("--turns", type=int, help="turns of each session, up to 1000")
    parser.add_argument("--only", action="append", choices=CASES, help="a case (repeatable)")


BENCHMARK = Benchmark(
    name="turn",
    about="What a turn costs, against bare Temporal.",
    measure=measure,
    sheets=sheets,
    options=options,
    ratios=ratios,
)

if __name__ == "__main__":
    BENCHMARK.command()
