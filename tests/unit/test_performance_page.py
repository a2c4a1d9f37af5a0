"""The pages of figures: what a script wrote from what was measured, and nothing else."""

import json
import re
from pathlib import Path

import pytest

from benchmarks import agreement, goals, plot, report, summary
from benchmarks.__main__ import NAMES
from benchmarks.report import (
    FIGURES,
    PAGE,
    TABLES,
    Benchmark,
    Figures,
    benchmark,
    measured_on,
    part_of,
    put,
)


@pytest.mark.parametrize("name", NAMES)
def test_the_page_shows_the_kept_figures(name: str) -> None:
    """A benchmark's part of the tables is what its file of figures makes, and nothing else."""
    assert part_of(f"benchmarks/{name}.py") == benchmark(name).part()


def test_the_page_compares_the_kept_runs() -> None:
    """The two last runs, whole ones, stand on the page with their figures."""
    assert part_of("benchmarks/agreement.py") == agreement.text(NAMES)


def test_the_page_shows_the_goals() -> None:
    """All benchmarks' goals stand on the page, with the worst of the kept figures."""
    assert part_of("benchmarks/goals.py", PAGE) == goals.text(NAMES)


def test_the_page_says_what_to_expect() -> None:
    """The summary on the page is what all benchmarks' kept figures make."""
    assert part_of(summary.NAME, PAGE) == summary.text(NAMES)


def test_the_page_draws_the_kept_figures() -> None:
    """The plot is the one that the kept figures make, and the page shows it."""
    assert plot.FILE.read_text() == plot.svg(benchmark("turn").kept())
    assert f"](images/{plot.FILE.name})" in PAGE.read_text()


@pytest.mark.parametrize("contender", plot.CONTENDERS)
def test_a_slower_turn_is_drawn_higher(contender: str) -> None:
    """A turn that takes twice as long is drawn nearer to the top; the others stay."""
    figures = benchmark("turn").kept()
    rows = {(row["case"], row["turn"], row["contender"]): row for row in figures["rows"]}
    rows[plot.CASE, 10, "held"]["wall_ms"] = 999  # so that the scale stays
    before = _heights(plot.svg(figures))
    rows[plot.CASE, 100, contender]["wall_ms"] = 2 * rows[plot.CASE, 100, contender]["wall_ms"]
    after = _heights(plot.svg(figures))
    moved = {key: after[key] - before[key] for key in before if after[key] != before[key]}
    assert list(moved) == [(contender, 1)]
    assert moved[contender, 1] < 0


def test_figures_of_several_runs_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page whose figures are not of one run says which benchmark is of which."""
    kept = Benchmark.kept

    def mixed(one: Benchmark) -> Figures:
        commit = "1234567" if one.name == "dreams" else "7654321"
        return kept(one) | {"run": "2026-11-30T09:22:01Z", "commit": commit}

    monkeypatch.setattr(Benchmark, "kept", mixed)
    lines = summary.text(NAMES).splitlines()
    rest = ", ".join(name for name in NAMES if name != "dreams")
    assert lines[0].startswith(f"- {rest}: measured on 2026-11-30 (commit 7654321) on ")
    assert lines[1].startswith("- dreams: measured on 2026-11-30 (commit 1234567) on ")


def test_the_page_explains_what_is_missed() -> None:
    """Each goal that is missed has its reason below the table, and no other one has."""
    missed = [goal.what for _, goal in goals.goals(NAMES) if not goal.met]
    assert sorted(goals.explained(PAGE.read_text())) == sorted(missed)


def test_a_missed_goal_without_a_reason_is_not_explained() -> None:
    """A missed goal must be named below the table, with the reason."""
    page = """
- Missed: above the table. Here.
<!-- benchmarks/goals.py writes to here -->

- Missed: at most 1.15 times
  the time. The rest waits.
- Missed: at least 0.7.

## A turn

- Missed: elsewhere. There.
"""
    assert goals.explained(page) == ["at most 1.15 times the time"]


@pytest.mark.parametrize(("worst", "met"), [(0.72, "yes"), (0.699, "no")])
def test_a_goal_below_its_least_is_missed(
    worst: float, met: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row lower than the others decides; floors of another kind do not."""
    rows = {"recall": 1.0, "memorize, new key": worst, "memorize, floor at once": 0.1}
    figures = {
        "rows": [
            {"database": "SQLite", "operation": name, "tasks": 32, "pair": {"ratio": ratio}}
            for name, ratio in rows.items()
        ]
    }

    def kept(_: Benchmark) -> Figures:
        return figures

    monkeypatch.setattr(Benchmark, "kept", kept)
    *_, row = goals.text(["memory"]).splitlines()
    assert row.endswith(f"| at least 0.7 | {worst} | SQLite, memorize, new key, 32 tasks | {met} |")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a folder for the figures of runs."""
    monkeypatch.setattr(report, "FIGURES", tmp_path)
    monkeypatch.setattr(agreement, "EARLIER", tmp_path / "earlier.json")
    return tmp_path


def _measured(folder: Path, run: str, *names: str, **changed: object) -> None:
    """Write figures as these benchmarks do within a run; alone if it is empty."""
    for name in names:
        made = json.loads((FIGURES / f"{name}.json").read_text())
        made = {key: value for key, value in made.items() if key not in ("run", "commit")}
        if run:
            made |= {"run": run, "commit": "1234567"}
        (folder / f"{name}.json").write_text(json.dumps(made | changed))


def test_ratios_that_are_apart_are_counted(folder: Path) -> None:
    """Two runs: one ratio is close, one is not, and those of one run alone are named as such."""

    def rows(**ratios: float) -> list[object]:
        return [
            {"database": "SQLite", "operation": name, "tasks": 1, "pair": {"ratio": ratio}}
            for name, ratio in ratios.items()
        ]

    _measured(folder, "one", "memory", rows=rows(close=1.0, apart=1.0, gone=1.0))
    agreement.keep_earlier(["memory"])
    _measured(folder, "two", "memory", rows=rows(close=1.05, apart=0.8, new=1.0, newer=1.0))
    text = agreement.text(["memory"])
    assert (
        "Two whole runs: 1 of 2 ratios within 10% of each other, the median 12.5% apart; "
        "2 only in the last run; 1 only in the earlier run:"
    ) in text
    for row in (
        "| SQLite, close, 1 tasks | 1.00 | 1.05 | 5% |",
        "| SQLite, apart, 1 tasks | 1.00 | 0.80 | 20% |",
        "| SQLite, gone, 1 tasks | 1.00 |  | only in the earlier |",
        "| SQLite, new, 1 tasks |  | 1.00 | only in the last |",
    ):
        assert row in text


def test_a_dream_that_got_dearer_shows(folder: Path) -> None:
    """Rows without a floor are compared too: a dream of twice the requests is far apart."""
    _measured(folder, "one", "dreams")
    agreement.keep_earlier(["dreams"])
    kept = json.loads((FIGURES / "dreams.json").read_text())
    rows = [{**row, "requests": 2 * row["requests"]} for row in kept["rows"]]
    _measured(folder, "two", "dreams", rows=rows)
    found = [row.split(" | ") for row in agreement.text(["dreams"]).splitlines()]
    apart = {row[1]: row[-1] for row in found if len(row) == 5}
    assert apart["10 facts, 100 messages: requests"] == "100% |"
    assert apart["10 facts, 100 messages: prompts kB"] == "0% |"


def test_how_long_a_benchmark_took_is_said() -> None:
    """The sentence about the machine has the minutes; a benchmark that ran alone has no commit."""
    figures = json.loads((FIGURES / "dreams.json").read_text())
    alone = {key: value for key, value in figures.items() if key not in ("run", "commit")}
    assert measured_on({**alone, "took_seconds": 312}).startswith("Measured in 5.2 minutes on ")


def test_date_and_commit_are_said() -> None:
    """The sentence about the machine has both, of a benchmark that was not run alone."""
    figures = json.loads((FIGURES / "dreams.json").read_text())
    figures |= {"run": "2026-11-30T09:22:01Z", "commit": "1234567+", "took_seconds": 60}
    begins = "Measured on 2026-11-30 (commit 1234567+) in 1.0 minutes on "
    assert measured_on(figures).startswith(begins)


def test_a_first_run_is_compared_with_nothing(folder: Path) -> None:
    """A run that finds no figures of an earlier one leaves the comparison as it is."""
    agreement.keep_earlier(NAMES)
    before = TABLES.read_text()
    agreement.write(NAMES)
    assert TABLES.read_text() == before


def test_two_whole_runs_are_compared(folder: Path) -> None:
    """The comparison says which runs they are."""
    both = ("dreams", "start")
    _measured(folder, "one", *both)
    agreement.keep_earlier(both)
    with pytest.raises(ValueError, match="both runs are that of one"):
        agreement.text(both)
    _measured(folder, "two", *both)
    said = "The earlier run began at one (commit 1234567), the last at two (commit 1234567)."
    assert agreement.text(both).startswith(said)


@pytest.mark.parametrize("other", ["two", ""])
def test_a_mix_of_runs_is_no_whole_run(folder: Path, other: str) -> None:
    """One benchmark alone, or a run that broke off: no comparison, and the earlier stays."""
    both = ("dreams", "start")
    _measured(folder, "one", *both)
    agreement.keep_earlier(both)
    _measured(folder, other, "start")
    with pytest.raises(ValueError, match="not all of one run: dreams of one"):
        agreement.text(both)
    agreement.keep_earlier(both)
    assert json.loads((folder / "earlier.json").read_text())["run"] == "one (commit 1234567)"


def test_a_page_without_the_marks_is_refused(tmp_path: Path) -> None:
    """Figures are not written anywhere else, and nothing is lost."""
    page = tmp_path / "page.md"
    page.write_text("# Performance\n")
    with pytest.raises(ValueError, match="lacks the marks"):
        put("benchmarks/turn.py", "| 1 |", page)
    assert page.read_text() == "# Performance\n"


def _heights(svg: str) -> dict[tuple[str, int], float]:
    """Return where the points of the first diagram are drawn, by contender and number."""
    found: dict[str, list[float]] = {}
    for kind, y in re.findall(r'<circle class="(\w+)-dot" cx="[\d.]+" cy="([\d.]+)"', svg):
        found.setdefault(kind, []).append(float(y))
    return {
        (kind, number): y
        for kind, points in found.items()
        for number, y in enumerate(points[: (len(points) - 1) // 2])
    }
