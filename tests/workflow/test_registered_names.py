"""The updates, signals and queries that a running session takes, as the server is told."""

from pathlib import Path

from temporalio.api.sdk.v1 import WorkflowMetadata
from temporalio.client import Client

from tests import names
from tests.stack import stack, status_where


async def test_a_session_takes_what_is_frozen(client: Client, tmp_path: Path) -> None:
    """Handlers of the class and those registered at work are together the frozen ones."""
    async with stack(client, tmp_path) as s:
        session = await s.start(agent="plain", session=True)
        await status_where(session, lambda status: status["model"])
        metadata = await session.query("__temporal_workflow_metadata", result_type=WorkflowMetadata)
        await session.signal("end")
        await session.result()
    found = metadata.definition
    assert found.type == "agent"
    assert {update.name for update in found.update_definitions} == names.AGENT_UPDATES
    assert {signal.name for signal in found.signal_definitions} == names.AGENT_SIGNALS
    queries = {query.name for query in found.query_definitions}
    assert {name for name in queries if not name.startswith("__")} == names.AGENT_QUERIES
