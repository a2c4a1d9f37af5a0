"""Hand-overs under real faults: a killed worker, a database that is away, bursts, full slots."""

import asyncio
import sqlite3
import uuid
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from temporalio.client import Client, WorkflowHandle
from temporalio.service import RPCError
from temporalio.testing import WorkflowEnvironment

from agentmem.contracts import ScopeRef
from agentmem.dreaming.hook import dream_id
from agentmem.storage.registry import Providers
from agentmem.testing import Request, ScriptedModel
from tests.dreams import Script, served
from tests.e2e.test_crash import sigkill
from tests.e2e.worker_process import READY, worker_process
from tests.postgres import PostgresServer
from tests.stack import Stack, eventually, last_user_text, stack
from worker import local

ONE_SHOTS, SESSIONS = 40, 40


def agents(provider: str) -> str:
    """Return the agents' file of an agent that dreams at a session's end."""
    return f'[agents.assistant]\nlong_term_memory.provider = "{provider}"\ndream.on = ["end"]\n'


async def said(provider: Any, scope: str) -> list[str]:
    """Return all that users said in a scope, read by dreams or not."""
    rows = await provider.export("assistant", scope)
    return [r["text"] for r in rows if r["table"] == "transcript" and r["role"] == "user"]


async def dreamt(client: Client, provider: str, scope: str, seconds: float = 120) -> None:
    """Wait until a scope has had its dream."""
    name = dream_id(ScopeRef(provider=provider, agent="assistant", scope=scope))
    async with asyncio.timeout(seconds):
        while True:
            try:
                await client.get_workflow_handle(name).result()
            except RPCError:  # the hand-over has not started it yet
                await asyncio.sleep(0.2)
            else:
                return


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_a_worker_killed_in_the_append_of_a_session_that_ends(
    env: WorkflowEnvironment, client: Client, tmp_path: Path
) -> None:
    """Another worker stands beside it: the session ends in time, and its words are in memory."""
    scope, queue = f"user-{uuid.uuid4()}", f"killed-{uuid.uuid4()}"
    (tmp_path / "agentmem.toml").write_text(agents("sqlite:memory.db"))
    stores = Providers(tmp_path)
    provider = await stores.get("sqlite:memory.db")
    async with ScriptedModel(served(Script())) as model, AsyncExitStack() as workers:
        settings = {
            **model.env(),
            "TEMPORAL_ADDRESS": env.client.service_client.config.target_host,
            "AGENTMEM_TASK_QUEUE": queue,
            "AGENTMEM_MODEL": "openai/test-model",
            "AGENTMEM_DATA": str(tmp_path),
        }
        processes = [
            await workers.enter_async_context(worker_process(tmp_path, settings=settings))
            for _ in range(2)
        ]
        for process in processes:
            await process.says(READY)
        request = {"agent": "assistant", "scope": scope, "session": True, "message": "one"}
        session = await client.start_workflow("agent", request, id=queue, task_queue=queue)
        await session.execute_update("send", "two")
        held = sqlite3.connect(tmp_path / "memory.db", isolation_level=None)
        held.execute("BEGIN IMMEDIATE")  # nobody else writes
        await session.signal("end")
        identity = await appending(session)
        [victim] = [one for one in processes if identity.startswith(f"{one.pid}@")]
        await sigkill(victim)
        held.rollback()
        held.close()
        async with asyncio.timeout(40):
            assert await session.result() == {"turns": 2}
        await dreamt(client, "sqlite:memory.db", scope)
    assert await said(provider, scope) == ["one", "two"]
    await stores.close()


async def appending(session: WorkflowHandle[Any, Any]) -> str:
    """Wait until a worker appends a session's words, and return the worker's identity."""
    async with asyncio.timeout(30):
        while True:
            described = await session.describe()
            for one in described.raw_description.pending_activities:
                if one.activity_type.name == "agentmem.append" and one.last_worker_identity:
                    return one.last_worker_identity
            await asyncio.sleep(0.05)


@pytest.mark.slow
@pytest.mark.postgresql
@pytest.mark.timeout(300)
@pytest.mark.parametrize("seconds", [12, 40])
async def test_a_database_that_is_away_when_a_session_and_an_answer_end(
    client: Client,
    tmp_path: Path,
    postgres_server: PostgresServer,
    postgresql_url: str,
    seconds: float,
) -> None:
    """Away for longer than anybody waits: both end in time, and the scope dreams afterwards."""
    name = urlsplit(postgresql_url).path.removeprefix("/")
    options: dict[str, Any] = {"agents": agents("postgresql"), "database_url": postgresql_url}
    async with stack(client, tmp_path, served(Script()), **options) as s:
        provider = await s.configuration.providers.get("postgresql")
        first, second = f"user-{uuid.uuid4()}", f"user-{uuid.uuid4()}"
        session = await s.start(agent="assistant", scope=first, session=True, message="one")
        await session.execute_update("send", "two")
        await postgres_server.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
        await postgres_server.execute(
            f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
        )
        back = asyncio.create_task(come_back(postgres_server, name, seconds))
        answer = await s.start(agent="assistant", scope=second, message="three")
        async with asyncio.timeout(11.5):  # both before the database is back
            await answer.result()
            await session.signal("end")
            assert await session.result() == {"turns": 2}
        assert not back.done()
        await back
        for scope in (first, second):
            await dreamt(client, "postgresql", scope)
        assert await said(provider, first) == ["one", "two"]
        assert await said(provider, second) == ["three"]


async def come_back(server: PostgresServer, name: str, seconds: float) -> None:
    """Let people into a database again, after a while."""
    await asyncio.sleep(seconds)
    await server.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")


@pytest.mark.slow
@pytest.mark.timeout(400)
async def test_a_burst_of_sessions_and_answers_that_end_at_once(
    client: Client, tmp_path: Path
) -> None:
    """Every one of them has its words in memory and its dream, with no fault at all."""

    def script(request: Request) -> Any:
        return served(Script())(request)

    async with stack(client, tmp_path, script, agents=agents("sqlite:memory.db")) as s:
        provider = await s.configuration.providers.get("sqlite:memory.db")
        scopes = [f"user-{uuid.uuid4()}" for _ in range(ONE_SHOTS + SESSIONS)]
        sessions = await asyncio.gather(
            *(
                s.start(agent="assistant", scope=scope, session=True, message="hello")
                for scope in scopes[ONE_SHOTS:]
            )
        )
        answers = asyncio.gather(
            *(s.start(agent="assistant", scope=one, message="hello") for one in scopes[:ONE_SHOTS])
        )
        await asyncio.gather(*(session.signal("end") for session in sessions))
        for handle in (*sessions, *await answers):
            await handle.result()
        for scope in scopes:
            await dreamt(client, "sqlite:memory.db", scope, 200)
            assert await said(provider, scope) == ["hello"]


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_slots_full_of_slow_model_calls(client: Client, tmp_path: Path) -> None:
    """A session that ends meanwhile ends in time; its words follow when a slot is free."""
    go = asyncio.Event()

    async def script(request: Request) -> Any:
        if last_user_text(request.messages) == "slow":
            await go.wait()
        return await served(Script())(request)

    options: dict[str, Any] = {"agents": agents("sqlite:memory.db"), "slots": 100}
    async with stack(client, tmp_path, script, **options) as s:
        provider = await s.configuration.providers.get("sqlite:memory.db")
        scope = f"user-{uuid.uuid4()}"
        session = await s.start(agent="assistant", scope=scope, session=True)
        await session.execute_update("send", "quick")
        slow = [await slow_session(s) for _ in range(100)]
        await eventually(lambda: len(s.model.requests) >= 101, 100)
        await session.signal("end")
        async with asyncio.timeout(20):
            await session.result()
        assert await said(provider, scope) == []
        go.set()
        await dreamt(client, "sqlite:memory.db", scope)
        assert await said(provider, scope) == ["quick"]
        for one in slow:
            await one.terminate()


@pytest.mark.slow
@pytest.mark.timeout(200)
async def test_a_script_that_leaves_waits_for_words_and_their_dream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`local()` stops its server when the store has the words, and the dream has read them."""
    monkeypatch.setenv("AGENTMEM_DATA", str(tmp_path))
    (tmp_path / "agents.toml").write_text(agents("sqlite:memory.db"))
    file = tmp_path / "memory.db"
    held = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
    async with local(agents=tmp_path / "agents.toml", model="agentmem/offline") as script:
        request = {"agent": "assistant", "scope": "ada", "session": True}
        session = await script.client.start_workflow(
            "agent", request, id="session", task_queue=script.task_queue
        )
        await session.execute_update("send", "My cat is named Momo.")
        held.execute("BEGIN IMMEDIATE")  # nobody else writes
        await session.signal("end")
        assert await session.result() == {"turns": 1}
        asyncio.get_running_loop().call_later(4, held.rollback)
    assert "Waiting for 1 session(s) to reach memory" in capsys.readouterr().err
    held.close()
    stores = Providers(tmp_path)
    provider = await stores.get("sqlite:memory.db")
    assert await provider.recall("assistant", "ada") == {"cat": "Cat is named Momo"}
    await stores.close()


async def slow_session(s: Stack) -> WorkflowHandle[Any, Any]:
    """Start a session whose model takes its time."""
    request = {"agent": "assistant", "scope": f"slow-{uuid.uuid4()}", "session": True}
    return await s.start(**request, message="slow")
