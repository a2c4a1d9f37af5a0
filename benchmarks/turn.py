"""Measure what a turn of a session costs, against bare Temporal.

    python -m benchmarks.turn --turns 100 --only plain

All contenders take the same turn one after another, in an order that changes, so that whatever
slows the machine down slows all. Ratios are to `held`: one update and one activity that makes the
same litellm call, its messages in the worker's memory. Where a session starts dreams, the next turn
waits for the one before it. Needs Linux (/proc, processor clocks of other processes).
"""

import argparse
import statistics
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain
from pathlib import Path

from benchmarks.report import Benchmark, Figures, Sheet
from benchmarks.stage import BARE, FLOOR, FREE, NAIVE, OURS, Contender, Talk, cpu_seconds, stage
from benchmarks.texts import question
from benchmarks.turn_cases import CASES, MARKS, Case

PAIRS = 30
"""Of turns, for a ratio of times: the last ones before a mark."""

SHORT = 3
"""Sessions that end at the first mark, so that it has as many pairs as others."""

SIZED = 10
"""Turns between two looks at a history; a session goes on in a new run less often."""


@dataclass(kw_only=True)
class Record:
    """What a contender's session took.

    Attributes:
        wall: Seconds of each turn.
        worker: The worker's processor seconds so far, at the start of each turn and at the end.
        server: The server's processor seconds of each turn.
        bytes: Of history so far, by the number of turns.
        events: Of history so far, likewise.
    """

    wall: list[float] = field(default_factory=list[float])
    worker: list[float] = field(default_factory=list[float])
    server: list[float] = field(default_factory=list[float])
    bytes: dict[int, int] = field(default_factory=lambda: {0: 0})
    events: dict[int, int] = field(default_factory=lambda: {0: 0})


@dataclass(frozen=True, kw_only=True)
class Row:
    """A contender at a mark.

    Time is the median of the last turns, with its ratio's middle half; all else is the mean of the
    turns since the mark before.
    """

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
                rows += await _case(contenders, CASES[name], options.turns)
    return {"rows": [asdict(row) for row in rows]}


async def _case(contenders: Sequence[Contender], case: Case, most: int) -> list[Row]:
    limits = {kind: min(turns, most) for kind, turns in case.kinds.items()}
    short = dict.fromkeys(limits, MARKS[0])
    sessions = [await _talks(contenders, case, each) for each in [*[short] * SHORT, limits]]
    rows: list[Row] = []
    for mark in MARKS:
        long = [session for session in sessions if len(session[FLOOR].wall) >= mark]
        for kind, turns in limits.items():
            if mark <= turns:
                own, floor = ([session[name] for session in long] for name in (kind, FLOOR))
                rows.append(row(own, floor, case.name, kind, mark))
    return rows


async def _talks(
    contenders: Sequence[Contender], case: Case, limits: dict[str, int]
) -> dict[str, Record]:
    """Hold a session with each contender, turn by turn, each up to its limit."""
    found = {kind: Record() for kind in limits}
    talks = [(one, await one.open(case.agent)) for one in contenders if one.kind in limits]
    for number in range(1, max(limits.values()) + 1):
        text = question(number, case.calls, case.size)
        taking = [(one, talk) for one, talk in talks if number <= limits[one.kind]]
        first = number % len(taking)
        for one, talk in taking[first:] + taking[:first]:
            await _turn(one, talk, text, case.dreams, found[one.kind])
            if number % SIZED == 0:
                size, events = await talk.history()
                found[one.kind].bytes[number], found[one.kind].events[number] = size, events
            if number == limits[one.kind]:
                found[one.kind].worker.append(_worker_seconds(one))
    for _, talk in talks:
        await talk.handle.terminate()
    return found


async def _turn(contender: Contender, talk: Talk, text: str, dreams: bool, into: Record) -> None:
    server = cpu_seconds(contender.stage.server)
    into.worker.append(_worker_seconds(contender))
    into.wall.append(await talk.say(text))
    if dreams:
        await talk.settled()
    into.server.append(cpu_seconds(contender.stage.server) - server)


def _worker_seconds(contender: Contender) -> float:
    return sum(map(cpu_seconds, contender.pids))


def row(ours: list[Record], floor: list[Record], case: str, kind: str, mark: int) -> Row:
    """Sum up a contender's sessions before a mark, against the floor's."""
    newest = slice(max(0, mark - PAIRS // len(ours)), mark)
    walls, floors = (list(chain(*(one.wall[newest] for one in each))) for each in (ours, floor))
    low, middle, high = statistics.quantiles(
        [mine / theirs for mine, theirs in zip(walls, floors, strict=True)], n=4, method="inclusive"
    )
    own, held = _mean(ours, mark), _mean(floor, mark)
    return Row(
        case=case,
        turn=mark,
        contender=kind,
        wall_ms=1000 * statistics.median(walls),
        wall_ratio=(middle, low, high),
        worker_ms=1000 * own.worker,
        worker_ratio=own.worker / held.worker,
        server_ms=1000 * own.server,
        bytes=own.bytes,
        bytes_ratio=own.bytes / held.bytes,
        events=own.events,
    )


@dataclass(frozen=True, kw_only=True)
class Mean:
    """Of a turn: processor seconds, and what it adds to the history, new runs included."""

    worker: float
    server: float
    bytes: float
    events: float


def _mean(records: list[Record], mark: int) -> Mean:
    """Return what a turn took since the mark before."""
    since = max(other for other in (0, *MARKS) if other < mark)
    turns = (mark - since) * len(records)

    def grown(series: Callable[[Record], Mapping[int, float] | Sequence[float]]) -> float:
        return sum(series(one)[mark] - series(one)[since] for one in records) / turns

    return Mean(
        worker=grown(lambda one: one.worker),
        server=sum(sum(one.server[since:mark]) for one in records) / turns,
        bytes=grown(lambda one: one.bytes),
        events=grown(lambda one: one.events),
    )


COLUMNS = (
    *("session", "turn", "contender", "ms", "ms / held", "middle half"),
    *("worker CPU ms", "CPU / held", "server CPU ms", "history kB", "kB / held", "events"),
)


def sheets(figures: Figures) -> list[Sheet]:
    """Return the table."""
    rows: list[list[str]] = []
    for made in figures["rows"]:
        middle, low, high = made["wall_ratio"]
        rows.append(
            [
                *(made["case"], f"{made['turn']:,}", made["contender"]),
                *(f"{made['wall_ms']:.0f}", f"{middle:.2f}", f"{low:.2f} to {high:.2f}"),
                *(f"{made['worker_ms']:.1f}", f"{made['worker_ratio']:.2f}"),
                *(f"{made['server_ms']:.1f}", f"{made['bytes'] / 1000:.2f}"),
                *(f"{made['bytes_ratio']:.2f}", f"{made['events']:.1f}"),
            ]
        )
    return [Sheet(title="A turn, against bare Temporal", columns=COLUMNS, rows=rows)]


def ratios(figures: Figures) -> dict[str, float]:
    """Return what ours takes of the floor's: time, processor time of the worker, bytes."""
    found: dict[str, float] = {}
    for made in figures["rows"]:
        if made["contender"] == OURS:
            name = f"{made['case']}, turn {made['turn']:,}"
            found[f"{name}: time"] = made["wall_ratio"][0]
            found[f"{name}: worker CPU"] = made["worker_ratio"]
            found[f"{name}: bytes"] = made["bytes_ratio"]
    return found


def options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this benchmark."""
    parser.add_argument("--turns", type=int, default=MARKS[-1], help="at most, of each session")
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
