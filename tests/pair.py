"""A PostgreSQL primary and the standby that follows it, for tests of a switchover."""

import asyncio
import tempfile
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

import asyncpg

from tests.postgres import embedded, standby


async def execute(url: str, *statements: str) -> None:
    """Run statements on a connection of their own."""
    connection: Any = await cast(Any, asyncpg).connect(url)
    for statement in statements:
        await connection.execute(statement)
    await connection.close()


def folder(url: str) -> str:
    """The folder of a server's socket."""
    return parse_qs(urlsplit(url).query)["host"][0]


def lead(name: Path, url: str) -> None:
    """Have a name lead to a server."""
    name.unlink(missing_ok=True)
    name.symlink_to(folder(url))


@dataclass(frozen=True)
class Pair:
    """A primary and the standby that follows it, and a name that leads to the primary."""

    primary: str
    standby: str
    name: Path

    def url(self, *hosts: str) -> str:
        """A URL of some hosts, by the folders of their sockets."""
        return f"postgresql://postgres@/postgres?host={','.join(hosts)}"

    async def switch_over(self) -> None:
        """Fence the old primary, which goes on answering; promote the other; move the name."""
        fence = "ALTER SYSTEM SET default_transaction_read_only = on"
        await execute(self.primary, fence, "SELECT pg_reload_conf()")
        await execute(self.standby, "SELECT pg_promote()")
        lead(self.name, self.standby)


@contextmanager
def two_servers() -> Generator[Pair]:
    """Run a primary and its standby until the end of the block."""
    with ExitStack() as stack:
        primary = stack.enter_context(embedded())
        following = stack.enter_context(standby(primary))
        names = stack.enter_context(tempfile.TemporaryDirectory(prefix="agentmem-"))
        name = Path(names, "db")
        lead(name, primary)
        yield Pair(primary, following, name)


async def caught_up(pair: Pair) -> None:
    """Wait until the standby has all that the primary wrote."""
    primary: Any = await cast(Any, asyncpg).connect(pair.primary)
    here = await primary.fetchval("SELECT pg_current_wal_lsn()::text")
    await primary.close()
    following: Any = await cast(Any, asyncpg).connect(pair.standby)
    has_it = f"SELECT pg_last_wal_replay_lsn() >= '{here}'::pg_lsn"
    async with asyncio.timeout(10):
        while not await following.fetchval(has_it):  # noqa: ASYNC110 - another server's state
            await asyncio.sleep(0.02)
    await following.close()
