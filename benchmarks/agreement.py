"""Compare the ratios of the last two whole runs: what one run says, the other must say too."""

import importlib
import json
import shutil
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.report import FIGURES, Benchmark, Sheet, put

EARLIER = FIGURES / "earlier"
"""The figures of the run before the last."""

CLOSE = 0.10


def keep_earlier() -> None:
    """Put the kept figures aside, before a run makes new ones."""
    EARLIER.mkdir(exist_ok=True)
    for path in FIGURES.glob("*.json"):
        shutil.copy(path, EARLIER)


def write(names: Sequence[str]) -> None:
    """Put the comparison of these benchmarks into the documentation, if there are two runs."""
    if EARLIER.is_dir():
        put("benchmarks/agreement.py", sheet(names).markdown())


def sheet(names: Sequence[str]) -> Sheet:
    """Return the ratios that both runs have, and how far apart they are."""
    found = [(name, *pair) for name in names for pair in _pairs(name)]
    apart = [abs(second / first - 1) for _, _, first, second in found]
    within = sum(one <= CLOSE for one in apart)
    title = (
        f"Two whole runs: {within} of {len(found)} ratios within {CLOSE:.0%} of each other, the "
        f"median {statistics.median(apart):.1%} apart"
    )
    return Sheet(
        title=title,
        columns=("benchmark", "ratio to the floor", "earlier", "last", "apart"),
        rows=[
            [name, what, f"{first:.2f}", f"{second:.2f}", f"{far:.0%}"]
            for (name, what, first, second), far in zip(found, apart, strict=True)
        ],
    )


def _pairs(name: str) -> Iterator[tuple[str, float, float]]:
    benchmark: Benchmark = importlib.import_module(f"benchmarks.{name}").BENCHMARK
    first, second = (
        benchmark.ratios(json.loads(_file(folder, name).read_text()))
        for folder in (EARLIER, FIGURES)
    )
    for what, ratio in first.items():
        if what in second:
            yield what, ratio, second[what]


def _file(folder: Path, name: str) -> Path:
    return folder / f"{name}.json"
