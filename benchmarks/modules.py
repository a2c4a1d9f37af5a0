"""Count the modules of ours that run code during one turn and during one dream.

A reader who follows a turn or a dream from its beginning to its end opens these files. The worker
runs in this process on a real server, and its model is a scripted endpoint; a profiler notes each
function that is called. The scripted model's side does not count, nor do imports: one turn and one
dream run before those that are counted.
"""

import argparse
import asyncio
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from rich.console import Console
from temporalio.client import Client

from agentmem.contracts import ScopeRef
from agentmem.dreaming.hook import dream_id
from agentmem.testing import Reply, Request, reply
from benchmarks.dreams import AGENT, Asked, fill
from benchmarks.server import start_server
from tests.stack import PLAIN, stack

ROOT = Path(__file__).parents[1]
OURS = ("agentmem", "activities", "workflows", "worker")
MODEL_SIDE = ("agentmem.testing", "agentmem.offline")
"""The packages that answer in the model's place."""

FACTS, MESSAGES = 10, 10
"""The facts of the scope that is dreamed of, and its new messages."""

Functions = Mapping[str, set[str]]
"""The functions that ran, by module."""


@dataclass
class Profiler:
    """A note of each function that is called while it records, in every thread started after it."""

    _codes: set[CodeType] = field(default_factory=set[CodeType])
    _recording: bool = False

    def install(self) -> None:
        """Begin to look at calls, in this thread and in those that start from now on."""
        threading.setprofile(self._look)
        sys.setprofile(self._look)

    @contextmanager
    def recording(self) -> Generator[None]:
        """Note the functions that are called within the block, and forget those noted before."""
        self._codes.clear()
        self._recording = True
        try:
            yield
        finally:
            self._recording = False

    def functions(self) -> Functions:
        """Return the functions of ours that were noted."""
        found: defaultdict[str, set[str]] = defaultdict(set)
        for code in self._codes:
            module = _module(code)
            if module and code.co_name != "<module>":
                found[module].add(code.co_qualname)
        return found

    def _look(self, frame: FrameType, event: str, _: object) -> None:
        if self._recording and event == "call":
            self._codes.add(frame.f_code)


def _module(code: CodeType) -> str:
    """Return the module that holds a code, empty unless it is ours."""
    path = Path(code.co_filename)
    if not path.is_relative_to(ROOT):
        return ""
    parts = path.relative_to(ROOT).with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    model_side = any(name == side or name.startswith(f"{side}.") for side in MODEL_SIDE)
    return name if parts[0] in OURS and not model_side else ""


async def one_turn(client: Client, folder: Path, profiler: Profiler) -> Functions:
    """Return the functions of the second turn of a session without tools and long-term memory."""

    def answer(_: Request) -> Reply:
        return reply("Hello.")

    async with stack(client, folder, answer, agents=PLAIN, strict=False) as made:
        session = await made.start(agent="plain", session=True)
        await session.execute_update("send", "Good morning.")
        with profiler.recording():
            await session.execute_update("send", "Good evening.")
        await session.signal("end")
        await session.result()
    return profiler.functions()


async def one_dream(client: Client, folder: Path, profiler: Profiler) -> Functions:
    """Return the functions of a dream that stores facts, from its start to its report."""
    async with stack(client, folder, Asked(), strict=False) as made:
        providers = made.configuration.providers
        store = await providers.get("default")
        for scope in ("first", "counted"):
            await fill(store, FACTS, MESSAGES, scope)
            name = dream_id(
                ScopeRef(provider=providers.resolve("default"), agent=AGENT, scope=scope)
            )
            request = {"agent": AGENT, "scope": scope, "model": "openai/offline"}
            with profiler.recording():
                report: dict[str, Any] = await client.execute_workflow(
                    "agent_dream", request, id=name, task_queue=made.task_queue, result_type=dict
                )
            if report["status"] != "completed" or not report.get("changes"):
                raise RuntimeError(f"the dream changed nothing, so it is no example: {report}")
    return profiler.functions()


async def measure() -> dict[str, Functions]:
    """Return the functions of ours that run, by module, in a turn and in a dream."""
    profiler = Profiler()
    profiler.install()
    environment = await start_server()
    async with environment:
        found: dict[str, Functions] = {}
        for name, run in (("one turn", one_turn), ("one dream", one_dream)):
            with tempfile.TemporaryDirectory() as folder:
                found[name] = await run(environment.client, Path(folder), profiler)
    return found


def main() -> None:
    """Measure, and print the modules with the number of functions that ran in each."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    console = Console(highlight=False)
    for name, functions in asyncio.run(measure()).items():
        console.print(f"{name}: {len(functions)} modules")
        for module in sorted(functions):
            console.print(f"  {module}: {len(functions[module])}")


if __name__ == "__main__":
    main()
