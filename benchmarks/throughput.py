"""Measure how many turns a second many sessions get, and what they take of a worker's memory.

The contenders take rounds in turn. In a round each session takes its turns one after another, all
sessions at once; a ratio is the median over pairs of rounds. Server, driver and workers share the
machine's cores, so that more processor time of a worker costs fewer turns a second only in part: it
has a ratio of its own. Memory is that of three workers each, in turn too; what a session takes of
it is of one worker. Needs Linux (/proc, clocks of other processes).
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.paired import quartiles
from benchmarks.report import Benchmark, Figures, Goal, Sheet
from benchmarks.stage import FLOOR, FREE, OURS, Contender, Talk, cpu_seconds, stage, take_turns
from benchmarks.worker_memory import (
    BOTH,
    CACHED,
    EACH,
    EVICTED,
    IMPORTS,
    LONG,
    OWN,
    SAMPLES,
    processes_mb,
    sessions_kb,
)

SESSIONS = {1: 20, 10: 5, 50: 5}
"""Concurrent sessions, and the turns that each takes in a round."""

FREE_TOO = (1, 10)
"""Workers and sessions of the row in which the floor outside of the sandbox takes part too."""


@dataclass(frozen=True, kw_only=True)
class Round:
    """Turns a second, and the processor milliseconds that a turn takes of each process.

    The driver, this process, has the model too.
    """

    rate: float
    worker: float
    server: float
    driver: float


@dataclass(frozen=True, kw_only=True)
class Rate:
    """A contender's rounds: medians, and ratios to the floor's; of turns with the middle half."""

    workers: int
    sessions: int
    contender: str
    rate: float
    ratio: tuple[float, float, float]
    worker_ms: float
    worker_ratio: float
    server_ms: float
    driver_ms: float


async def measure(options: argparse.Namespace) -> Figures:
    """Measure rates, then memory."""
    rates: list[Rate] = []
    rounds = 15 if options.full else 9
    with tempfile.TemporaryDirectory() as folder:
        async with stage(Path(folder)) as made:
            for workers in (1, 2):
                kinds = [FLOOR, FREE, OURS] if workers == FREE_TOO[0] else [FLOOR, OURS]
                async with made.contenders(kinds, workers=workers) as contenders:
                    for sessions in SESSIONS:
                        free = (workers, sessions) == FREE_TOO
                        taking = [one for one in contenders if free or one.kind != FREE]
                        rates += await _compared(taking, workers, sessions, rounds)
            processes = await processes_mb(made)
            memory = {kind: await sessions_kb(made, kind) for kind in (FLOOR, OURS)}
    return {
        "rates": [asdict(rate) for rate in rates],
        "processes_mb": processes,
        "sessions_kb": memory,
    }


async def _compared(
    contenders: Sequence[Contender], workers: int, sessions: int, rounds: int
) -> list[Rate]:
    talks = {one.kind: await _opened(one, sessions) for one in contenders}
    found: dict[str, list[Round]] = {kind: [] for kind in talks}
    for number in range(rounds):
        for one in contenders[:: -1 if number % 2 else 1]:
            found[one.kind].append(await _round(one, talks[one.kind], SESSIONS[sessions]))
    for talk in (talk for kind in talks.values() for talk in kind):
        await talk.handle.terminate()
    return [_summed(made, found[FLOOR], workers, sessions, kind) for kind, made in found.items()]


def _summed(
    made: Sequence[Round], floor: Sequence[Round], workers: int, sessions: int, kind: str
) -> Rate:
    pairs = list(zip(made, floor, strict=True))
    low, middle, high = quartiles([one.rate / held.rate for one, held in pairs])
    return Rate(
        workers=workers,
        sessions=sessions,
        contender=kind,
        rate=statistics.median(one.rate for one in made),
        ratio=(middle, low, high),
        worker_ms=statistics.median(one.worker for one in made),
        worker_ratio=statistics.median(one.worker / held.worker for one, held in pairs),
        server_ms=statistics.median(one.server for one in made),
        driver_ms=statistics.median(one.driver for one in made),
    )


async def _round(contender: Contender, talks: Sequence[Talk], turns: int) -> Round:
    """Take the turns of a round, and look at the processes' clocks before and after."""

    def clocks() -> tuple[float, float, float]:
        workers = sum(map(cpu_seconds, contender.pids))
        return workers, cpu_seconds(contender.stage.server), time.process_time()

    before = clocks()
    rate = await _rate(talks, turns)
    taken = (after - earlier for after, earlier in zip(clocks(), before, strict=True))
    worker, server, driver = (1000 * seconds / (len(talks) * turns) for seconds in taken)
    return Round(rate=rate, worker=worker, server=server, driver=driver)


async def _opened(contender: Contender, sessions: int) -> list[Talk]:
    """Start sessions that have had a turn."""
    talks = [await contender.open() for _ in range(sessions)]
    await take_turns(talks, 1)
    return talks


async def _rate(talks: Sequence[Talk], turns: int) -> float:
    began = time.perf_counter()
    await take_turns(talks, turns)
    return len(talks) * turns / (time.perf_counter() - began)


def sheets(figures: Figures) -> list[Sheet]:
    """Return the tables."""
    rates: list[list[str]] = []
    for rate in figures["rates"]:
        middle, low, high = rate["ratio"]
        rates.append(
            [
                *(str(rate["workers"]), str(rate["sessions"]), rate["contender"]),
                *(f"{rate['rate']:.1f}", f"{middle:.2f}", f"{low:.2f} to {high:.2f}"),
                *(f"{rate['worker_ms']:.1f}", f"{rate['worker_ratio']:.2f}"),
                *(f"{rate['server_ms']:.1f}", f"{rate['driver_ms']:.1f}"),
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
            title="Turns a second, and processor time a turn; the driver has the model too",
            columns=(
                *("workers", "sessions", "contender", "turns/s", "turns / held", "middle half"),
                *("worker CPU ms a turn", "CPU / held", "server CPU ms", "driver CPU ms"),
            ),
            rows=rates,
        ),
        Sheet(
            title=f"A process's memory: of the imports {BOTH} or {OWN} alone, or of a worker "
            f"after a session of {LONG} turns; median of {SAMPLES} processes. Besides, in another "
            f"worker, what it grows by with a session of {EACH} turns that lives on: with each of "
            f"{CACHED} that stay in its cache of workflows, and with each of {EVICTED} more, which "
            "push another one out",
            columns=(
                *("process", "MB", "from and to", f"MB over {BOTH}", f"MB over {OWN}"),
                *("kB a session, cached", "kB a session, evicted"),
            ),
            rows=memory,
        ),
    ]


def ratios(figures: Figures) -> dict[str, float]:
    """Return ours to the floor's: turns a second, processor time, memory over imports."""
    found: dict[str, float] = {}
    for rate in _ours(figures):
        found[_row(rate)] = rate["ratio"][0]
        found[f"{_row(rate)}: worker CPU"] = rate["worker_ratio"]
    processes = figures["processes_mb"]
    alone, floor, ours = (statistics.median(processes[name]) for name in (BOTH, FLOOR, OURS))
    return {**found, f"MB over imports, {LONG} turns": (ours - alone) / (floor - alone)}


def sizes(figures: Figures) -> dict[str, float]:
    """Return a worker's megabytes over imports, and the kilobytes that a session takes of ours."""
    found: dict[str, float] = {}
    processes = figures["processes_mb"]
    for kind in (FLOOR, OURS):
        for name in IMPORTS:
            over = statistics.median(processes[kind]) - statistics.median(processes[name])
            found[f"{kind}, {LONG} turns: MB over {name}"] = over
    sessions = figures["sessions_kb"][OURS]
    return found | {f"kB a session, {name}": kb for name, kb in sessions.items()}


def goals(figures: Figures) -> list[Goal]:
    """Return the goals of turns a second and of a worker's memory."""
    slowest = min(_ours(figures), key=lambda rate: rate["ratio"][0])
    processes = figures["processes_mb"]
    ours, alone = processes[OURS], statistics.median(processes[OWN])
    return [
        Goal(
            what="turns a second at least 0.9 of the floor",
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


def _ours(figures: Figures) -> list[Figures]:
    return [rate for rate in figures["rates"] if rate.get("contender", OURS) == OURS]


def _row(rate: Figures) -> str:
    return f"{rate['sessions']} sessions, {rate['workers']} workers"


BENCHMARK = Benchmark(
    name="throughput",
    about="Turns a second of many sessions, and a worker's memory.",
    measure=measure,
    sheets=sheets,
    ratios=ratios,
    goals=goals,
    sizes=sizes,
)

if __name__ == "__main__":
    BENCHMARK.command()
