"""The stores that the conformance suite runs on, each empty, each closed without a leak."""

import asyncio
import uuid
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from agentmem.storage import in_memory
from agentmem.storage.postgresql import PostgresDatabase
from agentmem.storage.sql.provider import SqlProvider
from agentmem.storage.sqlite import SqliteDatabase
from agentmem.storage.urls import postgresql_address
from tests.postgres import postgres_server, postgresql_url

__all__ = ["postgres_server", "postgresql_url"]

STORES = ["in_memory", "sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql)]


def on_postgresql(url: str, pool_size: int = 10) -> SqlProvider:
    """A store on a PostgreSQL database, not opened yet."""
    separator = "&" if "?" in url else "?"
    address = postgresql_address(f"{url}{separator}pool_size={pool_size}", "test")
    return SqlProvider(PostgresDatabase(address))


async def idle(provider: SqlProvider) -> bool:
    """Wait for what is under way to end, and tell if no connection is at work any more."""
    for _ in range(500):
        if provider.database.checked_out == 0:
            return True
        await asyncio.sleep(0.01)
    return False


@pytest.fixture(params=STORES)
def unopened(request: pytest.FixtureRequest, tmp_path: Path) -> SqlProvider:
    """A store that nobody has opened yet."""
    if request.param == "in_memory":
        return in_memory.store(uuid.uuid4().hex)
    if request.param == "sqlite":
        return SqlProvider(SqliteDatabase(tmp_path / "data" / "memory.db"))
    return on_postgresql(request.getfixturevalue("postgresql_url"))


@pytest.fixture
async def store(unopened: SqlProvider) -> AsyncGenerator[SqlProvider]:
    """An empty store; the test fails if it leaves a connection checked out."""
    await unopened.open()
    yield unopened
    assert await idle(unopened), "a connection was not given back"
    await unopened.close()
