"""Measure how soon a worker is of use, and what starting takes.

A session has had ten turns; its worker ends, a message is sent, and a new worker starts: when it
has replayed the session the message is accepted, and then it is answered. Needs Linux (/proc).
"""

import argparse
import asyncio
import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from temporalio import workflow
from temporalio.client import WorkflowUpdateStage
from temporalio.worker import (
    UnsandboxedWorkflowRunner,
    WorkflowInstance,
    WorkflowInstanceDetails,
)
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from benchmarks.floor_session import FloorSession
from benchmarks.paired import quartiles
from benchmarks.report import Benchmark, Figures, Sheet
from benchmarks.stage import FLOOR, OURS, Contender, stage
from benchmarks.talk import Talk, take_turns
from benchmarks.texts import question
from tests.e2e.worker_process import READY
from worker import SANDBOX
from workflows.agent import AgentWorkflow
from workflows.dream import AgentDream

TURNS = 10
IMPORTS = {
    "temporalio": "temporalio.client, temporalio.worker",
    "sqlalchemy": "sqlalchemy.ext.asyncio",
    "litellm": "litellm",
    "agentmem": "agentmem",
    "workflows": "workflows.agent, workflows.dream",
    "worker": "worker",
}
STAGES = ("running", "replayed", "answered")


async def measure(options: argparse.Namespace) -> Figures:
    """Measure starts of workers, imports, and starts of workflows."""
    rounds = options.rounds or (15 if options.full else 7)
    starts: dict[str, dict[str, list[float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        async with (
            stage(Path(folder)) as made,
            made.contenders([FLOOR, OURS]) as contenders,
        ):
            talks = {one.kind: await _talked(one) for one in contenders}
            for contender in contenders:
                starts[contender.kind] = {stage: [] for stage in STAGES}
            for number in range(rounds):
                for contender in contenders[:: -1 if number % 2 else 1]:
                    seconds = await _started(contender, talks[contender.kind])
                    for name, second in zip(STAGES, seconds, strict=True):
                        starts[contender.kind][name].append(second)
    return {
        "rounds": rounds,
        "starts": starts,
        "imports": _imports(2),
        "workflows": await _workflows(),
    }


async def _talked(contender: Contender) -> Talk:
    talk = await contender.open()
    await take_turns([talk], TURNS)
    return talk


async def _started(contender: Contender, talk: Talk) -> tuple[float, float, float]:
    """Return the seconds from the process's start until it runs, has replayed, has answered."""
    await contender.end_workers(signal.SIGTERM)
    began = time.perf_counter()
    process = await contender.start_worker(ready=False)
    name, kind = ("ask" if contender.kind == OURS else "send"), WorkflowUpdateStage.ACCEPTED
    accepting = asyncio.create_task(
        talk.handle.start_update(name, question(0), wait_for_stage=kind)
    )

    async def running() -> float:
        await process.says(READY)
        return time.perf_counter() - began

    async def answered() -> tuple[float, float]:
        update = await accepting
        replayed = time.perf_counter() - began
        await update.result()
        return replayed, time.perf_counter() - began

    ran, (replayed, done) = await asyncio.gather(running(), answered())
    return ran, replayed, done


def _imports(rounds: int) -> dict[str, float]:
    """Return the processor seconds that each import takes in a fresh interpreter; the least."""
    environment = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True", "PYTHONPATH": os.curdir}
    found: dict[str, list[float]] = defaultdict(list)
    for _ in range(rounds):
        for name, modules in {"nothing": "sys", **IMPORTS}.items():
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([sys.executable, "-c", f"import {modules}"], check=True, env=environment)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            taken = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            found[name].append(taken)
    nothing = min(found.pop("nothing"))
    return {name: min(seconds) - nothing for name, seconds in found.items()}


class _Outside(SandboxedWorkflowRunner):
    """Makes workflows outside of the sandbox, for what `prepare_workflow` asks for."""

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        return UnsandboxedWorkflowRunner().create_instance(det)


RUNNERS = {
    "outside of the sandbox": _Outside(),
    "inside, agentmem passed through": SandboxedWorkflowRunner(restrictions=SANDBOX),
    "inside, all imported anew": SandboxedWorkflowRunner(restrictions=SandboxRestrictions.default),
}
"""The worker has the first for our workflows and the second for the app's."""


async def _workflows() -> dict[str, dict[str, float]]:
    """Return the processor milliseconds that the start of a workflow takes."""

    def run(made: type, runner: SandboxedWorkflowRunner) -> float:
        return asyncio.run(_prepared(made, runner))  # an instance takes hold of the running loop

    return {
        name: {how: await asyncio.to_thread(run, made, runner) for how, runner in RUNNERS.items()}
        for name, made in {"agent": AgentWorkflow, "dream": AgentDream, FLOOR: FloorSession}.items()
    }


async def _prepared(made: type, runner: SandboxedWorkflowRunner) -> float:
    definition = workflow._Definition.must_from_class(made)  # pyright: ignore[reportPrivateUsage]
    taken: list[float] = []
    for _ in range(11):
        began = time.thread_time()
        runner.prepare_workflow(definition)
        taken.append(1000 * (time.thread_time() - began))
    return statistics.median(taken)


def sheets(figures: Figures) -> list[Sheet]:
    """Return the tables."""
    starts: list[list[str]] = []
    for name in STAGES:
        seconds = (statistics.median(figures["starts"][kind][name]) for kind in (FLOOR, OURS))
        low, middle, high = _ratio(figures, name)
        numbers = (f"{number:.2f}" for number in (*seconds, middle))
        starts.append([name, *numbers, f"{low:.2f} to {high:.2f}"])
    return [
        Sheet(
            title="From the start of a worker's process, seconds",
            columns=("until it has", "held", "agentmem", "agentmem / held", "middle half"),
            rows=starts,
        ),
        Sheet(
            title="Imports, processor seconds, each in an interpreter of its own",
            columns=("what", "seconds"),
            rows=[[name, f"{seconds:.2f}"] for name, seconds in figures["imports"].items()],
        ),
        Sheet(
            title="The start of a workflow, processor milliseconds",
            columns=("workflow", *RUNNERS),
            rows=[
                [name, *(f"{found[how]:.2f}" for how in RUNNERS)]
                for name, found in figures["workflows"].items()
            ],
        ),
    ]


def ratios(figures: Figures) -> dict[str, float]:
    """Return our time to a stage to the floor's."""
    return {name: _ratio(figures, name)[1] for name in STAGES}


def sizes(figures: Figures) -> dict[str, float]:
    """Return our seconds to a stage, and what imports and starts of workflows take."""
    starts = {
        f"from a worker's start until {name}, s": statistics.median(seconds)
        for name, seconds in figures["starts"][OURS].items()
    }
    imports = {f"import of {name}, s": seconds for name, seconds in figures["imports"].items()}
    workflows = {
        f"start of {name}, {how}, ms": milliseconds
        for name, found in figures["workflows"].items()
        for how, milliseconds in found.items()
    }
    return starts | imports | workflows


def _ratio(figures: Figures, name: str) -> tuple[float, float, float]:
    """Return the lower quartile, the median and the upper one of our time to a stage."""
    floor, ours = (figures["starts"][kind][name] for kind in (FLOOR, OURS))
    return quartiles([mine / theirs for mine, theirs in zip(ours, floor, strict=True)])


def options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this benchmark."""
    parser.add_argument("--rounds", type=int, help="starts of each worker")


BENCHMARK = Benchmark(
    name="start",
    about="How soon a worker is of use, and what starting takes.",
    measure=measure,
    sheets=sheets,
    options=options,
    ratios=ratios,
    sizes=sizes,
)

if __name__ == "__main__":
    BENCHMARK.command()
