"""Several processes at work on one store at the same moment, each a fork of one fresh interpreter.

Run as `python -m tests.providers.forks WORK WHERE PROCESSES`: it ends with 0 if all of them do.
"""

import asyncio
import multiprocessing
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

from agentmem.memory.providers.postgresql import PostgresDatabase
from agentmem.memory.providers.sql import SqlProvider
from agentmem.memory.providers.sqlite import SqliteDatabase
from agentmem.memory.providers.urls import postgresql_address

ROOT = Path(__file__).parents[2]


async def start(work: str, where: str, processes: int) -> asyncio.subprocess.Process:
    """Start processes that do a work of `WORKS` on the store at `where`, a path or a URL."""
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-W", "error", "-m", "tests.providers.forks"),
        *(work, where, str(processes)),
        cwd=ROOT,
        stderr=subprocess.PIPE,
    )


async def finish(process: asyncio.subprocess.Process) -> None:
    """Wait until all have ended; the test fails if one of them said anything."""
    _, errors = await process.communicate()
    assert (process.returncode, errors.decode()) == (0, "")


async def _open(store: SqlProvider, who: str) -> None:
    await store.memorize("a", "s", who, who)


async def _write(store: SqlProvider, who: str) -> None:
    async def task(number: int) -> None:
        for turn in range(20):
            await store.memorize("a", "s", f"{who}-{number}-{turn}", turn)
            assert await store.recall("a", "s", f"{who}-{number}-{turn}") == turn

    await asyncio.gather(*map(task, range(25)))


WORKS: dict[str, Callable[[SqlProvider, str], Awaitable[None]]] = {"open": _open, "write": _write}


async def _work(work: str, where: str, who: str) -> None:
    if where.startswith("postgresql:"):
        store = SqlProvider(PostgresDatabase(postgresql_address(where, "test")))
    else:
        store = SqlProvider(SqliteDatabase(Path(where)))
    await store.open()
    await WORKS[work](store, who)
    await store.close()


def main(work: str, where: str, processes: str) -> int:
    """Fork, let all begin at once, and tell whether all went well."""
    fork = multiprocessing.get_context("fork")
    gate = fork.Barrier(int(processes))

    def one(who: str) -> None:
        gate.wait()
        asyncio.run(_work(work, where, who))

    children = [fork.Process(target=one, args=(f"p{n}",)) for n in range(int(processes))]
    for child in children:
        child.start()
    for child in children:
        child.join()
    return max(abs(child.exitcode or 0) for child in children)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
