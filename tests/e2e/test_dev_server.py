"""The real server in a process of our own: it lives as long as its owner, and keeps workflows."""

import asyncio
import sys
from pathlib import Path

import pytest

from agentmem import dev_server as module
from agentmem.contracts import SEARCH_ATTRIBUTES
from agentmem.dev_server import dev_server
from agentmem.errors import ConfigurationError

OWNER = """
import asyncio, sys
from pathlib import Path
from agentmem.dev_server import dev_server

async def main() -> None:
    async with dev_server(Path(sys.argv[1]), keep=True, ui=False) as server:
        await server.client.start_workflow("anything", id="kept", task_queue="nobody")
        print("started", flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.mark.slow
async def test_a_server_ends_with_its_owner_and_its_workflows_stay(tmp_path: Path) -> None:
    """SIGKILL of the owner ends the server; the next one has the workflow that was running."""
    owner = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", OWNER, str(tmp_path)), stdout=asyncio.subprocess.PIPE
    )
    assert owner.stdout
    assert await owner.stdout.readline() == b"started\n"
    owner.kill()
    await owner.wait()
    async with dev_server(tmp_path, keep=True, ui=False) as server:
        found = await server.client.get_workflow_handle("kept").describe()
        assert found.status is not None
        assert found.status.name == "RUNNING"


@pytest.mark.slow
async def test_one_database_takes_one_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second server on the same data directory is refused; it would break both."""
    monkeypatch.setattr(module, "_STOP_SECONDS", 0.2)
    async with dev_server(tmp_path, keep=True, ui=False):
        with pytest.raises(ConfigurationError, match=r"temporal\.db.*AGENTMEM_DATA"):
            async with dev_server(tmp_path, keep=True, ui=False):
                pass


async def test_a_server_without_keep_leaves_no_database(tmp_path: Path) -> None:
    """Such servers share a data directory; their workflows are gone with them."""
    async with dev_server(tmp_path, ui=False) as one, dev_server(tmp_path, ui=False) as two:
        assert one.address != two.address
        assert (one.ui, two.ui) == ("", "")
    assert not (tmp_path / "temporal.db").exists()


async def test_search_attributes_are_there_from_the_start(tmp_path: Path) -> None:
    """Dreams can be found by agent, scope and outcome, on a database of an older server too."""
    for _ in range(2):
        async with dev_server(tmp_path, keep=True, ui=False) as server:
            query = " AND ".join(f"{name} = 'x'" for name in SEARCH_ATTRIBUTES)
            assert (await server.client.count_workflows(query)).count == 0


async def test_a_data_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """The message names the setting and the directory."""
    (tmp_path / "file").touch()
    with pytest.raises(ConfigurationError, match="AGENTMEM_DATA"):
        async with dev_server(tmp_path / "file" / "data"):
            pass
