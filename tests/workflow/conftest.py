"""The model library and the look for stuck workflows, which tests on the real server share."""

import importlib
import os
import warnings
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest
from temporalio.client import Client
from temporalio.testing import WorkflowEnvironment

from tests.stuck import Started, problems


@pytest.fixture(autouse=True, scope="session")
def model_library(clean_environment: None) -> None:
    """Import litellm before the clock of a test runs: it takes seconds, on a busy machine many."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        importlib.import_module("litellm")


@pytest.fixture
def started() -> Started:
    """Return the record of what the test's client starts."""
    return Started()


@pytest.fixture
def client(env: WorkflowEnvironment, started: Started) -> Client:
    """A client of the test's server that takes note of what it starts."""
    config = env.client.config()
    config["interceptors"] = [*config["interceptors"], started]
    return Client(**config)


@pytest.fixture(autouse=True)
async def no_stuck_workflow(
    request: pytest.FixtureRequest, client: Client, started: Started
) -> AsyncIterator[None]:
    """Fail a test that leaves a workflow with failing workflow tasks.

    A test whose subject is such a failure says so by the marker `stuck`.
    """
    since = datetime.now(UTC)
    yield
    if request.node.get_closest_marker("stuck") is None:
        assert await problems(client, started.ids, since) == []
