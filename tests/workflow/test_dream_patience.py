"""Dreams that wait: for a model that is away, at a shut gate, and not for ever."""

import asyncio
import os
import socket
import uuid
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import (
    Client,
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowHandle,
)
from temporalio.exceptions import ApplicationError

from agentmem.contracts import DreamReport, ScopeRef
from agentmem.dreaming import begin as gate
from agentmem.dreaming import patience
from agentmem.dreaming.hook import dream_id
from agentmem.dreaming.review import reset_gate
from agentmem.testing import fail, reset
from tests.dreams import Script, phase_of, served
from tests.replayer import replayer
from tests.stack import stack
from tests.workflow.test_dream_workflow import Scope, ended, learned
from workflows.dream import AgentDream

AGENTS = '[agents.assistant]\nlong_term_memory.provider = "sqlite:memory.db"\ndream.on = ["end"]\n'


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait as a dream does, a thousand times faster."""
    monkeypatch.setattr(patience, "FIRST_WAIT", timedelta(seconds=0.05))
    monkeypatch.setattr(patience, "LONGEST_WAIT", timedelta(seconds=0.6))
    monkeypatch.setattr(patience, "FAILURE_WAIT", timedelta(seconds=0.05))
    monkeypatch.setattr(patience, "GATE_WAIT", timedelta(seconds=0.06))


@contextmanager
def no_endpoint() -> Generator[None]:
    """Send model calls to a port where nobody listens, until the context ends."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        nowhere = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    there = os.environ["OPENAI_API_BASE"]
    os.environ["OPENAI_API_BASE"] = os.environ["OPENAI_BASE_URL"] = nowhere
    try:
        yield
    finally:
        os.environ["OPENAI_API_BASE"] = os.environ["OPENAI_BASE_URL"] = there


async def details(handle: WorkflowHandle[Any, Any], begins: str) -> str:
    """Return what people see of a dream, once it begins so."""
    async with asyncio.timeout(30):
        while True:
            metadata: Any = await handle.query("__temporal_workflow_metadata")
            if metadata.current_details.startswith(begins):
                return metadata.current_details
            await asyncio.sleep(0.05)


async def tries(handle: WorkflowHandle[Any, Any], timers: int) -> None:
    """Wait until a dream has waited so often."""
    async with asyncio.timeout(30):
        while True:
            history = await handle.fetch_history()
            waited = [e for e in history.events if e.HasField("timer_fired_event_attributes")]
            if len(waited) >= timers:
                return
            await asyncio.sleep(0.1)


async def test_a_session_ends_while_its_model_is_away(client: Client, tmp_path: Path) -> None:
    """The dream waits, says so, and completes by itself when the model is back."""
    script = learned()
    async with stack(client, tmp_path, served(script), agents=AGENTS) as s:
        scope = f"u-{uuid.uuid4()}"
        session = await s.start(agent="assistant", scope=scope, session=True)
        await session.execute_update("send", "My cat is named Momo.")
        store = ScopeRef(provider="sqlite:memory.db", agent="assistant", scope=scope)
        handle = client.get_workflow_handle(dream_id(store))
        with no_endpoint():
            await session.execute_update("end")
            await session.result()
            began = datetime.now(UTC)
            shown = await details(handle, "waiting for the model since ")
            assert f"{began:%Y-%m-%d}" in shown.splitlines()[0]
            assert "openai/test-model cannot be reached" in shown.splitlines()[0]
            assert "- gather_signal: running" in shown
            await tries(handle, 4)
            assert script.requests == []
        report = DreamReport.model_validate(await handle.result())
        assert report.status == "completed"
        provider = await s.configuration.providers.get("sqlite:memory.db")
        assert await provider.recall("assistant", scope) == {"pet": "Cat is named Momo"}
        assert (await provider.scope_state("assistant", scope)).failures == 0
        metadata: Any = await handle.query("__temporal_workflow_metadata")
        assert "waiting for" not in metadata.current_details
        await replayer(AgentDream).replay_workflow(await handle.fetch_history())


async def test_an_outage_takes_up_no_attempt_and_no_paid_reply(
    client: Client, tmp_path: Path
) -> None:
    """Overload, a rate limit and a broken line are waited out by a phase with one attempt."""
    script = learned()
    away = [
        *(fail(503, "overloaded"), fail(429, "slow down", headers={"Retry-After": "1"}), reset()),
        *(fail(500, "internal error"), fail(529, "overloaded")),
    ]
    script.before("consolidate", *away)
    async with stack(client, tmp_path, served(script)) as s:
        scope = await Scope.make(s)
        await scope.said("My cat is named Momo.")
        phases = {name: {"attempts": 1} for name in ("gather_signal", "consolidate")}
        began = asyncio.get_running_loop().time()
        handle = await scope.start({**scope.input, "phases": phases})
        report = await ended(handle)
        assert report.status == "completed"
        assert asyncio.get_running_loop().time() - began > 1  # what the provider asked for
        asked = [phase_of(request) for request in script.requests]
        assert asked.count("gather_signal") == 1
        assert asked.count("consolidate") == len(away) + 1
        assert await scope.failures() == 0


async def test_a_dream_gives_up_after_its_patience_and_has_not_failed(
    client: Client, tmp_path: Path
) -> None:
    """It ends with the reason; the gate does not count it, and the next dream has all of it."""
    script = learned()
    down = [fail(503, "overloaded")] * 200
    script.before("gather_signal", *down)
    async with stack(client, tmp_path, served(script)) as s:
        scope = await Scope.make(s)
        await scope.said("My cat is named Momo.")
        limits = {"patience_hours": 2 / 3600}
        handle = await scope.start({**scope.input, "limits": limits})
        with pytest.raises(WorkflowFailureError) as caught:
            await handle.result()
        assert isinstance(caught.value.cause, ApplicationError)
        assert caught.value.cause.type == "DreamFailed"
        assert "no patience is left to wait for the model" in caught.value.cause.message
        assert "overloaded" in caught.value.cause.message
        assert len(script.requests) > 3
        assert await scope.failures() == 0
        script.answers["gather_signal"] = learned().answers["gather_signal"]
        assert (await scope.dream()).status == "completed"


async def test_a_dream_that_waits_can_be_cancelled(client: Client, tmp_path: Path) -> None:
    """A person's wish ends the wait, and the dream is shown as cancelled."""
    script = Script(gather_signal=[fail(503, "overloaded")] * 200)
    async with stack(client, tmp_path, served(script)) as s:
        scope = await Scope.make(s)
        await scope.said("My cat is named Momo.")
        handle = await scope.start()
        await details(handle, "waiting for the model since ")
        await handle.cancel()
        with pytest.raises(WorkflowFailureError):
            await handle.result()
        assert (await handle.describe()).status is WorkflowExecutionStatus.CANCELED


async def test_a_run_that_has_no_time_for_it_does_not_wait(client: Client, tmp_path: Path) -> None:
    """A dream that was started with the time of its work alone tries as often as it is set."""
    script = Script(gather_signal=[fail(503, "overloaded")] * 9)
    async with stack(client, tmp_path, served(script)) as s:
        scope = await Scope.make(s)
        await scope.said("My cat is named Momo.")
        handle = await client.start_workflow(
            "agent_dream",
            scope.input,
            id=dream_id(scope.store),
            task_queue=s.task_queue,
            run_timeout=timedelta(minutes=75),
        )
        with pytest.raises(WorkflowFailureError):
            await handle.result()
        assert len(script.requests) == 3


async def failed_thrice(scope: Scope) -> None:
    """Let three dreams of a scope fail, which shuts its gate."""
    for _ in range(3):
        with pytest.raises(WorkflowFailureError):
            await scope.dream()


async def test_the_wait_at_a_shut_gate_ends_by_itself(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dream that meets a shut gate says until when it waits, and then dreams."""
    monkeypatch.setattr(gate, "COOL_DOWNS", (timedelta(seconds=4),) * 3)
    script = learned()
    script.before("gather_signal", *[fail(401, "no such key")] * 3)
    async with stack(client, tmp_path, served(script)) as s:
        scope = await Scope.make(s)
        await scope.said("My cat is named Momo.")
        await failed_thrice(scope)
        by_hand = await scope.start(name=f"by-hand-{uuid.uuid4()}")
        assert (await by_hand.result())["status"] == "delegated"
        handle = client.get_workflow_handle(dream_id(scope.store))
        shown = await details(handle, "waiting for the failure gate (3 dreams of this scope failed")
        assert "the next one may try at " in shown.splitlines()[0]
        report = await ended(handle)
        assert report.status == "completed"
        assert await scope.facts() == {"pet": "Cat is named Momo"}


async def test_a_gate_that_a_person_opens_is_noticed(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A start by hand, which tells the waiting dream of more, makes it look at once."""
    monkeypatch.setattr(patience, "LONGEST_WAIT", timedelta(minutes=5))
    script = learned()
    script.before("gather_signal", *[fail(401, "no such key")] * 3)
    async with stack(client, tmp_path, served(script)) as s:
        scope = await Scope.make(s)
        await scope.said("My cat is named Momo.")
        await failed_thrice(scope)
        handle = await scope.start()
        await details(handle, "waiting for the failure gate")
        where = (scope.store.agent, scope.store.scope)
        assert await reset_gate(scope.provider, *where, now=datetime.now(UTC)) == 3
        await scope.start(name=f"by-hand-{uuid.uuid4()}")
        async with asyncio.timeout(20):
            assert (await ended(handle)).status == "completed"
