"""Many workers: whoever runs a session's tasks, the model is asked the same."""

import asyncio
import json
import uuid
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from temporalio.api.enums.v1.event_type_pb2 import (
    EVENT_TYPE_ACTIVITY_TASK_STARTED as ACTIVITY_STARTED,
)
from temporalio.api.enums.v1.event_type_pb2 import EVENT_TYPE_WORKFLOW_TASK_STARTED as TASK_STARTED
from temporalio.client import Client, WorkflowHandle, WorkflowUpdateStage
from temporalio.testing import WorkflowEnvironment

from agentmem.contracts.calls import PAGE_BYTES
from agentmem.testing import Reply, Request, ScriptedModel, call, reply
from tests.e2e.test_crash import sigkill
from tests.e2e.worker_process import READY, ROOT, WorkerProcess, worker_process
from tests.own_chat import OwnChat, look_up
from tests.stack import last_user_text, stack

AGENTS = """
[agents.reader]
system_prompt = "Be brief."
tools = ["look_up"]
"""
SPREAD = ROOT / "tests/e2e/spread_worker.py"
ROUNDS, AT_ONCE = 3, 3
SMALL_CACHE = 20_000
"""Bytes that hold a few of the messages below, and none of the large ones."""


def said(kind: str, number: int) -> str:
    """Return what the user says; every fourth message is too large for the small cache."""
    return f"{kind} {number} ".ljust(120_000 if number % 4 == 1 else 1_500, "x")


def script(request: Request) -> Reply:
    """Look two pages up for every third question, and answer with 1,500 characters."""
    kind, number = last_user_text(request.messages).split()[:2]
    if int(number) % 3 == 0 and request.messages[-1]["role"] == "user":
        calls = [call("look_up", page=int(number)), call("look_up", page=7)]
        return reply("Reading.", calls=calls)
    return reply(f"{kind} {number} ".ljust(1_500, "y"))


async def talk(kind: str, session: WorkflowHandle[Any, Any], turn: int) -> None:
    """Send messages that wait for each other, and have each answered."""
    sent = [
        await session.start_update(
            "send", said(kind, number), wait_for_stage=WorkflowUpdateStage.ACCEPTED
        )
        for number in range(turn * AT_ONCE, (turn + 1) * AT_ONCE)
    ]
    for number, update in enumerate(sent, turn * AT_ONCE):
        assert (await update.result()).startswith(f"{kind} {number} y")


class Workers:
    """Three worker processes with small caches on one queue."""

    def __init__(self, stack: AsyncExitStack, folder: Path, settings: dict[str, str]) -> None:
        self.processes: list[WorkerProcess] = []
        self._stack = stack
        self._folder = folder
        self._settings = settings

    async def start(self, number: int) -> None:
        """Start more of them, and wait until they run."""
        started = [
            await self._stack.enter_async_context(
                worker_process(self._folder, script=SPREAD, settings=self._settings)
            )
            for _ in range(number)
        ]
        for process in started:
            await process.says(READY)
        self.processes += started

    async def replace(self, session: WorkflowHandle[Any, Any]) -> None:
        """Kill the worker that holds a session, without a word, and start a fresh one."""
        holder = (await identities(session, TASK_STARTED))[-1]
        [process] = [one for one in self.processes if holder.startswith(f"{one.pid}@")]
        self.processes.remove(process)
        await sigkill(process)
        await self.start(1)


@asynccontextmanager
async def three_workers(
    env: WorkflowEnvironment, folder: Path, model: ScriptedModel, queue: str
) -> AsyncGenerator[Workers]:
    (folder / "agentmem.toml").write_text(AGENTS)
    settings = {
        **model.env(),
        "TEMPORAL_ADDRESS": env.client.service_client.config.target_host,
        "AGENTMEM_TASK_QUEUE": queue,
        "AGENTMEM_MODEL": "openai/test-model",
        "AGENTMEM_APP": str(ROOT / "tests/own_chat.py"),
        "AGENTMEM_MESSAGE_CACHE_BYTES": str(SMALL_CACHE),
    }
    async with AsyncExitStack() as stack:
        workers = Workers(stack, folder, settings)
        await workers.start(3)
        yield workers


async def begin(client: Client, queue: str) -> dict[str, WorkflowHandle[Any, Any]]:
    """Start a session of the `agent` workflow and one of a user's own."""
    request = {"agent": "reader", "session": True}
    ids = {kind: f"{kind}-{uuid.uuid4()}" for kind in ("agent", "own")}
    return {
        "agent": await client.start_workflow("agent", request, id=ids["agent"], task_queue=queue),
        "own": await client.start_workflow("OwnChat", id=ids["own"], task_queue=queue),
    }


async def end(sessions: dict[str, WorkflowHandle[Any, Any]]) -> None:
    """End the sessions."""
    for session in sessions.values():
        await session.signal("end")
        await session.result()


async def asked_of_one_worker(client: Client, folder: Path) -> list[bytes]:
    """Hold both conversations with one worker and a large cache; returns the requests."""
    async with stack(client, folder, script, agents=AGENTS, extra=[OwnChat, look_up]) as s:
        sessions = await begin(client, s.task_queue)
        for kind, session in sessions.items():
            for turn in range(ROUNDS):
                await talk(kind, session, turn)
        await end(sessions)
        s.model.assert_strict()
        return [request.raw for request in s.model.requests]


async def identities(session: WorkflowHandle[Any, Any], event_type: Any) -> list[str]:
    """Return the workers that a run's tasks landed on, in order."""
    history = await session.fetch_history()
    found = [event for event in history.events if event.event_type == event_type]
    if event_type == TASK_STARTED:
        return [event.workflow_task_started_event_attributes.identity for event in found]
    return [event.activity_task_started_event_attributes.identity for event in found]


async def assert_pages_are_small(session: WorkflowHandle[Any, Any]) -> None:
    """Read a conversation by the query that workers use, page by page."""
    last = 2 * ROUNDS * AT_ONCE - 1
    pages: list[list[Any]] = []
    at = 0
    while at <= last:
        page = await session.query("agentmem.messages", args=["wm0", [f"m{at}-{last}"]])
        assert len(json.dumps(page)) <= PAGE_BYTES + 1_000
        pages.append(page["messages"])
        at += len(pages[-1])
    assert len(pages) > 1


@pytest.mark.slow
@pytest.mark.timeout(400)
async def test_three_workers_ask_what_one_would(
    env: WorkflowEnvironment, client: Client, tmp_path: Path
) -> None:
    """Byte for byte, with caches that evict, workers killed at work and fresh ones."""
    (tmp_path / "one").mkdir()
    (tmp_path / "three").mkdir()
    expected = await asked_of_one_worker(client, tmp_path / "one")
    queue = f"three-{uuid.uuid4()}"
    async with (
        ScriptedModel(script) as model,
        three_workers(env, tmp_path / "three", model, queue) as workers,
    ):
        sessions = await begin(client, queue)
        for turn, killed in enumerate(("", "agent", "own")):
            before = len(model.requests)
            talks = [asyncio.create_task(talk(*one, turn)) for one in sessions.items()]
            if killed:
                await model.received(before + 2)
                await workers.replace(sessions[killed])
            await asyncio.gather(*talks)
        for session in sessions.values():
            assert len(set(await identities(session, ACTIVITY_STARTED))) > 1
            await assert_pages_are_small(session)
        await end(sessions)
        asked = [request.raw for request in model.requests]
        model.assert_strict()
    for kind in sessions:
        assert of(kind, asked) == of(kind, expected)
    # A call that a killed worker had in flight is made again, as it was.
    assert len(asked) <= len(expected) + 4


def of(kind: str, asked: list[bytes]) -> list[bytes]:
    """Return a conversation's requests, each once, in order."""
    return list(dict.fromkeys(raw for raw in asked if f'"{kind} 0 '.encode() in raw))
