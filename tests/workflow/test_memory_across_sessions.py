"""The main job: what one session learns, a dream keeps and the next session knows."""

import asyncio
from pathlib import Path
from typing import Any

from temporalio.client import Client, WorkflowExecutionStatus, WorkflowHandle

from agentmem.contracts import ScopeRef
from agentmem.dreaming.hook import dream_id
from agentmem.storage.protocol import TransactionalProvider
from tests.stack import Stack, eventually, stack, task_failures

OFFLINE = "agentmem/offline"
MEMORY = """
[agents.friend]
system_prompt = "You are a friend with a memory."
[agents.friend.working_memory]
max_tokens = 50000
[agents.friend.long_term_memory]
provider = "sqlite:facts.db"
"""
DREAMING = MEMORY + "[agents.friend.dream]\n"
EACH_ANSWER = MEMORY + '[agents.friend.dream]\non = ["complete"]\n'


def store(s: Stack) -> ScopeRef:
    """Return the test's own scope: a dream's id is its lock on the whole server."""
    return ScopeRef(provider="sqlite:facts.db", agent="friend", scope=s.task_queue)


async def provider(s: Stack) -> TransactionalProvider:
    """Return the worker's own store."""
    return await s.configuration.providers.get(store(s).provider)


async def facts(s: Stack) -> dict[str, Any]:
    """Return the scope's facts."""
    return await (await provider(s)).recall("friend", s.task_queue)


async def dream_result(s: Stack, seconds: float = 30) -> dict[str, Any]:
    """Wait for the scope's dream to end, and return its report."""
    handle: WorkflowHandle[Any, Any] = s.client.get_workflow_handle(dream_id(store(s)))
    async with asyncio.timeout(seconds):
        return await handle.result()


async def test_a_fact_from_one_session_is_used_in_the_next(client: Client, tmp_path: Path) -> None:
    """A session states facts and ends; the dream outlives it; a second session answers."""
    async with stack(client, tmp_path, agents=DREAMING, model_name=OFFLINE) as s:
        first = await s.start(agent="friend", scope=s.task_queue, session=True)
        await first.execute_update("send", "My name is Ada.")
        await first.execute_update("send", "I live in Bergen.")
        assert await first.execute_update("end") == {"turns": 2}
        assert await first.result() == {"turns": 2}
        report = await dream_result(s)
        assert report["status"].startswith("completed")
        closed = await s.client.get_workflow_handle(dream_id(store(s))).describe()
        assert closed.status == WorkflowExecutionStatus.COMPLETED
        assert closed.parent_id == first.id
        assert "Ada" in str(await facts(s))
        entries = await (await provider(s)).entries("friend", s.task_queue)
        assert all(entry.trust == "user" for entry in entries)
        second = await s.start(agent="friend", scope=s.task_queue, message="Where do I live?")
        assert "Bergen" in await second.result()
        assert await task_failures(first) == []


async def test_dreams_after_each_answer_leave_no_message_behind(
    client: Client, tmp_path: Path
) -> None:
    """Dreams of one scope never overlap; the transcript is all of it, consumed."""
    async with stack(client, tmp_path, agents=EACH_ANSWER, model_name=OFFLINE) as s:
        session = await s.start(agent="friend", scope=s.task_queue, session=True)
        for text in ("My name is Ada.", "I live in Bergen.", "I like tea.", "I work at Acme."):
            await session.execute_update("send", text)
        await session.execute_update("end")
        await session.result()
        await dream_result(s)
        kept = await provider(s)
        assert await kept.unread("friend", s.task_queue, 1_000_000) == []
        known = str(await facts(s))
        assert all(word in known for word in ("Ada", "Bergen", "tea", "Acme"))
        assert await task_failures(session) == []


async def test_long_term_memory_without_dreams(client: Client, tmp_path: Path) -> None:
    """A session with long-term memory alone stores through its tools and starts no dream."""
    async with stack(client, tmp_path, agents=MEMORY, model_name=OFFLINE) as s:
        session = await s.start(agent="friend", scope=s.task_queue, session=True)
        await session.execute_update("send", "Remember that my locker is number 42.")
        await session.execute_update("end")
        await session.result()
        assert "42" in str(await facts(s))
        (fact,) = await (await provider(s)).entries("friend", s.task_queue)
        assert fact.writer == "agent"
        query = f"WorkflowId = '{dream_id(store(s))}'"
        found = [w async for w in s.client.list_workflows(query)]
        assert [w for w in found if w.task_queue == s.task_queue] == []


async def test_one_answer_with_a_dream_at_its_end(client: Client, tmp_path: Path) -> None:
    """A workflow that closes right after it started its dream leaves a living child."""
    async with stack(client, tmp_path, agents=DREAMING, model_name=OFFLINE) as s:
        handle = await s.start(agent="friend", scope=s.task_queue, message="My name is Ada.")
        await handle.result()
        report = await dream_result(s)
        assert report["status"].startswith("completed")
        assert "Ada" in str(await facts(s))


async def test_a_quiet_session_dreams_and_goes_on(client: Client, tmp_path: Path) -> None:
    """Idling starts a dream once, and does not end the session."""
    quiet = MEMORY + '[agents.friend.dream]\non = ["idle"]\nidle_minutes = 0.02\n'
    async with stack(client, tmp_path, agents=quiet, model_name=OFFLINE) as s:
        session = await s.start(agent="friend", scope=s.task_queue, session=True)
        await session.execute_update("send", "My name is Ada.")
        report = await _first_dream(s)
        assert report["status"].startswith("completed")
        assert "Ada" in str(await facts(s))
        answer = await session.execute_update("send", "I live in Bergen.")
        assert answer
        await session.execute_update("end")
        await session.result()


async def _first_dream(s: Stack) -> dict[str, Any]:
    started = asyncio.Event()

    async def look() -> None:
        while not started.is_set():
            try:
                await s.client.get_workflow_handle(dream_id(store(s))).describe()
                started.set()
            except Exception:
                await asyncio.sleep(0.1)

    looking = asyncio.create_task(look())
    await eventually(started.is_set, 20)
    await looking
    return await dream_result(s)
