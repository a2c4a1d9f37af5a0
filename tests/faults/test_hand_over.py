"""A session's words reach memory even if the store is away, slow or busy when the session ends."""

import asyncio
import time
import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from temporalio.api.sdk.v1 import WorkflowMetadata
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.exceptions import ApplicationError, CancelledError

from agentmem.contracts import DreamReport
from agentmem.dreaming.hand_over import hand_over_id
from agentmem.dreaming.hook import dream_id
from agentmem.errors import ProviderError
from tests.diary_workflow import Diary, Shared
from tests.dreams import Script, served
from tests.runs import hold_appends
from tests.stack import Stack, eventually, stack, task_failures
from tests.workflow.test_dream_hook import dreamed, learned
from tests.workflow.test_dream_hook import store as place

MOMO = "My cat is named Momo."


def agents(on: str = '"end"') -> str:
    """Return the agents' file of an agent that dreams then."""
    return (
        f'[agents.assistant]\nlong_term_memory.provider = "sqlite:memory.db"\ndream.on = [{on}]\n'
    )


@asynccontextmanager
async def friends(client: Client, data: Path, **options: Any) -> AsyncGenerator[Stack]:
    """Run a worker whose agent learns the name of a cat."""
    script = options.pop("script", None) or served(learned("Momo", "Rex"))
    async with stack(client, data, script, agents=agents(), extra=[Diary, Shared], **options) as s:
        yield s


async def memory(s: Stack) -> Any:
    """Return the store."""
    return await s.configuration.providers.get("sqlite:memory.db")


async def texts(s: Stack, scope: str) -> list[str]:
    """Return what users said in a scope, as far as no dream has read it."""
    rows = await (await memory(s)).unread("assistant", scope, 1_000_000)
    return [row.text for row in rows if row.role == "user"]


def hand_over_of(client: Client, handle: Any, scope: str) -> WorkflowHandle[Any, Any]:
    """Return the hand-over of a run."""
    run = handle.result_run_id or handle.first_execution_run_id
    return client.get_workflow_handle(hand_over_id(run, "wm0", place(scope)))


async def learns(s: Stack, scope: str) -> DreamReport:
    """Wait for the dream that a hand-over starts, and look at what it learned."""
    report = await dreamed(s, dream_id(place(scope)))
    assert await (await memory(s)).recall("assistant", scope) == {"cat_Momo": "Cat is named Momo"}
    return report


async def details(handle: WorkflowHandle[Any, Any]) -> str:
    """Return what the Temporal UI shows of a workflow."""
    found = await handle.query("__temporal_workflow_metadata", result_type=WorkflowMetadata)
    return found.current_details


async def test_an_answer_does_not_wait_for_a_store_that_hangs(
    client: Client, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One answer: it is there at once; when the store is back, it has the words and the dream."""
    async with friends(client, tmp_path) as s:
        scope = f"user-{uuid.uuid4()}"
        entered, go = hold_appends(await memory(s))
        began = time.monotonic()
        handle = await s.start(agent="assistant", scope=scope, message=MOMO)
        await handle.result()
        assert time.monotonic() - began < 6  # two of them the store's
        assert entered.is_set()
        assert "sqlite:memory.db did not take what was said" in caplog.text
        assert "within 2 seconds" in caplog.text
        waiting = hand_over_of(client, handle, scope)
        async with asyncio.timeout(10):
            while "Waiting for the store sqlite:memory.db" not in await details(waiting):  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        go.set()
        assert await waiting.result() == {"messages": 2}
        assert (await learns(s, scope)).status == "completed"
        assert "Stored: 2 messages" in await details(waiting)


async def test_a_store_that_fails_at_the_end_of_a_session(
    client: Client, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The session ends, its id is free, and the cause is in the log; nothing is lost."""
    async with friends(client, tmp_path) as s:
        scope = f"user-{uuid.uuid4()}"
        provider: Any = await memory(s)
        original, failed = provider.append, 0

        async def refuse(*_: Any) -> int:
            nonlocal failed
            failed += 1
            raise ProviderError("the disk is full")

        provider.append = refuse
        handle = await s.start(agent="assistant", scope=scope, session=True, message=MOMO)
        await handle.execute_update("send", "And I like tea.")
        await handle.execute_update("end")
        assert await handle.result() == {"turns": 2}
        assert "the disk is full" in caplog.text
        provider.append = original
        assert await hand_over_of(client, handle, scope).result() == {"messages": 4}
        await learns(s, scope)
        assert failed > 1
        assert await task_failures(handle) == []


async def test_later_answers_tell_the_same_hand_over(client: Client, tmp_path: Path) -> None:
    """A store that hangs costs a workflow of one's own two seconds once, not with each answer."""
    async with friends(client, tmp_path) as s:
        scope = f"user-{uuid.uuid4()}"
        _, go = hold_appends(await memory(s))
        handle = await client.start_workflow(
            Diary.run, args=[scope, [MOMO, "two", "three"]], id=scope, task_queue=s.task_queue
        )
        first, *rest = await handle.result()
        assert 2 <= first < 5
        assert all(seconds < 2 for seconds in rest)
        go.set()
        assert await hand_over_of(client, handle, scope).result() == {"messages": 6}
        await learns(s, scope)
        assert await texts(s, scope) == []  # the dream read all of it
        assert await (await memory(s)).unread("assistant", scope, 1_000_000) == []


async def test_a_workflow_appends_itself_when_its_hand_over_is_done(
    client: Client, tmp_path: Path
) -> None:
    """The store is back between two answers: each message is stored once, in order."""
    released = asyncio.Event()

    async def script(request: Any) -> Any:
        if "three" in str(request.messages[-1]):
            await released.wait()
        return await served(Script())(request)

    async with friends(client, tmp_path, script=script) as s:
        scope = f"user-{uuid.uuid4()}"
        provider = await memory(s)
        original = provider.append
        _, go = hold_appends(provider)
        handle = await client.start_workflow(
            Diary.run, args=[scope, ["one", "two", "three"]], id=scope, task_queue=s.task_queue
        )
        waiting = hand_over_of(client, handle, scope)
        await eventually(lambda: len(s.model.requests) >= 3, 20)
        provider.append = original
        go.set()
        assert await waiting.result() == {"messages": 4}
        released.set()
        await handle.result()
        await dreamed(s, dream_id(place(scope)))
        kept = [row for one in await provider.export("assistant", scope) for row in [one]]
        rows = [row for row in kept if row["table"] == "transcript"]
        assert [row["text"] for row in rows if row["role"] == "user"] == ["one", "two", "three"]
        assert [row["seq"] for row in rows] == list(range(1, 7))


async def test_a_hand_over_gives_up_when_the_workers_patience_is_over(
    client: Client, tmp_path: Path
) -> None:
    """It fails with the store, the cause and the setting; the session is as it was."""
    async with friends(client, tmp_path, hand_over_hours=0.0005) as s:
        scope = f"user-{uuid.uuid4()}"
        provider: Any = await memory(s)

        async def refuse(*_: Any) -> int:
            raise ProviderError("the disk is full")

        provider.append = refuse
        handle = await s.start(agent="assistant", scope=scope, message=MOMO)
        await handle.result()
        with pytest.raises(WorkflowFailureError) as caught:
            await hand_over_of(client, handle, scope).result()
        assert isinstance(caught.value.cause, ApplicationError)
        assert "sqlite:memory.db" in caught.value.cause.message
        assert "AGENTMEM_HAND_OVER_HOURS" in caught.value.cause.message
        assert "the disk is full" in caught.value.cause.message


async def test_nobody_can_copy_a_session_by_a_hand_over(client: Client, tmp_path: Path) -> None:
    """Started by hand it reads nothing: it knows no run but that of its parent."""
    async with friends(client, tmp_path) as s:
        for request in ({"store": place("user-1").full(), "memory": "wm0"}, {}, None):
            with pytest.raises(WorkflowFailureError) as caught:
                await client.execute_workflow(
                    "agent_hand_over", request, id=str(uuid.uuid4()), task_queue=s.task_queue
                )
            assert isinstance(caught.value.cause, ApplicationError)
            assert caught.value.cause.type == "InvalidInput"


async def test_a_worker_says_that_words_may_outlast_what_they_are_read_from(
    client: Client, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The test's server keeps workflows that have ended for a day."""
    async with friends(client, tmp_path, hand_over_hours=25):
        assert "AGENTMEM_HAND_OVER_HOURS is 25" in caplog.text
        assert "for 24 hours" in caplog.text
    caplog.clear()
    async with friends(client, tmp_path, hand_over_hours=24):
        assert "AGENTMEM_HAND_OVER_HOURS" not in caplog.text


@pytest.mark.parametrize("on", ['"pause"', '"idle"', ""])
async def test_a_session_without_a_dream_at_its_end_still_hands_its_words_over(
    client: Client, tmp_path: Path, on: str
) -> None:
    """`on` says when dreams start, and not what memory gets: no dream, but a transcript."""
    async with stack(client, tmp_path, served(Script()), agents=agents(on)) as s:
        scope = f"user-{uuid.uuid4()}"
        handle = await s.start(agent="assistant", scope=scope, session=True, message=MOMO)
        await handle.execute_update("end")
        await handle.result()
        assert await texts(s, scope) == [MOMO]
        children = [
            event
            async for event in handle.fetch_history_events()
            if event.HasField("start_child_workflow_execution_initiated_event_attributes")
        ]
        assert children == []


@pytest.mark.parametrize("kind", ["session", "answer", "own"])
async def test_a_cancellation_beside_a_store_that_hangs_loses_nothing(
    client: Client, tmp_path: Path, kind: str
) -> None:
    """It ends at once, cancelled, while it waits for its store; a hand-over has the words."""
    async with friends(client, tmp_path) as s:
        scope = f"user-{uuid.uuid4()}"
        entered, go = hold_appends(await memory(s))
        if kind == "own":
            handle: Any = await client.start_workflow(
                Diary.run, args=[scope, [MOMO]], id=scope, task_queue=s.task_queue
            )
        else:
            request = {"agent": "assistant", "scope": scope, "session": kind == "session"}
            handle = await s.start(**request, message=MOMO)
        if kind == "session":
            await handle.signal("end")
        await entered.wait()
        await handle.cancel()
        with pytest.raises(WorkflowFailureError) as caught:
            await handle.result()
        assert isinstance(caught.value.cause, CancelledError)
        go.set()
        assert await hand_over_of(client, handle, scope).result() == {"messages": 2}
        await learns(s, scope)


async def test_a_cancellation_in_the_first_hook_leaves_the_second_its_words(
    client: Client, tmp_path: Path
) -> None:
    """One conversation for two scopes: each has its hand-over, and its dream."""
    async with friends(client, tmp_path) as s:
        scopes = [f"user-{uuid.uuid4()}" for _ in range(2)]
        entered, go = hold_appends(await memory(s))
        handle = await client.start_workflow(
            Shared.run, args=[scopes, MOMO], id=scopes[0], task_queue=s.task_queue
        )
        await entered.wait()
        await handle.cancel()
        with pytest.raises(WorkflowFailureError):
            await handle.result()
        go.set()
        for scope in scopes:
            assert await hand_over_of(client, handle, scope).result() == {"messages": 2}
            await learns(s, scope)
