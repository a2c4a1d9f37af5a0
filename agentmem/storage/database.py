"""The seam to a database: work goes in as a function, driver errors come out wrapped.

The stores' statements are plain functions over a SQLAlchemy connection. How such a function gets
to its connection (a thread of its own for SQLite, an event loop's pool for PostgreSQL) is decided
here and nowhere else.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Protocol, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from agentmem.errors import ProviderError, StoreUnavailable
from agentmem.storage.driver_errors import may_travel, store_error
from agentmem.storage.sql.statements import Once

Result = TypeVar("Result")
Work = Callable[[Connection], Result]

ATTEMPTS = 5
"""The most attempts at a transaction that loses against others; each waits for its lock first."""


class AnswerLost(Exception):
    """A write failed when it may have been committed; the driver's error is its cause."""


_POOLER = "behind a pooler in transaction mode the URL needs statement_cache_size=0"
_HINTS = {
    **dict.fromkeys(("26000", "42P05"), _POOLER),  # a prepared statement is not there, or already
    "ClientConfigurationError": "look at sslmode and the other options of its URL",
    "ConnectionRefusedError": "look at host and port in its URL, and whether the server runs",
    "gaierror": "look at the host in its URL",
    **dict.fromkeys(("28P01", "28000"), "look at user and password in its URL"),
    "25006": "its server takes no writes: the URL must lead to the primary, or name all hosts",
    "55P03": "another transaction holds what it waits for; one whose worker vanished ends in 20 s",
    "25P03": "the transaction stood still for 20 s; nothing of it was stored",
    "TargetServerAttributeNotMatched": "none of the hosts of its URL takes writes now",
    "3D000": "create the database, or look at its name in the URL",
    **dict.fromkeys(
        ("FileNotFoundError", "FileExistsError", "NotADirectoryError", "PermissionError"),
        "its folder cannot be made or written: look at AGENTMEM_DATA, or at the URL's path",
    ),
}


class Database(Protocol):
    """Runs work on a database, from any task, thread and event loop."""

    @property
    def name(self) -> str:
        """The database's name for error messages, without address and credentials."""
        ...

    @property
    def checked_out(self) -> int:
        """Connections that are at work now; 0 when idle."""
        ...

    async def open(self) -> None:
        """Bring the schema up to date."""
        ...

    async def read(self, work: Work[Result]) -> Result:
        """Run reads. Each statement sees one state of the database; two may see two."""
        ...

    async def write(self, work: Work[Result], *, repeatable: bool = True) -> Result:
        """Run work in one transaction, again from its start if it lost against another one.

        Args:
            work: The work.
            repeatable: Whether it may be run again where the answer to its commit was lost: it
                finds what it has done and changes nothing. Where it may not, that is an error.
        """
        ...

    async def read_once(self, work: Once[Result]) -> Result:
        """Run statements that stand ready and only read."""
        ...

    async def write_once(self, work: Once[Result], otherwise: Work[Result]) -> Result:
        """Run what is one statement, or a transaction where the database needs more of them.

        Args:
            work: The statement.
            otherwise: Does the same in a transaction that locks first and finds what the statement
                has done. It is run where the statement lost against another transaction, which it
                may each time anew, and where its answer was lost.
        """
        ...

    async def close(self) -> None:
        """Give back the connections."""
        ...


@contextmanager
def wrapped(name: str, *drivers: type[Exception]) -> Generator[None]:
    """Turn what a driver raises into a `ProviderError`, a `StoreUnavailable` where it may pass.

    The message names the error's kind only: a driver's text may hold keys, values and addresses.

    Args:
        name: The database's name.
        drivers: The driver's own errors, which a statement that stands `Ready` raises.
    """
    try:
        yield
    except (DBAPIError, *drivers) as error:
        cause = driver_error(error)
        raise store_error(f"{name} failed: {_kind(cause)}", cause) from may_travel(cause)
    except AnswerLost as error:
        cause = error.__cause__ or error
        raise StoreUnavailable(
            f"{name} failed: {_kind(cause)}, and it did not say whether it had stored what it was "
            "given: look before you store it again, unless the call has a name (idempotency)"
        ) from may_travel(cause)
    except PoolTimeout as error:
        raise StoreUnavailable(
            f"{name} had no free connection in time: raise pool_size"
        ) from may_travel(error)
    except SQLAlchemyError as error:
        raise ProviderError(f"{name} failed: {_kind(error)}") from may_travel(error)
    except TimeoutError as error:
        raise StoreUnavailable(f"{name} did not answer in time") from may_travel(error)
    except OSError as error:  # a refused connection, a missing folder
        raise StoreUnavailable(f"{name} cannot be reached: {_kind(error)}") from may_travel(error)


def driver_error(error: BaseException) -> BaseException:
    """Return what the driver itself raised: SQLAlchemy's text around it shows the parameters."""
    cause: BaseException = (error.orig if isinstance(error, DBAPIError) else None) or error
    # SQLAlchemy gives asyncpg's errors classes of its own.
    own = type(cause).__module__.startswith("sqlalchemy.")
    return (cause.__cause__ if own else None) or cause


def _kind(error: BaseException) -> str:
    code = getattr(error, "sqlstate", None) or getattr(error, "sqlite_errorname", None)
    kind = f"{type(error).__name__} ({code})" if code else type(error).__name__
    hint = _HINTS.get(code or type(error).__name__)
    return f"{kind}; {hint}" if hint else kind
