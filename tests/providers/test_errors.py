"""A driver's error comes out as `ProviderError`, without addresses, passwords and values."""

import asyncio
import logging
import socket
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, text
from temporalio.api.failure.v1 import Failure
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.testing import ActivityEnvironment

from agentmem.errors import ConfigurationError, ProviderError, StoreUnavailable
from agentmem.storage.postgresql import PostgresDatabase
from agentmem.storage.registry import Providers
from agentmem.storage.sql.provider import SqlProvider
from agentmem.storage.sqlite import SqliteDatabase
from agentmem.storage.urls import postgresql_address

from .conftest import on_postgresql
from .five_methods import FiveMethods


async def test_a_drivers_error_is_the_cause(store: SqlProvider) -> None:
    """The cause is the driver's own; the message names its kind and no parameter."""

    def wrong(connection: Connection) -> None:
        connection.execute(text("SELECT :secret FROM agentmem_nowhere"), {"secret": "pa55word"})

    for run in (store.database.read, store.database.write):
        with pytest.raises(ProviderError) as failed:
            await run(wrong)
        cause = failed.value.__cause__
        assert type(cause).__module__.partition(".")[0] in {"sqlite3", "asyncpg"}
        assert type(cause).__name__ in str(failed.value)
        assert "pa55word" not in f"{failed.value}{cause}"
        assert not failed.value.non_retryable
        assert not isinstance(failed.value, StoreUnavailable), "it would fail again"
    assert await store.keys("a", "s") == []


async def test_a_server_that_is_not_there() -> None:
    """A refused connection names the database; host, user and password stay out."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    store = on_postgresql(f"postgresql://someone:pa55word@127.0.0.1:{port}/agents")
    with pytest.raises(StoreUnavailable, match="'agents' cannot be reached") as failed:
        await store.open()
    assert isinstance(failed.value.__cause__, OSError)
    assert "look at host and port in its URL" in str(failed.value)
    for secret in ("someone", "pa55word", str(port)):
        assert secret not in str(failed.value)


async def test_an_option_that_the_driver_refuses() -> None:
    """The error says where to look, and shows nothing of the URL."""
    store = on_postgresql("postgresql://ada:pa55word@127.0.0.1:1/x?sslmode=bogus")
    with pytest.raises(ProviderError, match="look at sslmode") as failed:
        await store.open()
    assert not isinstance(failed.value, StoreUnavailable), "no wait changes a URL"
    assert "pa55word" not in failed.value.message


@pytest.mark.postgresql
async def test_a_refused_login(postgresql_url: str) -> None:
    """A role or a database that does not exist is a typed error with the server's code."""
    store = on_postgresql(postgresql_url.replace("postgres@", "nobody-here:pa55word@"))
    with pytest.raises(ProviderError, match="28000") as failed:
        await store.open()
    assert "pa55word" not in str(failed.value)


@pytest.mark.postgresql
async def test_a_statement_has_its_time(postgresql_url: str) -> None:
    """`command_timeout` ends what hangs, and the connection is fit for use or gone."""
    address = postgresql_address(f"{postgresql_url}&command_timeout=0.2&pool_size=1", "test")
    store = SqlProvider(PostgresDatabase(address))
    await store.open()
    with pytest.raises(StoreUnavailable, match="did not answer in time"):
        await store.database.write(lambda c: c.execute(text("SELECT pg_sleep(20)")))
    await store.memorize("a", "s", "k", 1)
    assert await store.recall("a", "s", "k") == 1
    await store.close()


@pytest.mark.postgresql
async def test_server_settings_go_through(postgresql_url: str) -> None:
    """`statement_timeout` and other settings of the server may stand in the URL."""
    url = f"{postgresql_url}&statement_timeout=100&application_name=mine"
    store = on_postgresql(url)
    await store.open()
    shown = await store.database.read(
        lambda connection: [
            connection.execute(text(f"SHOW {name}")).scalar_one()
            for name in ("statement_timeout", "application_name")
        ]
    )
    assert shown == ["100ms", "mine"]
    with pytest.raises(ProviderError, match="57014"):
        await store.database.read(lambda c: c.execute(text("SELECT pg_sleep(20)")))
    await store.close()


@pytest.mark.postgresql
async def test_a_full_pool_is_waited_for_and_then_refused(postgresql_url: str) -> None:
    """A call waits `pool_timeout` for a connection, then fails as a store that can be retried."""
    address = postgresql_address(f"{postgresql_url}&pool_size=1&pool_timeout=0.2", "test")
    store = SqlProvider(PostgresDatabase(address))
    await store.open()
    hold = asyncio.create_task(
        store.database.read(lambda c: c.execute(text("SELECT pg_sleep(1.5)")))
    )
    await asyncio.sleep(0.3)
    with pytest.raises(StoreUnavailable, match="pool_size"):
        await store.recall("a", "s")
    await hold
    assert await store.recall("a", "s") == {}
    await store.close()


async def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    """Something else under the file's name is an error, and is not overwritten."""
    path = tmp_path / "notes.db"
    path.write_text("my notes, not a database, " * 100)
    store = SqlProvider(SqliteDatabase(path))
    with pytest.raises(ProviderError, match="SQLITE_NOTADB"):
        await store.open()
    assert path.read_text().startswith("my notes")
    await store.close()


@pytest.mark.parametrize(
    ("query", "options"),
    [
        ("sslmode=verify-full", {"sslmode": "verify-full"}),
        ("ssl=require", {"sslmode": "require"}),
        ("ssl=true&pool_size=3", {"sslmode": "require"}),
        ("statement_timeout=5000", {"statement_timeout": "5000"}),
    ],
)
def test_what_a_url_may_say(query: str, options: dict[str, str]) -> None:
    """TLS and settings go to the driver in its own words; what is ours does not."""
    address = postgresql_address(f"postgresql+asyncpg://u:p%40ss@h/d?{query}", "URL")
    assert address.dsn.startswith("postgresql://u:p%40ss@h/d?application_name=agentmem")
    for name, value in options.items():
        assert f"{name}={value}" in address.dsn
    assert "pool_size" not in address.dsn
    assert address.pool_size == (3 if "pool_size" in query else 10)
    assert "p%40ss" not in repr(address)


def test_options_that_the_driver_lacks_are_named(caplog: pytest.LogCaptureFixture) -> None:
    """An option of libpq that asyncpg would send on as a setting is left out, with a warning."""
    with caplog.at_level(logging.WARNING):
        address = postgresql_address("postgres://u:p@h/d?channel_binding=require", "URL")
    assert "channel_binding" not in address.dsn
    assert "channel_binding" in caplog.text
    assert "u:p@" not in caplog.text


@pytest.mark.parametrize("query", ["pool_size=many", "pool_size=-1", "pool_timeout=nan"])
def test_an_option_that_is_no_number_is_refused(query: str) -> None:
    """The message names the setting and the option, not the URL."""
    with pytest.raises(ConfigurationError, match="DATABASE_URL: pool_") as refused:
        postgresql_address(f"postgresql://u:pa55word@h/d?{query}", "DATABASE_URL")
    assert "pa55word" not in str(refused.value)


@pytest.mark.parametrize("url", ["postgresql://u:pa55word@h:port/d", "postgresql://u:pa55@[h/d"])
def test_a_malformed_url_is_refused_without_being_shown(url: str) -> None:
    """A URL that cannot be read may hold a password all the same."""
    with pytest.raises(ConfigurationError, match="DATABASE_URL is not") as refused:
        postgresql_address(url, "DATABASE_URL")
    assert "pa55" not in str(refused.value)
    assert refused.value.__cause__ is None


class Leaky(FiveMethods):
    """A user's store whose errors say too much."""

    async def recall(self, agent: str, scope: str, key: str | None = None) -> Any:
        """Fail."""
        raise ConnectionError("redis://:pa55word@host refused hunter2")


async def test_no_text_of_a_driver_goes_into_a_history(tmp_path: Path) -> None:
    """Temporal records the causes of what an activity raises: of them only kind and place stay."""

    def made() -> object:
        raise ValueError("token=pa55word hunter2")

    providers = Providers(tmp_path, registered={"leaky": Leaky, "unmade": made})
    converter = pydantic_data_converter
    cases = (("leaky", "ConnectionError", True), ("unmade", "ValueError", False))
    for name, kind, may_pass in cases:

        async def recall(name: str = name) -> None:
            await (await providers.get(f"named:{name}")).recall("a", "s", "k")

        with pytest.raises(ProviderError) as failed:
            await ActivityEnvironment().run(recall)
        failure = Failure()
        await converter.encode_failure(failed.value, failure)
        assert isinstance(failed.value, StoreUnavailable) is may_pass
        recorded = str(failure)
        assert f"builtins.{kind} (test_errors.py:" in recorded
        assert "pa55word" not in recorded
        assert "hunter2" not in recorded
        with pytest.raises(ProviderError) as failed:
            await recall()
        assert "hunter2" in str(failed.value.__cause__), "a script sees all of it"
    await providers.close()
