"""Statements that stand ready: compiled once, then given to the driver as they are.

A keyed read takes a driver a tenth of a millisecond, and SQLAlchemy's part in each execution as
much again. So the few statements that everything waits for are written in SQLAlchemy, compiled for
each dialect on first use, and run past it, on the driver's connection of the same pool.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar, cast

from sqlalchemy import Connection, Dialect, Executable

Result = TypeVar("Result")


class Ready:
    """A statement for the hot paths.

    Its rows come as the driver has them: select only what needs no conversion (text, numbers).

    Args:
        statement: The statement, its parameters named by `bindparam`.
    """

    def __init__(self, statement: Executable) -> None:
        self.statement = statement
        self._compiled: dict[str, Compiled] = {}

    def compiled(self, dialect: Dialect) -> "Compiled":
        """Return what this dialect makes of it."""
        if (compiled := self._compiled.get(dialect.name)) is None:
            compiled = self._compiled[dialect.name] = Compiled(self.statement, dialect)
        return compiled


class Compiled:
    """A statement in a driver's own words.

    Attributes:
        text: Its text.
    """

    def __init__(self, statement: Executable, dialect: Dialect) -> None:
        compiled: Any = cast(Any, statement).compile(dialect=dialect)
        names: list[str] = compiled.positiontup
        self.text = str(compiled)
        self._places: list[tuple[str, Callable[[Any], Any] | None]] = [
            (name, compiled.binds[name].type.dialect_impl(dialect).bind_processor(dialect))
            for name in names
        ]

    def values(self, parameters: Mapping[str, Any]) -> list[Any]:
        """Return the parameters by their place, each as the driver takes it."""
        return [
            encoded(parameters[name]) if encoded else parameters[name]
            for name, encoded in self._places
        ]


class Driver(Protocol):
    """A connection that runs statements that stand ready."""

    @property
    def dialect(self) -> Dialect:
        """The database's dialect."""
        ...

    def rows(self, statement: Ready, parameters: Mapping[str, Any]) -> Sequence[Any]:
        """Run a statement and return its rows, each a sequence of its columns."""
        ...


Once = Callable[[Driver], Result]
"""Work of statements that stand ready."""


class Plain:
    """A `Driver` that leaves a connection's work to SQLAlchemy, its transaction included."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @property
    def dialect(self) -> Dialect:
        """The database's dialect."""
        return self._connection.dialect

    def rows(self, statement: Ready, parameters: Mapping[str, Any]) -> Sequence[Any]:
        """Run a statement and return its rows."""
        return self._connection.execute(statement.statement, dict(parameters)).all()
