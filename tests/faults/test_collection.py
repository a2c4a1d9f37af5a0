"""The scope's next dream collects from Temporal what a terminated workflow said."""

import asyncio
import uuid
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client, WorkflowHandle

from agentmem.dreaming.hook import dream_id
from agentmem.testing import Reply, Request, reply
from tests.diary_workflow import Diary
from tests.dreams import served
from tests.faults.test_hand_over import MOMO, agents, memory
from tests.runs import hold_appends
from tests.stack import Stack, stack
from tests.workflow.test_dream_hook import dreamed, learned
from tests.workflow.test_dream_hook import store as place
from tests.workflow.test_resets import reset_to_turn


async def listed(client: Client, workflow_id: str) -> None:
    """Wait until the server lists a workflow as terminated, which it does with a delay."""
    query = f"WorkflowId = '{workflow_id}' AND ExecutionStatus = 'Terminated'"
    async with asyncio.timeout(30):
        while not [one async for one in client.list_workflows(query)]:  # noqa: ASYNC110
            await asyncio.sleep(0.1)


async def terminated(s: Stack, scope: str) -> str:
    """Hold a session with a word about a cat, and terminate it; returns its id."""
    handle = await s.start(agent="assistant", scope=scope, session=True)
    await handle.execute_update("send", MOMO)
    await handle.terminate()
    await listed(s.client, handle.id)
    return handle.id


async def dream_by_hand(s: Stack, scope: str) -> Any:
    """Start the scope's dream, and return its report."""
    return await _dream_into(s, scope, "sqlite:memory.db")


@pytest.mark.timeout(120)
async def test_the_next_dream_collects_what_a_terminated_session_said(
    client: Client, tmp_path: Path
) -> None:
    """The report says so; a session of another scope stays where it is, an erased one too."""
    async with stack(client, tmp_path, served(learned("Momo")), agents=agents()) as s:
        scope, other, erased = (f"user-{uuid.uuid4()}" for _ in range(3))
        lost = await terminated(s, scope)
        await terminated(s, other)
        await terminated(s, erased)
        provider = await memory(s)
        await provider.erase("assistant", erased)
        report = await dream_by_hand(s, scope)
        assert report.status == "completed"
        assert await provider.recall("assistant", scope) == {"cat_Momo": "Cat is named Momo"}
        assert any(lost in note and "2 messages collected" in note for note in report.notes)
        assert await provider.unread("assistant", other, 1_000_000) == []
        gone = await dream_by_hand(s, erased)
        assert gone.status == "nothing_new"
        assert any("its words are not collected" in note for note in gone.notes)
        assert (await dream_by_hand(s, scope)).status == "nothing_new"


@pytest.mark.timeout(120)
async def test_a_dream_into_another_store_copies_no_session(client: Client, tmp_path: Path) -> None:
    """Whoever starts a dream by hand names a store; the words go to the session's own alone."""
    async with stack(client, tmp_path, served(learned("Momo")), agents=agents()) as s:
        scope = f"user-{uuid.uuid4()}"
        await terminated(s, scope)
        request = {"agent": "assistant", "scope": scope, "provider": "sqlite:other.db"}
        name = dream_id(place(scope, "sqlite:other.db"))
        await client.start_workflow("agent_dream", request, id=name, task_queue=s.task_queue)
        assert (await dreamed(s, name)).status == "nothing_new"
        other = await s.configuration.providers.get("sqlite:other.db")
        assert await other.export("assistant", scope) == []


@pytest.mark.stuck  # Temporal records a reset as a workflow task that failed
@pytest.mark.timeout(120)
async def test_what_a_reset_took_back_is_not_collected(client: Client, tmp_path: Path) -> None:
    """The server lists the run before the reset as terminated; its session goes on in another."""
    async with stack(client, tmp_path, served(learned("Momo")), agents=agents()) as s:
        scope = f"user-{uuid.uuid4()}"
        handle = await s.start(agent="assistant", scope=scope, session=True)
        for text in ("I am Ada.", MOMO):
            await handle.execute_update("send", text)
        run = await reset_to_turn(client, handle, 1)
        await listed(client, handle.id)
        assert (await dream_by_hand(s, scope)).status == "nothing_new"
        again = client.get_workflow_handle(handle.id, run_id=run)
        await again.execute_update("send", "I like tea.")
        provider = await memory(s)
        _, go = hold_appends(provider)
        await again.execute_update("end")
        await again.result()
        go.set()
        await dreamed(s, dream_id(place(scope)))
        kept = await provider.export("assistant", scope)
        assert [row["text"] for row in kept if row.get("role") == "user"] == [
            "I am Ada.",
            "I like tea.",
        ]


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_a_session_is_found_behind_hundreds_of_others(client: Client, tmp_path: Path) -> None:
    """However many sessions of other scopes were terminated since: a later dream looks further."""
    async with stack(client, tmp_path, served(learned("Momo")), agents=agents()) as s:
        scope = f"user-{uuid.uuid4()}"
        lost = await terminated(s, scope)

        async def other(number: int) -> str:
            request = {"agent": "assistant", "scope": "other", "session": True}
            name = f"{scope}-{number}"
            handle = await client.start_workflow("agent", request, id=name, task_queue="nobody")
            await handle.terminate()
            return handle.id

        for name in await asyncio.gather(*map(other, range(230))):
            await listed(client, name)
        notes: list[str] = []
        async with asyncio.timeout(120):
            while not any(lost in note for note in notes):
                notes = (await dream_by_hand(s, scope)).notes
        assert await (await memory(s)).recall("assistant", scope) == {
            "cat_Momo": "Cat is named Momo"
        }


@pytest.mark.timeout(120)
@pytest.mark.parametrize("provider", ["sqlite:memory.db", "default"])
async def test_a_workflow_of_ones_own_that_is_terminated_in_a_turn_is_collected(
    client: Client, tmp_path: Path, provider: str
) -> None:
    """No hook of its own has handed the words over by then; it may call its store `default`.

    Another scope's dream gets none of it, nor does that of a scope that was erased.
    """
    asked, dreams = asyncio.Event(), served(learned("Momo"))

    async def serve(request: Request) -> Reply:
        if request.messages[0]["content"] != "Be brief.":
            return await dreams(request)
        asked.set()
        await asyncio.sleep(3_600)
        return reply("")

    async def lost(s: Stack) -> tuple[str, str]:
        scope, handle = await _diary(s, provider)
        await asked.wait()
        asked.clear()
        await handle.terminate()
        await listed(s.client, handle.id)
        return scope, handle.id

    async with stack(client, tmp_path, serve, agents=agents(), extra=[Diary]) as s:
        identity = s.configuration.providers.resolve(provider)
        store = await s.configuration.providers.get(provider)
        (scope, run), (erased, _) = await lost(s), await lost(s)
        await store.erase("assistant", erased)
        report = await _dream_into(s, scope, identity)
        assert report.status == "completed"
        assert await store.recall("assistant", scope) == {"cat_Momo": "Cat is named Momo"}
        assert any(run in note and "1 messages collected" in note for note in report.notes)
        for other in (erased, f"user-{uuid.uuid4()}"):
            assert (await _dream_into(s, other, identity)).status == "nothing_new"
        assert (await _dream_into(s, scope, identity)).notes == []


async def _diary(s: Stack, provider: str) -> tuple[str, WorkflowHandle[Any, Any]]:
    """Start a workflow of one's own that asks once; its scope and its handle."""
    scope = f"user-{uuid.uuid4()}"
    handle = await s.client.start_workflow(
        Diary.run, args=[scope, [MOMO], provider], id=f"own-{scope}", task_queue=s.task_queue
    )
    return scope, handle


async def _dream_into(s: Stack, scope: str, identity: str) -> Any:
    """Start the scope's dream by hand, and return its report."""
    name = dream_id(place(scope, identity))
    request = {"agent": "assistant", "scope": scope, "provider": identity}
    await s.client.start_workflow("agent_dream", request, id=name, task_queue=s.task_queue)
    return await dreamed(s, name)
