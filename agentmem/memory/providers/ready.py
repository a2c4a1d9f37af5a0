"""Statements that stand ready: compiled once, then given to the driver as they are.

A keyed read takes a driver a tenth of a millisecond, and SQLAlchemy's part in each execution as
much again. So the few statements that everything waits for are written in SQLAlchemy, compiled for
each dialect on first use, and run past it, on the driver's connection of the same pool and in the
same transaction.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from sqlalchemy import Connection, Dialect, Executable

RAW = "agentmem_raw"
"""The execution option of connections whose driver may be given statements directly."""

_Encoder = Callable[[Any], Any]


class Ready:
    """A statement for the hot paths.

    Its rows come as the driver has them: select only what needs no conversion (text, numbers).

    Args:
        statement: The statement, its parameters named by `bindparam`.
    """

    def __init__(self, statement: Executable) -> None:
        self._statement = statement
        self._compiled: dict[str, _Compiled] = {}

    def rows(self, connection: Connection, parameters: Mapping[str, Any]) -> Sequence[Any]:
        """Run it and return its rows, each a sequence of its columns."""
        if not connection.get_execution_options().get(RAW):
            return connection.execute(self._statement, dict(parameters)).all()
        dialect = connection.dialect
        if (compiled := self._compiled.get(dialect.name)) is None:
            compiled = self._compiled[dialect.name] = _Compiled(self._statement, dialect)
        values = compiled.values(parameters)
        driver: Any = connection.connection.dbapi_connection
        if dialect.is_async:
            fetch: Callable[[Any], Any] = lambda raw: raw.fetch(compiled.text, *values)  # noqa: E731
            return driver.run_async(fetch)
        return driver.execute(compiled.text, values).fetchall()


class _Compiled:
    """What a dialect makes of a statement: its text, and its parameters by their place."""

    def __init__(self, statement: Executable, dialect: Dialect) -> None:
        compiled: Any = cast(Any, statement).compile(dialect=dialect)
        self.text = str(compiled)
        names: list[str] = compiled.positiontup
        self._fixed: dict[str, Any] = compiled.params
        self._places: list[tuple[str, _Encoder | None]] = [
            (name, compiled.binds[name].type.dialect_impl(dialect).bind_processor(dialect))
            for name in names
        ]

    def values(self, parameters: Mapping[str, Any]) -> list[Any]:
        given = {**self._fixed, **parameters}
        return [encoder(given[name]) if encoder else given[name] for name, encoder in self._places]
