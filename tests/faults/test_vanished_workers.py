"""A worker machine that vanishes in the middle of a commit: its locks are given up in time."""

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, text

from agentmem.errors import ProviderError
from agentmem.storage.sql.locks import hold
from agentmem.storage.sql.rows import Place
from tests.faults.killed_commits import RECORD, STEPS, opened, prepare

pytestmark = pytest.mark.postgresql
ROOT = Path(__file__).parents[2]
LOCKED = 8
"""A statement of the commit that comes after its locks."""

SOON = "&idle_in_transaction_session_timeout=2000"


@pytest.mark.parametrize(
    ("options", "least", "most"),
    [
        (SOON, 0, 20),
        pytest.param("", 8, 60, marks=[pytest.mark.slow, pytest.mark.timeout(180)]),
    ],
    ids=["two seconds by the URL", "as it is by default"],
)
async def test_another_worker_goes_on(
    postgresql_url: str, options: str, least: float, most: float
) -> None:
    """The commit is done elsewhere within a minute; the first worker, back again, changes nothing.

    The same for a write into the scope. Both are tried again as Temporal does.
    """
    await prepare(postgresql_url)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.faults.killed_commits"),
        *(postgresql_url + options, str(LOCKED)),
        cwd=ROOT,
        stdout=subprocess.PIPE,
    )
    try:
        await stopped(process.pid)
        other = await opened(postgresql_url)
        began = time.monotonic()
        done, _ = await asyncio.gather(
            until_it_works(lambda: other.commit("a", "s", RECORD, STEPS)),
            until_it_works(lambda: other.memorize("a", "s", "new", 1)),
        )
        assert least <= time.monotonic() - began < most
        assert done.applied == ["c1", "c2"]
        await other.close()
    finally:
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGCONT)
    out, _ = await process.communicate()
    assert process.returncode == 0
    assert b'"facts": {"city": "Bergen", "new": 1, "work": "nurse"}' in out


async def test_a_wait_for_a_lock_ends_before_its_activity(postgresql_url: str) -> None:
    """A write behind a lock that is held fails within 10 seconds, and says what it waited for."""
    store = await opened(f"{postgresql_url}&lock_timeout=300")
    holder = asyncio.create_task(store.database.write(_hold))
    await asyncio.sleep(0.5)
    with pytest.raises(ProviderError, match="55P03") as failed:
        await store.forget("a", "s")
    assert "vanished" in failed.value.message
    assert not failed.value.non_retryable
    await holder
    await store.forget("a", "s")
    await store.close()


@pytest.mark.parametrize("query", ["", "&statement_cache_size=0"])
async def test_every_transaction_has_its_lease(postgresql_url: str, query: str) -> None:
    """Also behind a pooler, where the settings cannot belong to the connection."""

    def shown(connection: Connection) -> list[str]:
        names = ("idle_in_transaction_session_timeout", "lock_timeout")
        return [connection.execute(text(f"SHOW {name}")).scalar_one() for name in names]

    for options, expected in (("", "20s"), (SOON, "2s")):
        store = await opened(postgresql_url + query + options)
        assert await store.database.write(shown) == [expected, "8s"]
        await store.close()


def _hold(connection: Connection) -> None:
    hold(connection, Place("a", "s"))
    connection.execute(text("SELECT pg_sleep(1.5)"))


async def until_it_works(work: Callable[[], Awaitable[Any]]) -> Any:
    """Try again and again, a second apart."""
    while True:
        try:
            return await work()
        except ProviderError:
            await asyncio.sleep(1)


async def stopped(process: int) -> None:
    """Wait until a process stands still."""
    status = Path(f"/proc/{process}/stat")
    async with asyncio.timeout(30):
        while status.read_text().rpartition(")")[2].split()[0] != "T":  # noqa: ASYNC240, ASYNC110
            await asyncio.sleep(0.05)
