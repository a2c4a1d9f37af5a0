"""Work on one asyncpg connection of a pool, in a greenlet: what the driver awaits, the task awaits.

One greenlet takes the whole of it, retries too; SQLAlchemy's asynchronous classes take one a step.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import asyncpg
from sqlalchemy import Dialect, Engine, PoolProxiedConnection
from sqlalchemy.dialects.postgresql.asyncpg import AsyncAdapt_asyncpg_dbapi

from agentmem.memory.providers.database import (
    ATTEMPTS,
    AnswerLost,
    Result,
    Work,
    driver_error,
)
from agentmem.memory.providers.ready import Once, Ready

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
