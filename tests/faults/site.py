"""The world of one cell: its store, model, workers and sessions, and the counts of its outcome.

Everything counted is read from the store, the server's histories and the model endpoint's requests
after the cell, and compared with what the cell's clients sent and were told.
"""

import asyncio
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.client import (
    Client,
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowHandle,
)
from temporalio.client import WorkflowUpdateFailedError as UpdateFailed
from temporalio.exceptions import ApplicationError, WorkflowAlreadyStartedError
from temporalio.service import RPCError

from agentmem.contracts import ScopeRef
from agentmem.dreaming.hook import dream_id
from agentmem.dreaming.prompts import SYSTEM
from agentmem.dreaming.verification import VERIFY
from agentmem.llm.summaries import FORM
from agentmem.storage.registry import Providers
from agentmem.testing import Reply, Request, ScriptedModel, call, reply
from tests.dreams import Script, blocks_of, changes, findings, phase_of, served
from tests.faults.places import Control, Halt
from tests.pair import Pair
from tests.postgres import PostgresServer
from tests.stack import last_user_text
from tests.stuck import of_run

ROOT = Path(__file__).parents[2]
AGENT = "assistant"
SETTLED = 150.0
"""Seconds in which everything behind a conversation must be done; what is not by then is stuck."""

KNOWN = {"home": "Lives in Oslo", "long": "word " * 100}
"""Facts that are there before, so that each phase of a dream has something to ask a model."""

_CAT = re.compile(r"My cat is named (\w+)\.")

Handle = WorkflowHandle[Any, Any]
Mischief = Callable[[Request], Awaitable[Reply | None]]


class Zygote:
    """The process that workers are forked from."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._lock = asyncio.Lock()

    async def fork(self, **arguments: Any) -> int:
        """Start a worker; returns its process id."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin
        assert stdout
        async with self._lock:
            stdin.write(json.dumps(arguments).encode() + b"\n")
            await stdin.drain()
            return int(await stdout.readline())


@asynccontextmanager
async def zygote() -> AsyncGenerator[Zygote]:
    """Run the process that workers are forked from; the workers end with it."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.faults.faulty_worker"),
        cwd=ROOT,
        env={**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert process.stdout
        await process.stdout.readline()  # everything is imported
        yield Zygote(process)
    finally:
        assert process.stdin
        process.stdin.close()
        await process.wait()


@dataclass(kw_only=True)
class Counts:
    """The outcome of a cell.

    Attributes:
        turns: Messages of users that were answered.
        words_lost: Of these, how many their transcript lacks, and answers that it lacks.
        words_doubled: Messages of users and answers that the transcript has more than once.
        facts: Facts that the dreams were to store: one a message that was answered.
        facts_lost: Of these, how many the store lacks or has with another value.
        facts_doubled: Facts that nobody said, and facts that were written more than once.
        effects_doubled: Calls of the tool with a side effect that ran more than once.
        asked_again: Model calls beyond one for each that was needed: paid more than once.
        refused: Messages that a session or the server did not take.
        failed: Messages that were taken and got no answer.
        stuck: Workflows that did not end in time.
        task_failures: Workflow tasks that failed.
        died: Workflows that failed, timed out or were terminated, and not by the fault.
        seconds: How long the cell took.
    """

    turns: int = 0
    words_lost: int = 0
    words_doubled: int = 0
    facts: int = 0
    facts_lost: int = 0
    facts_doubled: int = 0
    effects_doubled: int = 0
    asked_again: int = 0
    refused: int = 0
    failed: int = 0
    stuck: int = 0
    task_failures: int = 0
    died: int = 0
    seconds: float = 0

    @property
    def harm(self) -> dict[str, int]:
        """What must be zero, as far as it is not."""
        harmless = ("turns", "facts", "asked_again", "seconds")
        return {name: n for name, n in vars(self).items() if n and name not in harmless}


@dataclass(kw_only=True)
class Site:
    """The world of one cell.

    Attributes:
        client: Of its Temporal server.
        folder: Of its files.
        halt: The place of its fault.
        control: What its workers ask.
        identity: The provider of its store.
        scope: Whose facts.
        queue: Its task queue.
        database: The PostgreSQL server, if the store is on one.
        database_url: The URL of the store's database there.
        sent: What users said, in order.
        answers: What they were told, by what they said.
        ends: Workflows that the fault itself ended.
        patient: Whether clients try again when the server does not answer.
        ended: Whether the fault ended the session: what it refuses then is no harm.
        collects: Whether the scope's dream is to be started by hand, to collect what was said.
        gone: Workers that the fault stopped.
        served: What the model answered, by what it was asked.
        behind: What the fault still does while everybody goes on.
        pair: The database's two servers, where there are two.
        restart: Restarts the Temporal server, where the cell has one of its own.
        notes: Lines on what the cell saw.
    """

    client: Client
    folder: Path
    halt: Halt
    control: Control
    fork: Zygote
    model: ScriptedModel
    identity: str
    database: PostgresServer | None
    database_url: str
    types: list[str]
    mischief: dict[str, list[Mischief]]
    scope: str = field(default_factory=lambda: f"user-{uuid.uuid4()}")
    queue: str = field(default_factory=lambda: f"cell-{uuid.uuid4()}")
    sent: list[str] = field(default_factory=list[str])
    answers: dict[str, str] = field(default_factory=dict[str, str])
    refused: list[str] = field(default_factory=list[str])
    failed: list[str] = field(default_factory=list[str])
    ends: set[str] = field(default_factory=set[str])
    pids: list[int] = field(default_factory=list[int])
    patient: bool = False
    ended: bool = False
    collects: bool = False
    gone: list[int] = field(default_factory=list[int])
    served: dict[str, str] = field(default_factory=dict[str, str])
    behind: list[asyncio.Task[None]] = field(default_factory=list[asyncio.Task[None]])
    pair: Pair | None = None
    restart: Callable[[], Awaitable[None]] | None = None
    notes: list[str] = field(default_factory=list[str])
    sessions: list[Handle] = field(default_factory=list[Handle])

    @property
    def store(self) -> ScopeRef:
        """The scope of the facts."""
        return ScopeRef(provider=self.identity, agent=AGENT, scope=self.scope)

    @property
    def dream(self) -> str:
        """The id of the scope's dream."""
        return dream_id(self.store)

    async def provider(self) -> Any:
        """Return the store, as this process has it."""
        return await self.stores.get(self.identity)

    def __post_init__(self) -> None:
        self.stores = Providers(self.folder, self.database_url or None)

    # Workers

    async def work(self, *, dies: str = "", old: bool = False) -> int:
        """Start one more worker; returns its process id."""
        target = self.client.service_client.config.target_host
        settings = {
            **self.model.env(),
            "TEMPORAL_ADDRESS": target,
            "AGENTMEM_TASK_QUEUE": self.queue,
            "AGENTMEM_MODEL": "openai/test-model",
            "AGENTMEM_DATA": str(self.folder),
            "AGENTMEM_APP": str(ROOT / "tests/faults/fault_app.py"),
            "FAULTS_CONTROL": self.control.address,
        }
        if self.database_url:
            settings["AGENTMEM_DATABASE_URL"] = self.database_url
        pid = await self.fork.fork(
            folder=str(self.folder), settings=settings, types=self.types, dies=dies, old=old
        )
        self.pids.append(pid)
        return pid

    async def holder(self) -> int:
        """Return the worker that waits at the place; between two turns, that of the last task."""
        if self.halt.pid:
            return self.halt.pid
        history = await self.last().fetch_history()
        identity = next(
            event.workflow_task_started_event_attributes.identity
            for event in reversed(history.events)
            if event.HasField("workflow_task_started_event_attributes")
        )
        return int(identity.partition("@")[0])

    async def pending(self) -> dict[str, Any]:
        """Return how to name the one activity that is at work."""
        async with asyncio.timeout(20):
            while True:
                async for run in self.client.list_workflows(self._query("Running")):
                    handle = self.client.get_workflow_handle(run.id)
                    for one in (await handle.describe()).raw_description.pending_activities:
                        return {
                            "namespace": self.client.namespace,
                            "execution": WorkflowExecution(workflow_id=run.id),
                            "id": one.activity_id,
                        }
                await asyncio.sleep(0.1)

    def last(self) -> Handle:
        """Return the session, whichever its run."""
        return self.client.get_workflow_handle(self.sessions[-1].id)

    # Sessions

    def word(self) -> str:
        """Return the next thing that a user says."""
        return f"My cat is named c{len(self.sent)}."

    async def start(self, kind: Any = "agent", *args: Any, **request: Any) -> Handle:
        """Start a session, a one-shot or a workflow of one's own."""
        given = list(args) or [{"agent": AGENT, "scope": self.scope, **request}]
        handle = await self.client.start_workflow(
            kind, args=given, id=f"{self.queue}-{len(self.sessions)}", task_queue=self.queue
        )
        self.sessions.append(handle)
        return handle

    async def say(self, session: Handle, text: str = "") -> None:
        """Send a message as any SDK does, and take note of what came of it."""
        text = text or self.word()
        self.sent.append(text)
        name = str(uuid.uuid4())
        deadline = time.monotonic() + 60
        while True:
            try:
                self.answers[text] = await session.execute_update("send", text, id=name)
            except UpdateFailed as error:
                self._unanswered(text, error.cause)
            except RPCError as error:
                if self.patient and time.monotonic() < deadline:
                    await asyncio.sleep(0.5)
                    continue
                self._unanswered(text, error)
            return

    def _unanswered(self, text: str, why: BaseException | None) -> None:
        if self.ended:  # by the fault, which is what it is for
            return
        kind = why.type if isinstance(why, ApplicationError) else type(why).__name__
        refusals = ("SessionBusy", "RollingOver", "InvalidInput", "RPCError")
        (self.refused if kind in refusals else self.failed).append(f"{text} {kind}: {why}")

    async def end(self, session: Handle) -> None:
        """End a session and wait for its end."""
        while True:
            try:
                if not self.ended:
                    await session.signal("end")
                await self.client.get_workflow_handle(session.id).result()
            except RPCError:
                if self.patient and not self.ended:
                    await asyncio.sleep(0.5)
                    continue
            except Exception as error:
                if not self.ended:
                    self.notes.append(f"the session failed: {error}")
            return

    async def answered(self, run: Handle, told: Callable[[Any], dict[str, str]]) -> None:
        """Wait for the result of a run that answers and ends, and take note of what it told."""
        while True:
            try:
                self.answers |= told(await run.result())
            except RPCError:
                if self.patient:
                    await asyncio.sleep(0.5)
                    continue
                raise
            except WorkflowFailureError as error:
                if self.ended:  # by the fault: what the model had answered must be kept
                    self.answers |= self.served
                else:
                    self.failed.append(f"{run.id}: {error.cause}")
            return

    async def status(self, session: Handle, holds: Callable[[Any], Any]) -> Any:
        """Ask a session for its status until it holds."""
        async with asyncio.timeout(60):
            while True:
                status = await session.query("status")
                if holds(status):
                    return status
                await asyncio.sleep(0.1)

    async def approve(self, session: Handle, waiting: str) -> None:
        """Approve a call that waits."""
        while True:
            try:
                await session.execute_update("approve", {"call": waiting, "ok": True})
            except RPCError:
                if self.patient:
                    await asyncio.sleep(0.5)
                    continue
                raise
            return

    async def here(self, place: str) -> None:
        """Come to a place of the client's own."""
        await self.halt.arrive(place)

    # What came of it

    async def dreams(self) -> None:
        """Start the scope's dream by hand, which collects what ended sessions said."""
        request = {"agent": AGENT, "scope": self.scope, "provider": self.identity}
        while True:
            try:
                await self.client.start_workflow(
                    "agent_dream", request, id=self.dream, task_queue=self.queue
                )
            except WorkflowAlreadyStartedError:  # it began before those words were there
                with suppress(WorkflowFailureError):
                    await self.client.get_workflow_handle(self.dream).result()
            else:
                return

    async def settle(self) -> None:
        """Wait until nothing of the cell runs any more: no session, hand-over or dream."""
        quiet, deadline = 0, time.monotonic() + SETTLED
        while quiet < 3 and time.monotonic() < deadline:
            quiet = 0 if await self._running() else quiet + 1
            await asyncio.sleep(0.7)

    async def _running(self) -> bool:
        try:
            described = await self.client.get_workflow_handle(self.dream).describe()
            if described.status is WorkflowExecutionStatus.RUNNING:
                return True
        except RPCError:
            pass  # none has been started
        return bool([run async for run in self.client.list_workflows(self._query("Running"))])

    def _query(self, status: str = "") -> str:
        which = f"TaskQueue = '{self.queue}'"
        return f"{which} AND ExecutionStatus = '{status}'" if status else which

    async def count(self) -> Counts:
        """Read the outcome from the store, the server and the endpoint."""
        await self.stores.close()  # its connections may lead to a database of before the fault
        self.stores = Providers(self.folder, self.database_url or None)
        found = Counts(turns=len(self.answers), refused=len(self.refused), failed=len(self.failed))
        await self._count_words(found)
        await self._count_facts(found)
        await self._count_runs(found)
        found.effects_doubled = sum(n - 1 for n in self.control.notes.values())
        kinds = Counter((kind_of(one), one.raw) for one in self.model.requests)
        found.asked_again = sum(n - 1 for n in kinds.values())
        for line in (*self.refused, *self.failed):
            self.notes.append(line)
        return found

    async def _count_words(self, found: Counts) -> None:
        rows = await (await self.provider()).export(AGENT, self.scope)
        kept = [row for row in rows if row["table"] == "transcript"]
        said = Counter(row["text"] for row in kept if row["role"] == "user")
        told = Counter(row["text"] for row in kept if row["role"] == "assistant" and row["text"])
        for text, answer in self.answers.items():
            found.words_lost += (not said[text]) + (bool(answer) and not told[answer])
        found.words_doubled = sum(n - 1 for n in said.values() if n > 1)
        found.words_doubled += sum(told[one] - 1 for one in self.answers.values() if told[one] > 1)
        if found.words_lost or found.words_doubled:
            self.notes.append(f"transcript: {[(row['role'], row['text']) for row in kept]}")

    async def _count_facts(self, found: Counts) -> None:
        entries = await (await self.provider()).entries(AGENT, self.scope)
        kept = {fact.key: fact for fact in entries}
        told = {f"cat_{name_of(text)}": f"Cat is named {name_of(text)}" for text in self.answers}
        may = {f"cat_{name_of(text)}" for text in self.sent}
        found.facts = len(told)
        found.facts_lost = sum(
            key not in kept or kept[key].value != value for key, value in {**told, **KNOWN}.items()
        )
        found.facts_doubled = len(kept.keys() - may - KNOWN.keys())
        found.facts_doubled += sum(fact.version > 1 for fact in entries)
        if found.facts_lost or found.facts_doubled:
            self.notes.append(f"facts: {[(f.key, f.value, f.version) for f in entries]}")

    async def _count_runs(self, found: Counts) -> None:
        good = {
            WorkflowExecutionStatus.COMPLETED,
            WorkflowExecutionStatus.CONTINUED_AS_NEW,
            WorkflowExecutionStatus.RUNNING,
        }
        async for run in self.client.list_workflows(self._query()):
            handle = self.client.get_workflow_handle(run.id, run_id=run.run_id)
            status = (await handle.describe()).status
            if status is WorkflowExecutionStatus.RUNNING:
                found.stuck += 1
                self.notes.append(f"{run.id} still runs")
            if status not in good and run.id not in self.ends:
                found.died += 1
                self.notes.append(f"{run.id} {run.workflow_type}: {status}")
            async for line in of_run(self.client, run.id, run.run_id):
                found.task_failures += 1
                self.notes.append(line)

    async def close(self) -> None:
        """Kill the workers and leave nothing running on the server."""
        for pid in self.pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        async for run in self.client.list_workflows(self._query("Running")):
            with suppress(RPCError):
                await self.client.get_workflow_handle(run.id, run_id=run.run_id).terminate()
        await self.stores.close()

    # The store

    @asynccontextmanager
    async def hung(self) -> AsyncGenerator[None]:
        """Let nobody write into the store; whoever tries waits."""
        held = sqlite3.connect(
            self.folder / "memory.db", isolation_level=None, timeout=30, check_same_thread=False
        )
        await asyncio.to_thread(held.execute, "BEGIN IMMEDIATE")
        try:
            yield
        finally:
            held.rollback()
            held.close()

    @asynccontextmanager
    async def away(self) -> AsyncGenerator[None]:
        """Let nobody into the database, and throw everybody out."""
        assert self.database
        name = urlsplit(self.database_url).path.removeprefix("/")
        await self.database.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
        await self.database.execute(
            f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
        )
        try:
            yield
        finally:
            await self.database.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")


def name_of(text: str) -> str:
    """Return the cat's name in what a user says; empty if there is none."""
    found = _CAT.search(text)
    return found[1] if found else ""


def kind_of(request: Request) -> str:
    """Return what a model is asked for: `turn`, `compaction`, or a phase of a dream."""
    if request.model == "summariser":
        return "compaction"
    if request.messages[0]["content"] in (SYSTEM, VERIFY):
        return phase_of(request.body)
    return "turn"


def learned() -> Script:
    """Script dreams that learn each cat's name that they read of, however often they are asked."""

    async def find(request: Any) -> Any:
        lines = [line for line in blocks_of(request)["TRANSCRIPT"] if "text" in line]
        told = {name_of(line["text"]): line["id"] for line in reversed(lines)}
        return findings(
            *(
                {"statement": f"Cat is named {name}", "evidence": [i]}
                for name, i in told.items()
                if name
            )
        )

    async def add(request: Any) -> Any:
        blocks = blocks_of(request)
        known = {line.get("k") for line in blocks.get("FACTS", [])}
        found = {line["statement"].rpartition(" ")[2]: line["f"] for line in blocks["FINDINGS"]}
        return changes(
            *(
                {"op": "add", "key": f"cat_{name}", "value": f"Cat is named {name}"}
                | {"findings": [number]}
                for name, number in found.items()
                if f"cat_{name}" not in known
            )
        )

    return Script(gather_signal=[find] * 999, consolidate=[add] * 999)


def script(
    halt: Halt, mischief: dict[str, list[Mischief]], served_turns: dict[str, str]
) -> Callable[[Request], Any]:
    """Return the endpoint's script.

    Args:
        halt: Requests wait there, at the place `model` with their kind.
        mischief: What is done to the first requests of a kind.
        served_turns: Where the answers to people are noted, by what they said.
    """
    dreams = served(learned())

    async def serve(request: Request) -> Reply:
        kind = kind_of(request)
        await halt.arrive(f"model {kind}")
        if mischief.get(kind):
            done = await mischief[kind].pop(0)(request)
            if done is not None:
                return done
        if kind == "compaction":
            return reply(calls=[call(FORM, summary="They talked about cats.")])
        if kind != "turn":
            return await dreams(request)
        text = last_user_text(request.messages)
        if request.messages[-1]["role"] == "user" and "[note]" in text:
            return reply(calls=[call("note", text=text)])
        served_turns[text] = f"re: {text}"
        return reply(served_turns[text], usage={"prompt_tokens": 1})

    return serve


@asynccontextmanager
async def site(
    client: Client,
    fork: Zygote,
    halt: Halt,
    *,
    types: list[str],
    agent: str = "",
    mischief: dict[str, list[Mischief]] | None = None,
    identity: str = "sqlite:memory.db",
    database: PostgresServer | None = None,
    database_url: str = "",
) -> AsyncGenerator[Site]:
    """Make the world of a cell, with facts in its store and no worker yet."""
    with tempfile.TemporaryDirectory(prefix="agentmem-cell-") as name:
        folder = Path(name)
        (folder / "agentmem.toml").write_text(
            f'[agents.{AGENT}]\nsystem_prompt = "Be brief."\ntools = ["note"]\n'
            f'long_term_memory.provider = "{identity}"\ndream.on = ["end"]\n{agent}'
        )
        mischief, answers = mischief or {}, dict[str, str]()
        async with (
            ScriptedModel(script(halt, mischief, answers)) as model,
            Control(halt) as control,
        ):
            made = Site(
                client=client,
                folder=folder,
                halt=halt,
                control=control,
                fork=fork,
                model=model,
                identity=identity,
                database=database,
                database_url=database_url,
                types=types,
                mischief=mischief,
                served=answers,
            )
            try:
                provider = await made.provider()
                for key, value in KNOWN.items():
                    await provider.memorize(AGENT, made.scope, key, value)
                yield made
            finally:
                halt.release()
                await made.close()
