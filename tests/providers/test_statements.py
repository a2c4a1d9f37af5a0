"""The number of statements that an operation takes; they find their rows by the key."""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Dialect, Engine, event, text

from agentmem.facts import Read, Step, Write
from agentmem.records import DreamRecord
from agentmem.storage.sql import facts as sql_facts
from agentmem.storage.sql.provider import SqlProvider
from agentmem.storage.sql.rows import Place
from agentmem.storage.sql.statements import Compiled, Driver, Ready

from .test_transcripts import START


class Watched:
    """A driver's connection that keeps the statements that it runs."""

    def __init__(self, driver: Driver) -> None:
        self.dialect = driver.dialect
        self.statements: list[Ready] = []
        self._driver = driver

    def rows(self, statement: Ready, parameters: Mapping[str, Any]) -> Sequence[Any]:
        self.statements.append(statement)
        return self._driver.rows(statement, parameters)


class Plan(Ready):
    """A statement's plan instead of its rows, from the very text that the driver is given."""

    def compiled(self, dialect: Dialect) -> Compiled:
        made = Compiled(self.statement, dialect)
        how = "EXPLAIN QUERY PLAN" if dialect.name == "sqlite" else "EXPLAIN"
        made.text = f"{how} {made.text}"
        return made


class Explained(Watched):
    """A driver's connection that says how it would run statements, and finds nothing."""

    plan = ""

    def rows(self, statement: Ready, parameters: Mapping[str, Any]) -> Sequence[Any]:
        self.plan += "\n".join(
            str(row) for row in super().rows(Plan(statement.statement), parameters)
        )
        return []


@contextmanager
def counted() -> Generator[list[str]]:
    """Collect the statements that SQLAlchemy runs, many rows of one counting as one."""
    seen: list[str] = []

    def saw(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        seen.append(statement)

    event.listen(Engine, "before_cursor_execute", saw)
    yield seen
    event.remove(Engine, "before_cursor_execute", saw)


async def test_a_scope_of_a_hundred_facts_is_one_statement(store: SqlProvider) -> None:
    """A whole scope comes with one statement, and with no other beside it."""
    await store.write("a", "s", [Write(key=f"k{n:02}", value=n) for n in range(100)])

    def recall(driver: Driver) -> tuple[dict[str, Any], int]:
        watched = Watched(driver)
        return sql_facts.recall_all(watched, Place("a", "s")), len(watched.statements)

    with counted() as others:
        found, statements = await store.database.read_once(recall)
    assert found == await store.recall("a", "s") == {f"k{n:02}": n for n in range(100)}
    assert (statements, others) == (1, [])


async def test_a_change_set_takes_as_many_statements_at_any_size(store: SqlProvider) -> None:
    """A commit of a hundred changes, each of which reads and writes, is as many as one of two."""

    async def commit(changes: int) -> int:
        scope = f"s{changes}"
        await store.write("a", scope, [Write(key=f"old{n}", value=n) for n in range(changes)])
        await store.write("a", scope, [Write(key=f"out{n}", value=n) for n in range(changes)])
        record = DreamRecord(id=f"d{changes}", opened_at=START)
        await store.open_dream("a", scope, record)
        steps = [
            Step(
                id=str(n),
                reads=[Read(key=f"old{n}", version=1), Read(key=f"new{n}")],
                writes=[
                    Write(key=f"old{n}", value="other"),
                    Write(key=f"new{n}", value=n),
                    Write(op="remove", key=f"out{n}"),
                ],
            )
            for n in range(changes)
        ]
        with counted() as seen:
            done = await store.commit("a", scope, record, steps)
        assert len(done.applied) == changes
        return len(seen)

    few, many = await commit(2), await commit(100)
    assert few == many <= 20


@pytest.mark.slow
@pytest.mark.timeout(120)
async def test_a_hundred_thousand_facts_do_not_slow_a_keyed_read(store: SqlProvider) -> None:
    """A keyed read finds its row by the primary key, all three columns of it."""
    for first in range(0, 100_000, 10_000):
        keys = [f"k{number}" for number in range(first, first + 10_000)]
        await store.write("a", "s", [Write(key=key, value=1) for key in keys])
    await store.database.write(lambda connection: connection.execute(text("ANALYZE")))

    def plan(driver: Driver) -> str:
        explained = Explained(driver)
        assert sql_facts.recall_one(explained, Place("a", "s"), "k77777") is None
        return explained.plan

    shown = (await store.database.read_once(plan)).lower()
    assert "index" in shown
    assert "seq scan" not in shown
    assert "agentmem_facts" in shown
    for column in ("agent", "scope", "key"):
        assert f"{column}=" in shown.replace(" ", "").replace("(", "")
    assert await store.recall("a", "s", "k77777") == 1
