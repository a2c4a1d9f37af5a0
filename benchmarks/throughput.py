"""Measure how many turns a second many sessions get, and what they take of a worker's memory.

Floor and ours take rounds in turn. In a round each session takes its turns one after another, all
sessions at once; a ratio is the median over pairs of rounds. Needs Linux (/proc).
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

from benchmarks.model import question
from benchmarks.report import Benchmark, Figures, Sheet
from benchmarks.stage import FLOOR, OURS, Contender, Stage, Talk, resident, stage

SESSIONS = {1: 20, 10: 5, 50: 5}
"""Concurrent sessions, and the turns that each takes in a round."""

KEPT, AT_ONCE = 300, 50
"""Sessions by which a worker's memory is measured, and how many of them talk at a time."""

IMPORTED = """
import os
import litellm, sqlalchemy.ext.asyncio, temporalio.client, temporalio.worker
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
    memory: dict[str, dict[str, float]] = {}
    rounds = 15 if options.full else 9
    with tempfile.TemporaryDirectory() as folder:
        async with stage(Path(folder)) as made:
            for workers in (1, 2):
                async with made.contenders([FLOOR, OURS], workers=workers) as contenders:
                    rates += [
                        await _compared(contenders, workers, sessions, rounds)
                        for sessions in SESSIONS
                    ]
            for kind in (FLOOR, OURS):
                memory[kind] = await _memory(made, kind)
    memory["imports alone"] = {"200 turns": _imported()}
    return {"rates": [asdict(rate) for rate in rates], "memory_mb": memory}


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


async def _memory(stage: Stage, kind: str) -> dict[str, float]:
    """Return a worker's megabytes: after 200 turns, with many sessions, when they have ended."""
    async with stage.contender(kind) as contender:
        (pid,) = contender.pids
        await _rate([await contender.open()], 200)
        long = resident(pid)
        talks = [await contender.open() for _ in range(KEPT)]
        for at in range(0, KEPT, AT_ONCE):
            await _rate(talks[at : at + AT_ONCE], 3)
        cached = resident(pid)
        for talk in talks:
            await talk.handle.signal("end")
        for talk in talks:
            await talk.handle.result()
        await asyncio.sleep(1)  # the worker lets go of them
        return {"200 turns": long, "cached": cached, "ended": resident(pid)}


def _imported() -> float:
    environment = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    return float(subprocess.check_output([sys.executable, "-c", IMPORTED], env=environment))


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
    alone = figures["memory_mb"]["imports alone"]["200 turns"]
    memory = [["imports alone", f"{alone:.1f}", "", "", ""]]
    for kind in (FLOOR, OURS):
        found = figures["memory_mb"][kind]
        long = found["200 turns"]
        kept = [1000 * (found[name] - long) / KEPT for name in ("cached", "ended")]
        shares = [f"{share:.0f}" for share in kept]
        memory.append([kind, f"{long:.1f}", f"{long - alone:+.1f}", *shares])
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
            title=f"A worker's memory; the share of a session of three turns, of {KEPT} besides",
            columns=(
                *("process", "MB after 200 turns of a session", "MB over imports alone"),
                *("kB a session, kept", "kB a session, ended"),
            ),
            rows=memory,
        ),
    ]


def ratios(figures: Figures) -> dict[str, float]:
    """Return our turns a second to the floor's."""
    return {
        f"{rate['sessions']} sessions, {rate['workers']} workers": rate["ratio"][0]
        for rate in figures["rates"]
    }


BENCHMARK = Benchmark(
    name="throughput",
    about="Turns a second of many sessions, and a worker's memory.",
    measure=measure,
    sheets=sheets,
    ratios=ratios,
)

if __name__ == "__main__":
    BENCHMARK.command()
