"""The page of figures: what a script wrote from what was measured, and nothing else."""

import importlib
import json
from pathlib import Path

import pytest

from benchmarks import agreement
from benchmarks.__main__ import NAMES
from benchmarks.report import DOCS, FIGURES, Benchmark, measured_on, put
from benchmarks.stage import FLOOR, OURS
from benchmarks.throughput import BOTH


@pytest.mark.parametrize("name", NAMES)
def test_the_page_shows_the_kept_figures(name: str) -> None:
    """Every table of a benchmark stands on the page as its file of figures has it."""
    benchmark: Benchmark = importlib.import_module(f"benchmarks.{name}").BENCHMARK
    figures = json.loads((FIGURES / f"{name}.json").read_text())
    page = DOCS.read_text()
    for sheet in benchmark.sheets(figures):
        assert sheet.markdown() in page


def test_the_page_compares_the_kept_runs() -> None:
    """The figures of the two last runs stand on the page, and how many are close."""
    page = DOCS.read_text()
    for sheet in agreement.sheets(NAMES):
        assert sheet.markdown() in page


def test_ratios_that_are_apart_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two runs: two ratios are close, one is not, and those of one run alone are named as such."""

    def rate(sessions: int, ratio: float) -> dict[str, object]:
        return {"sessions": sessions, "workers": 1, "ratio": [ratio, ratio, ratio]}

    both = [rate(1, 1.0), rate(10, 1.0)]
    runs = {
        "earlier": [*both, rate(20, 1.0)],
        ".": [rate(1, 1.05), rate(10, 0.8), rate(50, 1.0), rate(60, 1.0)],
    }
    for folder, rates in runs.items():
        (tmp_path / folder).mkdir(exist_ok=True)
        figures = {
            "rates": rates,
            "processes_mb": {BOTH: [200.0], FLOOR: [220.0], OURS: [250.0]},
            "sessions_kb": {OURS: {"cached": 150.0}},
        }
        (tmp_path / folder / "throughput.json").write_text(json.dumps(figures))
    monkeypatch.setattr(agreement, "FIGURES", tmp_path)
    monkeypatch.setattr(agreement, "EARLIER", tmp_path / "earlier")
    (sheet, _) = agreement.sheets(["throughput"])
    assert sheet.title == (
        "Two whole runs: 2 of 3 ratios within 10% of each other, the median 5.0% apart; "
        "2 only in the last run; 1 only in the earlier run"
    )
    alone = ["only in the earlier", "only in the last", "only in the last"]
    assert [row[-1] for row in sheet.rows] == ["5%", "20%", alone[0], "0%", *alone[1:]]


def test_a_dream_that_got_dearer_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What has no floor is compared too: a dream of twice the requests is far apart."""
    kept = json.loads((FIGURES / "dreams.json").read_text())
    for folder, times in {"earlier": 1, ".": 2}.items():
        (tmp_path / folder).mkdir(exist_ok=True)
        rows = [{**row, "requests": times * row["requests"]} for row in kept["rows"]]
        (tmp_path / folder / "dreams.json").write_text(json.dumps({**kept, "rows": rows}))
    monkeypatch.setattr(agreement, "FIGURES", tmp_path)
    monkeypatch.setattr(agreement, "EARLIER", tmp_path / "earlier")
    (_, sheet) = agreement.sheets(["dreams"])
    found = {row[1]: row[-1] for row in sheet.rows}
    assert found["10 facts, 100 messages: requests"] == "100%"
    assert found["10 facts, 100 messages: prompts kB"] == "0%"


def test_how_long_a_benchmark_took_is_said() -> None:
    """The sentence about the machine has the minutes, if the file has them."""
    figures = json.loads((FIGURES / "dreams.json").read_text())
    figures.pop("took_seconds", None)
    assert measured_on(figures).startswith("Measured on ")
    assert measured_on({**figures, "took_seconds": 312}).startswith("Measured in 5.2 minutes on ")


def test_a_first_run_is_compared_with_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that finds no figures of an earlier one leaves the comparison as it is."""
    monkeypatch.setattr(agreement, "FIGURES", tmp_path)
    monkeypatch.setattr(agreement, "EARLIER", tmp_path / "earlier")
    agreement.keep_earlier()
    before = DOCS.read_text()
    agreement.write(NAMES)
    assert DOCS.read_text() == before


def test_a_page_without_the_marks_is_refused(tmp_path: Path) -> None:
    """Figures are not written anywhere else, and nothing is lost."""
    page = tmp_path / "page.md"
    page.write_text("# Performance\n")
    with pytest.raises(ValueError, match="lacks the marks"):
        put("benchmarks/turn.py", "| 1 |", page)
    assert page.read_text() == "# Performance\n"
