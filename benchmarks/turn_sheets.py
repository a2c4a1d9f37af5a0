"""The tables and the comparisons of the turns that were measured."""

from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.report import Figures, Goal, Sheet
from benchmarks.stage import FLOOR, OURS

DREAMS = "dreams"
"""The case whose turns start dreams: it has no goal."""

FLAT = 1.1
"""The largest ratio of a later turn to an early one at which a session is called flat."""

COLUMNS = (
    *("session", "turn", "contender", "ms", "ms / held", "middle half", "ms / held, free"),
    *("worker CPU ms", "CPU / held", "CPU / held, free", "server CPU ms", "server CPU / held"),
    *("history kB", "kB / held", "events"),
)


def sheets(figures: Figures) -> list[Sheet]:
    """Return the table, and how ours changes with the length of a session."""
    rows: list[list[str]] = []
    servers = _servers(figures)
    for made in figures["rows"]:
        middle, low, high = made["wall_ratio"]
        rows.append(
            [
                *(made["case"], f"{made['turn']:,}", made["contender"], f"{made['wall_ms']:.0f}"),
                *(f"{middle:.2f}", f"{low:.2f} to {high:.2f}", _ratio(made["wall_free"])),
                *(f"{made['worker_ms']:.1f}", f"{made['worker_ratio']:.2f}"),
                *(_ratio(made["worker_free"]), f"{made['server_ms']:.1f}"),
                f"{made['server_ms'] / servers[made['case'], made['turn']]:.2f}",
                *(f"{made['bytes'] / 1000:.2f}", f"{made['bytes_ratio']:.2f}"),
                f"{made['events']:.1f}",
            ]
        )
    return [
        Sheet(title="A turn, against bare Temporal", columns=COLUMNS, rows=rows),
        Sheet(
            title="A turn of a long session, against its 10th",
            columns=("session", "turn", "contender", "ms", "worker CPU", "history"),
            rows=[
                [case, f"{turn:,}", kind, *(f"{grown[name]:.2f}" for name in GROWN)]
                for case, turn, kind, grown in _growth(figures)
            ],
        ),
    ]


GROWN = ("wall_ms", "worker_ms", "bytes")


def _growth(figures: Figures) -> Iterator[tuple[str, int, str, dict[str, float]]]:
    """Give what each contender's turn takes at a session's last mark, of what it took first."""
    ends: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in figures["rows"]:
        ends.setdefault((row["case"], row["contender"]), []).append(row)
    for (case, kind), rows in ends.items():
        first, last = rows[0], rows[-1]
        if last["turn"] > first["turn"]:
            yield case, last["turn"], kind, {name: last[name] / first[name] for name in GROWN}


def _ratio(one: float | None) -> str:
    return "" if one is None else f"{one:.2f}"


def _servers(figures: Figures) -> dict[tuple[str, int], float]:
    """Return the milliseconds that the floor's turns take of the server."""
    rows = (row for row in figures["rows"] if row["contender"] == FLOOR)
    return {(row["case"], row["turn"]): row["server_ms"] for row in rows}


def _ours(figures: Figures) -> Iterator[tuple[str, dict[str, Any]]]:
    for row in figures["rows"]:
        if row["contender"] == OURS:
            yield f"{row['case']}, turn {row['turn']:,}", row


def ratios(figures: Figures) -> dict[str, float]:
    """Return what ours takes of the floors': time, processor time of the worker, bytes."""
    found: dict[str, float] = {}
    servers = _servers(figures)
    for name, row in _ours(figures):
        found[f"{name}: time"] = row["wall_ratio"][0]
        found[f"{name}: worker CPU"] = row["worker_ratio"]
        found[f"{name}: server CPU"] = row["server_ms"] / servers[row["case"], row["turn"]]
        found[f"{name}: bytes"] = row["bytes_ratio"]
        if row["wall_free"] is not None:
            found[f"{name}: time, floor free"] = row["wall_free"]
            found[f"{name}: worker CPU, floor free"] = row["worker_free"]
    return found


def sizes(figures: Figures) -> dict[str, float]:
    """Return what has no ratio of its own: events, and how a long session's turns grow."""
    found = {f"{name}: events": row["events"] for name, row in _ours(figures)}
    for case, turn, kind, grown in _growth(figures):
        if kind == OURS:
            found[f"{case}, turn {turn:,} to 10: worker CPU"] = grown["worker_ms"]
            found[f"{case}, turn {turn:,} to 10: bytes"] = grown["bytes"]
    return found


def goals(figures: Figures) -> list[Goal]:
    """Return the goals of a turn, dreams left aside: how dear, and flat over a session.

    The floor's turns get slower with a session too: its time is that by which ours is flat.
    """
    rows = {name: row for name, row in _ours(figures) if row["case"] != DREAMS}

    def goal(what: str, limit: float, ratio: Callable[[dict[str, Any]], float]) -> Goal:
        where = max(rows, key=lambda name: ratio(rows[name]))
        return Goal(what=what, limit=limit, worst=ratio(rows[where]), where=where)

    firsts = {row["case"]: row for row in reversed(rows.values())}

    def time(row: dict[str, Any]) -> float:
        return row["wall_ratio"][0]

    limit = f"at most {FLAT} of the session's 10th"
    return [
        goal("a turn's time at most 1.15 of the floor's", 1.15, time),
        goal("a turn's history at most 1.3 of the floor's", 1.3, lambda row: row["bytes_ratio"]),
        goal(
            f"a turn's time, each as a part of the floor's, {limit}",
            FLAT,
            lambda row: time(row) / time(firsts[row["case"]]),
        ),
        goal(
            f"a turn's history {limit}",
            FLAT,
            lambda row: row["bytes"] / firsts[row["case"]]["bytes"],
        ),
    ]
