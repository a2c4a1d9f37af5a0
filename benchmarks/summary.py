"""The table of what a user should expect, from the kept figures of all benchmarks."""

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.report import PAGE, Figures, Sheet, benchmark, machine_of, put
from benchmarks.resume_tables import DEFAULT, KILLED_TURNS
from benchmarks.resume_tables import ratios as resume_ratios
from benchmarks.stage import FLOOR, FREE, OURS

NAME = "benchmarks/summary.py"

COLUMNS = ("what", "agentmem", "of the floor", "of the floor without the sandbox")


@dataclass(frozen=True, kw_only=True)
class Expected:
    """A figure that a user should expect.

    Attributes:
        what: The operation, with its size.
        ours: The figure with its unit.
        floor: The ratio to the floor; None if there is no floor.
        free: The ratio to the floor outside of Temporal's sandbox; None if it was not measured.
    """

    what: str
    ours: str
    floor: float | None = None
    free: float | None = None

    def cells(self) -> list[str]:
        """Return the row as people read it."""
        ratios = ("" if ratio is None else f"{ratio:.2f}" for ratio in (self.floor, self.free))
        return [self.what, self.ours, *ratios]


def write(names: Sequence[str], docs: Path = PAGE) -> None:
    """Put the table into the documentation, from the kept figures."""
    put(NAME, text(names), docs)


def text(names: Sequence[str]) -> str:
    """Return the table of these benchmarks, and a sentence on when and where it was measured."""
    found = {name: benchmark(name).kept() for name in names}
    rows = [row.cells() for name in names for row in _ROWS[name](found[name])]
    sheet = Sheet(title="Medians, with the ratio to the floor", columns=COLUMNS, rows=rows)
    return f"{_measured(found)}\n\n{sheet.markdown()}"


def _measured(found: dict[str, Figures]) -> str:
    """Return the sentences that name runs and machines: one, if all figures are of one run."""
    runs: dict[str, list[str]] = {}
    for name, figures in found.items():
        runs.setdefault(machine_of(figures), []).append(name)
    if len(runs) == 1:
        minutes = sum(figures["took_seconds"] for figures in found.values()) / 60
        [run] = runs
        return f"Measured{run}. The run took {minutes:.0f} minutes."
    return "\n".join(f"- {', '.join(part)}: measured{run}." for run, part in runs.items())


def _turns(figures: Figures) -> Iterator[Expected]:
    rows = {(row["case"], row["turn"]): row for row in figures["rows"] if row["contender"] == OURS}
    for what, case, turn in (
        ("a turn, the session's 100th", "plain", 100),
        ("a turn, the session's 1,000th", "plain", 1_000),
        ("a turn with one tool call, the 100th", "1 tool call", 100),
        ("a turn with four tool calls, the 100th", "4 tool calls", 100),
        ("a turn with one recall of memory, the 100th", "memory tools, 1 recall", 100),
    ):
        row = rows[case, turn]
        ratio = row["wall_ratio"][0]
        yield Expected(
            what=what, ours=f"{row['wall_ms']:.0f} ms", floor=ratio, free=row["wall_free"]
        )
    for what, case, turn in (
        ("history per turn, 1,000 characters", "plain", 100),
        ("history per turn with one tool call", "1 tool call", 100),
    ):
        row = rows[case, turn]
        size = f"{row['bytes'] / 1000:.1f} kB, {row['events']:.0f} events"
        yield Expected(what=what, ours=size, floor=row["bytes_ratio"])
    row = rows["plain", 100]
    yield Expected(
        what="the worker's processor time per turn, the 100th",
        ours=f"{row['worker_ms']:.0f} ms",
        floor=row["worker_ratio"],
        free=row["worker_free"],
    )


def _sessions(figures: Figures) -> Iterator[Expected]:
    rates = {
        (rate["sessions"], rate["contender"]): rate
        for rate in figures["rates"]
        if rate["workers"] == 1
    }
    for sessions in (10, 50):
        rate = rates[sessions, OURS]
        free = rates.get((sessions, FREE))
        yield Expected(
            what=f"turns per second, {sessions} sessions on one worker",
            ours=f"{rate['rate']:.0f}",
            floor=rate["ratio"][0],
            free=rate["ratio"][0] / free["ratio"][0] if free else None,
        )
    ours, floor = (statistics.median(figures["processes_mb"][kind]) for kind in (OURS, FLOOR))
    yield Expected(
        what="a worker's memory after 200 turns", ours=f"{ours:.0f} MB", floor=ours / floor
    )
    kept, held = (figures["sessions_kb"][kind]["cached"] for kind in (OURS, FLOOR))
    yield Expected(
        what="a worker's memory per session in its cache", ours=f"{kept:.0f} kB", floor=kept / held
    )


def _restarts(figures: Figures) -> Iterator[Expected]:
    ratios = resume_ratios(figures)
    for what, name in (
        ("the next answer of a new worker, 100 turns", "100 turns"),
        ("the next answer of a new worker, 1,000 turns", f"1000{DEFAULT}"),
    ):
        yield Expected(
            what=what,
            ours=_seconds(figures["cold"][f"{name}/{OURS}"]),
            floor=ratios[f"{name}, to {FLOOR}"],
            free=ratios[f"{name}, to {FREE}"],
        )
    first = {kind: figures["first"][f"answered/{kind}"] for kind in (OURS, FLOOR, FREE)}
    middle = {kind: statistics.median(seconds) for kind, seconds in first.items()}
    yield Expected(
        what=f"the first answer of a worker that starts after SIGKILL, {KILLED_TURNS} turns",
        ours=_seconds(first[OURS]),
        floor=middle[OURS] / middle[FLOOR],
        free=middle[OURS] / middle[FREE],
    )
    yield Expected(
        what="the answer after SIGKILL in the middle of a model call",
        ours=_seconds(figures["in_call"][OURS]),
    )


def _memory(figures: Figures) -> Iterator[Expected]:
    pairs = {
        (row["database"], row["operation"], row["tasks"]): row["pair"] for row in figures["rows"]
    }
    for database in ("SQLite", "PostgreSQL"):
        for operation in ("recall", "memorize"):
            for tasks in (1, 32):
                pair = pairs[database, operation, tasks]
                yield Expected(
                    what=f"{database}: `{operation}` per second, {tasks} at a time",
                    ours=f"{pair['ours']:,.0f}",
                    floor=pair["ratio"],
                )


def _dreams(figures: Figures) -> Iterator[Expected]:
    rows = {(row["facts"], row["messages"]): row for row in figures["rows"]}
    for facts, messages in ((10, 10), (100, 100), (1_000, 1_000)):
        row = rows[facts, messages]
        yield Expected(
            what=f"a dream over {facts:,} facts and {messages:,} messages",
            ours=f"{row['requests']} model requests, {row['prompt_bytes'] / 1000:.0f} kB, "
            f"{row['wall'] - row['model']:.1f} s without the model",
        )


def _starts(figures: Figures) -> Iterator[Expected]:
    for what, stage in (
        ("a worker's start until it polls", "running"),
        ("a worker's start until its first answer", "answered"),
    ):
        ours, floor = (figures["starts"][kind][stage] for kind in (OURS, FLOOR))
        ratio = statistics.median(mine / one for mine, one in zip(ours, floor, strict=True))
        yield Expected(what=what, ours=_seconds(ours), floor=ratio)


def _seconds(samples: Sequence[float]) -> str:
    return f"{statistics.median(samples):.1f} s"


_ROWS: dict[str, Callable[[Figures], Iterator[Expected]]] = {
    "turn": _turns,
    "throughput": _sessions,
    "resume": _restarts,
    "memory": _memory,
    "dreams": _dreams,
    "start": _starts,
}
