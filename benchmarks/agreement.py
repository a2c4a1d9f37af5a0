"""Compare the figures of the last two whole runs: what one run says, the other must say too."""

import importlib
import json
import shutil
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.report import FIGURES, Benchmark, Figures, Sheet, put

EARLIER = FIGURES / "earlier"
"""The figures of the run before the last."""

CLOSE = 0.10


@dataclass(frozen=True, kw_only=True)
class _Row:
    """A figure of two runs; None where one of them does not have it."""

    benchmark: str
    figure: str
    earlier: float | None
    last: float | None

    @property
    def apart(self) -> float | None:
        """How far the last is from the earlier, as a part of the earlier."""
        if self.earlier is None or self.last is None:
            return None
        return abs(self.last - self.earlier) / self.earlier if self.earlier else abs(self.last)

    def cells(self) -> list[str]:
        """Return the row as people read it."""
        numbers = ("" if one is None else f"{one:,.2f}" for one in (self.earlier, self.last))
        alone = "only in the last" if self.earlier is None else "only in the earlier"
        apart = alone if self.apart is None else f"{self.apart:.0%}"
        return [self.benchmark, self.figure, *numbers, apart]


def keep_earlier(names: Sequence[str]) -> None:
    """Put the kept figures aside, before a run makes new ones, if they are of one whole run."""
    if _run(FIGURES, names) is None:
        return  # a run that was broken off, or one benchmark alone: the earlier stays
    EARLIER.mkdir(exist_ok=True)
    for name in names:
        shutil.copy(_file(FIGURES, name), EARLIER)


def write(names: Sequence[str]) -> None:
    """Put the comparison of these benchmarks into the documentation, if there is an earlier run.

    Raises:
        ValueError: The kept figures are not of one whole run, or of the earlier one.
    """
    if _run(EARLIER, names) is not None:
        put("benchmarks/agreement.py", text(names))


def text(names: Sequence[str]) -> str:
    """Return the comparison of these benchmarks: which runs they are, and the tables.

    Raises:
        ValueError: The figures of a folder are not of one whole run, or both are the same run.
    """
    earlier, last = (_needed(folder, names) for folder in (EARLIER, FIGURES))
    if earlier == last:
        raise ValueError(f"both runs are that of {last}: run all benchmarks again (make bench)")
    both = f"The earlier run began at {earlier}, the last at {last}."
    return "\n\n".join([both, *(sheet.markdown() for sheet in sheets(names))])


def _needed(folder: Path, names: Sequence[str]) -> str:
    if (run := _run(folder, names)) is None:
        each = ", ".join(f"{name} of {_said(folder, name) or 'none'}" for name in names)
        raise ValueError(
            f"the figures in {folder} are not all of one run: {each}. "
            "Run all benchmarks again (make bench)"
        )
    return run


def _run(folder: Path, names: Sequence[str]) -> str | None:
    """Return the run that all these figures are of; None where there is no such run."""
    runs = {_said(folder, name) for name in names}
    return runs.pop() if len(runs) == 1 else None


def _said(folder: Path, name: str) -> str | None:
    """Return the run that a file of figures says it is of: when it began and its commit."""
    if not _file(folder, name).is_file():
        return None
    figures = _figures(folder, name)
    if "run" not in figures:
        return None
    commit = figures["commit"]
    return f"{figures['run']} (commit {commit})" if commit else figures["run"]


def sheets(names: Sequence[str]) -> list[Sheet]:
    """Return the ratios of both runs and how far apart they are; then what has no floor."""
    ratios: list[_Row] = []
    sizes: list[_Row] = []
    for name in names:
        benchmark: Benchmark = importlib.import_module(f"benchmarks.{name}").BENCHMARK
        earlier, last = (_figures(folder, name) for folder in (EARLIER, FIGURES))
        ratios += _rows(name, benchmark.ratios(earlier), benchmark.ratios(last))
        sizes += _rows(name, benchmark.sizes(earlier), benchmark.sizes(last))
    return [
        _sheet("ratios", "ratio to the floor", ratios),
        _sheet("figures without a floor", "figure", sizes),
    ]


def _rows(name: str, earlier: dict[str, float], last: dict[str, float]) -> list[_Row]:
    """Return a row for what either run has: none is left out without a word."""
    return [
        _Row(benchmark=name, figure=what, earlier=earlier.get(what), last=last.get(what))
        for what in {**earlier, **last}
    ]


def _sheet(what: str, column: str, rows: Sequence[_Row]) -> Sheet:
    apart = [row.apart for row in rows if row.apart is not None]
    within = sum(one <= CLOSE for one in apart)
    title = f"Two whole runs: {within} of {len(apart)} {what} within {CLOSE:.0%} of each other"
    if apart:
        title += f", the median {statistics.median(apart):.1%} apart"
    for name, other in (("last", "earlier"), ("earlier", "last")):
        if alone := sum(getattr(row, other) is None for row in rows):
            title += f"; {alone} only in the {name} run"
    return Sheet(
        title=title,
        columns=("benchmark", column, "earlier", "last", "apart"),
        rows=[row.cells() for row in rows],
    )


def _figures(folder: Path, name: str) -> Figures:
    return json.loads(_file(folder, name).read_text())


def _file(folder: Path, name: str) -> Path:
    return folder / f"{name}.json"
