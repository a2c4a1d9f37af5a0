"""Measure what a turn of a session costs, against bare Temporal.

    python -m benchmarks.turn --turns 100 --only plain

All contenders take the same turn one after another, in an order that changes, so that whatever
slows the machine down slows all. Ratios are to `held`: one update and one activity that makes the
same litellm call, its messages in the worker's memory. Where a session starts dreams, the next turn
waits for the one before it. Needs Linux (/proc, processor clocks of other processes).
"""

import argparse
import random
import statistics
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from benchmarks.paired import quartiles
from benchmarks.processes import cpu_seconds
from benchmarks.report import Benchmark, Figures
from benchmarks.stage import BARE, FLOOR, FREE, NAIVE, OURS, Contender, stage
from benchmarks.talk import Talk
from benchmarks.texts import question
from benchmarks.turn_cases import CASES, MARKS, Case
from benchmarks.turn_sheets import goals, ratios, sheets, sizes

PAIRS = 30
"""The number of turns, the last ones before a mark, that give a ratio of times."""

SHORT = 3
"""Sessions that end at the first mark, so that it has as many pairs as others."""

SIZED = 10
"""Turns between two looks at a history; a session goes on in a new run less often."""


@dataclass(kw_only=True)
class Record:
    """The measurements of a contender's session.

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
    """A contender at a mark; ratios are to `held`, and where it has got so far to `held, free`.

    Time is the median of the last turns, and a ratio of times has its middle half; all else is the
    mean of the turns since the mark before.
    """

    case: str
    turn: int
    contender: str
    wall_ms: float
    wall_ratio: tuple[float, float, float]
    wall_free: float | None
    worker_ms: float
    worker_ratio: float
    worker_free: float | None
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
    await _talks(contenders, case, short)  # what a worker does for the first time, uncounted
    sessions = [await _talks(contenders, case, each) for each in [*[short] * SHORT, limits]]
    rows: list[Row] = []
    for mark in MARKS:
        found = {
            kind: [one[kind] for one in sessions if len(one[kind].wall) >= mark] for kind in limits
        }
        rows += [row(found, case.name, kind, mark) for kind, records in found.items() if records]
    return rows


async def _talks(
    contenders: Sequence[Contender], case: Case, limits: dict[str, int]
) -> dict[str, Record]:
    """Hold a session with each contender, turn by turn, each up to its limit."""
    found = {kind: Record() for kind in limits}
    talks: list[tuple[Contender, Talk]] = []
    for one in contenders:
        if one.kind in limits:
            found[one.kind].worker.append(_worker_seconds(one))
            talks.append((one, await one.open(case.agent)))
    for number in range(1, max(limits.values()) + 1):
        taking = [(one, talk) for one, talk in talks if number <= limits[one.kind]]
        random.Random(number).shuffle(taking)  # nobody always comes after the same one
        for one, talk in taking:
            await _turn(one, talk, number, case, found[one.kind])
            if number == limits[one.kind]:
                found[one.kind].worker.append(_worker_seconds(one))
    for _, talk in talks:
        await talk.handle.terminate()
    return found


async def _turn(contender: Contender, talk: Talk, number: int, case: Case, into: Record) -> None:
    text = question(number, case.calls, case.size, fact=case.dreams)
    server = cpu_seconds(contender.stage.server)
    if number > 1:  # the start of a session is a part of its first turn
        into.worker.append(_worker_seconds(contender))
    into.wall.append(await talk.say(text))
    if case.dreams:
        await talk.settled()
    into.server.append(cpu_seconds(contender.stage.server) - server)
    if number % SIZED == 0:
        into.bytes[number], into.events[number] = await talk.history()


def _worker_seconds(contender: Contender) -> float:
    return sum(map(cpu_seconds, contender.pids))


def row(found: Mapping[str, list[Record]], case: str, kind: str, mark: int) -> Row:
    """Sum up a contender's sessions before a mark, against the floors'."""
    records, free = found[kind], found.get(FREE)
    own, held = _mean(records, mark), _mean(found[FLOOR], mark)
    return Row(
        case=case,
        turn=mark,
        contender=kind,
        wall_ms=1000 * statistics.median(_newest(records, mark)),
        wall_ratio=_times(records, found[FLOOR], mark),
        wall_free=_times(records, free, mark)[0] if free else None,
        worker_ms=1000 * own.worker,
        worker_ratio=own.worker / held.worker,
        worker_free=own.worker / _mean(free, mark).worker if free else None,
        server_ms=1000 * own.server,
        bytes=own.bytes,
        bytes_ratio=own.bytes / held.bytes,
        events=own.events,
    )


def _newest(records: list[Record], mark: int) -> list[float]:
    """Return the seconds of the last turns before a mark."""
    first = max(0, mark - PAIRS // len(records))
    return [wall for one in records for wall in one.wall[first:mark]]


def _times(ours: list[Record], floor: list[Record], mark: int) -> tuple[float, float, float]:
    """Return the median of the ratios of times, pair by pair, and its middle half."""
    pairs = zip(_newest(ours, mark), _newest(floor, mark), strict=True)
    low, middle, high = quartiles([mine / theirs for mine, theirs in pairs])
    return middle, low, high


@dataclass(frozen=True, kw_only=True)
class Mean:
    """The means of a turn: processor seconds, and the growth of the history, new runs included."""

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
    goals=goals,
    sizes=sizes,
)

if __name__ == "__main__":
    BENCHMARK.command()
