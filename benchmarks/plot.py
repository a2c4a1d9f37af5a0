"""The plot of the page: a turn's time and its history as a session grows, by contender.

It is an SVG file with a background of its own, light or dark as the reader's system is.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from benchmarks.report import ROOT, Figures, benchmark
from benchmarks.stage import BARE, FLOOR, NAIVE, OURS

FILE = ROOT / "docs" / "images" / "performance.svg"

CASE = "plain"
"""The session that is drawn: a message and an answer of 1,000 characters per turn, no tools."""

CONTENDERS = {
    OURS: "agentmem",
    FLOOR: "held: the conversation in the worker's memory, lost with it",
    NAIVE: "naive: the whole conversation is each activity's input",
    BARE: "bare: one update and one activity, no model",
}

WIDTH, HEIGHT = 760, 400
LEFT, RIGHT = 52, 24
PANEL = (WIDTH - 2 * (LEFT + RIGHT)) / 2
TOP, BOTTOM = 56, 282

STYLE = """
text { font: 12px system-ui, -apple-system, "Segoe UI", sans-serif; fill: #1f2328; }
.title { font-size: 14px; font-weight: 600; }
.quiet { fill: #59636e; }
.ground { fill: #ffffff; }
.grid { stroke: #d1d9e0; }
.line { fill: none; stroke-width: 2.5; }
.agentmem { stroke: #0969da; } .agentmem-dot { fill: #0969da; }
.held { stroke: #59636e; stroke-dasharray: 6 4; } .held-dot { fill: #59636e; }
.naive { stroke: #bc4c00; } .naive-dot { fill: #bc4c00; }
.bare { stroke: #818b98; stroke-dasharray: 2 4; } .bare-dot { fill: #818b98; }
@media (prefers-color-scheme: dark) {
text { fill: #f0f6fc; }
.quiet { fill: #9198a1; }
.ground { fill: #0d1117; }
.grid { stroke: #3d444d; }
.agentmem { stroke: #4493f8; } .agentmem-dot { fill: #4493f8; }
.held { stroke: #9198a1; } .held-dot { fill: #9198a1; }
.naive { stroke: #f0883e; } .naive-dot { fill: #f0883e; }
.bare { stroke: #656c76; } .bare-dot { fill: #656c76; }
}
"""


@dataclass(frozen=True, kw_only=True)
class _Panel:
    """One of the two diagrams.

    Attributes:
        title: What is drawn, with its unit.
        left: Where it begins, in the picture's units.
        turns: The turns at which was measured, one step each.
        ticks: The values that have a line.
        scale: Gives a value's height, 0 at the lowest tick and 1 at the highest.
        value: Takes the value from a row of figures.
    """

    title: str
    left: float
    turns: Sequence[int]
    ticks: Sequence[float]
    scale: Callable[[float], float]
    value: Callable[[dict[str, Any]], float]

    def x(self, turn: int) -> float:
        """Return where a turn is."""
        return self.left + PANEL * (self.turns.index(turn) + 0.5) / len(self.turns)

    def y(self, value: float) -> float:
        """Return where a value is."""
        return BOTTOM - (BOTTOM - TOP) * self.scale(value)

    def drawn(self, rows: Sequence[dict[str, Any]]) -> Iterator[str]:
        """Give the elements of the diagram."""
        yield _text(self.left, TOP - 20, self.title, "title")
        for tick in self.ticks:
            y = self.y(tick)
            yield (
                f'<line class="grid" x1="{self.left:.1f}" y1="{y:.1f}" '
                f'x2="{self.left + PANEL:.1f}" y2="{y:.1f}"/>'
            )
            yield _text(self.left - 8, y + 4, f"{tick:g}", "quiet", "end")
        for turn in self.turns:
            yield _text(self.x(turn), BOTTOM + 20, f"turn {turn:,}", "quiet", "middle")
        for kind in reversed(CONTENDERS):
            points = [
                (self.x(row["turn"]), self.y(self.value(row)))
                for row in rows
                if row["contender"] == kind
            ]
            line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
            yield f'<polyline class="line {kind}" points="{line}"/>'
            for x, y in points:
                yield f'<circle class="{kind}-dot" cx="{x:.1f}" cy="{y:.1f}" r="4"/>'


def write(file: Path = FILE) -> None:
    """Draw the kept figures into the documentation."""
    file.write_text(svg(benchmark("turn").kept()))


def svg(figures: Figures) -> str:
    """Return the picture of these figures."""
    rows = [row for row in figures["rows"] if row["case"] == CASE]
    turns = list(dict.fromkeys(row["turn"] for row in rows))
    lines = [line for panel in _panels(rows, turns) for line in panel.drawn(rows)]
    alone = "Time and history per turn of a session, by contender, at turns " + ", ".join(
        f"{turn:,}" for turn in turns
    )
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
            f"<title>{escape(alone)}</title>",
            f"<style>{STYLE}</style>",
            f'<rect class="ground" width="{WIDTH}" height="{HEIGHT}" rx="6"/>',
            *lines,
            *_legend(),
            "</svg>\n",
        ]
    )


def _panels(rows: Sequence[dict[str, Any]], turns: Sequence[int]) -> list[_Panel]:
    shown = [row for row in rows if row["contender"] in CONTENDERS]
    highest = max(row["wall_ms"] for row in shown)
    step = 20 if highest <= 160 else 20 * math.ceil(highest / 160)
    most = step * math.ceil(highest / step)
    decades = math.ceil(math.log10(max(row["bytes"] for row in shown) / 1000))

    def time(row: dict[str, Any]) -> float:
        return row["wall_ms"]

    def size(row: dict[str, Any]) -> float:
        return row["bytes"] / 1000

    return [
        _Panel(
            title="Time per turn, ms",
            left=LEFT,
            turns=turns,
            ticks=range(0, most + 1, step),
            scale=lambda ms: ms / most,
            value=time,
        ),
        _Panel(
            title="History per turn, kB (logarithmic)",
            left=2 * LEFT + RIGHT + PANEL,
            turns=turns,
            ticks=[10.0**power for power in range(decades + 1)],
            scale=lambda kb: math.log10(kb) / decades,
            value=size,
        ),
    ]


def _legend() -> Iterator[str]:
    for number, (kind, words) in enumerate(CONTENDERS.items()):
        y = BOTTOM + 48 + 19 * number
        yield f'<line class="line {kind}" x1="{LEFT}" y1="{y}" x2="{LEFT + 32}" y2="{y}"/>'
        yield f'<circle class="{kind}-dot" cx="{LEFT + 16}" cy="{y}" r="4"/>'
        yield _text(LEFT + 42, y + 4, words, "")


def _text(x: float, y: float, words: str, kind: str, anchor: str = "start") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text class="{kind}" {place}>{escape(words)}</text>'
