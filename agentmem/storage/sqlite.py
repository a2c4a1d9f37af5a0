"""SQLite: a thread that writes and a thread that reads, each with a connection of its own.

What waits to be written is written in one transaction: the file is synchronised once for all of it.
`docs/decisions/0007-sqlite-in-threads.md` has the measurements.
"""

import asyncio
import sqlite3
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from sqlalchemy import URL, Connection, Engine, NullPool, StaticPool, create_engine, event
from sqlalchemy.exc import OperationalError

from agentmem.storage.connection_thread import Lane, OperationResult, outcome
from agentmem.storage.database import ATTEMPTS, Result, Work, driver_error, wrapped
from agentmem.storage.migrate import upgrade
from agentmem.storage.sql.statements import Once, Ready

BUSY_SECONDS = 10.0
"""The seconds that a statement waits for another process's lock before it counts as lost."""


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
        self._writer = Lane(self._engine, _write)
        # A database in memory belongs to its one connection.
        self._reader = Lane(self._engine, _read) if path else self._writer

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
        with wrapped(self.name, sqlite3.Error):
            return await self._reader.run(work)

    async def write(self, work: Work[Result], *, repeatable: bool = True) -> Result:
        """Run work in a transaction that holds the write lock from its start."""
        with wrapped(self.name, sqlite3.Error):
            return await self._writer.run(work)

    async def read_once(self, work: Once[Result]) -> Result:
        """Run statements that stand ready and only read."""
        return await self.read(lambda connection: work(_Driver(connection)))

    async def write_once(self, work: Once[Result], otherwise: Work[Result]) -> Result:
        """Run statements that stand ready, in a transaction: it has the whole file to itself."""
        return await self.write(lambda connection: work(_Driver(connection)))

    async def close(self) -> None:
        """Close both connections and end their threads."""
        await self._writer.close()
        await self._reader.close()


class _Driver:
    """The connection as `sqlite3` has it."""

    def __init__(self, connection: Connection) -> None:
        self.dialect = connection.dialect
        self._connection: Any = connection.connection.dbapi_connection

    def rows(self, statement: Ready, parameters: Mapping[str, Any]) -> Sequence[Any]:
        compiled = statement.compiled(self.dialect)
        return self._connection.execute(compiled.text, compiled.values(parameters)).fetchall()


def _engine(path: Path | None) -> Engine:
    url = URL.create("sqlite", database=str(path) if path else None)
    # Without an isolation level the driver leaves BEGIN to us.
    connect: dict[str, Any] = {"timeout": BUSY_SECONDS, "isolation_level": None}
    options: dict[str, Any] = {"hide_parameters": True}
    if path is None:
        connect["check_same_thread"] = False
        return create_engine(url, connect_args=connect, poolclass=StaticPool, **options)
    # Its two threads keep a connection each, and give it up when they end.
    engine = create_engine(url, connect_args=connect, poolclass=NullPool, **options)
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


def _read(connection: Connection, works: Sequence[Work[Any]]) -> list[OperationResult]:
    outcomes = [outcome(work, connection) for work in works]
    connection.rollback()
    return outcomes


def _write(connection: Connection, works: Sequence[Work[Any]]) -> list[OperationResult]:
    written = outcome(lambda connection: _transaction(connection, works), connection)
    if written.error is None:
        return [OperationResult(result) for result in written.result]
    if len(works) == 1 or _locked(driver_error(written.error)):
        return [written] * len(works)
    # Nothing of it has happened. Each on its own, so that one's failure is no other's.
    return [alone for work in works for alone in _write(connection, [work])]


def _transaction(connection: Connection, works: Sequence[Work[Any]]) -> list[Any]:
    # Only BEGIN and COMMIT can find the file locked by another process, and then nothing has
    # been done yet: the repeat starts from the beginning.
    driver = cast(sqlite3.Connection, connection.connection.dbapi_connection)
    for attempt in range(1, ATTEMPTS + 1):
        try:
            driver.execute("BEGIN IMMEDIATE")
            results = [work(connection) for work in works]
            driver.execute("COMMIT")
            return results
        except (sqlite3.OperationalError, OperationalError) as error:
            if attempt == ATTEMPTS or not _locked(driver_error(error)):
                raise
        finally:
            if driver.in_transaction:
                driver.execute("ROLLBACK")
            connection.rollback()  # for SQLAlchemy, which has counted along
    raise AssertionError("unreachable")


def _locked(error: BaseException) -> bool:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
