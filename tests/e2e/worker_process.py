"""`worker.py` as a process of its own, for tests: what it says, and how it ends."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.conftest import temporal_binary

ROOT = Path(__file__).resolve().parents[2]
READY = "The worker is running"


class WorkerProcess:
    """A running `worker.py`.

    Attributes:
        lines: What it has written so far, both streams.
    """

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.lines: list[str] = []
        self._process = process
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self._process.stdout
        async for line in self._process.stdout:
            self.lines.append(line.decode().rstrip("\n"))

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    @property
    def text(self) -> str:
        """The text that the process has written so far."""
        return "\n".join(self.lines)

    async def says(self, text: str, seconds: float = 150) -> str:
        """Wait for a line with this text and return it."""
        async with asyncio.timeout(seconds):
            while True:
                for line in self.lines:
                    if text in line:
                        return line
                assert not self._reading.done(), f"the worker ended:\n{self.text}"
                await asyncio.sleep(0.05)

    def send(self, number: signal.Signals) -> None:
        """Send a signal."""
        self._process.send_signal(number)

    async def ended(self, seconds: float = 60) -> int:
        """Wait for its end and return the exit code."""
        async with asyncio.timeout(seconds):
            code = await self._process.wait()
            await self._reading
            return code

    async def kill(self) -> None:
        """Kill it, if it still runs."""
        if self._process.returncode is None:
            self._process.kill()
        await self.ended()


@asynccontextmanager
async def worker_process(
    folder: Path,
    *arguments: str,
    script: Path = ROOT / "worker.py",
    settings: Mapping[str, str] | None = None,
) -> AsyncGenerator[WorkerProcess]:
    """Start `worker.py` (or another script) in a folder; it is killed at the end if need be."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(script),
        *arguments,
        cwd=folder,
        env={**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True", **(settings or {})},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    worker = WorkerProcess(process)
    try:
        yield worker
    finally:
        await worker.kill()


async def temporal(address: str, *arguments: str, seconds: float = 150) -> str:
    """Run the Temporal CLI and return what it writes; it must end well."""
    process = await asyncio.create_subprocess_exec(
        temporal_binary(),
        *arguments,
        "--address",
        address,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(seconds):
        out, err = await process.communicate()
    assert process.returncode == 0, f"{out.decode()}\n{err.decode()}"
    return out.decode()


async def execute(address: str, workflow_id: str, **request: Any) -> str:
    """Run an `agent` workflow by the CLI and return its result."""
    shown = await temporal(
        address,
        *("workflow", "execute", "--type", "agent", "--task-queue", "agentmem"),
        *("--workflow-id", workflow_id, "--input", json.dumps(request), "--output", "json"),
    )
    return str(json.loads(shown)["result"])
