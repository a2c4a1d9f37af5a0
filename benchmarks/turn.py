"""Measure what a turn of a session costs, against bare Temporal.

    python -m benchmarks.turn --turns 200 --tools 0 --tools 1 --tools 4 --recovery

All contenders take the same turn one after another, in an order that changes, so that whatever
slows the machine down slows all. Ratios are to `held`: one update and one activity that makes the
same litellm call, its messages in the worker's memory. A ratio is the median over the last ten
turns before a mark, pair by pair, and its spread the middle half of them. Needs Linux (/proc).
"""

import argparse
import asyncio
import json
import signal
import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.turn_floors import question
from benchmarks.turn_recovery import recovery
from benchmarks.turn_stage import Contender, Stage, cpu_seconds, stage

FLOOR, OURS, DREAMS = "held", "plain", "dreamer"
MARKS = (10, 100, 200, 500, 1_000)
WINDOW = 10


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

    tools: int
    turn: int
    contender: str
    wall_ms: float
    wall_ratio: tuple[float, float, float]
    worker_ms: float
    server_ms: float
    bytes: float
    bytes_ratio: float
    bytes_all: float
    events: float


async def measured(stage: Stage, contender: Contender, text: str) -> Turn:
    """Take a turn."""
    pids = (contender.pid, stage.server)
    before = [cpu_seconds(pid) for pid in pids]
    wall = await contender.say(text)
    worker, server = (cpu_seconds(pid) - was for pid, was in zip(pids, before, strict=True))
    size, events = await contender.history()
    return Turn(wall=wall, worker=worker, server=server, bytes=size, events=events)


async def talk(stage: Stage, kinds: Sequence[str], tools: int, turns: int) -> list[Row]:
    """Hold a session with each contender, turn by turn."""
    contenders = [stage.contender(kind, tools=tools > 0) for kind in kinds]
    found: dict[str, list[Turn]] = {kind: [] for kind in kinds}
    try:
        for contender in contenders:
            await contender.start_worker()
            await contender.begin()
        for number in range(1, turns + 1):
            text = question(number, tools)
            first = number % len(contenders)
            for contender in contenders[first:] + contenders[:first]:
                found[contender.kind].append(await measured(stage, contender, text))
    finally:
        for contender in contenders:
            await contender.end_worker(signal.SIGTERM)
    marks = [mark for mark in MARKS if mark <= turns] or [turns]
    return [row(found, kind, tools, mark) for mark in marks if mark > 1 for kind in kinds]


def row(found: dict[str, list[Turn]], kind: str, tools: int, mark: int) -> Row:
    """Sum up the turns before a mark."""
    window, floor = found[kind][:mark][-WINDOW:], found[FLOOR][:mark][-WINDOW:]
    ratios = [ours.wall / theirs.wall for ours, theirs in zip(window, floor, strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
    return Row(
        tools=tools,
        turn=mark,
        contender=kind,
        wall_ms=1000 * statistics.median(turn.wall for turn in window),
        wall_ratio=(middle, low, high),
        worker_ms=1000 * statistics.mean(turn.worker for turn in window),
        server_ms=1000 * statistics.mean(turn.server for turn in window),
        bytes=_growth([turn.bytes for turn in window]),
        bytes_ratio=_growth([t.bytes for t in window]) / _growth([t.bytes for t in floor]),
        bytes_all=window[-1].bytes / mark,
        events=_growth([turn.events for turn in window]),
    )


def _growth(values: Sequence[int]) -> float:
    """Return what a turn adds; where a session goes on in a new run, `bytes_all` shows it."""
    return statistics.median(later - before for before, later in pairwise(values))


TITLES = ("tools", "turn", "contender", "wall ms", "wall / held", "middle half")
MORE = ("worker CPU ms", "server CPU ms", "history kB", "kB / held", "kB, mean of all", "events")


def cells(row: dict[str, Any]) -> list[str]:
    """Return a row as people read it."""
    middle, low, high = row["wall_ratio"]
    return [
        *(str(row["tools"]), str(row["turn"]), row["contender"]),
        *(f"{row['wall_ms']:.0f}", f"{middle:.2f}", f"{low:.2f} to {high:.2f}"),
        *(f"{row['worker_ms']:.0f}", f"{row['server_ms']:.0f}"),
        *(f"{row['bytes'] / 1000:.2f}", f"{row['bytes_ratio']:.2f}"),
        *(f"{row['bytes_all'] / 1000:.2f}", f"{row['events']:.1f}"),
    ]


async def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Run what was asked for."""
    rows: list[Row] = []
    recovered: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        async with stage(Path(folder)) as made:
            for tools in (options.tools or [0]) if options.turns else ():
                kinds = [
                    kind for kind in ("bare", FLOOR, "naive", OURS) if kind not in options.skip
                ]
                rows += await talk(made, kinds, tools, options.turns)
            if options.dreams:
                rows += await talk(made, [FLOOR, DREAMS], 0, options.turns)
            if options.recovery:
                recovered = await recovery(made, options.rounds)
    return {"turns": options.turns, "rows": [asdict(row) for row in rows], "recovery": recovered}


def show(figures: dict[str, Any]) -> None:
    """Print the tables."""
    table = Table(*TITLES, *MORE, title="A turn, against bare Temporal")
    for made in figures["rows"]:
        table.add_row(*cells(made))
    if figures["rows"]:
        Console(width=150).print(table)
    recovered = Table("what", "contender", "seconds: median", "all", title="Recovery")
    for what, contenders in figures["recovery"].items():
        for kind, seconds in contenders.items():
            shown = ", ".join(f"{second:.2f}" for second in seconds)
            recovered.add_row(what, kind, f"{statistics.median(seconds):.2f}", shown)
    if figures["recovery"]:
        Console(width=150).print(recovered)


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description="What a turn costs, against bare Temporal.")
    turns = "turns of each session, up to 1000; 0 for none"
    parser.add_argument("--turns", type=int, default=200, help=turns)
    parser.add_argument("--tools", type=int, action="append", help="tool calls a turn (repeatable)")
    parser.add_argument("--skip", action="append", default=[], choices=("bare", "naive"))
    parser.add_argument("--dreams", action="store_true", help="besides: a dream at each answer")
    parser.add_argument("--recovery", action="store_true", help="besides: after a worker is gone")
    parser.add_argument("--rounds", type=int, default=3, help="of each recovery")
    parser.add_argument("--json", type=Path, help="keep the figures in this file")
    options = parser.parse_args()
    figures = asyncio.run(measure(options))
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")
    show(figures)


if __name__ == "__main__":
    main()
