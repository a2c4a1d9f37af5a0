"""Measure how soon a session answers again when its only worker is gone.

Each round ends a contender's worker and starts another, which answers the next turn of sessions
of several lengths. Times are from when the new worker is of use: it has answered another session.
Only the first answer after SIGKILL counts from when the worker says that it is running.
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

from temporalio.client import WorkflowUpdateStage

from benchmarks.paired import quartiles
from benchmarks.report import Benchmark, Figures, Sheet
from benchmarks.stage import FLOOR, FREE, OURS, Contender, Talk, stage
from benchmarks.texts import question

KILLED_TURNS = 100
SESSIONS = {10: 5, KILLED_TURNS: 4, 200: 2, 1_000: 1}
"""Turns that sessions have had, and how many sessions of that length answer after each stop."""

DEFAULT = " turns, default limits"
"""Ours alone: such a session goes on in a new run at about turn 180, so that less is replayed."""

NOTICED = 11.0
"""Seconds after a kill from when a session's task no longer waits for the dead worker: the server
has then seen no poll of it for 10 s. Before, each session's next task waits 2 s."""

KINDS = (FLOOR, FREE, OURS)

Talks = dict[str, list[Talk]]
Found = dict[str, list[float]]


async def measure(options: argparse.Namespace) -> Figures:
    """Measure stops and kills."""
    rounds = options.rounds or (10 if options.full else 4)
    found: dict[str, Found] = {
        name: defaultdict(list) for name in ("cold", "killed", "first", "in_call", "ready")
    }
    with tempfile.TemporaryDirectory() as folder:
        async with (
            stage(Path(folder)) as made,
            made.contenders(KINDS) as contenders,
        ):
            sessions = await asyncio.gather(*map(_talked, contenders))
            talks = {one.kind: its for one, its in zip(contenders, sessions, strict=True)}
            for number in range(rounds):
                for contender in _in_turn(contenders, number):
                    await _cold(contender, talks[contender.kind], found["cold"])
            for number in range(options.kills or (5 if options.full else 3)):
                for contender in _in_turn(contenders, number):
                    await _killed(contender, talks[contender.kind], found)
            for _ in range(options.calls or (5 if options.full else 3)):
                (ours,) = (one for one in contenders if one.kind == OURS)
                answered, ready = await _killed_in_call(ours, talks[OURS][_name(KILLED_TURNS)][0])
                found["in_call"][OURS].append(answered)
                found["ready"][OURS].append(ready)
    return {"rounds": rounds, **found}


def _in_turn(contenders: list[Contender], number: int) -> list[Contender]:
    return contenders[:: -1 if number % 2 else 1]


def _name(turns: int) -> str:
    return f"{turns} turns"


async def _talked(contender: Contender) -> Talks:
    """Hold the sessions of each length, all at once."""
    sizes = {_name(turns): ("long", turns) for turns in SESSIONS}
    if contender.kind == OURS:
        sizes |= {f"{turns}{DEFAULT}": ("plain", turns) for turns in SESSIONS if turns >= 200}

    async def talked(agent: str, turns: int) -> Talk:
        session = await contender.open(agent)
        for number in range(turns):
            await session.say(question(number))
        return session

    async def all_of(agent: str, turns: int) -> list[Talk]:
        return await asyncio.gather(*(talked(agent, turns) for _ in range(SESSIONS[turns])))

    made = await asyncio.gather(*(all_of(agent, turns) for agent, turns in sizes.values()))
    return dict(zip(sizes, made, strict=True))


async def _cold(contender: Contender, talks: Talks, into: Found) -> None:
    await contender.end_workers(signal.SIGTERM)
    await contender.start_worker()
    await contender.warm_up()
    for name, sessions in talks.items():
        for session in sessions:
            into[f"{name}/{contender.kind}"].append(await session.say(question(0)))


async def _killed(contender: Contender, talks: Talks, found: dict[str, Found]) -> None:
    """Kill the worker; one session asks a worker that has not loaded litellm, later the others."""
    first, *others = talks[_name(KILLED_TURNS)]
    began = time.perf_counter()
    await contender.end_workers(signal.SIGKILL)
    await contender.start_worker()
    accepted, answered = await _asked(contender, first)
    found["first"][f"accepted/{contender.kind}"].append(accepted)
    found["first"][f"answered/{contender.kind}"].append(answered)
    await asyncio.sleep(max(0.0, began + NOTICED - time.perf_counter()))
    for session in others:
        found["killed"][contender.kind].append(await session.say(question(0)))


async def _asked(contender: Contender, talk: Talk) -> tuple[float, float]:
    """Return the seconds until the message is accepted, after the replay, and until its answer."""
    began = time.perf_counter()
    name, kind = ("ask" if contender.kind == OURS else "send"), WorkflowUpdateStage.ACCEPTED
    update = await talk.handle.start_update(name, question(0), wait_for_stage=kind)
    accepted = time.perf_counter() - began
    await update.result()
    return accepted, time.perf_counter() - began


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
    return [
        Sheet(
            title="The next answer of a session whose worker is a new one, seconds",
            columns=(
                *("session", *KINDS, "agentmem / held", "middle half"),
                *("agentmem / held, free", "middle half"),
            ),
            rows=_next_answers(figures),
        ),
        Sheet(
            title=f"The first answer after SIGKILL, at {KILLED_TURNS} turns, seconds from when the "
            "new worker is running",
            columns=("until", *KINDS, "agentmem, all"),
            rows=_first_answers(figures["first"]),
        ),
        Sheet(
            title="SIGKILL in the middle of a model call, seconds",
            columns=("what", "median", "all"),
            rows=[
                [what, f"{statistics.median(seconds):.1f}", _all(seconds)]
                for what, seconds in _in_call(figures).items()
            ],
        ),
    ]


def ratios(figures: Figures) -> dict[str, float]:
    """Return the time of our next answer to the floor's."""
    return {row[0]: float(row[4]) for row in _next_answers(figures)}


def sizes(figures: Figures) -> dict[str, float]:
    """Return seconds after a kill: they have a limit of their own, and not a floor's."""
    first = figures.get("first", {})  # older files do not have it
    until = {
        f"first answer after SIGKILL, {kind}: until it is {what}, s": first[f"{what}/{kind}"]
        for kind in KINDS
        for what in ("accepted", "answered")
        if first
    }
    in_call = {f"SIGKILL in a model call, {what}, s": s for what, s in _in_call(figures).items()}
    return {what: statistics.median(seconds) for what, seconds in (until | in_call).items()}


def _next_answers(figures: Figures) -> list[list[str]]:
    cold, killed = figures["cold"], figures["killed"]
    rows: list[list[str]] = []
    for name in dict.fromkeys(key.partition("/")[0] for key in cold):
        same = name.removesuffix(DEFAULT) + " turns" * (DEFAULT in name)
        found = [cold[f"{one}/{kind}"] for one, kind in zip((same, same, name), KINDS, strict=True)]
        rows.append([name, *_against(*found)])
    last = [f"{_name(KILLED_TURNS)}, SIGKILL", *_against(*(killed[kind] for kind in KINDS))]
    return [*rows, last]


def _first_answers(first: Found) -> list[list[str]]:
    """Return the time until the replay, the wait for litellm and the call, and both together."""
    accepted, answered = (
        {kind: first[f"{what}/{kind}"] for kind in KINDS} for what in ("accepted", "answered")
    )
    waited = {
        kind: [end - begin for begin, end in zip(accepted[kind], answered[kind], strict=True)]
        for kind in KINDS
    }
    rows = {
        "it has replayed the session": accepted,
        "then the answer: the rest of litellm's import, and the call": waited,
        "the answer, in all": answered,
    }
    return [
        [what, *(f"{statistics.median(found[kind]):.2f}" for kind in KINDS), _all(found[OURS])]
        for what, found in rows.items()
    ]


def _in_call(figures: Figures) -> Found:
    return {
        "from the kill to the answer": figures["in_call"][OURS],
        "from the kill to the new worker's first poll": figures["ready"][OURS],
    }


def _against(held: Sequence[float], free: Sequence[float], ours: Sequence[float]) -> list[str]:
    cells = [f"{statistics.median(seconds):.2f}" for seconds in (held, free, ours)]
    for floor in (held, free):
        ratios = [mine / theirs for mine, theirs in zip(ours, floor, strict=True)]
        low, middle, high = quartiles(ratios)
        cells += [f"{middle:.2f}", f"{low:.2f} to {high:.2f}"]
    return cells


def _all(seconds: Sequence[float]) -> str:
    return ", ".join(f"{one:.1f}" for one in seconds)


def options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this benchmark."""
    parser.add_argument("--rounds", type=int, help="stops")
    parser.add_argument("--kills", type=int, help="kills between turns")
    parser.add_argument("--calls", type=int, help="kills in the middle of a model call")


BENCHMARK = Benchmark(
    name="resume",
    about="How soon a session answers again when its worker is gone.",
    measure=measure,
    sheets=sheets,
    options=options,
    ratios=ratios,
    sizes=sizes,
)

if __name__ == "__main__":
    BENCHMARK.command()
