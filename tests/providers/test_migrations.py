"""The schema: one result however many start at once, and none that a newer version wrote."""

import asyncio
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, MetaData, Table, func, inspect, select, text

from agentmem.errors import ConfigurationError
from agentmem.storage import migrate
from agentmem.storage.migrate import VERSION_TABLE, revisions, upgrade
from agentmem.storage.sql.provider import SqlProvider
from agentmem.storage.sql.schema import metadata
from agentmem.storage.sqlite import SqliteDatabase
from tests.postgres import PostgresServer

from . import forks
from .conftest import on_postgresql

HEAD = "0004"


def differences(connection: Connection) -> list[Any]:
    """Return the differences of the migrated database from the schema that the code uses."""
    context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
    return list(compare_metadata(context, metadata))


def versions(connection: Connection) -> list[str]:
    """The recorded schema versions."""
    return list(connection.execute(text(f"SELECT version_num FROM {VERSION_TABLE}")).scalars())


async def test_the_steps_lead_to_the_schema_in_use(store: SqlProvider) -> None:
    """The migrations make the schema that the statements expect, and its version is recorded."""
    assert await store.database.write(differences) == []
    assert await store.database.read(versions) == [HEAD]


async def test_every_table_is_named_as_ours(store: SqlProvider) -> None:
    """No table takes a name that somebody else's in the same database may have."""
    names = await store.database.read(lambda connection: inspect(connection).get_table_names())
    assert names
    assert all(name.startswith("agentmem_") for name in names)


async def test_names_compare_byte_by_byte(store: SqlProvider) -> None:
    """Names have the `C` collation on PostgreSQL, SQLite's own compares bytes already."""

    def collations(connection: Connection) -> set[str | None]:
        columns = inspect(connection).get_columns("agentmem_facts")
        named = [one for one in columns if one["name"] in ("agent", "scope", "key")]
        return {getattr(one["type"], "collation", None) for one in named}

    found = await store.database.read(collations)
    assert found == ({"C"} if "PostgreSQL" in store.database.name else {None})


async def test_opening_again_keeps_everything(store: SqlProvider) -> None:
    """Opening what is up to date changes nothing."""
    await store.memorize("a", "s", "k", 1)
    await asyncio.gather(*(store.open() for _ in range(5)))
    assert await store.recall("a", "s") == {"k": 1}
    assert await store.database.read(versions) == [HEAD]


@pytest.mark.postgresql
async def test_several_stores_open_at_once(tmp_path: Path, postgres_server: PostgresServer) -> None:
    """A worker opens all of its stores at the same time, whatever databases they are on."""
    names = [await postgres_server.new() for _ in range(3)]
    stores = [
        *(SqlProvider(SqliteDatabase(tmp_path / f"{number}.db")) for number in range(3)),
        *(SqlProvider(SqliteDatabase(None)) for _ in range(3)),
        *(on_postgresql(postgres_server.url(name)) for name in names),
    ]
    await asyncio.gather(*(store.open() for store in stores))
    for store in stores:
        assert await store.database.write(differences) == []
        await store.close()
    for name in names:
        await postgres_server.drop(name)


def test_the_names_of_the_files_are_the_steps() -> None:
    """The files' names tell if a database is up to date, without Alembic."""
    config = Config()
    config.set_main_option("script_location", str(Path(migrate.__file__).parent / "migrations"))
    steps = ScriptDirectory.from_config(config).walk_revisions()
    assert revisions() == [step.revision for step in steps][::-1]
    assert revisions()[-1] == HEAD


@pytest.mark.parametrize("earlier", revisions()[:-1])
async def test_what_an_earlier_schema_holds_survives(
    request: pytest.FixtureRequest, unopened: SqlProvider, earlier: str
) -> None:
    """A database of each earlier schema, a row in each table, becomes the schema in use."""
    if "PostgreSQL" in unopened.database.name:  # the fixture's database is up to date already
        server: PostgresServer = request.getfixturevalue("postgres_server")
        name = await server.new()
        store = on_postgresql(server.url(name))
    else:
        await unopened.open()
        await unopened.database.write(empty)
        store = unopened
    await store.database.write(lambda connection: upgrade(connection, earlier))
    before = await store.database.write(_fill)
    assert before
    await store.open()
    assert await store.database.write(differences) == []
    assert await store.database.read(versions) == [HEAD]
    after = await store.database.read(_counts)
    assert {name: after[name] for name in before} == before
    assert await store.recall("1", "1") == {"1": 1}
    await store.memorize("1", "1", "1", 2)
    (fact,) = await store.entries("1", "1")
    assert (fact.value, fact.version) == (2, 2)
    await store.close()


def empty(connection: Connection) -> None:
    """Take everything out of a database, its schema too."""
    metadata.drop_all(connection)
    connection.execute(text(f"DROP TABLE {VERSION_TABLE}"))


def _tables(connection: Connection) -> list[Table]:
    there = MetaData()
    there.reflect(connection, only=lambda name, _: name != VERSION_TABLE)
    return there.sorted_tables


def _counts(connection: Connection) -> dict[str, int]:
    return {
        table.name: connection.execute(select(func.count()).select_from(table)).scalar_one()
        for table in _tables(connection)
    }


def _fill(connection: Connection) -> dict[str, int]:
    at = datetime(2026, 3, 10, tzinfo=UTC)
    kinds: dict[type, Any] = {str: "1", int: 1, bool: False, datetime: at, date: at.date()}
    for table in _tables(connection):
        row = {column.name: kinds[column.type.python_type] for column in table.c}
        given = {"trust": "user", "writer": "code", "op": "set", "expires_at": None}
        row |= {name: value for name, value in given.items() if name in row}
        connection.execute(table.insert(), row)
    return _counts(connection)


async def test_a_newer_schema_is_refused(store: SqlProvider) -> None:
    """A store that a newer agentmem has written is left alone, with a sentence that says so."""

    def age(connection: Connection, version: str) -> None:
        connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '{version}'"))

    await store.database.write(lambda connection: age(connection, "9999"))
    with pytest.raises(ConfigurationError, match=r"9999.*newer"):
        await store.open()


@pytest.mark.slow
@pytest.mark.postgresql
async def test_eight_processes_open_an_empty_postgresql(postgres_server: PostgresServer) -> None:
    """Workers that start at once on an empty database make one schema."""
    name = await postgres_server.new()
    await forks.finish(await forks.start("open", postgres_server.url(name), 8))
    store = on_postgresql(postgres_server.url(name))
    assert len(await store.keys("a", "s")) == 8
    assert await store.database.read(versions) == [HEAD]
    await store.close()
    await postgres_server.drop(name)


@pytest.mark.slow
async def test_processes_open_an_empty_file(tmp_path: Path) -> None:
    """The same for a SQLite file that is not there yet."""
    path = tmp_path / "new" / "memory.db"
    await forks.finish(await forks.start("open", str(path), 4))
    store = SqlProvider(SqliteDatabase(path))
    assert await store.keys("a", "s") == ["p0", "p1", "p2", "p3"]
    await store.close()
