"""Dreams whose worker is killed, whose database is gone, whose server is restarted."""

import asyncio
import sys
import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from sqlalchemy import event
from sqlalchemy.util import await_only
from temporalio.client import Client, WorkflowHandle
from temporalio.common import RetryPolicy
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker

from activities.dream import DreamActivities
from agentmem.contracts import PHASES, DreamInput, DreamReport, Phases, PhaseSettings, ScopeRef
from agentmem.dev_server import dev_server
from agentmem.dreaming import patience, workflow
from agentmem.dreaming.hook import dream_id
from agentmem.policies import ActivityOptions
from agentmem.records import TranscriptRow
from agentmem.storage.protocol import TransactionalProvider
from agentmem.storage.registry import Providers
from agentmem.storage.sql.provider import SqlProvider
from agentmem.testing import Reply, Request, ScriptedModel, fail
from agentmem.wire import JSONObject
from tests.dreams import (
    NOON,
    Answer,
    Script,
    blocks_of,
    changes,
    findings,
    orientation,
    phase_of,
    served,
)
from tests.postgres import PostgresServer
from workflows.dream import AgentDream

ROOT = Path(__file__).parents[2]


ASKING = ("orient", "gather_signal", "consolidate", "verify", "prune")
"""The steps of such a dream that ask the model, in order: phases, and the check of changes."""


def learned() -> Script:
    """A dream in which each phase asks its model: it learns of a cat and moves a home."""
    return Script(
        orient=orientation(topics=["home"]),
        gather_signal=findings(
            {"statement": "Cat is named Momo", "evidence": ["a1"]},
            {"statement": "Moved to Bergen", "evidence": ["a1"]},
        ),
        consolidate=changes(
            {"op": "add", "key": "cat", "value": "Cat is named Momo", "findings": ["f1"]},
            {"op": "update", "key": "home", "value": "Moved to Bergen", "findings": ["f2"]},
        ),
        prune=changes(summary="Done."),
    )


AFTER = {"cat": "Cat is named Momo", "home": "Moved to Bergen", "long": "word " * 100}


async def prepared(provider: TransactionalProvider, scope: str) -> None:
    """Store two facts, one too long so that prune has work, and a message."""
    await provider.memorize("a", scope, "home", "Lives in Oslo")
    await provider.memorize("a", scope, "long", "word " * 100)
    row = TranscriptRow(
        session="s",
        memory="wm0",
        seq=1,
        message="m1",
        role="user",
        text="My cat is named Momo. I moved home to Bergen.",
        at=NOON.replace(year=2027),
    )
    await provider.append("a", scope, [row])


ONCE: Phases = {name: PhaseSettings(attempts=1) for name in PHASES}


async def started(
    client: Client, queue: str, scope: str, provider: str, phases: Phases | None = None
) -> WorkflowHandle[Any, DreamReport]:
    """Start the scope's dream."""
    return await client.start_workflow(
        AgentDream.run,
        DreamInput(agent="a", scope=scope, provider=provider, phases=phases or {}),
        id=dream_id(ScopeRef(provider=provider, agent="a", scope=scope)),
        task_queue=queue,
    )


async def is_right(provider: TransactionalProvider, scope: str, report: DreamReport) -> None:
    """The store is as one dream leaves it, and the evidence is consumed."""
    assert report.status == "completed"
    assert await provider.recall("a", scope) == AFTER
    assert [fact.version for fact in await provider.entries("a", scope)] == [1, 2, 1]
    assert await provider.unread("a", scope, 1_000) == []
    assert (await provider.scope_state("a", scope)).failures == 0


@pytest.mark.slow
@pytest.mark.timeout(240)
async def test_a_worker_killed_in_every_phase(
    env: WorkflowEnvironment, client: Client, tmp_path: Path
) -> None:
    """SIGKILL while five dreams wait for their models, each in another phase of one attempt.

    The fifth waits in a verify request.

    A worker that is lost takes up no attempt. Only the calls in flight are asked again, byte for
    byte; what was recorded is never paid twice, nothing is stored before the commit, and each
    commit is one.
    """
    scripts = {name: served(learned()) for name in ASKING}
    held = {name: asyncio.Event() for name in ASKING}
    fences: dict[str, str] = {}
    asked: list[tuple[str, str, bytes]] = []

    async def serve(request: Request) -> Reply:
        phase = phase_of(request.body)
        # A verify request shows no facts; the fence of its data is its dream's.
        if phase == "verify":
            fence = str(request.messages[1]["content"]).split("\n")[1].split()[-1]
        else:
            fence = str(request.messages[1]["content"]).split("\n")[0].split()[-1]
            lines = blocks_of(request.body)["FACTS"]
            (fences[fence],) = [line["v"] for line in lines if line.get("k") == "held_in"]
        holds = fences[fence]
        asked.append((holds, phase, request.raw))
        if phase == holds and not held[holds].is_set():
            held[holds].set()
            await asyncio.sleep(3_600)
        return await scripts[holds](request)

    queue = f"queue-{uuid.uuid4()}"
    scopes = {name: f"{name}-{uuid.uuid4()}" for name in ASKING}
    provider = await (stores := Providers(tmp_path)).get("sqlite:memory.db")
    for name, scope in scopes.items():
        await prepared(provider, scope)
        await provider.memorize("a", scope, "held_in", name)
    async with ScriptedModel(serve) as model:
        address = env.client.service_client.config.target_host

        async def worker() -> asyncio.subprocess.Process:
            return await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "tests.faults.dream_worker"),
                *(address, queue, str(tmp_path), model.base_url),
                cwd=ROOT,
            )

        process = await worker()
        try:
            store = "sqlite:memory.db"
            dreams = [await started(client, queue, scope, store, ONCE) for scope in scopes.values()]
            for one in held.values():
                await asyncio.wait_for(one.wait(), 60)
            for scope in scopes.values():
                assert (await provider.recall("a", scope))["home"] == "Lives in Oslo"
            process.kill()
            await process.wait()
            process = await worker()
            for (name, scope), handle in zip(scopes.items(), dreams, strict=True):
                report = await handle.result()
                await provider.forget("a", scope, "held_in")
                await is_right(provider, scope, report)
                mine = [(phase, raw) for holds, phase, raw in asked if holds == name]
                expected = [phase for phase in ASKING for _ in range(1 + (phase == name))]
                assert [phase for phase, _ in mine] == expected
                place = ASKING.index(name)
                assert mine[place][1] == mine[place + 1][1]
        finally:
            process.kill()
            await process.wait()
    await stores.close()


@asynccontextmanager
async def working(client: Client, stores: Providers, ask: Any) -> AsyncGenerator[str]:
    """Run a worker for dreams in this process; its task queue."""
    queue = f"queue-{uuid.uuid4()}"
    activities = DreamActivities(stores, ask, model="scripted").activities
    async with Worker(client, task_queue=queue, workflows=[AgentDream], activities=activities):
        yield queue


class Outage:
    """A database that goes away as often as it is told to.

    Args:
        server: Its server.
        url: Its URL.
        seconds: When it comes back by itself; None for never.

    Attributes:
        times: How often it went away.
    """

    def __init__(self, server: PostgresServer, url: str, seconds: float | None = 1.5) -> None:
        self.times = 0
        self._seconds = seconds
        self._server = server
        self._name = urlsplit(url).path.removeprefix("/")
        self._returning: set[asyncio.Task[None]] = set()

    async def begin(self) -> None:
        """Let nobody in and throw all out."""
        await self._server.execute(f"ALTER DATABASE {self._name} ALLOW_CONNECTIONS false")
        await self._server.execute(
            f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{self._name}'"
        )
        self.times += 1
        if self._seconds is not None:
            self._returning.add(asyncio.create_task(self._end_after(self._seconds)))

    async def _end_after(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        await self.end()

    async def end(self) -> None:
        """Let everybody in again."""
        await self._server.execute(f"ALTER DATABASE {self._name} ALLOW_CONNECTIONS true")


@pytest.mark.slow
@pytest.mark.postgresql
@pytest.mark.timeout(240)
async def test_a_database_that_goes_away_in_every_phase(
    client: Client, tmp_path: Path, postgres_server: PostgresServer, postgresql_url: str
) -> None:
    """Gone for seconds behind each model call, with one attempt a phase: the dream is whole."""
    script = learned()
    outage = Outage(postgres_server, postgresql_url)
    gone: list[str] = []

    async def ask(request: JSONObject) -> Answer:
        answer = await script(request)
        phase = phase_of(request)
        if phase not in gone:
            gone.append(phase)
            script.before(phase, answer)  # the reply is lost with the database: paid once more
            await outage.begin()
        return answer

    scope = f"user-{uuid.uuid4()}"
    stores = Providers(tmp_path, postgresql_url)
    provider = await stores.get("postgresql")
    await prepared(provider, scope)
    async with working(client, stores, ask) as queue:
        handle = await started(client, queue, scope, "postgresql", ONCE)
        report = await handle.result()
    await is_right(provider, scope, report)
    assert gone == list(ASKING)
    assert outage.times == len(ASKING)
    assert [phase_of(request) for request in script.requests] == [
        phase for phase in ASKING for _ in range(2)
    ]
    await stores.close()


@pytest.mark.slow
@pytest.mark.postgresql
@pytest.mark.timeout(240)
async def test_a_database_that_goes_away_before_begin_and_within_the_commit(
    client: Client, tmp_path: Path, postgres_server: PostgresServer, postgresql_url: str
) -> None:
    """Gone when the dream opens, and between two writes of its commit: it counts and applies once.

    No model call is made twice for it.
    """
    script = learned()
    outage = Outage(postgres_server, postgresql_url)
    scope = f"user-{uuid.uuid4()}"
    stores = Providers(tmp_path, postgresql_url)
    provider = await stores.get("postgresql")
    assert isinstance(provider, SqlProvider)
    await prepared(provider, scope)
    engine = await provider.database.write(lambda connection: connection.engine)
    statements: list[str] = []

    def go_away(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        # Only a commit writes facts here; its cursor is moved by then.
        if statement.startswith("INSERT INTO agentmem_fact_versions"):
            statements.append(statement)
            if len(statements) == 1:
                await_only(outage.begin())

    event.listen(engine, "before_cursor_execute", go_away)
    async with working(client, stores, script) as queue:
        await outage.begin()
        handle = await started(client, queue, scope, "postgresql")
        report = await handle.result()
    event.remove(engine, "before_cursor_execute", go_away)
    await is_right(provider, scope, report)
    assert (outage.times, len(statements)) == (2, 2)
    assert [phase_of(request) for request in script.requests] == list(ASKING)
    attempts = {
        one.activity_task_started_event_attributes.attempt
        for one in (await handle.fetch_history()).events
        if one.HasField("activity_task_started_event_attributes")
    }
    assert max(attempts) > 1
    await stores.close()


async def waits_for(handle: WorkflowHandle[Any, Any], what: str) -> str:
    """Wait until people see that a dream waits; returns the line up to its reason."""
    async with asyncio.timeout(60):
        while True:
            metadata: Any = await handle.query("__temporal_workflow_metadata")
            line = metadata.current_details.partition("\n")[0]
            if line.startswith(f"waiting for {what} since "):
                return line.partition(" (")[0]
            await asyncio.sleep(0.05)


@pytest.mark.slow
@pytest.mark.timeout(240)
async def test_a_worker_killed_while_its_dream_waits(
    env: WorkflowEnvironment, client: Client, tmp_path: Path
) -> None:
    """SIGKILL in a wait for the model changes nothing: another worker goes on with the wait."""
    script = served(learned())
    back = asyncio.Event()
    asked: list[str] = []

    async def serve(request: Request) -> Reply:
        asked.append(phase_of(request.body))
        if asked[-1] == "consolidate" and not back.is_set():
            return fail(503, "overloaded")
        return await script(request)

    queue, scope = f"queue-{uuid.uuid4()}", f"user-{uuid.uuid4()}"
    provider = await (stores := Providers(tmp_path)).get("sqlite:memory.db")
    await prepared(provider, scope)
    async with ScriptedModel(serve) as model:
        address = env.client.service_client.config.target_host

        async def worker() -> asyncio.subprocess.Process:
            return await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "tests.faults.dream_worker"),
                *(address, queue, str(tmp_path), model.base_url),
                cwd=ROOT,
            )

        process = await worker()
        try:
            handle = await started(client, queue, scope, "sqlite:memory.db", ONCE)
            since = await waits_for(handle, "the model")
            process.kill()
            await process.wait()
            tried = len(asked)
            process = await worker()
            assert await waits_for(handle, "the model") == since
            async with asyncio.timeout(60):
                while len(asked) == tried:  # noqa: ASYNC110 - another process asks
                    await asyncio.sleep(0.05)
            assert (await provider.recall("a", scope))["home"] == "Lives in Oslo"
            back.set()
            await is_right(provider, scope, await handle.result())
        finally:
            process.kill()
            await process.wait()
    paid = [phase for phase in asked if phase != "consolidate"]
    assert paid == ["orient", "gather_signal", "verify", "prune"]
    await stores.close()


@pytest.mark.slow
@pytest.mark.postgresql
@pytest.mark.timeout(240)
async def test_a_database_that_is_away_for_longer_than_attempts_last(
    client: Client,
    tmp_path: Path,
    postgres_server: PostgresServer,
    postgresql_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Away in `begin` and in the commit until somebody mends it: the dream waits, and is whole.

    No reply is paid twice, and the gate counts nothing.
    """
    monkeypatch.setattr(patience, "FIRST_WAIT", timedelta(seconds=0.1))
    monkeypatch.setattr(patience, "LONGEST_WAIT", timedelta(seconds=0.5))
    for name in ("BEGIN", "COMMIT"):
        options: ActivityOptions = getattr(workflow, name)
        once: ActivityOptions = {**options, "retry_policy": RetryPolicy(maximum_attempts=1)}
        monkeypatch.setattr(workflow, name, once)
    script = learned()
    outage = Outage(postgres_server, postgresql_url, seconds=None)
    scope = f"user-{uuid.uuid4()}"
    stores = Providers(tmp_path, postgresql_url)
    provider = await stores.get("postgresql")
    assert isinstance(provider, SqlProvider)
    await prepared(provider, scope)
    engine = await provider.database.write(lambda connection: connection.engine)
    writes: list[str] = []

    def go_away(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if statement.startswith("INSERT INTO agentmem_fact_versions"):
            writes.append(statement)
            if len(writes) == 1:
                await_only(outage.begin())

    event.listen(engine, "before_cursor_execute", go_away)
    async with working(client, stores, script) as queue:
        await outage.begin()
        handle = await started(client, queue, scope, "postgresql", ONCE)
        await waits_for(handle, "the store")
        await outage.end()
        async with asyncio.timeout(60):
            while outage.times < 2:  # noqa: ASYNC110 - the driver's event tells no event loop
                await asyncio.sleep(0.05)
        await waits_for(handle, "the store")
        await outage.end()
        report = await handle.result()
    event.remove(engine, "before_cursor_execute", go_away)
    await is_right(provider, scope, report)
    assert [phase_of(request) for request in script.requests] == list(ASKING)
    await stores.close()


@pytest.mark.slow
@pytest.mark.timeout(240)
async def test_a_server_that_is_restarted_in_a_dream(tmp_path: Path) -> None:
    """A phase works on while the server is away; the dream goes on when it is back."""
    script = learned()
    reached, go_on = asyncio.Event(), asyncio.Event()

    async def ask(request: JSONObject) -> Answer:
        answer = await script(request)
        if phase_of(request) == "consolidate" and not reached.is_set():
            reached.set()
            await go_on.wait()
        return answer

    scope = f"user-{uuid.uuid4()}"
    provider = await (stores := Providers(tmp_path)).get("sqlite:memory.db")
    await prepared(provider, scope)
    async with dev_server(tmp_path / "server", ui=False, keep=True) as first:
        client, port = first.client, int(first.address.rpartition(":")[2])
        context = working(client, stores, ask)
        queue = await context.__aenter__()
        handle = await started(client, queue, scope, "sqlite:memory.db")
        await asyncio.wait_for(reached.wait(), 60)
    async with dev_server(tmp_path / "server", ui=False, keep=True, port=port) as second:
        go_on.set()
        report = await second.client.get_workflow_handle_for(AgentDream.run, handle.id).result()
        await context.__aexit__(None, None, None)
    await is_right(provider, scope, report)
    await stores.close()
