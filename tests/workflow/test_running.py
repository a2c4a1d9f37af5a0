"""The causes that stop a worker from starting, each with a message that says what to do."""

import sys
from collections.abc import Generator
from pathlib import Path

import pytest
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.testing import WorkflowEnvironment

from agentmem.config import configure
from agentmem.errors import ConfigurationError, ProviderError
from agentmem.settings import Settings
from worker import running

REFUSED = """
import random
from temporalio import workflow

START = random.random()

@workflow.defn
class Rolling:
    @workflow.run
    async def run(self) -> float:
        return START
"""


@pytest.fixture
def imports() -> Generator[None]:
    """Forget what a test imports."""
    known, path = set(sys.modules), list(sys.path)
    yield
    for name in set(sys.modules) - known:
        del sys.modules[name]
    sys.path[:] = path


def settings(folder: Path, **fields: str) -> Settings:
    return Settings.model_validate({"data": folder, **fields})


@pytest.mark.usefixtures("imports")
async def test_a_workflow_that_the_sandbox_refuses_is_named(client: Client, tmp_path: Path) -> None:
    """A workflow whose module does at import what no workflow may stops the worker."""
    app = tmp_path / "refused_app.py"
    app.write_text(REFUSED)
    with pytest.raises(ConfigurationError, match=r"AGENTMEM_APP.*Rolling.*random"):
        async with running(client, configure(settings(tmp_path, app=str(app)))):
            pass


async def test_a_database_that_cannot_be_opened_is_named(client: Client, tmp_path: Path) -> None:
    """The agents' stores are opened at the start; the message shows no password."""
    url = "postgresql://me:secret@127.0.0.1:1/facts"
    with pytest.raises(ProviderError, match="PostgreSQL") as caught:
        async with running(client, configure(settings(tmp_path, database_url=url))):
            pass
    assert "secret" not in caught.value.message


async def test_an_unknown_namespace_is_named(env: WorkflowEnvironment, tmp_path: Path) -> None:
    """A worker in a namespace that the server does not have would get no work."""
    address = env.client.service_client.config.target_host
    other = await Client.connect(
        address, namespace="nowhere", data_converter=pydantic_data_converter
    )
    with pytest.raises(ConfigurationError, match=r"'nowhere' \(TEMPORAL_NAMESPACE\)"):
        async with running(other, configure(settings(tmp_path))):
            pass


@pytest.mark.usefixtures("imports")
def test_the_agents_file_is_checked_against_the_app(tmp_path: Path) -> None:
    """An agent may name the tools and providers that the app brings, and no others."""
    app, agents = tmp_path / "checked_app.py", tmp_path / "agents.toml"
    app.write_text("from agentmem import tool\n@tool\ndef add(a: int) -> int:\n    return a\n")
    agents.write_text("[agents.a]\ntools = ['add']\n")
    found = configure(settings(tmp_path, app=str(app), agents=str(agents)))
    assert [tool.name for tool in found.agents["a"].tools] == ["add"]
    agents.write_text("[agents.a]\ntools = ['subtract']\n")
    with pytest.raises(ConfigurationError, match=r"agents.toml:2.*'subtract'; there are add"):
        configure(settings(tmp_path, app=str(app), agents=str(agents)))
