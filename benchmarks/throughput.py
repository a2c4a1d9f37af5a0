"""Measure how many turns a second many sessions get, and what they take of a worker's memory.

Floor and ours take rounds in turn. In a round each session takes its turns one after another, all
sessions at once; a ratio is the median over pairs of rounds. Memory is that of three workers each,
in turn too. Needs Linux (/proc).
"""

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.report import Benchmark, Figures, Sheet
from benchmarks.stage import FLOOR, OURS, Contender, Stage, Talk, resident, stage
from benchmarks.texts import question

SESSIONS = {1: 20, 10: 5, 50: 5}
"""Concurrent sessions, and the turns that each takes in a round."""

LONG = 200
"""Turns of the session after which a worker's memory is read."""

SAMPLES = 3
"""Of a process's memory, each of a process of its own."""

CACHED, EVICTED = 300, 600
"""Sessions by which memory a session is measured: those that a cache takes, those after them."""

AT_ONCE, EACH = 50, 3
"""How many of those talk at a time, and the turns that each takes."""

BOTH = "temporalio, litellm"
OWN = f"{BOTH}, sqlalchemy"
"""Processes that have only imported: what both contenders do, what ours does."""

IMPORTS = {
    BOTH: "temporalio.client, temporalio.worker, temporalio.contrib.pydantic, litellm",
    OWN: "temporalio.client, temporalio.worker, temporalio.contrib.pydantic, litellm, "
    "sqlalchemy.ext.asyncio",
}

IMPORTED = """
import os
import {modules}
print(int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6)
"""


@dataclass(frozen=True, kw_only=True)
class Rate:
    """Turns a second of floor and ours, and their ratio with its middle half."""

    workers: int
    sessions: int
    floor: float
    ours: float
    ratio: tuple[float, float, float]


async def measure(options: argparse.Namespace) -> Figures:
    """Measure rates, then memory."""
    rates: list[Rate] = []
    rounds = 15 if options.full else 9
    with tempfile.TemporaryDirectory() as folder:
        async with stage(Path(folder)) as made:
            for workers in (1, 2):
                async with made.contenders([FLOOR, OURS], workers=workers) as contenders:
                    rates += [
                        await _compared(contenders, workers, sessions, rounds)
                        for sessions in SESSIONS
                    ]
            processes = await _processes(made)
            sessions = {kind: await _sessions(made, kind) for kind in (FLOOR, OURS)}
    return {
        "rates": [asdict(rate) for rate in rates],
        "processes_mb": processes,
        "sessions_kb": sessions,
    }


async def _compared(
    contenders: Sequence[Contender], workers: int, sessions: int, rounds: int
) -> Rate:
    talks: dict[str, list[Talk]] = {}
    for contender in contenders:
        talks[contender.kind] = await _opened(contender, sessions)
    found: dict[str, list[float]] = {kind: [] for kind in talks}
    for number in range(rounds):
        for kind in sorted(talks, reverse=bool(number % 2)):
            found[kind].append(await _rate(talks[kind], SESSIONS[sessions]))
    for talk in (talk for kind in talks.values() for talk in kind):
        await talk.handle.terminate()
    pairs = zip(found[OURS], found[FLOOR], strict=True)
    low, middle, high = statistics.quantiles(
        [ours / floor for ours, floor in pairs], n=4, method="inclusive"
    )
    return Rate(
        workers=workers,
        sessions=sessions,
        floor=statistics.median(found[FLOOR]),
        ours=statistics.median(found[OURS]),
        ratio=(middle, low, high),
    )


async def _opened(contender: Contender, sessions: int) -> list[Talk]:
    """Start sessions that have had a turn."""
    talks = [await contender.open() for _ in range(sessions)]
    await _rate(talks, 1)
    return talks


async def _rate(talks: Sequence[Talk], turns: int) -> float:
    async def work(talk: Talk) -> None:
        for number in range(turns):
            await talk.say(question(number))

    began = time.perf_counter()
    await asyncio.gather(*(work(talk) for talk in talks))
    return len(talks) * turns / (time.perf_counter() - began)


async def _processes(stage: Stage) -> dict[str, list[float]]:
    """Return the megabytes of processes: of imports alone, and of workers after a long session."""
    found: dict[str, list[float]] = {name: [] for name in (*IMPORTS, FLOOR, OURS)}
    for _ in range(SAMPLES):
        for name, modules in IMPORTS.items():
            found[name].append(_imported(modules))
        for kind in (FLOOR, OURS):
            async with stage.contender(kind) as contender:
                await _rate([await contender.open()], LONG)
                found[kind].append(resident(*contender.pids))
    return found


def _imported(modules: str) -> float:
    environment = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    code = IMPORTED.format(modules=modules)
    return float(subprocess.check_output([sys.executable, "-c", code], env=environment))


async def _sessions(stage: Stage, kind: str) -> dict[str, float]:
    """Return what a worker grows by with each session that lives on, in kilobytes.

    The cache of workflows has room for the sessions that warm the worker up and for as many as are
    measured. Each one after them pushes another out: what the worker grows by then is what an
    evicted session leaves behind.
    """
    async with stage.contender(kind, cached=AT_ONCE + CACHED) as contender:
        await _grown(contender, AT_ONCE)
        return {
            "cached": await _grown(contender, CACHED),
            "evicted": await _grown(contender, EVICTED),
        }


async def _grown(contender: Contender, sessions: int) -> float:
    """Hold sessions that live on; returns the slope, as each reading is off by megabytes."""
    (pid,) = contender.pids
    held = range(0, sessions + 1, AT_ONCE)
    megabytes = [resident(pid)]
    for _ in held[1:]:
        await _rate([await contender.open() for _ in range(AT_ONCE)], EACH)
        megabytes.append(resident(pid))
    return 1000 * statistics.linear_regression(held, megabytes).slope


def sheets(figures: Figures) -> list[Sheet]:
    """Return the tables."""
    rates: list[list[str]] = []
    for rate in figures["rates"]:
        middle, low, high = rate["ratio"]
        rates.append(
            [
                *(str(rate["workers"]), str(rate["sessions"])),
                *(f"{rate['floor']:.1f}", f"{rate['ours']:.1f}"),
                *(f"{middle:.2f}", f"{low:.2f} to {high:.2f}"),
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
            title="Turns a second",
            columns=(
                "workers",
                "sessions",
                "held/s",
                "agentmem/s",
                "agentmem / held",
                "middle half",
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
    """Return our turns a second, and our worker's memory over imports, to the floor's."""
    rates = {
        f"{rate['sessions']} sessions, {rate['workers']} workers": rate["ratio"][0]
        for rate in figures["rates"]
    }
    processes = figures.get("processes_mb")
    if processes is None:  # an older file
        return rates
    alone, floor, ours = (statistics.median(processes[name]) for name in (BOTH, FLOOR, OURS))
    return {**rates, f"MB over imports, {LONG} turns": (ours - alone) / (floor - alone)}


def sizes(figures: Figures) -> dict[str, float]:
    """Return the kilobytes that a session takes of our worker."""
    found = figures.get("sessions_kb", {OURS: {}})  # older files do not have it
    return {f"kB a session, {name}": kb for name, kb in found[OURS].items()}


BENCHMARK = Benchmark(
    name="throughput",
    about="Turns a second of many sessions, and a worker's memory.",
    measure=measure,
    sheets=sheets,
    ratios=ratios,
    sizes=sizes,
)

if __name__ == "__main__":
    BENCHMARK.command()
