"""A stage for sessions: a Temporal server, a model that answers at once, worker processes."""

import json
import signal
import uuid
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from temporalio.client import Client

from agentmem.memory.tools import MEMORY_TOOLS
from agentmem.tools.toolbox import tool_schema
from benchmarks.model import Model
from benchmarks.processes import child
from benchmarks.server import start_server
from benchmarks.talk import Talk
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
"""The tools that a floor's model is offered, the same as our agent of that name has."""

BARE, FLOOR, FREE, NAIVE, OURS = "bare", "held", "held, free", "naive", "agentmem"
"""The contenders: floor A, floor B, B outside of the sandbox, the whole conversation in each call,
and ours."""


@dataclass(frozen=True, kw_only=True)
class Stage:
    """The resources that all contenders share.

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

    async def open(self, agent: str = "plain") -> Talk:
        """Start a session with an agent; a floor's model is offered the tools that it has."""
        name: str = "floor.session"
        argument: Any = FLOOR if self.kind == FREE else self.kind
        if self.kind == OURS:
            name = "agent"
            argument = {"agent": agent, "scope": "s", "session": True}
        client = self.stage.client
        handle = await client.start_workflow(
            name, argument, id=f"{agent}/{uuid.uuid4()}", task_queue=self._queue
        )
        return Talk(client, handle, ours=self.kind == OURS)


@asynccontextmanager
async def stage(folder: Path, model: Model | None = None) -> AsyncGenerator[Stage]:
    """Start server and model: the one given, or one that answers as the benchmarks' texts ask."""
    (folder / "agentmem.toml").write_text(AGENTS)
    model = model or Model()
    environment = await start_server()
    async with environment, model.serve() as settings:
        address = environment.client.service_client.config.target_host
        settings |= {"TEMPORAL_ADDRESS": address, "AGENTMEM_MODEL": "openai/test-model"}
        yield Stage(
            client=environment.client,
            model=model,
            server=child("temporal"),
            settings=settings,
            folder=folder,
        )
