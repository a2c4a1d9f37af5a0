"""The results of `benchmarks/throughput.py`: its tables, its ratios, its goals."""

import statistics

from benchmarks.report import Figures, Goal, Sheet
from benchmarks.stage import FLOOR, OURS
from benchmarks.worker_memory import BOTH, CACHED, EACH, EVICTED, IMPORTS, LONG, OWN, SAMPLES


def sheets(figures: Figures) -> list[Sheet]:
    """Return the tables."""
    rates: list[list[str]] = []
    servers = _servers(figures)
    for rate in figures["rates"]:
        middle, low, high = rate["ratio"]
        rates.append(
            [
                *(str(rate["workers"]), str(rate["sessions"]), rate["contender"]),
                *(f"{rate['rate']:.1f}", f"{middle:.2f}", f"{low:.2f} to {high:.2f}"),
                *(f"{rate['worker_ms']:.1f}", f"{rate['worker_ratio']:.2f}"),
                *(f"{rate['server_ms']:.1f}", f"{rate['server_ms'] / servers[_row(rate)]:.2f}"),
                f"{rate['driver_ms']:.1f}",
            ]
        )
    processes = figures["processes_mb"]
    imports = [statistics.median(processes[name]) for name in IMPORTS]
    memory: list[list[str]] = []
    for name, found in processes.items():
        middle = statistics.median(found)
        over = [f"{middle - alone:+.1f}" for alone in imports]
        shares = [f"{share:.0f}" for share in figures["sessions_kb"].get(name, {}).values()]
        memory.append(
            [
                *(name, f"{middle:.1f}", f"{min(found):.1f} to {max(found):.1f}"),
                *(over if name not in IMPORTS else ["", ""]),
                *(shares or ["", ""]),
            ]
        )
    return [
        Sheet(
            title="Turns per second, and processor time per turn; the driver has the model too",
            columns=(
                *("workers", "sessions", "contender", "turns/s", "turns / held", "middle half"),
                *("worker CPU ms per turn", "CPU / held"),
                *("server CPU ms", "server CPU / held", "driver CPU ms"),
            ),
            rows=rates,
        ),
        Sheet(
            title=f"A process's memory: of the imports {BOTH} or {OWN} alone, or of a worker "
            f"after a session of {LONG} turns; median of {SAMPLES} processes. In addition, in "
            f"another worker, what it grows by with a session of {EACH} turns that lives on: with "
            f"each of {CACHED} that stay in its cache of workflows, and with each of {EVICTED} "
            "more, which push another one out",
            columns=(
                *("process", "MB", "from and to", f"MB over {BOTH}", f"MB over {OWN}"),
                *("kB per session, cached", "kB per session, evicted"),
            ),
            rows=memory,
        ),
    ]


def ratios(figures: Figures) -> dict[str, float]:
    """Return ours to the floor's: turns a second, processor time, memory over imports."""
    found: dict[str, float] = {}
    servers = _servers(figures)
    for rate in _ours(figures):
        found[_row(rate)] = rate["ratio"][0]
        found[f"{_row(rate)}: worker CPU"] = rate["worker_ratio"]
        found[f"{_row(rate)}: server CPU"] = rate["server_ms"] / servers[_row(rate)]
    processes = figures["processes_mb"]
    alone, floor, ours = (statistics.median(processes[name]) for name in (BOTH, FLOOR, OURS))
    return {**found, f"MB over imports, {LONG} turns": (ours - alone) / (floor - alone)}


def sizes(figures: Figures) -> dict[str, float]:
    """Return a worker's megabytes over imports, and the kilobytes that a session takes.

    Of these few kilobytes a ratio would say little: each is the slope of readings off by megabytes.
    """
    found: dict[str, float] = {}
    processes = figures["processes_mb"]
    for kind in (FLOOR, OURS):
        for name in IMPORTS:
            over = statistics.median(processes[kind]) - statistics.median(processes[name])
            found[f"{kind}, {LONG} turns: MB over {name}"] = over
        sessions = figures["sessions_kb"][kind]
        found |= {f"{kind}, kB a session, {name}": kb for name, kb in sessions.items()}
    return found


def goals(figures: Figures) -> list[Goal]:
    """Return the goals of turns a second and of a worker's memory."""
    slowest = min(_ours(figures), key=lambda rate: rate["ratio"][0])
    processes = figures["processes_mb"]
    ours, alone = processes[OURS], statistics.median(processes[OWN])
    return [
        Goal(
            what="turns per second at least 0.9 of the floor",
            limit=0.9,
            worst=slowest["ratio"][0],
            where=_row(slowest),
            least=True,
        ),
        Goal(
            what=f"a worker after {LONG} turns at most 50 MB over a process that has imported "
            "temporalio, sqlalchemy and litellm",
            limit=50,
            worst=statistics.median(ours) - alone,
            where=f"the median of {len(ours)} workers; the largest {max(ours) - alone:.1f}",
        ),
    ]


def _servers(figures: Figures) -> dict[str, float]:
    """Return the milliseconds that the floor's turns take of the server."""
    return {
        _row(rate): rate["server_ms"] for rate in figures["rates"] if rate["contender"] == FLOOR
    }


def _ours(figures: Figures) -> list[Figures]:
    return [rate for rate in figures["rates"] if rate["contender"] == OURS]


def _row(rate: Figures) -> str:
    return f"{rate['sessions']} sessions, {rate['workers']} workers"
