"""The measurements of long-term memory: each operation, on the bare driver and on ours."""

import asyncio
import tempfile
from collections.abc import AsyncGenerator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from agentmem.facts import Read, Step, Write
from agentmem.records import DreamRecord
from agentmem.storage.postgresql import PostgresDatabase
from agentmem.storage.sql.provider import SqlProvider
from agentmem.storage.sqlite import SqliteDatabase
from agentmem.storage.urls import postgresql_address
from benchmarks.memory_floors import Floor, postgres_floor, sqlite_floor
from benchmarks.paired import Comparison, Contest, Operation, Pair, longest_stall, one_core
from tests.postgres import PostgresServer, embedded

VALUE = "x" * 200
SCOPE = [f"key-{number}" for number in range(100)]
SIZES = (10, 100, 1_000)
"""Facts in the scopes that are read whole. Nothing else is written to them."""

LARGE = 100_000


@dataclass(frozen=True)
class Row:
    """One comparison, for the table and the file."""

    database: str
    operation: str
    tasks: int
    pair: Pair


class Bench:
    """The comparisons on one database."""

    def __init__(self, name: str, floor: Floor, ours: SqlProvider, comparison: Comparison) -> None:
        self.name = name
        self._floor = floor
        self._ours = ours
        self._compare = comparison.run

    async def rows(self) -> list[Row]:
        """Measure: what is compared with the driver, then small scopes with a large one."""
        for size in SIZES:
            keys = [f"key-{number}" for number in range(size)]
            await self._floor.memorize_new(_scope(size), dict.fromkeys(keys, VALUE))
            await self._ours.write("a", _scope(size), [Write(key=key, value=VALUE) for key in keys])
        rows = await self._compared(self._contests())
        await self._fill()
        what = f"recall, {LARGE:,} facts against 100"
        large = [(what, Contest(self._recall, self._recall_large, tasks)) for tasks in (1, 32)]
        return rows + await self._compared(large)

    def _contests(self) -> list[tuple[str, Contest]]:
        found: list[tuple[str, Contest]] = []
        for tasks in (1, 32):
            pairs = {
                "recall": (self._recall_floor, self._recall),
                **{f"recall a scope of {size:,}": self._whole(size) for size in SIZES},
                "memorize": (self._memorize_floor, self._memorize),
                "memorize, floor at once": (self._at_once_floor, self._memorize),
                "memorize, new key": (self._new_floor, self._new),
            }
            found += [(what, Contest(floor, ours, tasks)) for what, (floor, ours) in pairs.items()]
        return [*found, ("change set of 100", Contest(self._set_floor, self._set))]

    async def _compared(self, contests: list[tuple[str, Contest]]) -> list[Row]:
        pairs = await self._compare([contest for _, contest in contests])
        return [
            Row(self.name, what, contest.tasks, pair)
            for (what, contest), pair in zip(contests, pairs, strict=True)
        ]

    async def stalls(self) -> tuple[float, float]:
        """Return the longest times that 32 writers held the event loop, in ms: floor, ours."""
        return await self._stall(self._memorize_floor), await self._stall(self._memorize)

    async def _stall(self, operation: Operation) -> float:
        async def writer(number: int) -> None:
            for turn in range(30):
                await operation(number * 30 + turn)

        return round(await longest_stall(asyncio.gather(*map(writer, range(32)))), 1)

    async def _recall_floor(self, number: int) -> None:
        assert await self._floor.recall(_scope(100), _old(number)) == VALUE

    async def _recall(self, number: int) -> None:
        assert await self._ours.recall("a", _scope(100), _old(number)) == VALUE

    async def _recall_large(self, number: int) -> None:
        assert await self._ours.recall("a", "large", f"key-{number * 7919 % LARGE}") == VALUE

    def _whole(self, size: int) -> tuple[Operation, Operation]:
        """Return the reads of the scope of this size: the floor's and ours."""

        async def floor(number: int) -> None:
            assert len(await self._floor.recall_all(_scope(size))) == size

        async def ours(number: int) -> None:
            assert len(await self._ours.recall("a", _scope(size))) == size

        return floor, ours

    async def _memorize_floor(self, number: int) -> None:
        await self._floor.memorize("s", _old(number), VALUE)

    async def _at_once_floor(self, number: int) -> None:
        await self._floor.memorize_at_once("s", _old(number), VALUE)

    async def _memorize(self, number: int) -> None:
        await self._ours.memorize("a", "s", _old(number), VALUE)

    async def _new_floor(self, number: int) -> None:
        await self._floor.memorize("new", f"new-{number}", VALUE)

    async def _new(self, number: int) -> None:
        await self._ours.memorize("a", "new", f"new-{number}", VALUE)

    async def _set_floor(self, number: int) -> None:
        await self._floor.memorize_new(f"set-{number}", dict.fromkeys(SCOPE, VALUE))

    async def _set(self, number: int) -> None:
        scope = f"set-{number}"
        record = DreamRecord(id=f"dream-{number}", opened_at=datetime.now(UTC))
        await self._ours.open_dream("a", scope, record)
        steps = [
            Step(id=key, reads=[Read(key=key)], writes=[Write(key=key, value=VALUE)])
            for key in SCOPE
        ]
        assert len((await self._ours.commit("a", scope, record, steps)).applied) == len(SCOPE)

    async def _fill(self) -> None:
        for first in range(0, LARGE, 5_000):
            keys = [f"key-{number}" for number in range(first, first + 5_000)]
            await self._ours.write("a", "large", [Write(key=key, value=VALUE) for key in keys])


def _scope(size: int) -> str:
    return f"of-{size}"


def _old(number: int) -> str:
    return SCOPE[number % len(SCOPE)]


@asynccontextmanager
async def on_sqlite(directory: Path, comparison: Comparison) -> AsyncGenerator[Bench]:
    """Give SQLite's comparisons, in two files; all threads are on one core."""
    with tempfile.TemporaryDirectory(dir=directory) as folder, one_core():
        other = SqlProvider(SqliteDatabase(Path(folder, "floor.db")))
        await other.open()
        await other.close()
        ours = SqlProvider(SqliteDatabase(Path(folder, "ours.db")))
        await ours.open()
        async with sqlite_floor(f"{folder}/floor.db") as floor:
            yield Bench("SQLite", floor, ours, comparison)
        await ours.close()


@asynccontextmanager
async def on_postgresql(comparison: Comparison) -> AsyncGenerator[Bench]:
    """Give PostgreSQL's comparisons, in two databases; their server has another core."""
    with ExitStack() as stack:
        with one_core(min):
            url = stack.enter_context(embedded())
        stack.enter_context(one_core(max))
        server = PostgresServer(url)
        urls = [server.url(await server.new(await server.migrated())) for _ in range(2)]
        ours = SqlProvider(PostgresDatabase(postgresql_address(urls[1], "benchmark")))
        await ours.open()
        async with postgres_floor(urls[0]) as floor:
            yield Bench("PostgreSQL", floor, ours, comparison)
        await ours.close()
