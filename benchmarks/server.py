"""The Temporal server of the benchmarks."""

from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.testing import WorkflowEnvironment

from tests.conftest import temporal_binary

_SETTINGS = {
    # How often a second the server reads the queue of a shard's tasks. A development server has one
    # shard and 20 by default, so that all its sessions together get on every 50 ms: a turn right
    # after another waits for that, which hides what it takes. A cluster has hundreds of shards.
    "history.transferProcessorMaxPollRPS": 1_000,
    # Where a session has limits of its own above the server's, as `agents.long`, these must not be
    # the ones that end its run.
    "limit.historyCount.suggestContinueAsNew": 51_200,
    "limit.historySize.suggestContinueAsNew": 50_000_000,
}


async def start_server() -> WorkflowEnvironment:
    """Start one on a free port; it ends when its context is left."""
    return await WorkflowEnvironment.start_local(
        dev_server_existing_path=temporal_binary(),
        dev_server_log_level="error",
        dev_server_extra_args=[
            part
            for name, value in _SETTINGS.items()
            for part in ("--dynamic-config-value", f"{name}={value}")
        ],
        data_converter=pydantic_data_converter,
    )
