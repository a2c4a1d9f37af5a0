"""Times are the workflow's, in UTC, wherever a worker stands."""

import time
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from temporalio.client import Client

from agentmem.contracts import MESSAGES_QUERY, Page
from agentmem.messages import Message
from agentmem.testing import reply
from tests.stack import stack


@pytest.fixture
async def live_in(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Callable[[str], None]]:
    """Move this process, and its worker with it, to another time zone."""

    def move(zone: str) -> None:
        monkeypatch.setenv("TZ", zone)
        time.tzset()

    yield move
    monkeypatch.undo()
    time.tzset()


async def test_times_are_the_same_after_replay_in_another_zone(
    client: Client, tmp_path: Path, live_in: Callable[[str], None]
) -> None:
    """Aware datetimes in UTC from the workflow's clock; a worker elsewhere rebuilds them."""
    seen: list[list[Message]] = []
    queue = ""
    began = datetime.now(UTC)
    workflow_id = ""
    for zone in ("America/St_Johns", "Asia/Kolkata"):
        live_in(zone)
        async with stack(client, tmp_path, [reply("ok")], task_queue=queue) as s:
            queue = s.task_queue
            if not workflow_id:
                handle = await s.start(agent="plain", session=True)
                await handle.execute_update("send", "hi")
                workflow_id = handle.id
            handle = client.get_workflow_handle(workflow_id)
            page: Page = await handle.query(
                MESSAGES_QUERY, args=["wm0", ["m0-1"]], result_type=Page
            )
            seen.append(page.messages)
            if len(seen) == 2:
                await handle.execute_update("end")
    assert seen[0] == seen[1]
    for message in seen[0]:
        assert type(message.at) is datetime
        assert message.at.utcoffset() == timedelta(0)
        assert timedelta(seconds=-5) < message.at - began < timedelta(minutes=2)
