"""SQLite: a thread that writes and a thread that reads, each with a connection of its own.

SQLite's calls block, so they leave the event loop for a thread. A whole operation goes there at
once: the loop is crossed once an operation, not once a statement, and one that is cancelled still
ends as a whole. `docs/decisions/0007-sqlite-in-threads.md` has the measurements.
"""

import asyncio
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, StaticPool, create_engine, event
from sqlalchemy.exc import OperationalError

from agentmem.errors import ProviderError
from agentmem.memory.providers.database import ATTEMPTS, Result, Work, wrapped
from agentmem.memory.providers.migrate import upgrade

BUSY_SECONDS = 10.0
"""How long a statement waits for another process's lock before it counts as lost."""


class SqliteDatabase:
    """A SQLite file, or one in memory; any task, thread and event loop of the process may use it.

    Args:
        path: The file, made with its folder if missing; None for a database in memory, which is
            gone with this object.
    """

    def __init__(self, path: Path | None) -> None:
        self.name = f"SQLite {path.name}" if path else "SQLite in memory"
        self._path = path
        self._engine = _engine(path)
        self._writer = _Lane(self._engine)
        # A database in memory belongs to its one connection.
        self._reader = _Lane(self._engine) if path else self._writer

    @property
    def checked_out(self) -> int:
        """Operations that are running now."""
        return self._writer.busy + (self._reader.busy if self._path else 0)

    async def open(self) -> None:
        """Make the file if it is missing and bring its schema up to date."""
        with wrapped(self.name):
            if self._path:
                await asyncio.to_thread(self._path.parent.mkdir, parents=True, exist_ok=True)
        await self.write(upgrade)

    async def read(self, work: Work[Result]) -> Result:
        """Run reads, beside a write that is going on."""
        with wrapped(self.name):
            return await self._reader.run(lambda connection: _reading(connection, work))

    async def write(self, work: Work[Result]) -> Result:
        """Run work in one transaction that holds the write lock from its start."""
        with wrapped(self.name):
            return await self._writer.run(lambda connection: _writing(connection, work))

    async def close(self) -> None:
        """Close both connections and end their threads."""
        await self._writer.close()
        await self._reader.close()


class _Lane:
    """A thread and its connection, made on first use; one operation at a time."""

    def __init__(self, engine: Engine) -> None:
        self.busy = 0
        self._engine = engine
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="agentmem-sqlite")
        self._connection: Connection | None = None
        self._closed = False

    async def run(self, work: Work[Result]) -> Result:
        if self._closed:
            raise ProviderError("this SQLite store was closed; open it again")
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, self._run, work)

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            await asyncio.get_running_loop().run_in_executor(self._thread, self._close)
            self._thread.shutdown(wait=False)

    def _run(self, work: Work[Result]) -> Result:
        self.busy += 1
        try:
            if self._connection is None:
                self._connection = self._engine.connect()
            return work(self._connection)
        finally:
            self.busy -= 1

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
            self._engine.dispose()


def _engine(path: Path | None) -> Engine:
    url = URL.create("sqlite", database=str(path) if path else None)
    # Without an isolation level the driver leaves BEGIN to us.
    connect: dict[str, Any] = {"timeout": BUSY_SECONDS, "isolation_level": None}
    if path is None:
        connect["check_same_thread"] = False
        return create_engine(url, connect_args=connect, poolclass=StaticPool, hide_parameters=True)
    engine = create_engine(url, connect_args=connect, hide_parameters=True)
    event.listen(engine, "connect", _write_ahead)
    return engine


def _write_ahead(connection: sqlite3.Connection, _record: object) -> None:
    # So that reads go on beside a write. The switch itself, made once in a file's life, does not
    # wait for another process's lock.
    for attempt in range(1, ATTEMPTS + 1):
        try:
            connection.execute("PRAGMA journal_mode=WAL").close()
            return
        except sqlite3.OperationalError as error:
            if attempt == ATTEMPTS or not _locked(error):
                raise
            time.sleep(0.1 * attempt)


def _reading(connection: Connection, work: Work[Result]) -> Result:
    try:
        return work(connection)
    finally:
        connection.rollback()


def _writing(connection: Connection, work: Work[Result]) -> Result:
    # Only BEGIN and COMMIT can find the file locked by another process, and then nothing has
    # been done yet: the repeat starts from the beginning.
    for attempt in range(1, ATTEMPTS + 1):
        try:
            with connection.begin():
                connection.exec_driver_sql("BEGIN IMMEDIATE")
                return work(connection)
        except OperationalError as error:
            if attempt == ATTEMPTS or not _locked(error.orig):
                raise
    raise AssertionError("unreachable")


def _locked(error: BaseException | None) -> bool:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
