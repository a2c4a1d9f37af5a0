"""The demo's worker: `python worker.py` as a process, to be killed and started again."""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import BinaryIO

HERE = Path(__file__).resolve().parent
READY = "The worker is running"


class DemoFailed(Exception):
    """The demo cannot go on, or shows what it should not; the message is for people."""


class DemoWorker:
    """A worker on a server, with the demo's agent and tool.

    Args:
        folder: Where its data and its log lie.
        address: The Temporal server's.
        model: The model that answers.
    """

    def __init__(self, folder: Path, address: str, model: str) -> None:
        self._log = folder / "worker.log"
        self._environment = _environment(folder, address, model)
        self._process: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int:
        """The id of its process."""
        return self._running.pid

    async def start(self) -> None:
        """Start it and wait until it polls.

        Raises:
            DemoFailed: It ended instead.
        """
        with self._log.open("wb") as log:
            self._process = await self._spawn(log)
        while READY not in self._log.read_text():
            self.check()
            await asyncio.sleep(0.05)

    async def _spawn(self, log: BinaryIO) -> asyncio.subprocess.Process:
        # Its own session keeps Ctrl-C from it: the demo stops it.
        return await asyncio.create_subprocess_exec(
            *(sys.executable, str(HERE.parent / "worker.py")),
            env=self._environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )

    def check(self) -> None:
        """See that it runs.

        Raises:
            DemoFailed: It has ended.
        """
        if self._running.returncode is not None:
            raise self.failure(f"the worker ended with {self._running.returncode}")

    def failure(self, why: str) -> DemoFailed:
        """Return an error with the end of the worker's log."""
        return DemoFailed(f"{why}; the worker's log ends:\n{self._log.read_text()[-1500:]}")

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self._running.send_signal(number)

    async def kill(self) -> None:
        """Kill it as a crash would: no clean-up, no goodbye to the server."""
        self.send(signal.SIGKILL)
        await self._running.wait()

    async def stop(self) -> None:
        """Stop it, if it runs: activities may end, stores close."""
        process = self._process
        if process is None or process.returncode is not None:
            return
        process.terminate()
        try:
            async with asyncio.timeout(20):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()

    @property
    def _running(self) -> asyncio.subprocess.Process:
        assert self._process is not None, "start() comes first"
        return self._process


def _environment(folder: Path, address: str, model: str) -> dict[str, str]:
    """Return the caller's environment, with the demo's settings in place of the caller's own."""
    others = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("AGENTMEM_", "TEMPORAL_"))
    }
    return others | {
        "TEMPORAL_ADDRESS": address,
        "TEMPORAL_CONFIG_FILE": os.devnull,
        "AGENTMEM_MODEL": model,
        "AGENTMEM_AGENTS": str(HERE / "demo.toml"),
        "AGENTMEM_APP": str(HERE / "demo_tools.py"),
        "AGENTMEM_DATA": str(folder),
    }
