"""Measure long-term memory against the bare drivers, and write docs/performance.md.

    .venv/bin/python -m benchmarks.memory --write

Floor and ours take turns on two databases of the same schema and write the same rows. PostgreSQL
is the one of the tests: in memory and without the disk's guarantees, so that code is measured and
not a disk. SQLite's files lie in `--directory`, for the same reason in memory where there is any.
"""

import argparse
import asyncio
import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.memory_cases import Bench, Row, on_postgresql, on_sqlite
from benchmarks.paired import Comparison
from tests.postgres import memory

DOCS = Path(__file__).parents[1] / "docs" / "performance.md"
FIGURES = Path(__file__).with_suffix(".json")
BEGIN, END = "<!-- benchmarks/memory.py writes from here -->", "<!-- to here -->"
TITLES = ("database", "operation", "tasks", "floor/s", "ours/s", "ours / floor", "middle half")


async def measure(options: argparse.Namespace) -> dict[str, object]:
    """Run what was asked for, row by row, and return the figures."""
    comparison = Comparison(options.rounds, options.seconds)
    rows: list[Row] = []
    stalls: dict[str, tuple[float, float]] = {}

    async def run(bench: Bench) -> None:
        async for row in bench.rows():
            rows.append(row)
            Console().print(*cells(asdict(row)), sep="  ")
        stalls[bench.name] = await bench.stalls()

    if "sqlite" in options.only:
        async with on_sqlite(options.directory, comparison) as bench:
            await run(bench)
    if "postgresql" in options.only:
        async with on_postgresql(comparison) as bench:
            await run(bench)
    return {
        "load": round(os.getloadavg()[0], 1),
        "rounds": options.rounds,
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


def shown(figures: dict[str, Any]) -> Table:
    """Return the table for the terminal."""
    table = Table(*TITLES, title="Long-term memory against the bare driver")
    for row in figures["rows"]:
        table.add_row(*cells(row))
    return table


def section(figures: dict[str, Any]) -> str:
    """Return the part of the documentation that the figures make."""
    lines = [" | ".join(TITLES), " | ".join("---" for _ in TITLES)]
    lines += [" | ".join(cells(row)) for row in figures["rows"]]
    held = "; ".join(
        f"{name} {ours} ms, its floor {floor} ms"
        for name, (floor, ours) in figures["loop_held_ms"].items()
    )
    how = (
        f"Measured on 2 shared cores (load average {figures['load']}): {figures['rounds']} pairs "
        f"of rounds of {figures['seconds']} s each, floor and ours in turn; medians."
    )
    return "\n".join(
        [
            how,
            "",
            *(f"| {line} |" for line in lines),
            "",
            f"The longest time that 32 writers held the event loop: {held}.",
        ]
    )


def write(figures: dict[str, Any]) -> None:
    """Keep the figures, and put them into the documentation."""
    FIGURES.write_text(json.dumps(figures, indent=1) + "\n")
    before, _, rest = DOCS.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    DOCS.write_text(f"{before}{BEGIN}\n\n{section(figures)}\n\n{END}{after}")


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description="Long-term memory against the bare drivers.")
    parser.add_argument("--rounds", type=int, default=25, help="pairs of rounds a comparison")
    parser.add_argument("--seconds", type=float, default=0.08, help="length of a round")
    parser.add_argument("--directory", type=Path, default=memory(), help="for SQLite's files")
    parser.add_argument("--only", choices=("sqlite", "postgresql"), action="append")
    parser.add_argument("--write", action="store_true", help="write the figures and the docs")
    options = parser.parse_args()
    options.only = options.only or ["sqlite", "postgresql"]
    figures = asyncio.run(measure(options))
    Console().print(shown(figures))
    if options.write:
        write(figures)


if __name__ == "__main__":
    main()
