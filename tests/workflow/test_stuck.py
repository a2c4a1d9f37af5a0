"""The look for stuck workflows, which follows every test here, sees one."""

from datetime import UTC, datetime

import pytest
from temporalio.client import Client
from temporalio.worker import Worker

from tests.small_workflows import Forgetful
from tests.stuck import Started, problems


@pytest.mark.stuck
async def test_a_stuck_workflow_is_seen(client: Client, started: Started, task_queue: str) -> None:
    """A workflow with a bug stays open with failing tasks, and is named with what failed."""
    since = datetime.now(UTC)
    async with Worker(client, task_queue=task_queue, workflows=[Forgetful]):
        handle = await client.start_workflow(Forgetful.run, id=task_queue, task_queue=task_queue)
        while not (found := await problems(client, started.ids, since)):
            pass
    assert started.ids == [(task_queue, handle.first_execution_run_id)]
    assert any(line.startswith(task_queue) and "'the bug'" in line for line in found)
    await handle.terminate()
