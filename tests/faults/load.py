"""Many sessions at once: each starts, has two turns, ends and is dreamt of."""

import asyncio
import time
import uuid
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

from temporalio.client import WorkflowExecutionStatus, WorkflowHandle
from temporalio.client import WorkflowUpdateFailedError as UpdateFailed
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError

from agentmem.contracts import ScopeRef
from agentmem.dreaming.hook import dream_id
from tests.faults.places import Halt
from tests.faults.site import AGENT, Site, site
from tests.faults.world import World
from tests.stuck import of_run

SETTLED = 300.0
"""Seconds in which the dreams must be done after the last session has ended."""

TURNS = 2
REFUSALS = ("SessionBusy", "RollingOver", "InvalidInput")

Handle = WorkflowHandle[Any, Any]


@dataclass(kw_only=True)
class Load:
    """The outcome of one load.

    Attributes:
        store: `sqlite` or `postgresql`.
        workers: Worker processes.
        sessions: Sessions that began at once.
        turns: Messages that were answered.
        words_lost: Messages and answers of these that the transcripts lack.
        words_doubled: Those that a transcript has more than once.
        facts_lost: Facts of these messages that the store lacks.
        dreams_started: Scopes whose dream began.
        dreams_finished: Scopes whose dream completed.
        failed: Messages that were taken and got no answer.
        refused: Messages that were not taken.
        task_failures: Workflow tasks that failed.
        stuck: Workflows that still ran in the end.
        talked: Seconds until the last session had ended.
        seconds: Seconds until the last dream had ended.
    """

    store: str
    workers: int
    sessions: int
    turns: int = 0
    words_lost: int = 0
    words_doubled: int = 0
    facts_lost: int = 0
    dreams_started: int = 0
    dreams_finished: int = 0
    failed: int = 0
    refused: int = 0
    task_failures: int = 0
    stuck: int = 0
    talked: float = 0
    seconds: float = 0


async def load(world: World, store: str, workers: int, sessions: int) -> Load:
    """Hold sessions at once, wait for their dreams, and count."""
    found = Load(store=store, workers=workers, sessions=sessions)
    async with AsyncExitStack() as stack:
        identity, more = "sqlite:memory.db", dict[str, Any]()
        if store == "postgresql":
            identity = "postgresql"
            name = await world.database.new(await world.database.migrated())
            stack.push_async_callback(world.database.drop, name)
            more |= {"database": world.database, "database_url": world.database.url(name)}
        context = site(world.client, world.fork, Halt(""), types=[], identity=identity, **more)
        made = await stack.enter_async_context(context)
        for _ in range(workers):
            await made.work()
        await _ready(made)
        began = time.monotonic()
        scopes = [f"user-{number}-{uuid.uuid4()}" for number in range(sessions)]
        talks = await asyncio.gather(*(_talk(made, scope, found) for scope in scopes))
        found.talked = round(time.monotonic() - began, 1)
        await _dreams(made, scopes, found)
        found.seconds = round(time.monotonic() - began, 1)
        for scope, told in zip(scopes, talks, strict=True):
            await _count(made, scope, told, found)
        await _count_runs(made, found)
    return found


async def _ready(made: Site) -> None:
    """Have each part of the workers used once, by a session of another scope."""
    await _talk(made, made.scope, Load(store="", workers=0, sessions=0))


async def _talk(made: Site, scope: str, found: Load) -> dict[str, str]:
    """Hold one session; returns the answers, by what was said."""
    told: dict[str, str] = {}
    request = {"agent": AGENT, "scope": scope, "session": True}
    session: Handle = await made.client.start_workflow(
        "agent", request, id=f"load-{uuid.uuid4()}", task_queue=made.queue
    )
    for turn in range(TURNS):
        text = f"My cat is named c{turn}."
        try:
            told[text] = await session.execute_update("send", text)
        except UpdateFailed as error:
            cause = error.cause
            refused = isinstance(cause, ApplicationError) and cause.type in REFUSALS
            found.refused, found.failed = found.refused + refused, found.failed + (not refused)
        except RPCError:
            found.refused += 1
    found.turns += len(told)
    await session.signal("end")
    await session.result()
    return told


def _dream(made: Site, scope: str) -> Handle:
    name = dream_id(ScopeRef(provider=made.identity, agent=AGENT, scope=scope))
    return made.client.get_workflow_handle(name)


async def _dreams(made: Site, scopes: list[str], found: Load) -> None:
    """Wait for the scopes' dreams; one that has not begun in time never does."""
    deadline = time.monotonic() + SETTLED

    async def one(scope: str) -> None:
        handle = _dream(made, scope)
        while time.monotonic() < deadline:
            try:
                status = (await handle.describe()).status
            except RPCError:
                status = None
            if status not in (None, WorkflowExecutionStatus.RUNNING):
                break
            await asyncio.sleep(1)

    await asyncio.gather(*map(one, scopes))
    for scope in scopes:
        try:
            status = (await _dream(made, scope).describe()).status
        except RPCError:
            continue
        found.dreams_started += 1
        found.dreams_finished += status is WorkflowExecutionStatus.COMPLETED


async def _count(made: Site, scope: str, told: dict[str, str], found: Load) -> None:
    provider = await made.provider()
    rows = await provider.export(AGENT, scope)
    kept = [row["text"] for row in rows if row["table"] == "transcript"]
    for text in (*told, *told.values()):
        found.words_lost += text not in kept
        found.words_doubled += kept.count(text) > 1
    facts = await provider.recall(AGENT, scope)
    found.facts_lost += sum(f"cat_c{turn}" not in facts for turn in range(len(told)))


async def _count_runs(made: Site, found: Load) -> None:
    async for run in made.client.list_workflows(f"TaskQueue = '{made.queue}'"):
        found.stuck += run.status is WorkflowExecutionStatus.RUNNING
        async for _ in of_run(made.client, run.id, run.run_id):
            found.task_failures += 1
