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
from benchmarks.processes import cpu_seconds
from benchmarks.report import Benchmark, Figures
from benchmarks.stage import FLOOR, FREE, OURS, Contender, stage
from benchmarks.talk import Talk, take_turns
from benchmarks.throughput_tables import goals, ratios, sheets, sizes
from benchmarks.worker_memory import processes_mb, sessions_kb

SESSIONS = {1: 40, 10: 15, 50: 5}
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
    rounds = 15 if options.full else 11
    with tempfile.TemporaryDirectory() as folder:
        async with stage(Path(folder)) as made:
            for workers in (1, 2):
                kinds = [FLOOR, FREE, OURS] if workers == FREE_TOO[0] else [FLOOR, OURS]
                async with made.contenders(kinds, workers=workers) as contenders:
                    rates += await _compared(contenders, workers, rounds)
            processes = await processes_mb(made)
            memory = {kind: await sessions_kb(made, kind) for kind in (FLOOR, OURS)}
    return {
        "rates": [asdict(rate) for rate in rates],
        "processes_mb": processes,
        "sessions_kb": memory,
    }


async def _compared(contenders: Sequence[Contender], workers: int, rounds: int) -> list[Rate]:
    """Take the rounds of all numbers of sessions in turn: what disturbs one, disturbs each."""
    taking = {
        sessions: [c for c in contenders if c.kind != FREE or (workers, sessions) == FREE_TOO]
        for sessions in SESSIONS
    }
    talks = {
        (sessions, one.kind): await _opened(one, sessions)
        for sessions, those in taking.items()
        for one in those
    }
    found: dict[tuple[int, str], list[Round]] = {key: [] for key in talks}
    for number in range(rounds):
        for sessions, those in taking.items():
            for one in those[:: -1 if number % 2 else 1]:
                key = sessions, one.kind
                found[key].append(await _round(one, talks[key], SESSIONS[sessions]))
    for talk in (talk for those in talks.values() for talk in those):
        await talk.handle.terminate()
    return [
        summed(made, found[sessions, FLOOR], workers, sessions, kind)
        for (sessions, kind), made in found.items()
    ]


def summed(
    made: Sequence[Round], floor: Sequence[Round], workers: int, sessions: int, kind: str
) -> Rate:
    """Sum up a contender's rounds against the floor's."""
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
