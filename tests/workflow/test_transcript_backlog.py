"""A long conversation goes to the transcript in steps."""

from pathlib import Path

from temporalio.client import Client

from tests.backlog_workflow import Backlog
from tests.stack import stack


async def test_a_large_backlog_goes_to_the_transcript_in_steps(
    client: Client, tmp_path: Path
) -> None:
    """Seven messages of 900 kB are four appends: none reads more than it has the time for."""
    async with stack(client, tmp_path, extra=[Backlog]) as s:
        handle = await client.start_workflow(
            Backlog.run, args=[7, 900_000, s.task_queue], id=s.task_queue, task_queue=s.task_queue
        )
        assert await handle.result() == 7
        provider = await s.configuration.providers.get("in_memory:backlog")
        rows = await provider.unread("own", s.task_queue, 10_000_000)
        history = await handle.fetch_history()
    assert [row.seq for row in rows] == list(range(1, 8))
    started = [e for e in history.events if e.HasField("activity_task_scheduled_event_attributes")]
    assert len(started) == 4
