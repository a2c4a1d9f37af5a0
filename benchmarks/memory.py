"""Measure long-term memory against the bare drivers.

Floor and ours take turns on two databases of the same schema and write the same rows. PostgreSQL
is the one of the tests: in memory and without the disk's guarantees, so that code is measured and
not a disk. SQLite's files lie in `--directory`, for the same reason in memory where there is any.
This process, with the threads of SQLite's drivers, is kept on one core, PostgreSQL's server on
another (`paired.one_core`).
"""

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.memory_cases import Bench, Row, on_postgresql, on_sqlite
from benchmarks.paired import PASSES, Comparison
from benchmarks.report import Benchmark, Figures, Goal, Sheet
from tests.postgres import memory

TITLES = ("database", "operation", "tasks", "floor/s", "ours/s", "ours / floor", "middle half")


async def measure(options: argparse.Namespace) -> Figures:
    """Run what was asked for, row by row, and return the figures."""
    rounds = options.rounds or (81 if options.full else 33)
    only = options.only or ["sqlite", "postgresql"]
    comparison = Comparison(rounds, options.seconds)
    rows: list[Row] = []
    stalls: dict[str, tuple[float, float]] = {}

    async def run(bench: Bench) -> None:
        for row in await bench.rows():
            rows.append(row)
            Console().print(*cells(asdict(row)), sep="  ")
        stalls[bench.name] = await bench.stalls()

    if "sqlite" in only:
        async with on_sqlite(options.directory, comparison) as bench:
            await run(bench)
    if "postgresql" in only:
        async with on_postgresql(comparison) as bench:
            await run(bench)
    return {
        "rounds": rounds,
        "seconds": options.seconds,
        "rows": [asdict(row) for row in rows],
        "loop_held_ms": stalls,
    }


def cells(row: dict[str, Any]) -> tuple[str, ...]:
    """Return a row as people read it."""
    pair = row["pair"]
    return (
        *(row["database"], row["operation"], str(row["tasks"])),
        *(f"{pair['floor']:,.0f}", f"{pair['ours']:,.0f}"),
        *(f"{pair['ratio']:.2f}", f"{pair['low']:.2f} to {pair['high']:.2f}"),
    )


def sheets(figures: Figures) -> list[Sheet]:
    """Return the tables."""
    held = figures["loop_held_ms"].items()
    title = (
        f"{figures['rounds']} pairs of rounds of {figures['seconds']} s each, floor and ours in "
        f"turn, with 32 tasks of twice the time, all rows in {PASSES} passes; medians"
    )
    return [
        Sheet(title=title, columns=TITLES, rows=[cells(row) for row in figures["rows"]]),
        Sheet(
            title="The longest time that 32 writers held the event loop, ms",
            columns=("database", "floor", "ours"),
            rows=[[name, f"{floor:.1f}", f"{ours:.1f}"] for name, (floor, ours) in held],
        ),
    ]


def ratios(figures: Figures) -> dict[str, float]:
    """Return our operations a second to the floor's."""
    return {
        f"{row['database']}, {row['operation']}, {row['tasks']} tasks": row["pair"]["ratio"]
        for row in figures["rows"]
    }


SINGLE, LIMIT = ("recall", "memorize", "memorize, new key"), 0.7
"""Whose rate must be so much of the bare driver's, with 1 and with 32 tasks.

Not `memorize, floor at once`, which is another floor for the same work: fewer trips to the
database than who writes a transaction by hand makes. Nor the rows where both sides are ours.
"""


def goals(figures: Figures) -> list[Goal]:
    """Return the goal of single operations, with the row that is lowest."""
    rows = [row for row in figures["rows"] if row["operation"] in SINGLE]
    worst = min(rows, key=lambda row: row["pair"]["ratio"])
    what = f"a single recall or memorize at least {LIMIT} of the bare driver's rate"
    where = f"{worst['database']}, {worst['operation']}, {worst['tasks']} tasks"
    ratio = worst["pair"]["ratio"]
    return [Goal(what=what, limit=LIMIT, worst=ratio, where=where, least=True)]


def sizes(figures: Figures) -> dict[str, float]:
    """Return the longest times that writers held the event loop."""
    return {
        f"{name}, {side}: ms that the loop was held": held
        for name, both in figures["loop_held_ms"].items()
        for side, held in zip(("floor", "ours"), both, strict=True)
    }


def options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this benchmark."""
    parser.add_argument("--rounds", type=int, help="pairs of rounds of each row")
    parser.add_argument("--seconds", type=float, default=0.1, help="length of one")
    parser.add_argument("--directory", type=Path, default=memory(), help="for SQLite's files")
    parser.add_argument("--only", choices=("sqlite", "postgresql"), action="append")


BENCHMARK = Benchmark(
    name="memory",
    about="Long-term memory against the bare drivers.",
    measure=measure,
    sheets=sheets,
    options=options,
    ratios=ratios,
    goals=goals,
    sizes=sizes,
)

if __name__ == "__main__":
    BENCHMARK.command()
