"""Which store an identity means on a worker, and that each is opened once."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agentmem import LongTermMemory, in_memory, sqlite
from agentmem.errors import ConfigurationError, ProviderError
from agentmem.storage.protocol import TransactionalProvider
from agentmem.storage.registry import Providers, default_providers

from .five_methods import FiveMethods

SECRET = "postgresql://someone:pa55word@db.example:5433/agents?sslmode=require"


def is_empty(folder: Path) -> bool:
    """Tell if a folder holds nothing."""
    return not any(folder.iterdir())


@pytest.mark.parametrize(
    ("url", "resolved"),
    [
        (None, "sqlite:memory.db"),
        ("", "sqlite:memory.db"),
        (SECRET, "postgresql"),
        ("postgres://db.example/agents", "postgresql"),
        ("postgresql+psycopg://db.example/agents", "postgresql"),
        ("sqlite:////var/lib/agents.db", "sqlite:/var/lib/agents.db"),
        ("sqlite+aiosqlite:////var/lib/my%20agents.db", "sqlite:/var/lib/my agents.db"),
        ("sqlite://", "in_memory:default"),
        ("sqlite+aiosqlite:///:memory:", "in_memory:default"),
    ],
)
def test_what_default_means(tmp_path: Path, url: str | None, resolved: str) -> None:
    """The default store follows `AGENTMEM_DATABASE_URL`; without one it is a SQLite file."""
    assert Providers(tmp_path, url).resolve("default") == resolved


def test_a_relative_sqlite_url_is_told_absolutely(tmp_path: Path) -> None:
    """A URL's relative path is taken from where the worker starts, once."""
    resolved = Providers(tmp_path, "sqlite:///some/agents.db").resolve("default")
    assert resolved == f"sqlite:{Path.cwd()}/some/agents.db"


@pytest.mark.parametrize(
    "url", ["mysql://h/d", "db.example", "sqlite:agents.db", "sqlite://host/x"]
)
def test_other_databases_are_refused(tmp_path: Path, url: str) -> None:
    """A URL of neither PostgreSQL nor SQLite is refused at once, with what to write."""
    with pytest.raises(ConfigurationError, match=r"AGENTMEM_DATABASE_URL.*postgresql://.*sqlite:"):
        Providers(tmp_path, url)


@pytest.mark.parametrize(
    "identity",
    [
        *("", "sqlite", "sqlite:", "redis", "named:", "named:other", "in_memory:", "in_memory:a/b"),
        *("postgresql:", "postgresql:env:", "postgresql:env:A-B", "postgresql://u:p@h/d"),
    ],
)
async def test_an_unknown_store_is_refused_with_what_exists(tmp_path: Path, identity: str) -> None:
    """The message names what there is, the user's own stores too."""
    providers = Providers(tmp_path, None, {"redis": FiveMethods})
    for ask in (providers.resolve, providers.describe):
        with pytest.raises(ConfigurationError, match=r"sqlite:<path>.*named:redis"):
            ask(identity)
    with pytest.raises(ConfigurationError):
        await providers.get(identity)


@pytest.mark.parametrize("path", ["/etc/agents.db", "../agents.db", "a/../../agents.db"])
async def test_no_path_leaves_the_data_directory(tmp_path: Path, path: str) -> None:
    """An identity may come from anybody who can start workflows: it stays under `AGENTMEM_DATA`."""
    providers = Providers(tmp_path / "data")
    with pytest.raises(ConfigurationError, match="AGENTMEM_DATA"):
        await providers.get(f"sqlite:{path}")
    assert is_empty(tmp_path)


async def test_no_link_leads_out_of_the_data_directory(tmp_path: Path) -> None:
    """A symbolic link to elsewhere is not followed."""
    data, outside = tmp_path / "data", tmp_path / "outside"
    data.mkdir()
    outside.mkdir()
    (data / "link").symlink_to(outside)
    with pytest.raises(ConfigurationError, match="link"):
        await Providers(data).get("sqlite:link/agents.db")


def test_descriptions_are_for_people_and_hold_no_secret(tmp_path: Path) -> None:
    """A path is absolute, a database says host and name; user and password stay out."""
    providers = Providers(tmp_path, SECRET, {"redis": FiveMethods})
    assert providers.describe("default") == "PostgreSQL db.example:5433/agents"
    assert providers.describe("sqlite:a/b.db") == f"SQLite {tmp_path}/a/b.db"
    assert "gone with it" in providers.describe("in_memory:x")
    assert "redis" in providers.describe("named:redis")


async def test_a_url_from_another_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`postgresql:env:NAME` reads the worker's environment, and never shows what it read."""
    providers = Providers(tmp_path)
    with pytest.raises(ConfigurationError, match="RESEARCH_URL is not set"):
        await providers.get("postgresql:env:RESEARCH_URL")
    monkeypatch.setenv("RESEARCH_URL", SECRET)
    assert providers.describe("postgresql:env:RESEARCH_URL") == "PostgreSQL db.example:5433/agents"
    monkeypatch.setenv("RESEARCH_URL", "s3cret-that-is-no-url")
    with pytest.raises(ConfigurationError, match="RESEARCH_URL is not a PostgreSQL URL") as refused:
        await providers.get("postgresql:env:RESEARCH_URL")
    assert "s3cret" not in str(refused.value)


async def test_concurrent_first_uses_open_one_store(tmp_path: Path) -> None:
    """However many ask first, there is one store, and two names of one file are one file."""
    providers = Providers(tmp_path)
    stores = await asyncio.gather(*(providers.get("default") for _ in range(20)))
    assert len({id(store) for store in stores}) == 1
    assert await providers.get("sqlite:memory.db") is stores[0]
    assert await providers.get("sqlite:./memory.db") is stores[0]
    assert (tmp_path / "memory.db").is_file()
    await providers.close()


async def test_a_caller_that_gives_up_does_not_stop_the_opening(tmp_path: Path) -> None:
    """A cancelled first use leaves the store to the others."""
    providers = Providers(tmp_path)
    first, second = (asyncio.create_task(providers.get("default")) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    assert await (await second).keys("a", "s") == []
    await providers.close()


async def test_a_store_that_failed_to_open_is_tried_again(tmp_path: Path) -> None:
    """A database that was down at first use is used when it is up."""
    blocked = tmp_path / "data"
    blocked.write_text("a file where the directory should be")
    providers = Providers(blocked)
    with pytest.raises(ProviderError, match="cannot be reached"):
        await providers.get("default")
    blocked.unlink()
    assert await (await providers.get("default")).keys("a", "s") == []
    await providers.close()


async def test_in_memory_one_store_a_name_a_process(tmp_path: Path) -> None:
    """Stores of one name are one store, also over two registries; others are apart."""
    one = await Providers(tmp_path).get("in_memory:shared")
    await one.memorize("a", "s", "k", 1)
    assert await (await Providers(tmp_path).get("in_memory:shared")).recall("a", "s", "k") == 1
    assert await (await Providers(tmp_path).get("in_memory:other")).recall("a", "s", "k") is None


async def test_a_provider_of_the_users_own(tmp_path: Path) -> None:
    """A registered function is called once, may be async, and its store gets all the methods."""
    made: list[FiveMethods] = []

    async def make() -> FiveMethods:
        await asyncio.sleep(0.01)
        made.append(FiveMethods())
        return made[-1]

    providers = Providers(tmp_path, None, {"redis": make})
    first, second = await asyncio.gather(*(providers.get("named:redis") for _ in range(2)))
    assert first is second
    assert isinstance(first, TransactionalProvider)
    assert len(made) == 1
    await first.memorize("a", "s", "k", 1)
    assert await made[0].recall("a", "s", "k") == 1
    await providers.close()
    assert made[0].closed


async def test_a_whole_store_of_the_users_own_is_used_as_it_is(tmp_path: Path) -> None:
    """A `TransactionalProvider` needs no adapter: its history is there."""
    whole = await Providers(tmp_path).get("in_memory:whole")
    providers = Providers(tmp_path, None, {"mine": lambda: whole})
    mine = await providers.get("named:mine")
    await mine.memorize("a", "s", "city", "Oslo")
    assert await whole.recall("a", "s", "city") == "Oslo"
    assert [version.value for version in await mine.history("a", "s", "city")] == ["Oslo"]
    await providers.close()


async def test_a_store_that_lacks_a_method_is_refused(tmp_path: Path) -> None:
    """The message names what is missing; what fails to be made is a provider's failure."""

    class Half:
        async def recall(self, *_: Any) -> None: ...
        async def keys(self, *_: Any) -> list[str]: ...

    def broken() -> object:
        raise RuntimeError("no such host: s3cret")

    providers = Providers(tmp_path, None, {"half": Half, "broken": broken})
    with pytest.raises(
        ConfigurationError, match=r"'half' is a Half without memorize, forget, scopes"
    ):
        await providers.get("named:half")
    with pytest.raises(ProviderError, match=r"'broken' could not be made: RuntimeError$") as failed:
        await providers.get("named:broken")
    assert isinstance(failed.value.__cause__, RuntimeError)


async def test_scripts_find_their_stores_by_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Outside a worker `AGENTMEM_DATA` says where files are; the same stores come back."""
    monkeypatch.setenv("AGENTMEM_DATA", str(tmp_path / "here"))
    assert default_providers() is default_providers()
    memory = LongTermMemory(sqlite("notes.db"), "assistant", "user-1")
    await memory.memorize("city", "Rome")
    assert await LongTermMemory(sqlite("notes.db"), "assistant", "user-1").recall() == {
        "city": "Rome"
    }
    assert (tmp_path / "here" / "notes.db").is_file()
    await default_providers().close()


async def test_outside_a_workflow_each_in_memory_store_is_new() -> None:
    """Two scripts' stores in one process do not meet, and a reference keeps its store."""
    one, two = in_memory(), in_memory()
    await LongTermMemory(one, "a", "s").memorize("k", 1)
    assert await LongTermMemory(one, "a", "s").recall("k") == 1
    assert await LongTermMemory(two, "a", "s").recall("k") is None


SCRIPT = """
import asyncio, sys
from agentmem import LongTermMemory, postgresql, sqlite
from agentmem.storage.registry import default_providers

async def main(how, where):
    memory = LongTermMemory(sqlite("notes.db") if where == "sqlite" else postgresql(), "a", "s")
    await memory.memorize("k", how)
    assert await memory.recall("k") == how
    if how == "error":
        raise RuntimeError("in the middle")
    if how == "close":
        await default_providers().close()

for _ in range(2):
    asyncio.run(main(*sys.argv[1:]))
"""


@pytest.fixture
def database_url(request: pytest.FixtureRequest, where: str) -> str:
    """A PostgreSQL database if one is needed."""
    return request.getfixturevalue("postgresql_url") if where == "postgresql" else ""


@pytest.mark.parametrize(
    ("where", "how"),
    [
        *(("sqlite", "close"), ("sqlite", "leave"), ("sqlite", "error")),
        pytest.param("postgresql", "leave", marks=pytest.mark.postgresql),
    ],
)
async def test_a_script_ends_by_itself(
    tmp_path: Path, database_url: str, where: str, how: str
) -> None:
    """A script of two event loops ends, closed or not, and warns of nothing."""
    environment = {"AGENTMEM_DATA": str(tmp_path)}
    if where == "postgresql":
        environment["AGENTMEM_DATABASE_URL"] = database_url
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-W", "always", "-c", SCRIPT, how, where),
        env=environment,
        stderr=subprocess.PIPE,
    )
    _, errors = await asyncio.wait_for(process.communicate(), 50)
    if how == "error":
        assert process.returncode == 1
        assert b"RuntimeError: in the middle" in errors
        assert b"Warning" not in errors
    else:
        assert (process.returncode, errors.decode()) == (0, "")


async def test_importing_opens_nothing(tmp_path: Path) -> None:
    """Importing the package makes no file, no thread and no connection."""
    code = (
        "import threading, agentmem, agentmem.storage.registry as r; "
        "assert threading.active_count() == 1"
    )
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, cwd=tmp_path)
    assert await process.wait() == 0
    assert is_empty(tmp_path)
