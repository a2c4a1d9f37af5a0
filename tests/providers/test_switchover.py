"""Connections that are of no use any more: after a switchover, a restart, a broken line."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

import pytest
from sqlalchemy import Connection, text

from agentmem.errors import ProviderError, StoreUnavailable
from agentmem.storage import postgresql
from agentmem.storage.sql.provider import SqlProvider
from tests.pair import Pair, caught_up, execute, folder, two_servers

from .conftest import idle, on_postgresql

pytestmark = pytest.mark.postgresql


@pytest.fixture
async def pair() -> AsyncGenerator[Pair]:
    """Two servers of the test's own."""
    with two_servers() as made:
        yield made


async def warm(store: SqlProvider, connections: int = 5) -> None:
    """Have several connections in the pool."""

    def wait(connection: Connection) -> None:
        connection.execute(text("SELECT pg_sleep(0.2)"))

    await asyncio.gather(*(store.database.read(wait) for _ in range(connections)))


async def everywhere(work: Callable[[int], Awaitable[Any]], calls: int = 5) -> list[Any]:
    """Make calls at the same time, so that each takes another connection."""
    return list(await asyncio.gather(*map(work, range(calls))))


async def test_after_a_switchover_writes_and_reads_go_to_the_new_primary(pair: Pair) -> None:
    """The old primary still answers: the first write finds out, and nobody is told of it.

    Afterwards no read comes from the old one. The host is one name, which has moved.
    """
    store = on_postgresql(pair.url(str(pair.name)))
    await store.open()
    await store.memorize("a", "s", "k", "before")
    await warm(store)
    await caught_up(pair)
    await pair.switch_over()
    await store.memorize("a", "s", "k", "after")
    assert await everywhere(lambda _: store.recall("a", "s", "k")) == ["after"] * 5
    await everywhere(lambda n: store.write("a", "s", []) if n else store.forget("a", "t"))
    assert await idle(store)
    await store.close()


async def test_reads_alone_notice_a_switchover_too(pair: Pair) -> None:
    """A worker that only reads leaves the old primary after it has said that it is read-only.

    Two hosts are named; the one that takes writes is used from the start, whatever their order.
    """
    store = on_postgresql(pair.url(folder(pair.standby), folder(pair.primary)))
    await store.open()
    await store.memorize("a", "s", "k", "before")
    await warm(store)
    await caught_up(pair)
    await pair.switch_over()
    other = on_postgresql(pair.standby)
    await other.memorize("a", "s", "k", "after")
    first = await everywhere(lambda _: store.recall("a", "s", "k"))
    assert set(first) <= {"before", "after"}  # the server says so with its next answer
    assert await everywhere(lambda _: store.recall("a", "s", "k")) == ["after"] * 5
    for one in (store, other):
        await one.close()


async def test_a_pool_of_dead_connections_fails_nobody(postgresql_url: str) -> None:
    """The server ended all of them (57P01) while they were idle; reads and writes go on."""
    store = on_postgresql(postgresql_url)
    await store.open()
    uses: list[Callable[[int], Awaitable[Any]]] = [
        lambda n: store.recall("a", "s", f"k{n}"),
        lambda n: store.memorize("a", "s", f"k{n}", n),
        lambda n: store.write("a", "s", []),
    ]
    for use in uses:
        await warm(store, 8)
        await execute(
            postgresql_url,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()",
        )
        await everywhere(use, 8)
    assert await idle(store)
    await store.close()


async def test_sessions_that_became_read_only_are_left_together(
    postgresql_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first write that meets 25006 is made again elsewhere, and gives all the others up.

    The server does not report that it is read-only: before version 14 none did.
    """

    def silent(_connection: object) -> bool:
        return True

    monkeypatch.setattr(postgresql, "takes_writes", silent)
    store = on_postgresql(postgresql_url)
    await store.open()

    def fence(connection: Connection) -> int:
        connection.execute(text("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY"))
        connection.execute(text("SELECT pg_sleep(0.2)"))
        return address(connection)

    def address(connection: Connection) -> int:
        return connection.execute(text("SELECT pg_backend_pid()")).scalar_one()

    for write in (
        lambda: store.memorize("a", "s", "k", 1),  # one statement
        lambda: store.forget("a", "s"),  # a transaction
    ):
        before = await everywhere(lambda _: store.database.read(fence))
        assert await store.database.read(address) in before
        await write()
        after = await everywhere(lambda _: store.database.read(address))
        assert not set(before) & set(after)
    assert await idle(store)
    await store.close()


async def test_a_server_that_only_reads_is_read_and_says_so_to_writers(pair: Pair) -> None:
    """A standby serves reads; a write fails at once, as a store's failure, with what to do."""
    writer = on_postgresql(pair.primary)
    await writer.open()
    await writer.memorize("a", "s", "k", 1)
    await caught_up(pair)
    store = on_postgresql(pair.standby)
    await store.open()
    assert await everywhere(lambda _: store.recall("a", "s", "k")) == [1] * 5
    for write in (store.memorize("a", "s", "k", 2), store.forget("a", "s")):
        with pytest.raises(ProviderError, match=r"25006\); its server takes no writes") as failed:
            await write
        assert not failed.value.non_retryable
    nobody = on_postgresql(pair.url(folder(pair.standby), folder(pair.standby)))
    with pytest.raises(StoreUnavailable, match="none of the hosts of its URL takes writes now"):
        await nobody.recall("a", "s", "k")
    for one in (store, writer, nobody):
        await one.close()
