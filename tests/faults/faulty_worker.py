"""`worker.py` in a process that halts at places of its work and waits for what a test does to it.

Run as `python -m tests.faults.faulty_worker`: it imports everything once and forks a worker for
each line that it reads, which takes a moment and not the ten seconds of an import. What runs is the
worker's own command, with an interceptor in front of its activities.
"""

import ctypes
import importlib
import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import httpx
from temporalio import activity
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor
from temporalio.worker._worker import load_default_build_id

import worker
from activities.llm_request import load
from agentmem import wire as packing
from agentmem.cli.worker import command

DIES_WITH_PARENT = 1
"""The option of Linux's prctl by which a process ends with the one that started it."""

CONTROL = "FAULTS_CONTROL"
"""The variable with the address at which the test answers."""


class Halting(Interceptor):
    """Asks the test before and after each activity of some types.

    Args:
        types: The activity types.
    """

    def __init__(self, types: Sequence[str]) -> None:
        self._types = frozenset(types)

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        """Stand before the worker's activities."""
        return _Asking(next, self._types)


class _Asking(ActivityInboundInterceptor):
    def __init__(self, next: ActivityInboundInterceptor, types: frozenset[str]) -> None:
        super().__init__(next)
        self._types = types

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        """Run the activity between two questions."""
        name = activity.info().activity_type
        if name not in self._types:
            return await super().execute_activity(input)
        await ask(f"before {name}")
        result = await super().execute_activity(input)
        await ask(f"after {name}")
        return result


async def ask(place: str) -> None:
    """Tell the test that this process is at a place, and wait for its answer."""
    async with httpx.AsyncClient(timeout=None, trust_env=False) as http:
        said = {"place": place, "pid": os.getpid()}
        await http.post(f"{os.environ[CONTROL]}/at", json=said)


def die_at(place: str, mark: Path) -> None:
    """Let this process kill itself where workflow code calls a method, unless one has before.

    Args:
        place: `module:Class.method`; with `?` behind it, where the method says yes.
        mark: A file that says that a process did; its workers share it.
    """
    module, _, name = place.partition(":")
    kind, _, method = name.partition(".")
    owner: Any = getattr(importlib.import_module(module), kind)
    asks = method.endswith("?")
    method = method.rstrip("?")
    original = getattr(owner, method)

    def dying(*args: Any, **options: Any) -> Any:
        if not asks or original(*args, **options):
            with suppress(FileExistsError):
                mark.touch(exist_ok=False)
                os.kill(os.getpid(), signal.SIGKILL)
        return original(*args, **options)

    setattr(owner, method, dying)


def run(
    folder: str, settings: Mapping[str, str], types: Sequence[str], dies: str, old: bool
) -> None:
    """Be the worker."""
    log = os.open(Path(folder, "worker.log"), os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.chdir(folder)
    os.environ.update(settings)
    sys.argv = ["worker.py"]
    if old:  # the reader of the format before: it knows no bzip2
        setattr(packing, "_BZIP2", b"no such beginning")  # noqa: B010 - a constant, on purpose
    if dies:
        die_at(dies, Path(folder, "died"))
    original = worker.Worker

    def halting(*args: Any, interceptors: Sequence[Interceptor] = (), **options: Any) -> Any:
        return original(*args, interceptors=[*interceptors, Halting(types)], **options)

    cast(Any, worker).Worker = halting
    command(worker.running)


def main() -> None:
    """Fork a worker for each line of standard input, the arguments of `run`; write its pid."""
    # The SDK reads the code of all modules for it, once; litellm's are thousands.
    load_default_build_id()
    loading: Future[Any] = Future()
    load(loading)
    loading.result()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # whoever has ended is gone at once
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    pids: list[int] = []
    while line := sys.stdin.buffer.readline():
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            os.setsid()
            ctypes.CDLL(None).prctl(DIES_WITH_PARENT, signal.SIGKILL)  # Linux's
            run(**json.loads(line))
        pids.append(pid)
        sys.stdout.write(f"{pid}\n")
        sys.stdout.flush()
    for pid in pids:  # whoever asked for them is gone
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
