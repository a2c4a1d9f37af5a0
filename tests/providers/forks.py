"""Several processes at work on one store at the same moment, each a fork of one fresh interpreter.

Run as `python -m tests.providers.forks WORK WHERE PROCESSES`: it ends with 0 if all of them do.
"""

import asyncio
import multiprocessing
import subprocess
import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

from agentmem.facts import Read, Step, Write
from agentmem.records import DreamRecord
from agentmem.storage.postgresql import PostgresDatabase
from agentmem.storage.sql.provider import SqlProvider
from agentmem.storage.sqlite import SqliteDatabase
from agentmem.storage.urls import postgresql_address

ROOT = Path(__file__).parents[2]
TASKS, TURNS, KEYS, DREAMS = 32, 8, 8, 6
"""The numbers of tasks, turns, keys and dreams in each process of `one_scope`."""


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


async def _one_scope(store: SqlProvider, who: str) -> None:
    """32 tasks write the keys that all processes share, while change sets of all keys commit."""
    keys = [f"k{number}" for number in range(KEYS)]

    async def live(number: int) -> None:
        for turn in range(TURNS):
            await store.memorize("a", "s", keys[(number + turn) % KEYS], [who, number, turn])

    async def dream(number: int) -> int:
        record = DreamRecord(id=f"{who}-{number}", opened_at=datetime.now(UTC))
        await store.open_dream("a", "s", record)
        seen = {fact.key: fact.version for fact in await store.entries("a", "s", keys)}
        steps = [
            Step(
                id=key,
                reads=[Read(key=key, version=seen.get(key, 0))],
                writes=[Write(key=key, value=[who, "dream", number])],
            )
            for key in keys
        ]
        done = await store.commit("a", "s", record, steps)
        assert len(done.applied) + len(done.conflicts) == KEYS
        return len(done.applied)

    async def dreams() -> int:
        return sum([await dream(number) for number in range(DREAMS)])

    applied, *_ = await asyncio.gather(dreams(), *map(live, range(TASKS)))
    await store.memorize("a", "applied", who, applied)


WORKS: dict[str, Callable[[SqlProvider, str], Awaitable[None]]] = {
    "open": _open,
    "write": _write,
    "one_scope": _one_scope,
}


async def _work(work: str, where: str, who: str) -> None:
    if where.startswith("postgresql:"):
        store = SqlProvider(PostgresDatabase(postgresql_address(where, "test")))
    else:
        store = SqlProvider(SqliteDatabase(Path(where)))
    await store.open()
    await WORKS[work](store, who)
    assert store.database.checked_out == 0
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
