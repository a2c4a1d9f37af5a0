"""Things that must not be seen: tracebacks nobody can act on, and workflow tasks that failed."""

import asyncio
import gc
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import (
    Client,
    WorkflowExecutionStatus,
    WorkflowHandle,
    WorkflowUpdateFailedError,
)
from temporalio.service import RPCError

from agentmem.contracts import ScopeRef
from agentmem.dreaming.hook import dream_id
from agentmem.testing import fail, reply
from tests.dreams import SYSTEM
from tests.runs import histories
from tests.stack import last_user_text, stack


async def test_a_dream_that_fails_while_its_parent_lives_leaves_no_traceback(
    client: Client, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The failed dream is red in the UI; the session that started it does not look at it."""

    def script(request: Any) -> Any:
        return fail(400, "no") if request.messages[0]["content"] == SYSTEM else reply("ok")

    agents = '[agents.assistant]\nlong_term_memory.provider = "sqlite:memory.db"\n'
    agents += 'dream.on = ["complete"]\n'
    async with stack(client, tmp_path, script, agents=agents) as s:
        session = await s.start(agent="assistant", scope=s.task_queue, session=True)
        await session.execute_update("send", "My cat is named Momo.")
        store = ScopeRef(provider="sqlite:memory.db", agent="assistant", scope=s.task_queue)
        handle = client.get_workflow_handle(dream_id(store))
        async with asyncio.timeout(30):
            while not await failed_children(session):  # noqa: ASYNC110 - the server tells nobody
                await asyncio.sleep(0.1)
        assert (await handle.describe()).status is WorkflowExecutionStatus.FAILED
        await session.execute_update("send", "And I like tea.")
        gc.collect()  # the child's task is part of a cycle, and would be found at any time
        await session.execute_update("end")
        await session.result()
    assert "never retrieved" not in caplog.text


async def failed_children(session: WorkflowHandle[Any, Any]) -> int:
    """Count the children whose failure a session's history holds."""
    return sum(
        [
            event.event_type == EventType.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_FAILED
            async for event in session.fetch_history_events()
        ]
    )


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("sessions", [1, 20])
async def test_200_concurrent_plain_sends_leave_no_failed_workflow_task(
    client: Client, tmp_path: Path, sessions: int
) -> None:
    """Each is answered, or refused as one too many; no run has a failed workflow task."""

    def echo(request: Any) -> Any:
        return reply(f"re: {last_user_text(request.messages)}")

    agents = "[agents.plain]\nrun_limits.events = 100\n"
    async with stack(client, tmp_path, echo, agents=agents) as s:
        made = [await s.start(agent="plain", session=True) for _ in range(sessions)]

        async def send(number: int) -> str:
            try:
                session = made[number % sessions]
                answer = await session.execute_update("send", f"say {number}")
            except WorkflowUpdateFailedError as error:
                return str(getattr(error.cause, "type", error.cause))
            except RPCError as error:
                return error.status.name
            assert answer == f"re: say {number}"
            return "answered"

        outcomes = Counter(await asyncio.gather(*(send(number) for number in range(200))))
        assert set(outcomes) <= {
            "answered",
            "SessionBusy",
            *("RESOURCE_EXHAUSTED", "UNAVAILABLE"),  # by the server, after ten tries
        }
        assert outcomes["answered"] >= min(4 * sessions, 200)
        for session in made:
            await session.execute_update("end")
            for history in await histories(client, session):
                assert [
                    event.workflow_task_failed_event_attributes
                    for event in history.events
                    if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED
                ] == []
