"""A stage for sessions: a Temporal server, a model that answers at once, worker processes."""

import asyncio
import json
import os
import signal
import time
import uuid
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from temporalio.client import Client, WorkflowHandle

from agentmem.client import ask
from agentmem.memory.tools import MEMORY_TOOLS
from agentmem.tools.box import tool_schema
from benchmarks.model import Model
from benchmarks.server import start_server
from benchmarks.texts import question
from benchmarks.tool import look_up
from tests.e2e.worker_process import READY, ROOT, WorkerProcess, worker_process

AGENTS = """
[agents.plain]
system_prompt = "Be brief."
[agents.tools]
system_prompt = "Be brief."
tools = ["look_up"]
[agents.memory]
system_prompt = "Be brief."
long_term_memory.provider = "default"
[agents.dreamer]
system_prompt = "Be brief."
long_term_memory.provider = "default"
[agents.dreamer.dream]
on = ["complete"]
model = "agentmem/offline"
[agents.long]
system_prompt = "Be brief."
run_limits.events = 20000
run_limits.history_bytes = 20000000
run_limits.updates = 1900
"""

TOOLS = {
    "tools": [tool_schema(look_up)],
    "memory": [schema for _, schema in MEMORY_TOOLS.values()],
    "dreamer": [schema for _, schema in MEMORY_TOOLS.values()],
}
"""What a floor's model is offered, as it is with our agent of that name."""

BARE, FLOOR, FREE, NAIVE, OURS = "bare", "held", "held, free", "naive", "agentmem"
"""The contenders: floor A, floor B, B outside of the sandbox, the whole conversation in each call,
and ours."""


@dataclass(frozen=True, kw_only=True)
class Stage:
    """What all contenders share.

    Attributes:
        client: Of the server.
        model: What the workers ask.
        server: The server's process id.
        settings: The environment of workers.
        folder: The working directory of workers.
    """

    client: Client
    model: Model
    server: int
    settings: dict[str, str]
    folder: Path

    @asynccontextmanager
    async def contender(
        self, kind: str, *, workers: int = 1, cached: int = 0
    ) -> AsyncGenerator["Contender"]:
        """Run worker processes of a contender; they are told to stop at the end.

        Args:
            kind: Which one.
            workers: How many.
            cached: How many workflows each keeps in its cache; the SDK's 1,000 if 0.
        """
        contender = Contender(self, kind, cached)
        try:
            for _ in range(workers):
                await contender.start_worker()
            await contender.warm_up()
            yield contender
        finally:
            await contender.end_workers(signal.SIGTERM)

    @asynccontextmanager
    async def contenders(
        self, kinds: Sequence[str], *, workers: int = 1
    ) -> AsyncGenerator[list["Contender"]]:
        """Run several."""
        async with AsyncExitStack() as stack:
            yield [
                await stack.enter_async_context(self.contender(kind, workers=workers))
                for kind in kinds
            ]


class Contender:
    """One way to hold sessions, with worker processes of its own.

    Attributes:
        kind: Which one.
    """

    def __init__(self, stage: Stage, kind: str, cached: int = 0) -> None:
        self.kind = kind
        self._cached = cached
        self.stage = stage
        self._queue = f"{kind:-<10}-{uuid.uuid4()}"  # as long for all: it is in most events
        self._workers: list[tuple[WorkerProcess, AsyncExitStack]] = []

    @property
    def pids(self) -> list[int]:
        """The process ids of the workers."""
        return [process.pid for process, _ in self._workers]

    async def start_worker(self, *, ready: bool = True) -> WorkerProcess:
        """Start a worker process; with `ready` wait until it says that it is running."""
        ours = "benchmarks/cached_worker.py" if self._cached else "worker.py"
        script = ours if self.kind == OURS else "benchmarks/floor_worker.py"
        settings = {
            **self.stage.settings,
            "AGENTMEM_TASK_QUEUE": self._queue,
            **({"CACHED_WORKFLOWS": str(self._cached)} if self._cached else {}),
            **({"FLOOR_FREE": "1"} if self.kind == FREE else {}),
            "FLOOR_TOOLS": json.dumps(TOOLS),
            "AGENTMEM_APP": str(ROOT / "benchmarks/tool.py"),
        }
        stack = AsyncExitStack()
        running = worker_process(self.stage.folder, script=ROOT / script, settings=settings)
        process = await stack.enter_async_context(running)
        self._workers.append((process, stack))
        if ready:
            await process.says(READY)
        return process

    async def warm_up(self) -> None:
        """Have the worker answer once in a session of no account: litellm is loaded then."""
        other = await self.open()
        await other.say(question(0))
        await other.handle.terminate()

    async def end_workers(self, number: signal.Signals) -> None:
        """End the workers by a signal, and wait until they are gone."""
        for process, stack in self._workers:
            with suppress(ProcessLookupError):  # it has ended by itself, and its output says why
                process.send(number)
            await process.ended()
            await stack.aclose()
        self._workers = []

    async def open(self, agent: str = "plain") -> "Talk":
        """Start a session with an agent; a floor's model is offered the tools that it has."""
        name: str = "floor.session"
        argument: Any = FLOOR if self.kind == FREE else self.kind
        if self.kind == OURS:
            name = "agent"
            argument = {"agent": agent, "scope": "s", "session": True}
        handle = await self.stage.client.start_workflow(
            name, argument, id=f"{agent}/{uuid.uuid4()}", task_queue=self._queue
        )
        return Talk(self, handle)


class Talk:
    """One session of a contender."""

    def __init__(self, contender: Contender, handle: WorkflowHandle[Any, Any]) -> None:
        self.handle = handle
        self._contender = contender
        self._run = ""
        self._before = (0, 0)

    async def say(self, text: str) -> float:
        """Send a message; returns the seconds until its answer."""
        began = time.perf_counter()
        if self._contender.kind == OURS:
            await ask(self.handle, text)  # waits where a session is changing to a new run
        else:
            await self.handle.execute_update("send", text)
        return time.perf_counter() - began

    async def settled(self) -> None:
        """Wait for what goes on after an answer: hooks, and the dream that they start."""
        while True:
            now = (await self.handle.describe()).raw_description
            task = now.HasField("pending_workflow_task")
            if not (task or now.pending_activities or now.pending_children):
                return
            await asyncio.sleep(0.05)

    async def history(self) -> tuple[int, int]:
        """Return the session's bytes and events so far, in all of its runs."""
        current = (await self.handle.describe()).raw_description.workflow_execution_info
        if current.execution.run_id != self._run and self._run:
            client = self._contender.stage.client
            old = client.get_workflow_handle(self.handle.id, run_id=self._run)
            ended = (await old.describe()).raw_description.workflow_execution_info
            size, events = self._before
            self._before = size + ended.history_size_bytes, events + ended.history_length
        self._run = current.execution.run_id
        size, events = self._before
        return size + current.history_size_bytes, events + current.history_length


async def take_turns(talks: Sequence[Talk], turns: int) -> None:
    """Have each session take turns one after another, all sessions at once."""

    async def work(talk: Talk) -> None:
        for number in range(turns):
            await talk.say(question(number))

    await asyncio.gather(*(work(talk) for talk in talks))


def cpu_seconds(pid: int) -> float:
    """Return the processor time that a process has taken so far (Linux's clock of a process)."""
    return time.clock_gettime(~pid << 3 | 2)  # as clock_getcpuclockid(3) makes it


def resident(pid: int) -> float:
    """Return the megabytes of a process that are in memory (Linux)."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


@asynccontextmanager
async def stage(folder: Path) -> AsyncGenerator[Stage]:
    """Start server and model."""
    (folder / "agentmem.toml").write_text(AGENTS)
    model = Model()
    environment = await start_server()
    async with environment, model.serve() as settings:
        address = environment.client.service_client.config.target_host
        settings |= {"TEMPORAL_ADDRESS": address, "AGENTMEM_MODEL": "openai/test-model"}
        yield Stage(
            client=environment.client,
            model=model,
            server=_child("temporal"),
            settings=settings,
            folder=folder,
        )


def _child(name: str) -> int:
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            head, _, rest = stat.read_text().rpartition(")")
        except OSError:
            continue
        if name in head and int(rest.split()[1]) == os.getpid():
            return int(stat.parent.name)
    raise RuntimeError(f"no child process {name}")
