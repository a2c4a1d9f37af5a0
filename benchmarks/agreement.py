"""Compare the figures of the last two whole runs: what one run says, the other must say too."""

import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from benchmarks.report import FIGURES, Sheet, benchmark, put

EARLIER = FIGURES / "earlier.json"
"""The file of the figures of the run before the last, which are compared with the last."""

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
        """The difference of the last from the earlier, as a part of the earlier."""
        if self.earlier is None or self.last is None:
            return None
        return abs(self.last - self.earlier) / self.earlier if self.earlier else abs(self.last)

    def cells(self) -> list[str]:
        """Return the row as people read it."""
        numbers = ("" if one is None else f"{one:,.2f}" for one in (self.earlier, self.last))
        alone = "only in the last" if self.earlier is None else "only in the earlier"
        apart = alone if self.apart is None else f"{self.apart:.0%}"
        return [self.benchmark, self.figure, *numbers, apart]


@dataclass(frozen=True, kw_only=True)
class Compared:
    """The figures by which a whole run is compared.

    Attributes:
        run: When it began, and its commit.
        ratios: To the floors, by benchmark and by what they are of.
        sizes: What has no floor, likewise.
    """

    run: str
    ratios: dict[str, dict[str, float]]
    sizes: dict[str, dict[str, float]]


def keep_earlier(names: Sequence[str]) -> None:
    """Put aside what the kept figures are compared by, before a run makes new ones.

    Figures that are not of one whole run are not: one that was broken off, or one benchmark alone.
    """
    if _run(names) is not None:
        EARLIER.write_text(json.dumps(asdict(_last(names)), indent=1) + "\n")


def write(names: Sequence[str]) -> None:
    """Put the comparison of these benchmarks into the documentation, if there is an earlier run.

    Raises:
        ValueError: The kept figures are not of one whole run, or of the earlier one.
    """
    if EARLIER.is_file():
        put("benchmarks/agreement.py", text(names))


def text(names: Sequence[str]) -> str:
    """Return the comparison of these benchmarks: which runs they are, and the tables.

    Raises:
        ValueError: The kept figures are not of one whole run, or both are the same run.
    """
    earlier, last = Compared(**json.loads(EARLIER.read_text())), _last(names)
    if earlier.run == last.run:
        raise ValueError(f"both runs are that of {last.run}: run all benchmarks again (make bench)")
    both = f"The earlier run began at {earlier.run}, the last at {last.run}."
    tables = (
        _sheet("ratios", "ratio to the floor", _rows(earlier.ratios, last.ratios)),
        _sheet("figures without a floor", "figure", _rows(earlier.sizes, last.sizes)),
    )
    return "\n\n".join([both, *(sheet.markdown() for sheet in tables)])


def _last(names: Sequence[str]) -> Compared:
    if (run := _run(names)) is None:
        each = ", ".join(f"{name} of {_said(name) or 'none'}" for name in names)
        raise ValueError(
            f"the figures in {FIGURES} are not all of one run: {each}. "
            "Run all benchmarks again (make bench)"
        )
    found = {name: benchmark(name) for name in names}
    return Compared(
        run=run,
        ratios={name: one.ratios(one.kept()) for name, one in found.items()},
        sizes={name: one.sizes(one.kept()) for name, one in found.items()},
    )


def _run(names: Sequence[str]) -> str | None:
    """Return the run that all these figures are of; None where there is no such run."""
    runs = {_said(name) for name in names}
    return runs.pop() if len(runs) == 1 else None


def _said(name: str) -> str | None:
    """Return the run that a file of figures says it is of: when it began and its commit."""
    try:
        figures = benchmark(name).kept()
    except FileNotFoundError:
        return None
    if "run" not in figures:
        return None
    commit = figures["commit"]
    return f"{figures['run']} (commit {commit})" if commit else figures["run"]


def _rows(earlier: dict[str, dict[str, float]], last: dict[str, dict[str, float]]) -> list[_Row]:
    """Return a row for what either run has: none is left out without a word."""
    rows: list[_Row] = []
    for name, found in last.items():
        before = earlier.get(name, {})
        rows += [
            _Row(benchmark=name, figure=what, earlier=before.get(what), last=found.get(what))
            for what in {**before, **found}
        ]
    return rows


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
