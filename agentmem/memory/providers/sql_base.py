"""The base of every part of a store over a database: it hands its work to the database."""

from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection

from agentmem.memory.providers.database import Database
from agentmem.memory.providers.ready import Driver

P = ParamSpec("P")
Result = TypeVar("Result")


class SqlBase:
    """A part of a store.

    Args:
        database: Where the tables are.
    """

    def __init__(self, database: Database) -> None:
        self.database = database

    async def _read(
        self, work: Callable[Concatenate[Connection, P], Result], *args: P.args, **kwargs: P.kwargs
    ) -> Result:
        return await self.database.read(lambda connection: work(connection, *args, **kwargs))

    async def _write(
        self, work: Callable[Concatenate[Connection, P], Result], *args: P.args, **kwargs: P.kwargs
    ) -> Result:
        return await self.database.write(lambda connection: work(connection, *args, **kwargs))

    async def _write_unrepeatable(
        self, work: Callable[Concatenate[Connection, P], Result], *args: P.args, **kwargs: P.kwargs
    ) -> Result:
        """Write what would do more if it were run again after its commit."""
        run: Callable[[Connection], Result] = lambda connection: work(connection, *args, **kwargs)  # noqa: E731
        return await self.database.write(run, repeatable=False)

    async def _read_once(
        self, work: Callable[Concatenate[Driver, P], Result], *args: P.args, **kwargs: P.kwargs
    ) -> Result:
        return await self.database.read_once(lambda driver: work(driver, *args, **kwargs))
