"""Measure how soon a session answers again when its only worker is gone.

Each round ends a contender's worker and starts another, which answers the next turn of sessions
of several lengths. Times are from when the new worker is ready: it has answered another session.
"""

import argparse
import asyncio
import signal
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from benchmarks.report import Benchmark, Figures, Sheet
from benchmarks.stage import FLOOR, FREE, OURS, Contender, Talk, stage
from benchmarks.texts import question

KILLED_TURNS = 100
LENGTHS = (10, KILLED_TURNS, 200, 1_000)
DEFAULT = " turns, default limits"
"""Ours alone: such a session goes on in a new run at about turn 180, so that less is replayed."""

KINDS = (FLOOR, FREE, OURS)

Sessions = dict[str, Talk]


async def measure(options: argparse.Namespace) -> Figures:
    """Measure stops and kills."""
    rounds = options.rounds or (10 if options.full else 5)
    found: dict[str, dict[str, list[float]]] = {
        name: defaultdict(list) for name in ("cold", "killed", "in_call", "ready")
    }
    with tempfile.TemporaryDirectory() as folder:
        async with (
            stage(Path(folder)) as made,
            made.contenders(KINDS) as contenders,
        ):
            sessions = {one.kind: await _sessions(one, LENGTHS) for one in contenders}
            for _ in range(rounds):
                for contender in contenders:
                    await _cold(contender, sessions[contender.kind], found["cold"])
            for _ in range(rounds):
                for contender in contenders:
                    talk = sessions[contender.kind][f"{KILLED_TURNS} turns"]
                    await _replaced(contender, signal.SIGKILL)
                    found["killed"][contender.kind].append(await talk.say(question(0)))
            for _ in range(options.kills or (5 if options.full else 2)):
                for contender in contenders:
                    if contender.kind == OURS:
                        talk = sessions[OURS][f"{KILLED_TURNS} turns"]
                        answered, ready = await _killed_in_call(contender, talk)
                        found["in_call"][OURS].append(answered)
                        found["ready"][OURS].append(ready)
    return {"rounds": rounds, **found}


async def _sessions(contender: Contender, lengths: Sequence[int]) -> Sessions:
    """Hold a session of each length, all at once."""
    ours = contender.kind == OURS
    sessions = {f"{length} turns": await contender.open("long") for length in lengths}
    if ours:
        sessions |= {f"{n}{DEFAULT}": await contender.open() for n in lengths if n >= 200}

    async def talk(name: str, session: Talk) -> None:
        for number in range(int(name.split()[0])):
            await session.say(question(number))

    await asyncio.gather(*(talk(name, session) for name, session in sessions.items()))
    return sessions


async def _cold(contender: Contender, sessions: Sessions, into: dict[str, list[float]]) -> None:
    await _replaced(contender, signal.SIGTERM)
    for name, session in sessions.items():
        into[f"{name}/{contender.kind}"].append(await session.say(question(0)))


async def _replaced(contender: Contender, number: signal.Signals) -> None:
    await contender.end_workers(number)
    await contender.start_worker()
    await contender.warm_up()


async def _killed_in_call(contender: Contender, talk: Talk) -> tuple[float, float]:
    """Return when the answer came and when the new worker was running, in seconds from the kill."""
    model = contender.stage.model
    model.held.clear()
    model.holding = True
    answered: list[float] = []
    answer = asyncio.create_task(talk.say(question(0)))
    answer.add_done_callback(lambda _: answered.append(time.perf_counter()))
    await model.held.wait()
    await asyncio.sleep(1)  # so that the heartbeat is not the first
    model.holding = False
    began = time.perf_counter()
    await contender.end_workers(signal.SIGKILL)
    await contender.start_worker()
    ready = time.perf_counter() - began
    await answer
    await asyncio.sleep(0)  # for the callback
    return answered[0] - began, ready


def sheets(figures: Figures) -> list[Sheet]:
    """Return the tables."""
    cold = figures["cold"]
    rows: list[list[str]] = []
    for name in dict.fromkeys(key.partition("/")[0] for key in cold):
        same = name.removesuffix(DEFAULT) + " turns" * (DEFAULT in name)
        found = [cold[f"{one}/{kind}"] for one, kind in zip((same, same, name), KINDS, strict=True)]
        rows.append([name, *_against(*found)])
    killed = figures["killed"]
    rows.append([f"{KILLED_TURNS} turns, SIGKILL", *_against(*(killed[kind] for kind in KINDS))])
    in_call = [
        ["from the kill to the answer", *_seconds(figures["in_call"][OURS])],
        ["from the kill to the new worker's first poll", *_seconds(figures["ready"][OURS])],
    ]
    return [
        Sheet(
            title="The next answer of a session whose worker is a new one, seconds",
            columns=(
                *("session", *KINDS, "agentmem / held", "from and to"),
                *("agentmem / held, free", "from and to"),
            ),
            rows=rows,
        ),
        Sheet(
            title="SIGKILL in the middle of a model call, seconds",
            columns=("what", "median", "all"),
            rows=in_call,
        ),
    ]


def ratios(figures: Figures) -> dict[str, float]:
    """Return the time of our next answer to the floor's."""
    (table, _) = sheets(figures)
    return {row[0]: float(row[4]) for row in table.rows}


def _against(held: Sequence[float], free: Sequence[float], ours: Sequence[float]) -> list[str]:
    cells = [f"{statistics.median(seconds):.2f}" for seconds in (held, free, ours)]
    for floor in (held, free):
        ratios = [mine / theirs for mine, theirs in zip(ours, floor, strict=True)]
        cells += [f"{statistics.median(ratios):.2f}", f"{min(ratios):.2f} to {max(ratios):.2f}"]
    return cells


def _seconds(found: Sequence[float]) -> list[str]:
    return [f"{statistics.median(found):.1f}", ", ".join(f"{one:.1f}" for one in found)]


def options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this benchmark."""
    parser.add_argument("--rounds", type=int, help="of each stop and each kill between turns")
    parser.add_argument("--kills", type=int, help="in the middle of a model call")


BENCHMARK = Benchmark(
    name="resume",
    about="How soon a session answers again when its worker is gone.",
    measure=measure,
    sheets=sheets,
    options=options,
    ratios=ratios,
)

if __name__ == "__main__":
    BENCHMARK.command()
