"""A stage for sessions: a Temporal server, a model that answers at once, a worker process each."""

import asyncio
import json
import os
import signal
import time
import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiohttp import web
from temporalio.client import Client, WorkflowHandle
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.testing import WorkflowEnvironment

from agentmem.client import ask
from benchmarks.turn_floors import SAID_BYTES, tools_asked
from tests.conftest import temporal_binary
from tests.e2e.worker_process import READY, ROOT, WorkerProcess, worker_process

AGENTS = """
[agents.plain]
system_prompt = "Be brief."
[agents.tools]
system_prompt = "Be brief."
tools = ["look_up"]
[agents.dreamer]
system_prompt = "Be brief."
long_term_memory.provider = "default"
[agents.dreamer.dream]
on = ["complete"]
model = "agentmem/offline"
"""
FLOORS = ("bare", "held", "naive")


class Model:
    """An OpenAI-compatible endpoint that answers at once with text, or with calls of a tool.

    Attributes:
        holding: While set, requests are not answered; `held` is set when one waits.
    """

    def __init__(self) -> None:
        self.holding = False
        self.held = asyncio.Event()
        self._runner = web.AppRunner(self._application(), access_log=None, shutdown_timeout=0.1)
        self._number = 0

    def _application(self) -> web.Application:
        app = web.Application(client_max_size=1 << 30)
        app.router.add_post("/v1/chat/completions", self._chat)
        return app

    @asynccontextmanager
    async def serve(self) -> AsyncGenerator[dict[str, str]]:
        """Serve; gives the environment that sends litellm here."""
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/v1"
        try:
            yield {"OPENAI_API_BASE": url, "OPENAI_BASE_URL": url, "OPENAI_API_KEY": "none"}
        finally:
            await self._runner.cleanup()

    async def _chat(self, request: web.Request) -> web.Response:
        last = json.loads(await request.read())["messages"][-1]
        if self.holding:
            self.held.set()
            await asyncio.sleep(600)
        self._number += 1
        message: dict[str, Any] = {"role": "assistant", "content": "y" * SAID_BYTES}
        calls = tools_asked(last["content"]) if last["role"] == "user" else 0
        if calls:
            message["content"] = None
            message["tool_calls"] = [self._call(page) for page in range(calls)]
        choice = {
            "index": 0,
            "message": message,
            "finish_reason": "tool_calls" if calls else "stop",
        }
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        body = {"id": "x", "object": "chat.completion", "created": 0, "model": "test-model"}
        return web.json_response({**body, "choices": [choice], "usage": usage})

    def _call(self, page: int) -> dict[str, Any]:
        function = {"name": "look_up", "arguments": json.dumps({"page": page})}
        return {"id": f"c{self._number}_{page}", "type": "function", "function": function}


@dataclass(frozen=True, kw_only=True)
class Stage:
    """What all contenders share."""

    client: Client
    model: Model
    server: int
    settings: dict[str, str]
    folder: Path

    def contender(self, kind: str, *, tools: bool = False) -> "Contender":
        """Return one that is not running yet."""
        return Contender(self, kind, tools)


class Contender:
    """One way to hold a session, with a worker process of its own.

    Attributes:
        kind: `bare`, `held`, `naive`, or an agent's name.
    """

    def __init__(self, stage: Stage, kind: str, tools: bool) -> None:
        self.kind = kind
        self._tools = tools
        self._stage = stage
        self._queue = f"{kind}-{uuid.uuid4()}"
        self._running: Any = None
        self._process: WorkerProcess | None = None
        self._run = ""
        self._before = (0, 0)
        self.session: WorkflowHandle[Any, Any] | None = None

    @property
    def pid(self) -> int:
        """The worker's process id."""
        assert self._process
        return self._process.pid

    async def start_worker(self) -> None:
        """Start a worker, and have it answer once in another session: litellm is loaded then."""
        script = "benchmarks/turn_worker.py" if self.kind in FLOORS else "worker.py"
        settings = {
            **self._stage.settings,
            "AGENTMEM_TASK_QUEUE": self._queue,
            "AGENTMEM_APP": str(ROOT / "benchmarks/turn_floors.py"),
            "BENCH_TOOLS": "1" if self._tools else "0",
        }
        self._running = worker_process(self._stage.folder, script=ROOT / script, settings=settings)
        process: WorkerProcess = await self._running.__aenter__()
        self._process = process
        await process.says(READY)
        other = await self._begin()
        await other.execute_update("send", "turn 0 tools 0 warm up")
        await other.terminate()

    async def end_worker(self, number: signal.Signals) -> None:
        """End the worker by a signal, and wait until it is gone."""
        if self._process is not None:
            self._process.send(number)
            await self._process.ended()
            await self._running.__aexit__(None, None, None)
            self._process = None

    async def begin(self) -> None:
        """Start the session that is measured."""
        self.session = await self._begin()

    async def say(self, text: str) -> float:
        """Send a message; returns the seconds until its answer."""
        assert self.session
        began = time.perf_counter()
        if self.kind in FLOORS:
            await self.session.execute_update("send", text)
        else:
            await ask(self.session, text)  # waits where a session is changing to a new run
        return time.perf_counter() - began

    async def history(self) -> tuple[int, int]:
        """Return the session's bytes and events so far, in all of its runs."""
        assert self.session
        current = (await self.session.describe()).raw_description.workflow_execution_info
        if current.execution.run_id != self._run and self._run:
            old = self._stage.client.get_workflow_handle(self.session.id, run_id=self._run)
            ended = (await old.describe()).raw_description.workflow_execution_info
            self._before = (
                self._before[0] + ended.history_size_bytes,
                self._before[1] + ended.history_length,
            )
        self._run = current.execution.run_id
        size, events = self._before
        return size + current.history_size_bytes, events + current.history_length

    async def _begin(self) -> WorkflowHandle[Any, Any]:
        name, argument = "agent", {"agent": self._agent, "scope": "s", "session": True}
        if self.kind in FLOORS:
            name, argument = "floor.session", self.kind
        return await self._stage.client.start_workflow(
            name, argument, id=f"{self.kind}-{uuid.uuid4()}", task_queue=self._queue
        )

    @property
    def _agent(self) -> str:
        return "tools" if self._tools else self.kind


def cpu_seconds(pid: int) -> float:
    """Return the processor time that a process has taken so far (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@asynccontextmanager
async def stage(folder: Path) -> AsyncGenerator[Stage]:
    """Start server and model."""
    (folder / "agentmem.toml").write_text(AGENTS)
    model = Model()
    environment = await WorkflowEnvironment.start_local(
        dev_server_existing_path=temporal_binary(),
        dev_server_log_level="error",
        data_converter=pydantic_data_converter,
    )
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
