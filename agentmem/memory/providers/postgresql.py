"""PostgreSQL: a pool of asyncpg connections for each event loop that uses the store."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any, cast
from weakref import WeakKeyDictionary

import asyncpg
from sqlalchemy import NullPool
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from agentmem.errors import ProviderError
from agentmem.memory.providers.database import ATTEMPTS, Result, Work, driver_error, wrapped
from agentmem.memory.providers.migrate import upgrade
from agentmem.memory.providers.urls import PostgresAddress

_LOST_TO_ANOTHER = {"40001", "40P01"}  # serialization failure, deadlock


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
        with wrapped(self.name):
            # Loading and running the steps takes a while: not on the caller's event loop.
            await asyncio.to_thread(asyncio.run, _upgrade(self._address))

    async def read(self, work: Work[Result]) -> Result:
        """Run reads, each statement on its own."""
        if self._address.pooled:  # a pooler keeps a statement and its execution together only so
            return await self.write(work)
        with wrapped(self.name):
            pool = await self._pool()
            return await _again_if_lost(pool.autocommit, work)

    async def write(self, work: Work[Result]) -> Result:
        """Run work in one transaction."""
        with wrapped(self.name):
            pool = await self._pool()
            return await _again_if_lost(pool.engine, work)

    async def close(self) -> None:
        """Close the connections of this event loop; those of others close with their loops."""
        self._closed = True
        if pool := self._pools.pop(asyncio.get_running_loop(), None):
            await pool.close()

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
        self.autocommit = self.engine.execution_options(isolation_level="AUTOCOMMIT")
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


async def _again_if_lost(engine: AsyncEngine, work: Work[Result]) -> Result:
    for attempt in range(1, ATTEMPTS + 1):
        async with engine.connect() as connection, connection.begin():
            try:
                # Until the commit that follows nothing has happened: work may start anew.
                result = await connection.run_sync(work)
            except DBAPIError as error:
                if attempt == ATTEMPTS or not _lost(error):
                    raise
                await _give_up(connection)
                continue
        return result
    raise AssertionError("unreachable")


def _lost(error: DBAPIError) -> bool:
    code = getattr(driver_error(error), "sqlstate", None)
    return error.connection_invalidated or code in _LOST_TO_ANOTHER


async def _give_up(connection: AsyncConnection) -> None:
    if connection.in_transaction():
        await connection.rollback()
