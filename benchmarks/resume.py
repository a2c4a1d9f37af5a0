"""Measure how soon a session answers again when its only worker is gone.

Each round ends the contenders' workers and starts others, which answer the next turn of sessions
of several lengths, one session of each contender in turn: a machine that gets slower for a minute
does so for all. Times are from when the new worker is of use: it has answered another session. Only
the first answer after SIGKILL counts from when the worker says that it is running.
"""

import argparse
import asyncio
import signal
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from temporalio.client import WorkflowUpdateStage

from benchmarks.model import Model
from benchmarks.report import Benchmark, Figures
from benchmarks.resume_tables import (
    DEFAULT,
    KILLED_TURNS,
    KINDS,
    NOTICED,
    Found,
    goals,
    ratios,
    session_name,
    sheets,
    sizes,
)
from benchmarks.stage import OURS, Contender, stage
from benchmarks.talk import Talk, take_turns
from benchmarks.texts import question

SESSIONS = {10: 12, KILLED_TURNS: 6, 200: 3, 1_000: 1}
"""Turns that sessions have had, and how many sessions of that length answer after each stop."""

Talks = dict[str, list[Talk]]


async def measure(options: argparse.Namespace) -> Figures:
    """Measure stops and kills."""
    rounds = options.rounds or (10 if options.full else 5)
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
                await _cold(_in_turn(contenders, number), talks, found["cold"])
            for number in range(options.kills or (7 if options.full else 5)):
                await _killed(_in_turn(contenders, number), talks, found)
            for _ in range(options.calls or (5 if options.full else 3)):
                (ours,) = (one for one in contenders if one.kind == OURS)
                answered, ready = await _killed_in_call(
                    ours, talks[OURS][session_name(KILLED_TURNS)][0]
                )
                found["in_call"][OURS].append(answered)
                found["ready"][OURS].append(ready)
    return {"rounds": rounds, **found}


def _in_turn(contenders: list[Contender], number: int) -> list[Contender]:
    return contenders[:: -1 if number % 2 else 1]


async def _talked(contender: Contender) -> Talks:
    """Hold the sessions of each length, all at once."""
    sizes = {session_name(turns): ("long", turns) for turns in SESSIONS}
    if contender.kind == OURS:
        sizes |= {f"{turns}{DEFAULT}": ("plain", turns) for turns in SESSIONS if turns >= 200}

    async def all_of(agent: str, turns: int) -> list[Talk]:
        sessions = [await contender.open(agent) for _ in range(SESSIONS[turns])]
        await take_turns(sessions, turns)
        return sessions

    made = await asyncio.gather(*(all_of(agent, turns) for agent, turns in sizes.values()))
    talks = dict(zip(sizes, made, strict=True))
    for name in sizes:
        if DEFAULT not in name:
            await asyncio.gather(*map(_in_one_run, talks[name]))
    return talks


async def _in_one_run(talk: Talk) -> None:
    """Refuse a session that has gone on in a new run: less is replayed than its turns say."""
    run = (await talk.handle.describe()).raw_description.workflow_execution_info
    if run.first_run_id != run.execution.run_id:
        raise RuntimeError(
            f"{talk.handle.id} has gone on in a new run, {run.execution.run_id}, and does not "
            "replay all of its turns: raise the limits of its agent and of the server's suggestion"
        )


async def _cold(contenders: list[Contender], talks: dict[str, Talks], into: Found) -> None:
    for contender in contenders:
        await contender.end_workers(signal.SIGTERM)
        await contender.start_worker()
        await contender.warm_up()
    for name, sessions in talks[OURS].items():  # it has those with the default limits besides
        for number in range(len(sessions)):
            for contender in _in_turn(contenders, number):
                if name in (its := talks[contender.kind]):
                    seconds = await its[name][number].say(question(0))
                    into[f"{name}/{contender.kind}"].append(seconds)


async def _killed(
    contenders: list[Contender], talks: dict[str, Talks], found: dict[str, Found]
) -> None:
    """Kill workers; one session asks each that has not loaded litellm, later the others."""
    sessions = {kind: its[session_name(KILLED_TURNS)] for kind, its in talks.items()}
    killed = 0.0
    for contender in contenders:
        killed = time.perf_counter()
        await contender.end_workers(signal.SIGKILL)
        await contender.start_worker()
        accepted, answered = await _asked(contender, sessions[contender.kind][0])
        found["first"][f"accepted/{contender.kind}"].append(accepted)
        found["first"][f"answered/{contender.kind}"].append(answered)
    await asyncio.sleep(max(0.0, killed + NOTICED - time.perf_counter()))
    for number in range(1, SESSIONS[KILLED_TURNS]):
        for contender in _in_turn(contenders, number):
            seconds = await sessions[contender.kind][number].say(question(0))
            found["killed"][contender.kind].append(seconds)


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
    await _until_held(model, answer)
    await asyncio.sleep(1.5)  # so that the worker, at one a second, has sent a heartbeat
    model.holding = False
    began = time.perf_counter()
    await contender.end_workers(signal.SIGKILL)
    await contender.start_worker()
    ready = time.perf_counter() - began
    await answer
    await asyncio.sleep(0)  # for the callback
    return answered[0] - began, ready


async def _until_held(model: Model, answer: asyncio.Task[float]) -> None:
    """Wait until the model has the request; an answer, or a failure, must not come before."""
    held = asyncio.create_task(model.held.wait())
    async with asyncio.timeout(60):
        await asyncio.wait([answer, held], return_when=asyncio.FIRST_COMPLETED)
    if not held.done():
        held.cancel()
        raise RuntimeError(f"answered in {await answer:.1f} s without the model")


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
    goals=goals,
    sizes=sizes,
)

if __name__ == "__main__":
    BENCHMARK.command()
