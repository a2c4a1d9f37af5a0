"""PostgreSQL behind a pooler in transaction mode."""

import asyncio
from collections.abc import AsyncGenerator
from urllib.parse import parse_qs, urlsplit

import pytest

from agentmem.errors import ProviderError

from .conftest import idle, on_postgresql
from .pooler import transaction_pooler

pytestmark = pytest.mark.postgresql


@pytest.fixture
async def pooled_url(postgresql_url: str) -> AsyncGenerator[str]:
    """The test's database through the pooler."""
    folder = parse_qs(urlsplit(postgresql_url).query)["host"][0]
    async with transaction_pooler(f"{folder}/.s.PGSQL.5432") as port:
        database = urlsplit(postgresql_url).path
        yield f"postgresql://postgres@127.0.0.1:{port}{database}"


async def test_the_documented_option_makes_it_work(pooled_url: str) -> None:
    """500 operations with `statement_cache_size=0`, and none misses its statement."""
    store = on_postgresql(f"{pooled_url}?statement_cache_size=0")
    await store.open()

    async def task(number: int) -> None:
        for turn in range(5):
            await store.memorize("a", "s", f"k{number}", turn)
            assert await store.recall("a", "s", f"k{number}") == turn

    await asyncio.gather(*map(task, range(50)))
    assert len(await store.keys("a", "s")) == 50
    assert await idle(store)
    await store.close()


async def test_without_it_the_error_says_what_to_write(pooled_url: str) -> None:
    """Statements that another connection has are reported with the option that helps."""
    store = on_postgresql(pooled_url)

    async def use() -> None:
        for _ in range(20):
            await store.recall("a", "s")

    with pytest.raises(ProviderError, match="statement_cache_size=0"):
        await use()
    await store.close()


async def test_tls_is_asked_for_where_the_url_says_so(pooled_url: str) -> None:
    """`sslmode` reaches the driver: a server without TLS is used in the clear or refused."""
    clear = on_postgresql(f"{pooled_url}?statement_cache_size=0&sslmode=disable")
    await clear.open()
    await clear.close()
    safe = on_postgresql(f"{pooled_url}?statement_cache_size=0&sslmode=require")
    with pytest.raises(ProviderError, match="cannot be reached"):
        await safe.open()
    await safe.close()
