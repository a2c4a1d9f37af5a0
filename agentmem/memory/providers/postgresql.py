"""PostgreSQL: a pool of asyncpg connections for each event loop that uses the store."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AbstractContextManager
from typing import Any, cast
from weakref import WeakKeyDictionary

import asyncpg
from sqlalchemy import Connection, Engine, NullPool
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.util import greenlet_spawn

from agentmem.errors import ProviderError
from agentmem.memory.providers.database import ATTEMPTS, Result, Work, driver_error, wrapped
from agentmem.memory.providers.migrate import upgrade
from agentmem.memory.providers.ready import RAW
from agentmem.memory.providers.urls import PostgresAddress

# A serialization failure, a deadlock, a version that another write has taken meanwhile.
_LOST_TO_ANOTHER = {"40001", "40P01", "23505"}
_DRIVER_ERRORS: tuple[type[Exception], ...] = (asyncpg.PostgresError, asyncpg.InterfaceError)


class PostgresDatabase:
    """A PostgreSQL database; any task, thread and event loop of the process may use it.

    A loop's connections are closed when that loop ends, or by `close()` before.

    Args:
        address: Where it is and how to talk to it.
    """

    def __init__(self, address: PostgresAddress) -> None:
        self.name = f"PostgreSQL database {address.database!r}"
        self._address = address
        self._pools: WeakKeyDictionary[asyncio.AbstractEventLoop, _Pool] = WeakKeyDictionary()
        self._closed = False

    @property
    def checked_out(self) -> int:
        """Connections that are at work now, over all loops."""
        return sum(pool.checked_out for pool in self._pools.values())

    async def open(self) -> None:
        """Bring the schema up to date."""
        with self._wrapped():
            # Loading and running the steps takes a while: not on the caller's event loop.
            await asyncio.to_thread(asyncio.run, _upgrade(self._address))

    async def read(self, work: Work[Result]) -> Result:
        """Run reads, each statement on its own."""
        if self._address.pooled:  # a pooler keeps a statement and its execution together only so
            return await self.write(work)
        with self._wrapped():
            pool = await self._pool()
            return await greenlet_spawn(_again_if_lost, pool.autocommit, work)

    async def write(self, work: Work[Result]) -> Result:
        """Run work in one transaction."""
        with self._wrapped():
            pool = await self._pool()
            return await greenlet_spawn(_again_if_lost, pool.engine.sync_engine, work)

    async def write_at_once(self, work: Work[Result]) -> Result:
        """Run work of one statement, which is its own transaction: one trip instead of three."""
        if self._address.pooled:
            return await self.write(work)
        with self._wrapped():
            pool = await self._pool()
            return await greenlet_spawn(_again_if_lost, pool.autocommit, work, at_once=True)

    async def close(self) -> None:
        """Close the connections of this event loop; those of others close with their loops."""
        self._closed = True
        if pool := self._pools.pop(asyncio.get_running_loop(), None):
            await pool.close()

    def _wrapped(self) -> AbstractContextManager[None]:
        return wrapped(self.name, *_DRIVER_ERRORS)

    async def _pool(self) -> "_Pool":
        if self._closed:
            raise ProviderError(f"{self.name} was closed; open it again")
        loop = asyncio.get_running_loop()
        if loop not in self._pools:
            self._pools[loop] = _Pool(self._address)
            await self._pools[loop].close_with_loop()
        return self._pools[loop]


class _Pool:
    """The connections of one event loop."""

    def __init__(self, address: PostgresAddress) -> None:
        self.engine = _engine(
            address,
            pool_size=address.pool_size,
            max_overflow=0,
            pool_timeout=address.pool_timeout,
        )
        # A read needs no BEGIN and ROLLBACK around it: one trip instead of three.
        options: dict[str, Any] = {"isolation_level": "AUTOCOMMIT", RAW: True}
        self.autocommit = self.engine.sync_engine.execution_options(**options)
        self._end = self._until_the_loop_ends()

    @property
    def checked_out(self) -> int:
        status: Any = self.engine.pool
        return int(status.checkedout())

    async def close_with_loop(self) -> None:
        # A loop closes the asynchronous generators that began on it before it ends.
        await anext(self._end)

    async def close(self) -> None:
        await self._end.aclose()

    async def _until_the_loop_ends(self) -> AsyncGenerator[None]:
        try:
            yield
        finally:
            await self.engine.dispose()


def _engine(address: PostgresAddress, **pool: Any) -> AsyncEngine:
    async def connect(**_options: Any) -> Any:
        return await cast(Any, asyncpg).connect(address.dsn, **address.options)

    statements: dict[str, Any] = {}
    if address.pooled:  # another server connection each time: no statement can be kept
        statements = {
            "prepared_statement_cache_size": 0,
            "prepared_statement_name_func": lambda: "",
        }
    return create_async_engine(
        "postgresql+asyncpg://",
        async_creator=connect,
        connect_args=statements,
        hide_parameters=True,
        **pool,
    )


async def _upgrade(address: PostgresAddress) -> None:
    engine = _engine(address, poolclass=NullPool)
    try:
        async with engine.begin() as connection:
            await connection.run_sync(upgrade)
    finally:
        await engine.dispose()


def _again_if_lost(engine: Engine, work: Work[Result], *, at_once: bool = False) -> Result:
    # All of it in one greenlet, where the driver's waiting is the task's: SQLAlchemy's asynchronous
    # classes would take one for each step.
    for attempt in range(1, ATTEMPTS + 1):
        with engine.connect() as connection:
            try:
                # Until the commit that follows nothing has happened: work may start anew.
                result = work(connection)
            except BaseException as error:
                gone = _gone(connection, error)
                if attempt == ATTEMPTS or not _lost(error, gone, at_once):
                    raise
                continue
            connection.commit()
        return result
    raise AssertionError("unreachable")


def _gone(connection: Connection, error: BaseException) -> bool:
    # A statement that was cancelled or took too long keeps its connection busy: nobody gets it.
    if not connection.invalidated:
        given_up = isinstance(error, TimeoutError) or not isinstance(error, Exception)
        if given_up or cast(Any, connection.connection.driver_connection).is_closed():
            connection.invalidate()
    return connection.invalidated


def _lost(error: BaseException, gone: bool, at_once: bool) -> bool:
    if not isinstance(error, (DBAPIError, *_DRIVER_ERRORS)):
        return False
    cause = driver_error(error)
    if at_once and isinstance(cause, asyncpg.ConnectionDoesNotExistError):
        return False  # it may have been committed before the answer was lost
    return gone or getattr(cause, "sqlstate", None) in _LOST_TO_ANOTHER
