"""The floor: the statements that somebody would write by hand on the bare driver.

They read and write the very rows that our stores do, in the same schema, and check nothing.
"""

import asyncio
import json
import sqlite3
from collections.abc import AsyncGenerator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing
from datetime import UTC, datetime
from typing import Any, Protocol, cast

import aiosqlite
import asyncpg

AGENT = "floor"
POOL = 10

_FACT = (
    *("agent", "scope", "key", "value", "trust", "importance", "kind", "pinned", "writer"),
    *("recorded_at", "said_at", "valid_from", "valid_to", "expires_at"),
)
_VERSION = (*_FACT, "op", "reason", "replaced_by", "dream", "change_id", "idempotency")
_REPLACED = ", ".join(f"{name} = excluded.{name}" for name in _FACT[3:])


def _marks(names: Sequence[str], mark: str) -> str:
    return ", ".join(f"{mark}{number}" for number in range(1, len(names) + 1))


def _insert(mark: str) -> str:
    names = f"{', '.join(_FACT)}, version"
    return f"INSERT INTO agentmem_facts ({names}) VALUES ({_marks(_FACT, mark)}, 1)"


def _upsert(mark: str) -> str:
    return (
        f"{_insert(mark)} ON CONFLICT (agent, scope, key) DO UPDATE SET "
        f"{_REPLACED}, version = agentmem_facts.version + 1 RETURNING version"
    )


def _append(mark: str) -> str:
    names = (*_VERSION, "version")
    return f"INSERT INTO agentmem_fact_versions ({', '.join(names)}) VALUES ({_marks(names, mark)})"


def _both() -> str:
    constants = "'set', '', '', '', '', ''"
    return (
        f"WITH fact AS ({_upsert('$')}) INSERT INTO agentmem_fact_versions "
        f"({', '.join(_VERSION)}, version) SELECT {_marks(_FACT, '$')}, {constants}, version "
        "FROM fact RETURNING version"
    )


def _row(scope: str, key: str, value: object, at: object) -> tuple[Any, ...]:
    said = ("user", 3, "", False, "code", at, None, "", "", None)
    return (AGENT, scope, key, json.dumps(value), *said)


_BOTH = _both()
_NOTHING = ("set", "", "", "", "", "")
_ONE = (
    "SELECT value FROM agentmem_facts WHERE agent = {0}1 AND scope = {0}2 AND key = {0}3 "
    "AND (expires_at IS NULL OR expires_at > {0}4)"
)
_ALL = (
    "SELECT key, value FROM agentmem_facts WHERE agent = {0}1 AND scope = {0}2 "
    "AND (expires_at IS NULL OR expires_at > {0}3) ORDER BY key"
)


class Floor(Protocol):
    """The operations that are measured, on a bare driver."""

    async def recall(self, scope: str, key: str) -> object:
        """Read one fact."""
        ...

    async def recall_all(self, scope: str) -> dict[str, object]:
        """Read the scope."""
        ...

    async def memorize(self, scope: str, key: str, value: object) -> None:
        """Write a fact and its version in one transaction."""
        ...

    async def memorize_new(self, scope: str, values: dict[str, object]) -> None:
        """Write facts that are not there yet and their versions in one transaction."""
        ...

    async def memorize_at_once(self, scope: str, key: str, value: object) -> None:
        """Write a fact and its version in one trip to the database, or to its thread."""
        ...


class SqliteFloor:
    """Statements through aiosqlite, on one connection: SQLite has one writer anyway.

    Args:
        connection: Whose thread is asked for each statement.
        path: The file, which writes at once have a connection of their own to.
        thread: The one thread of that.
    """

    def __init__(self, connection: aiosqlite.Connection, path: str, thread: ThreadPoolExecutor):
        self._connection = connection
        self._writing = asyncio.Lock()
        self._thread = thread
        self._direct = thread.submit(sqlite3.connect, path, isolation_level=None).result()

    async def recall(self, scope: str, key: str) -> object:
        """Read one fact."""
        rows = await self._connection.execute_fetchall(
            _ONE.format("?"), (AGENT, scope, key, _instant())
        )
        return json.loads(next(iter(rows))[0])

    async def recall_all(self, scope: str) -> dict[str, object]:
        """Read the scope."""
        rows = await self._connection.execute_fetchall(_ALL.format("?"), (AGENT, scope, _instant()))
        return {key: json.loads(text) for key, text in rows}

    async def memorize(self, scope: str, key: str, value: object) -> None:
        """Write a fact and its version in one transaction."""
        row = _row(scope, key, value, _instant())
        async with self._writing:
            await self._connection.execute("BEGIN IMMEDIATE")
            ((version,),) = await self._connection.execute_fetchall(_upsert("?"), row)
            await self._connection.execute(_append("?"), (*row, *_NOTHING, version))
            await self._connection.execute("COMMIT")

    async def memorize_new(self, scope: str, values: dict[str, object]) -> None:
        """Write facts that are not there yet and their versions in one transaction."""
        rows = [_row(scope, key, value, _instant()) for key, value in values.items()]
        async with self._writing:
            await self._connection.execute("BEGIN IMMEDIATE")
            await self._connection.executemany(_insert("?"), rows)
            await self._connection.executemany(_append("?"), [(*row, *_NOTHING, 1) for row in rows])
            await self._connection.execute("COMMIT")

    async def memorize_at_once(self, scope: str, key: str, value: object) -> None:
        """Write a fact and its version in one trip to a thread, four statements there.

        That is the least of a transaction that each writer has to itself; there is one at a time.
        """
        row = _row(scope, key, value, _instant())
        await asyncio.get_running_loop().run_in_executor(self._thread, self._memorize, row)

    def _memorize(self, row: tuple[Any, ...]) -> None:
        self._direct.execute("BEGIN IMMEDIATE")
        ((version,),) = self._direct.execute(_upsert("?"), row).fetchall()
        self._direct.execute(_append("?"), (*row, *_NOTHING, version))
        self._direct.execute("COMMIT")

    def close(self) -> None:
        """Close the connection of writes at once."""
        self._thread.submit(self._direct.close).result()


class PostgresFloor:
    """Statements through asyncpg, on its own pool."""

    def __init__(self, pool: Any) -> None:
        self._pool = pool

    async def recall(self, scope: str, key: str) -> object:
        """Read one fact."""
        text = await self._pool.fetchval(_ONE.format("$"), AGENT, scope, key, datetime.now(UTC))
        return json.loads(text)

    async def recall_all(self, scope: str) -> dict[str, object]:
        """Read the scope."""
        rows = await self._pool.fetch(_ALL.format("$"), AGENT, scope, datetime.now(UTC))
        return {key: json.loads(text) for key, text in rows}

    async def memorize(self, scope: str, key: str, value: object) -> None:
        """Write a fact and its version in one transaction."""
        row = _row(scope, key, value, datetime.now(UTC))
        async with self._pool.acquire() as connection, connection.transaction():
            version = await connection.fetchval(_upsert("$"), *row)
            await connection.execute(_append("$"), *row, *_NOTHING, version)

    async def memorize_new(self, scope: str, values: dict[str, object]) -> None:
        """Write facts that are not there yet and their versions in one transaction."""
        rows = [_row(scope, key, value, datetime.now(UTC)) for key, value in values.items()]
        async with self._pool.acquire() as connection, connection.transaction():
            await connection.executemany(_insert("$"), rows)
            await connection.executemany(_append("$"), [(*row, *_NOTHING, 1) for row in rows])

    async def memorize_at_once(self, scope: str, key: str, value: object) -> None:
        """Write a fact and its version in one statement: the least that PostgreSQL needs."""
        await self._pool.fetchval(_BOTH, *_row(scope, key, value, datetime.now(UTC)))


@asynccontextmanager
async def sqlite_floor(path: str) -> AsyncGenerator[SqliteFloor]:
    """Open the floor on a file whose schema is there."""
    async with aiosqlite.connect(path, isolation_level=None) as connection:
        await connection.execute("PRAGMA journal_mode=WAL")
        with (
            ThreadPoolExecutor(max_workers=1) as thread,
            closing(SqliteFloor(connection, path, thread)) as floor,
        ):
            yield floor


@asynccontextmanager
async def postgres_floor(url: str) -> AsyncGenerator[PostgresFloor]:
    """Open the floor on a database whose schema is there."""
    async with cast(Any, asyncpg).create_pool(url, min_size=POOL, max_size=POOL) as pool:
        yield PostgresFloor(pool)


def _instant() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
