"""The cells: each a distinct fault at a distinct place, which could fail on its own."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType
from temporalio.api.workflowservice.v1 import (
    PauseActivityRequest,
    ResetWorkflowExecutionRequest,
    UnpauseActivityRequest,
)

from agentmem.testing import Reply, Request, fail, reset
from tests.faults import workloads
from tests.faults.site import Mischief, Site
from tests.pair import caught_up

Work = Callable[[Site], Awaitable[None]]
Strike = Callable[[Site], Awaitable[None]]


@dataclass(frozen=True, kw_only=True)
class Place:
    """A place in the life of a conversation.

    Attributes:
        name: Its name on the page.
        work: What people do.
        halt: What waits there, as `Halt` names it.
        number: How many times that is passed before.
        agent: More lines of the agent's table.
    """

    name: str
    work: Work
    halt: str
    number: int = 1
    agent: str = ""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One fault at one place.

    Attributes:
        fault: Its name on the page.
        place: Where it strikes.
        strike: What it does; the place waits until that is done.
        store: `sqlite`, `postgresql`, or `pair`: a primary and its standby.
        mischief: What the model's endpoint does, by kind of request; it is the whole fault then.
        dies: A method of workflow code in which the first worker that comes to it kills itself.
        workers: Workers at the beginning.
        own_server: Whether the cell has a Temporal server of its own.
        short: Whether the tests of each change run it.
    """

    fault: str
    place: Place
    strike: Strike | None = None
    store: str = "sqlite"
    mischief: Callable[[], dict[str, list[Mischief]]] = dict
    dies: str = ""
    workers: int = 2
    own_server: bool = False
    short: bool = False

    @property
    def name(self) -> str:
        """The cell's name."""
        return f"{self.fault}: {self.place.name}"


# Places


def at(
    name: str, halt: str, work: Work = workloads.talk, number: int = 1, agent: str = ""
) -> Place:
    """Name a place."""
    return Place(name=name, work=work, halt=halt, number=number, agent=agent)


START = at("start of a session", "agentmem.resolve")
MODEL = at("a turn's model call", "agentmem.model", number=2)
TOOL = at("a tool call", "note")
COMPACTION = at("compaction", "agentmem.compact", workloads.talk_long, agent=workloads.COMPACTING)
CHANGE = at(
    "append for a change of runs", "agentmem.append", workloads.talk_long, 1, workloads.LONG
)
NEXT_RUN = at("start of the next run", "agentmem.resolve", workloads.talk_long, 2, workloads.LONG)
END = at("append at a session's end", "agentmem.append")
ONE_SHOT = at("append of a one-shot", "agentmem.append", workloads.answer)
OWN = at("append of a workflow of one's own", "agentmem.append", workloads.own, 2)
HAND_OVER = at("hand-over child", "agentmem.hand_over", workloads.hand_over)
BEGIN = at("start of the dream", "dream.begin")
ORIENT = at("dream: orient", "dream.orient")
GATHER = at("dream: gather signal", "dream.gather_signal")
CONSOLIDATE = at("dream: consolidate", "dream.consolidate")
PRUNE = at("dream: prune", "dream.prune")
COMMIT = at("dream: commit", "dream.commit")
APPROVAL = at(
    "approval open", "an approval is open", workloads.talk_and_approve, agent=workloads.CAREFUL
)
BETWEEN = at("between two turns", "between two turns")

ACTIVITIES = [
    *(START, MODEL, TOOL, COMPACTION, CHANGE, NEXT_RUN, END, ONE_SHOT, OWN, HAND_OVER),
    *(BEGIN, ORIENT, GATHER, CONSOLIDATE, PRUNE, COMMIT),
]
WAITS = [APPROVAL, BETWEEN]


def before(place: Place) -> Place:
    """Return the place before the work of its activity."""
    return replace(place, halt=f"before {place.halt}")


def after(place: Place) -> Place:
    """Return the place where the work is done and nobody has been told."""
    return replace(place, halt=f"after {place.halt}")


def in_request(place: Place, kind: str, number: int = 1) -> Place:
    """Return the place in a request to the model, where the activity heartbeats."""
    return replace(place, halt=f"model {kind}", number=number)


# Faults


async def kill(site: Site) -> None:
    """End the worker that is there without a word; another one is beside it."""
    os.kill(await site.holder(), signal.SIGKILL)


async def kill_all(site: Site) -> None:
    """End all workers; a new one comes after 15 seconds."""
    for pid in site.pids:
        os.kill(pid, signal.SIGKILL)
    await asyncio.sleep(15)
    await site.work()


async def stop(site: Site) -> None:
    """Stop the worker gracefully while it cannot finish its work, until it has exited."""
    pid = await site.holder()
    os.kill(pid, signal.SIGTERM)
    await gone(pid)


async def freeze(site: Site) -> None:
    """Let the worker stand still for 25 seconds, then let it go on with what it was doing."""
    pid = await site.holder()
    os.kill(pid, signal.SIGSTOP)
    await asyncio.sleep(25)
    os.kill(pid, signal.SIGCONT)


async def gone(pid: int, seconds: float = 40) -> None:
    """Wait until a process has ended."""
    async with asyncio.timeout(seconds):
        with suppress(ProcessLookupError):
            while True:
                os.kill(pid, 0)
                await asyncio.sleep(0.1)


def hung(seconds: float) -> Strike:
    """Return the fault of a store in which nobody can write for a while."""

    async def strike(site: Site) -> None:
        async def hang() -> None:
            async with site.hung():
                locked.set()
                await asyncio.sleep(seconds)

        locked = asyncio.Event()
        site.behind.append(asyncio.create_task(hang()))
        await locked.wait()

    return strike


def away(seconds: float) -> Strike:
    """Return the fault of a database that is away for a while."""

    async def strike(site: Site) -> None:
        async def leave() -> None:
            async with site.away():
                left.set()
                await asyncio.sleep(seconds)

        left = asyncio.Event()
        site.behind.append(asyncio.create_task(leave()))
        await left.wait()

    return strike


async def switch_over(site: Site) -> None:
    """Let the database's standby take over; the old primary goes on and only reads."""
    assert site.pair
    await caught_up(site.pair)
    await site.pair.switch_over()


async def restart_server(site: Site) -> None:
    """Stop the Temporal server, and start it again after five seconds."""
    site.patient = True
    assert site.restart
    await site.restart()


async def terminate(site: Site) -> None:
    """Terminate the session; the scope's next dream has to find what it said."""
    site.ended = True
    await site.last().terminate()
    site.ends.add(site.last().id)
    async with asyncio.timeout(30):
        query = f"WorkflowId = '{site.last().id}' AND ExecutionStatus = 'Terminated'"
        while not [one async for one in site.client.list_workflows(query)]:  # noqa: ASYNC110
            await asyncio.sleep(0.2)
    site.collects = True


async def terminate_dream(site: Site) -> None:
    """Terminate the dream; the next one has to do the same work."""
    await site.client.get_workflow_handle(site.dream).terminate()
    site.ends.add(site.dream)
    site.collects = True


async def cancel(site: Site) -> None:
    """Cancel the session."""
    site.ended = True
    site.ends.add(site.last().id)
    await site.last().cancel()


async def cancel_dream(site: Site) -> None:
    """Cancel the dream; the next one has to do the same work."""
    handle = site.client.get_workflow_handle(site.dream)
    await handle.cancel()
    site.ends.add(site.dream)
    site.halt.release()
    with suppress(Exception):
        await handle.result()
    site.collects = True


async def pause(site: Site) -> None:
    """Pause the activity for five seconds, then unpause it."""
    there = await site.pending()
    await site.client.workflow_service.pause_activity(PauseActivityRequest(**there))
    await asyncio.sleep(5)
    with suppress(Exception):  # its one attempt may have ended meanwhile
        await site.client.workflow_service.unpause_activity(UnpauseActivityRequest(**there))


def reset_run(dream: bool) -> Strike:
    """Return the fault of a run that is reset; what people sent since is applied again.

    Args:
        dream: Whether it is the dream's run, to its beginning, else the session's, to the last
            decision.
    """

    async def strike(site: Site) -> None:
        name = site.dream if dream else site.last().id
        handle = site.client.get_workflow_handle(name)
        run = (await handle.describe()).run_id
        decisions = [
            event.event_id
            async for event in handle.fetch_history_events()
            if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED
        ]
        await site.client.workflow_service.reset_workflow_execution(
            ResetWorkflowExecutionRequest(
                namespace=site.client.namespace,
                workflow_execution=WorkflowExecution(workflow_id=name, run_id=run),
                reason="a cell of the fault tests",
                workflow_task_finish_event_id=decisions[0 if dream else -1],
                request_id=f"{name}-{run}",
            )
        )
        site.ends.add(name)

    return strike


async def deploy(site: Site) -> None:
    """Replace the workers by those of the last format, one after the other, and back again."""
    for old in (True, False):
        before = [pid for pid in site.pids if pid not in site.gone]
        for pid in before:
            await site.work(old=old)
            os.kill(pid, signal.SIGTERM)
            await gone(pid)
            site.gone.append(pid)


def first(number: int, answer: Callable[[Request], Reply | None], delay: float = 0) -> Any:
    """Return mischief that is done to the first requests of a kind."""

    async def one(request: Request) -> Reply | None:
        if delay:
            await asyncio.sleep(delay)
        return answer(request)

    return [one] * number


MISCHIEF: dict[str, Callable[[], list[Mischief]]] = {
    "model answers 500 three times": lambda: first(3, lambda _: fail(500)),
    "model answers 429 three times": lambda: first(
        3, lambda _: fail(429, headers={"Retry-After": "2"})
    ),
    "model hangs up before its answer": lambda: first(2, lambda _: reset()),
    "model takes 25 s": lambda: first(1, lambda _: None, 25),
}


# Cells


def _cells() -> list[Cell]:
    made: list[Cell] = []

    def add(fault: str, places: Sequence[Place], strike: Strike | None, **more: Any) -> None:
        made.extend(Cell(fault=fault, place=place, strike=strike, **more) for place in places)

    add("worker killed at work", [*map(before, ACTIVITIES), *WAITS], kill)
    add("worker killed, the answer lost", [*map(after, ACTIVITIES)], kill)
    add("worker stopped at work", [*map(before, ACTIVITIES)], stop)
    add("worker stands still for 25 s", [*map(before, ACTIVITIES)], freeze)
    add("no worker for 15 s", [*map(before, (MODEL, TOOL, END, CONSOLIDATE)), *WAITS], kill_all)
    storing = [START, MODEL, TOOL, CHANGE, END, ONE_SHOT, BEGIN, ORIENT, GATHER, CONSOLIDATE]
    storing += [PRUNE, COMMIT]
    add("store hangs for 12 s", [*map(before, [*storing, OWN])], hung(12))
    add("store away for 12 s", [*map(before, storing)], away(12), store="postgresql")
    add("store away for 40 s", [*map(before, (END, COMMIT))], away(40), store="postgresql")
    add("store switches over", [*map(before, storing)], switch_over, store="pair")
    turning = (START, MODEL, TOOL, CHANGE, END, BEGIN, CONSOLIDATE, COMMIT)
    restarted = [*map(before, turning), *WAITS]
    add("Temporal server restarted", restarted, restart_server, own_server=True)
    for fault, how in MISCHIEF.items():
        for place, kind in (
            *((MODEL, "turn"), (COMPACTION, "compaction"), (ORIENT, "orient")),
            *((GATHER, "gather_signal"), (CONSOLIDATE, "consolidate"), (PRUNE, "prune")),
            (at("dream: verify", ""), "verify"),
        ):
            mischief = _mischief(kind, how)
            made.append(Cell(fault=fault, place=place, mischief=mischief))
    ending = [*map(before, (START, MODEL, TOOL, COMPACTION, CHANGE, END)), *WAITS]
    add("session terminated", ending, terminate)
    add("session cancelled", ending, cancel)
    add("one-shot terminated", [before(ONE_SHOT)], terminate)
    add("workflow of one's own terminated", [before(OWN)], terminate)
    dreaming = [*map(before, (BEGIN, ORIENT, GATHER, CONSOLIDATE, PRUNE, COMMIT))]
    add("dream terminated", dreaming, terminate_dream)
    add("dream terminated, its commit's answer lost", [after(COMMIT)], terminate_dream)
    add("dream cancelled", dreaming, cancel_dream)
    add("session reset", [before(MODEL), BETWEEN], reset_run(dream=False))
    add("dream reset", [before(GATHER), before(COMMIT)], reset_run(dream=True))
    paused = [
        in_request(MODEL, "turn", 2),
        replace(TOOL, halt="during note"),
        *(in_request(COMPACTION, "compaction"), in_request(GATHER, "gather_signal")),
    ]
    add("activity paused and unpaused", [*paused, before(END)], pause)
    deployed = [*map(before, (MODEL, CHANGE, NEXT_RUN, END, CONSOLIDATE)), *WAITS]
    add("rolling deployment, back and forth", deployed, deploy)
    for name, dies in STEPS.items():
        place = at(name, "", workloads.talk_at_once, agent=workloads.LONG)
        made.append(Cell(fault="worker killed in workflow code", place=place, dies=dies))
    return [replace(cell, short=cell.name in SHORT) for cell in made]


STEPS = {
    "change of runs: it becomes due": "agentmem.session.continue_as_new:Rollover._become_due",
    "change of runs: preparing begins": "agentmem.session:Session.prepare_change",
    "change of runs: an answer is held": "workflows.agent:AgentWorkflow._holds?",
    "change of runs: state is packed": "agentmem.session:Session.pack",
    "change of runs: the command is given": "agentmem.session.continue_as_new:Rollover.go_on",
    "end of a session: it hands its words over": "agentmem.dreaming.hand_over:Carrier.carry",
}


def _mischief(
    kind: str, how: Callable[[], list[Mischief]]
) -> Callable[[], dict[str, list[Mischief]]]:
    return lambda: {kind: how()}


SHORT = {
    "worker killed at work: a turn's model call",
    "worker killed at work: compaction",
    "worker killed at work: hand-over child",
    "worker killed at work: dream: consolidate",
    "worker killed, the answer lost: a tool call",
    "worker killed, the answer lost: append for a change of runs",
    "worker killed, the answer lost: append of a workflow of one's own",
    "worker killed, the answer lost: dream: commit",
    "worker killed in workflow code: change of runs: an answer is held",
    "worker killed in workflow code: change of runs: the command is given",
    "worker stopped at work: start of the next run",
    "store hangs for 12 s: append of a one-shot",
    "store away for 12 s: append at a session's end",
    "store switches over: dream: commit",
    "Temporal server restarted: approval open",
    "model answers 500 three times: dream: verify",
    "model hangs up before its answer: a turn's model call",
    "session terminated: append at a session's end",
    "session cancelled: append at a session's end",
    "workflow of one's own terminated: append of a workflow of one's own",
    "dream terminated: dream: prune",
    "activity paused and unpaused: a tool call",
    "rolling deployment, back and forth: between two turns",
}
"""The cells that run with every change: most faults, and most places."""

EXPLAINED: dict[str, str] = {
    "session reset: a turn's model call": (
        "a reset ends the run in which the message waits, so its sender is told that it was not "
        "processed; the new run answers it all the same, and it is in the transcript."
    ),
}
"""Why the harm in a cell is as it is, by the cell's name."""

CELLS = _cells()
assert {cell.name for cell in CELLS} >= SHORT | EXPLAINED.keys()
