"""Work on one asyncpg connection of a pool, in a greenlet: what the driver awaits, the task awaits.

One greenlet takes the whole of it, retries too; SQLAlchemy's asynchronous classes take one a step.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import asyncpg
from sqlalchemy import Dialect, Engine, PoolProxiedConnection
from sqlalchemy.dialects.postgresql.asyncpg import AsyncAdapt_asyncpg_dbapi
from sqlalchemy.exc import DBAPIError

from agentmem.memory.providers.database import ATTEMPTS, Result, Work, driver_error
from agentmem.memory.providers.ready import Once, Ready

# A serialization failure, a deadlock, a version that another write has taken meanwhile, and a
# server that shut down instead of answering.
_LOST_TO_ANOTHER = {"40001", "40P01", "23505", "57P01"}
DRIVER_ERRORS: tuple[type[Exception], ...] = (
    *(asyncpg.PostgresError, asyncpg.InterfaceError),
    AsyncAdapt_asyncpg_dbapi.Error,  # where SQLAlchemy's pool is asked directly
)
"""What asyncpg raises, past SQLAlchemy's connection."""


class LostToAnother(Exception):
    """A statement that writes lost against another transaction; nothing was written."""


def again_if_lost(engine: Engine, work: Work[Result]) -> Result:
    """Run work in one transaction, again from its start if it lost against another one."""
    for attempt in range(1, ATTEMPTS + 1):
        with engine.connect() as connection:
            try:
                # Until the commit that follows nothing has happened: work may start anew.
                result = work(connection)
            except BaseException as error:
                if _given_up(error):
                    connection.invalidate()
                gone = isinstance(error, DBAPIError) and error.connection_invalidated
                if attempt == ATTEMPTS or not (gone or _lost(error)):
                    raise
                continue
            connection.commit()
        return result
    raise AssertionError("unreachable")


def at_once(engine: Engine, work: Once[Result], *, reads: bool) -> Result:
    """Run statements that stand ready, each a transaction of its own; again if they only read.

    Raises:
        LostToAnother: They write. Tried again at once they may lose for ever, where a key is
            removed again and again: they see what stood before they waited for its lock.
    """
    # Past SQLAlchemy's connection, whose bookkeeping takes longer than a keyed read.
    for attempt in range(1, ATTEMPTS + 1):
        pooled = engine.raw_connection()
        driver = _Driver(pooled, engine.dialect)
        try:
            return work(driver)
        except BaseException as error:
            closed = driver.closed
            if closed or _given_up(error):
                pooled.invalidate()
            # A write that was on its way when the connection broke may have been committed.
            gone = closed and (reads or isinstance(error, asyncpg.InterfaceError))
            if not reads and _lost(error):
                raise LostToAnother from error
            if attempt == ATTEMPTS or not (gone or _lost(error)):
                raise
        finally:
            pooled.close()
    raise AssertionError("unreachable")


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
    return getattr(driver_error(error), "sqlstate", None) in _LOST_TO_ANOTHER
