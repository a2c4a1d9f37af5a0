"""Restarts of workers: they end attempts, and are no failures of the model."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client, WorkflowUpdateFailedError

import worker
from agentmem.testing import Reply, Request, fail, hang, reply
from tests.stack import eventually, stack, task_failures

pytestmark = [pytest.mark.timeout(180), pytest.mark.slow]

AGENTS = """
[agents.plain]
[agents.streaming]
stream = true
[agents.summed]
working_memory = { max_tokens = 300, compact_model = "openai/summariser" }
[agents.hasty]
turn_minutes = 0.1
"""
BROKEN = fail(500, headers={"retry-after-ms": "50"})


@pytest.fixture(autouse=True)
def abrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a worker stop at once, so that a test may stop many."""
    monkeypatch.setattr(worker, "GRACE", timedelta(0))


async def restarts(client: Client, path: Path, queue: str, times: int, *before: Reply) -> None:
    """Run workers one after another, each of which stops while a model call waits."""
    for _ in range(times):
        script = [*before, hang()]
        async with stack(client, path, script, agents=AGENTS, task_queue=queue) as s:
            async with asyncio.timeout(30):
                await s.model.received(len(script))


@pytest.mark.parametrize("agent", ["plain", "streaming"])
async def test_a_turn_outlives_more_restarts_than_a_model_may_fail(
    client: Client, tmp_path: Path, task_queue: str, agent: str
) -> None:
    """Six workers stop in the middle of one reply; the seventh brings it."""
    async with stack(client, tmp_path, [hang()], agents=AGENTS, task_queue=task_queue) as s:
        handle = await s.start(agent=agent, message="hi")
        await s.model.received(1)
    await restarts(client, tmp_path, task_queue, 5)
    async with stack(client, tmp_path, [reply("ok")], agents=AGENTS, task_queue=task_queue):
        assert await handle.result() == "ok"
    assert await task_failures(handle) == []


async def test_failures_count_across_workers_and_restarts_do_not(
    client: Client, tmp_path: Path, task_queue: str
) -> None:
    """Three workers stop after a failure each: two more failures end the turn, and no third."""
    async with stack(client, tmp_path, agents=AGENTS, task_queue=task_queue) as s:
        handle = await s.start(agent="plain", session=True)
        s.model.add(BROKEN, hang())
        turn = asyncio.create_task(handle.execute_update("send", "hi"))
        await s.model.received(2)
    await restarts(client, tmp_path, task_queue, 2, BROKEN)
    async with stack(client, tmp_path, [BROKEN] * 9, agents=AGENTS, task_queue=task_queue) as s:
        with pytest.raises(WorkflowUpdateFailedError) as caught:
            await turn
        assert "500" in str(caught.value.cause)
        assert len(s.model.requests) == 2
        await handle.execute_update("end")
    assert await task_failures(handle) == []


def summariser(summary: Reply) -> Callable[[Request], Reply]:
    """Return a script: this for the model that summarises, an answer for the other."""
    return lambda request: summary if request.model == "summariser" else reply("answer " * 20)


async def test_a_summary_outlives_more_restarts_than_it_may_fail(
    client: Client, tmp_path: Path, task_queue: str
) -> None:
    """Four workers stop while they summarise; the turn after it has the fifth one's summary."""
    options: dict[str, Any] = {"agents": AGENTS, "task_queue": task_queue}

    async def talk() -> None:
        for number in range(4):
            await handle.execute_update("send", f"message {number}: " + "words " * 40)

    def asked() -> bool:
        return any(request.model == "summariser" for request in s.model.requests)

    async with stack(client, tmp_path, summariser(hang()), **options) as s:
        handle = await s.start(agent="summed", session=True)
        talking = asyncio.create_task(talk())
        await eventually(asked, 30)
    for _ in range(3):
        async with stack(client, tmp_path, summariser(hang()), **options) as s:
            await eventually(asked, 30)
    async with stack(
        client, tmp_path, summariser(reply("SUMMARY\nthe user counted messages")), **options
    ) as s:
        await talking
        assert "the user counted messages" in str(s.model.requests[-1].messages)
        await handle.execute_update("end")
    assert await task_failures(handle) == []


async def test_restarts_do_not_outlast_turn_minutes(
    client: Client, tmp_path: Path, task_queue: str
) -> None:
    """The turn's time is what bounds restarts: after it the turn fails, and the session stays."""
    async with stack(client, tmp_path, [hang()], agents=AGENTS, task_queue=task_queue) as s:
        handle = await s.start(agent="hasty", session=True)
        turn = asyncio.create_task(handle.execute_update("send", "hi"))
        await s.model.received(1)
    await restarts(client, tmp_path, task_queue, 1)
    async with stack(client, tmp_path, [hang()], agents=AGENTS, task_queue=task_queue) as s:
        with pytest.raises(WorkflowUpdateFailedError) as caught:
            await turn
        assert "turn_minutes 0.1" in str(caught.value.cause)
        s.model.add(reply("here"))
        assert await handle.execute_update("send", "still there?") == "here"
        await handle.execute_update("end")
