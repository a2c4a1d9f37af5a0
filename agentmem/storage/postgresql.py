"""PostgreSQL: a pool of asyncpg connections for each event loop that uses the store.

One greenlet runs a whole operation with its retries; SQLAlchemy's asynchronous classes switch
once per step.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from time import monotonic
from typing import Any, ParamSpec, cast
from weakref import WeakKeyDictionary

import asyncpg
from sqlalchemy import (
    Connection,
    Dialect,
    Engine,
    ExceptionContext,
    NullPool,
    PoolProxiedConnection,
    event,
    text,
)
from sqlalchemy.dialects.postgresql.asyncpg import AsyncAdapt_asyncpg_dbapi
from sqlalchemy.exc import DisconnectionError, InvalidatePoolError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry
from sqlalchemy.util import greenlet_spawn

from agentmem.errors import ProviderError
from agentmem.storage.database import ATTEMPTS, AnswerLost, Result, Work, driver_error, wrapped
from agentmem.storage.migrate import upgrade
from agentmem.storage.sql.statements import Once, Plain, Ready
from agentmem.storage.urls import PostgresAddress

# A serialization failure, a deadlock, a version that another write has taken meanwhile, and a
# server that shut down instead of answering.
_LOST_TO_ANOTHER = {"40001", "40P01", "23505", "57P01"}

READ_ONLY = "25006"
"""The server takes no writes: it was the primary when the connection was made."""

_UNFIT = {READ_ONLY, "57P01", "57P02", "57P03"}
DRIVER_ERRORS: tuple[type[Exception], ...] = (
    *(asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError),
    AsyncAdapt_asyncpg_dbapi.Error,  # where SQLAlchemy's pool is asked directly
)
"""The errors that asyncpg raises when it is used past SQLAlchemy's connection."""


class LostToAnother(Exception):
    """A statement that writes lost against another transaction; nothing was written."""


def again_if_lost(
    engine: Engine, work: Work[Result], *, repeatable: bool = True, unsure: bool = False
) -> Result:
    """Run work in one transaction, again from its start if it lost against another one.

    Again, too, where the connection was no good any more; on a server that takes no writes, once.

    Args:
        engine: Where connections come from.
        work: The work.
        repeatable: Whether work that may have been committed can be run again: what it does a
            second time changes nothing.
        unsure: Whether an attempt before this call may have been committed.

    Raises:
        AnswerLost: Work may have been committed, and no later attempt has shown whether it was.
    """
    read_only = 0
    for attempt in range(1, ATTEMPTS + 1):
        committing = False
        try:
            with engine.connect() as connection:
                try:
                    result = work(connection)
                    committing = True
                    connection.commit()
                    return result
                except BaseException as error:
                    gone = connection.invalidated
                    if _given_up(error):
                        connection.invalidate()
                    unsure = unsure or (committing and _may_be_done(error, broken=gone))
                    read_only += _sqlstate(error) == READ_ONLY
                    if attempt == ATTEMPTS or read_only > 1 or not (gone or _lost(error)):
                        raise
                    if unsure and not repeatable:
                        raise
        except Exception as error:
            if unsure:
                raise AnswerLost from driver_error(error)
            raise
    raise AssertionError("unreachable")


def at_once(
    engine: Engine, work: Once[Result], *, reads: bool, distrust: Callable[[], None]
) -> Result:
    """Run statements that stand ready, each a transaction of its own; again if they only read.

    Args:
        engine: Where connections come from.
        work: The statements.
        reads: Whether they only read.
        distrust: Called when a connection turns out to be no good any more: no other one that was
            made before is to be used again.

    Raises:
        LostToAnother: They write. Tried again at once they may lose for ever, where a key is
            removed again and again: they see what stood before they waited for its lock.
        AnswerLost: They write, and what they wrote may have been committed.
    """
    # Past SQLAlchemy's connection, whose bookkeeping takes longer than a keyed read.
    read_only = 0
    for attempt in range(1, ATTEMPTS + 1):
        pooled = engine.raw_connection()
        driver = _Driver(pooled, engine.dialect)
        try:
            return work(driver)
        except BaseException as error:
            broken = driver.closed or unfit(error)
            if broken:
                distrust()
            if broken or _given_up(error):
                pooled.invalidate()
            read_only += _sqlstate(error) == READ_ONLY
            if not reads and _lost(error):
                raise LostToAnother from error
            if not reads and _may_be_done(error, broken=broken):
                raise AnswerLost from error
            if attempt == ATTEMPTS or read_only > 1 or not (broken or _lost(error)):
                raise
        finally:
            pooled.close()
    raise AssertionError("unreachable")


def unfit(error: BaseException) -> bool:
    """Tell whether an error says that its connection, and others like it, are of no use any more.

    The server shuts down, crashed or starts (57P01 to 57P03), takes no writes any more (25006), or
    the connection broke (class 08 of SQLSTATE, an error of the system), or it is about to: asyncpg
    has read the server's farewell, and refuses to send anything after it.
    """
    cause = driver_error(error)
    code = _sqlstate(error)
    if code:
        return code in _UNFIT or code.startswith("08")
    return isinstance(cause, (asyncpg.InternalClientError, ConnectionError))


def takes_writes(connection: Any) -> bool:
    """Tell whether a server takes writes, by what it has reported; servers before 14 do not report.

    Args:
        connection: asyncpg's.
    """
    settings = connection.get_settings()
    names = ("in_hot_standby", "default_transaction_read_only")
    return all(getattr(settings, name, "off") != "on" for name in names)


class _Driver:
    """The connection as asyncpg has it, in a greenlet."""

    def __init__(self, pooled: PoolProxiedConnection, dialect: Dialect) -> None:
        self.dialect = dialect
        self._connection: Any = pooled.dbapi_connection

    @property
    def closed(self) -> bool:
        return self._connection.driver_connection.is_closed()

    def rows(self, statement: Ready, parameters: Mapping[str, Any]) -> Sequence[Any]:
        compiled = statement.compiled(self.dialect)
        values = compiled.values(parameters)
        run: Callable[[Any], Any] = lambda raw: raw.fetch(compiled.text, *values)  # noqa: E731
        return self._connection.run_async(run)


def _given_up(error: BaseException) -> bool:
    # A statement that was cancelled or took too long keeps its connection busy.
    return isinstance(error, TimeoutError) or not isinstance(error, Exception)


def _lost(error: BaseException) -> bool:
    return _sqlstate(error) in _LOST_TO_ANOTHER


def _may_be_done(error: BaseException, *, broken: bool) -> bool:
    """Tell whether a write that failed on its way to the server may have been committed.

    Args:
        error: The error that it failed with.
        broken: Whether that was the connection's fault.
    """
    if isinstance(error, TimeoutError):
        return True
    # The server refuses to write, or asyncpg to send anything on what it knows to be closed.
    unsent = isinstance(driver_error(error), asyncpg.InterfaceError)
    return broken and not unsent and _sqlstate(error) not in {READ_ONLY, "57P01"}


def _sqlstate(error: BaseException) -> str:
    return getattr(driver_error(error), "sqlstate", None) or ""


P = ParamSpec("P")


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
            return await pool.run(again_if_lost, pool.autocommit, work)

    async def write(self, work: Work[Result], *, repeatable: bool = True) -> Result:
        """Run work in one transaction."""
        with self._wrapped():
            return await self._again_if_lost(work, repeatable=repeatable)

    async def read_once(self, work: Once[Result]) -> Result:
        """Run statements that stand ready and only read, each on its own."""
        if self._address.pooled:
            return await self.write(lambda connection: work(Plain(connection)))
        with self._wrapped():
            return await self._once(work, reads=True)

    async def write_once(self, work: Once[Result], otherwise: Work[Result]) -> Result:
        """Run a statement that stands ready as a transaction of its own: one trip, not three.

        Where it loses, where its answer is lost, or where a pooler would come between it and its
        preparation, run `otherwise`.
        """
        with self._wrapped():
            unsure = False
            if not self._address.pooled:
                try:
                    return await self._once(work, reads=False)
                except LostToAnother:
                    pass
                except AnswerLost:
                    unsure = True
            return await self._again_if_lost(otherwise, unsure=unsure)

    async def _once(self, work: Once[Result], *, reads: bool) -> Result:
        pool = await self._pool()
        engine, distrust = pool.engine.sync_engine, pool.distrust
        return await pool.run(at_once, engine, work, reads=reads, distrust=distrust)

    async def _again_if_lost(self, work: Work[Result], **how: bool) -> Result:
        pool = await self._pool()
        return await pool.run(again_if_lost, pool.engine.sync_engine, work, **how)

    async def close(self) -> None:
        """Close the connections of this event loop; those of others close with their loops."""
        self._closed = True
        if pool := self._pools.pop(asyncio.get_running_loop(), None):
            await pool.close()

    def _wrapped(self) -> AbstractContextManager[None]:
        return wrapped(self.name, *DRIVER_ERRORS)

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
            pool_timeout=None,
            pool_use_lifo=True,
        )
        # SQLAlchemy's pool makes a task for each call that may have to wait: here none has to.
        self._free = asyncio.Semaphore(address.pool_size)
        self._timeout = address.pool_timeout
        # A read needs no BEGIN and ROLLBACK around it: one trip instead of three.
        self.autocommit = self.engine.sync_engine.execution_options(isolation_level="AUTOCOMMIT")
        self._trusted_since = 0.0
        event.listen(self.engine.sync_engine, "connect", _note)
        event.listen(self.engine.sync_engine, "checkout", self._check)
        event.listen(self.engine.sync_engine, "handle_error", _tell_unfit)
        self._end = self._until_the_loop_ends()

    @property
    def checked_out(self) -> int:
        status: Any = self.engine.pool
        return int(status.checkedout())

    async def run(self, work: Callable[P, Result], *args: P.args, **kwargs: P.kwargs) -> Result:
        """Run what needs a connection, when there is one."""
        if self._free.locked():
            try:
                async with asyncio.timeout(self._timeout):
                    await self._free.acquire()
            except TimeoutError:
                raise PoolTimeout from None
        else:
            await self._free.acquire()
        try:
            return await greenlet_spawn(work, *args, **kwargs)
        finally:
            self._free.release()

    def distrust(self) -> None:
        """Give up every connection that was made before now, each when its work is over."""
        self._trusted_since = monotonic()

    def _check(self, connection: Any, record: ConnectionPoolEntry, _proxy: object) -> None:
        """Have the pool make a new connection in place of one that is of no use any more."""
        driver = connection.driver_connection
        if driver.is_closed() or record.info[_MADE_AT] < self._trusted_since:
            raise DisconnectionError
        # After a switchover the old primary may still answer, with what it knew then.
        if record.info[_TOOK_WRITES] and not takes_writes(driver):
            raise InvalidatePoolError

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


_MADE_AT, _TOOK_WRITES = "agentmem_made_at", "agentmem_took_writes"


def _note(connection: Any, record: ConnectionPoolEntry) -> None:
    record.info[_MADE_AT] = monotonic()
    record.info[_TOOK_WRITES] = takes_writes(connection.driver_connection)


def _tell_unfit(context: ExceptionContext) -> None:
    # SQLAlchemy knows a connection that broke; one that answers but cannot write it takes for good.
    if unfit(context.original_exception):
        context.is_disconnect = True


def _engine(address: PostgresAddress, **pool: Any) -> AsyncEngine:
    async def connect(**_options: Any) -> Any:
        return await cast(Any, asyncpg).connect(address.dsn, **address.options)

    statements: dict[str, Any] = {}
    if address.pooled:  # another server connection each time: no statement can be kept
        statements = {
            "prepared_statement_cache_size": 0,
            "prepared_statement_name_func": lambda: "",
        }
    engine = create_async_engine(
        "postgresql+asyncpg://",
        async_creator=connect,
        connect_args=statements,
        hide_parameters=True,
        **pool,
    )
    if address.lease:
        event.listen(engine.sync_engine, "begin", _with(address.lease))
    return engine


def _with(settings: Mapping[str, str]) -> Callable[[Connection], None]:
    """Return what begins a transaction with settings of its own."""
    calls = ", ".join(f"set_config('{name}', :{name}, true)" for name in settings)
    statement = text(f"SELECT {calls}").bindparams(**settings)

    def begin(connection: Connection) -> None:
        connection.execute(statement)

    return begin


async def _upgrade(address: PostgresAddress) -> None:
    engine = _engine(address, poolclass=NullPool)
    try:
        async with engine.begin() as connection:
            await connection.run_sync(upgrade)
    finally:
        await engine.dispose()
