"""The page of figures: what a script wrote from what was measured, and nothing else."""

import importlib
import json
from pathlib import Path

import pytest

from benchmarks import agreement
from benchmarks.__main__ import NAMES
from benchmarks.report import DOCS, FIGURES, Benchmark, put


@pytest.mark.parametrize("name", NAMES)
def test_the_page_shows_the_kept_figures(name: str) -> None:
    """Every table of a benchmark stands on the page as its file of figures has it."""
    benchmark: Benchmark = importlib.import_module(f"benchmarks.{name}").BENCHMARK
    figures = json.loads((FIGURES / f"{name}.json").read_text())
    page = DOCS.read_text()
    for sheet in benchmark.sheets(figures):
        assert sheet.markdown() in page


def test_the_page_compares_the_kept_runs() -> None:
    """The ratios of the two last runs stand on the page, and how many are close."""
    assert agreement.sheet(NAMES).markdown() in DOCS.read_text()


def test_ratios_that_are_apart_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two runs of one benchmark: one ratio is close, one is not, one is of one run alone."""

    def rate(sessions: int, ratio: float) -> dict[str, object]:
        return {"sessions": sessions, "workers": 1, "ratio": [ratio, ratio, ratio]}

    runs = {"earlier": [rate(1, 1.0), rate(10, 1.0)], ".": [rate(1, 1.05), rate(10, 0.8)]}
    for folder, rates in runs.items():
        (tmp_path / folder).mkdir(exist_ok=True)
        figures = {"rates": [*rates, *([rate(50, 1.0)] if folder == "." else [])]}
        (tmp_path / folder / "throughput.json").write_text(json.dumps(figures))
    monkeypatch.setattr(agreement, "FIGURES", tmp_path)
    monkeypatch.setattr(agreement, "EARLIER", tmp_path / "earlier")
    sheet = agreement.sheet(["throughput"])
    assert sheet.title.startswith("Two whole runs: 1 of 2 ratios within 10% of each other")
    assert [row[-1] for row in sheet.rows] == ["5%", "20%"]


def test_a_page_without_the_marks_is_refused(tmp_path: Path) -> None:
    """Figures are not written anywhere else, and nothing is lost."""
    page = tmp_path / "page.md"
    page.write_text("# Performance\n")
    with pytest.raises(ValueError, match="lacks the marks"):
        put("benchmarks/turn.py", "| 1 |", page)
    assert page.read_text() == "# Performance\n"
