"""`temporal workflow reset`: a session whose last turns were taken away goes on without them."""

import asyncio
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType, ResetReapplyExcludeType
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest
from temporalio.client import Client, WorkflowHandle

from agentmem.dreaming.hook import dream_id
from agentmem.records import Range
from agentmem.testing import call, reply
from tests.dreams import served
from tests.keeping_workflows import Chatting
from tests.stack import stack
from tests.workflow.test_dream_hook import dreamed, learned
from tests.workflow.test_dream_hook import store as place


async def reset_to_turn(client: Client, handle: WorkflowHandle[Any, Any], turn: int) -> str:
    """Take away all turns after one, as `temporal workflow reset --reapply-exclude All` does."""
    history = await handle.fetch_history()
    updates = [
        place
        for place, event in enumerate(history.events)
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_COMPLETED
    ]
    after = history.events[updates[turn - 1] :]
    tasks = (e.event_id for e in after if e.HasField("workflow_task_completed_event_attributes"))
    response = await client.workflow_service.reset_workflow_execution(
        ResetWorkflowExecutionRequest(
            namespace=client.namespace,
            workflow_execution=WorkflowExecution(
                workflow_id=handle.id, run_id=handle.first_execution_run_id or ""
            ),
            reason="take it back",
            workflow_task_finish_event_id=next(tasks),  # what it decided is gone
            request_id="reset",
            reset_reapply_exclude_types=[
                ResetReapplyExcludeType.RESET_REAPPLY_EXCLUDE_TYPE_SIGNAL,
                ResetReapplyExcludeType.RESET_REAPPLY_EXCLUDE_TYPE_UPDATE,
            ],
        )
    )
    return response.run_id


@pytest.mark.stuck  # Temporal records a reset as a workflow task that failed
async def test_the_words_after_the_reset_point_leave_the_transcript(
    client: Client, tmp_path: Path
) -> None:
    """The transcript has the new words under the old ids; what was learned is listed, not undone.

    The answer to turn 2 stored a fact that turn 3 confirmed; the reset goes back to turn 1.
    """
    script = [
        reply("Hello Ada."),
        reply(calls=[call("store_memory", key="city", value="Rome")]),
        reply("Rome it is."),
        reply("Lovely."),
        reply("Bergen it is."),
    ]
    async with stack(client, tmp_path, script, extra=[Chatting]) as s:
        handle = await client.start_workflow(
            Chatting.run, s.task_queue, id=s.task_queue, task_queue=s.task_queue
        )
        first = handle.first_execution_run_id or ""
        said = ["I am Ada.", "I live in Rome.", "Nice there."]
        assert [await handle.execute_update(Chatting.say, text) for text in said] == [2, 6, 8]
        run = await reset_to_turn(client, handle, 1)
        again = client.get_workflow_handle_for(Chatting.run, handle.id, run_id=run)
        assert await again.execute_update(Chatting.say, "I live in Bergen.") == 4
        provider = await s.configuration.providers.get("sqlite:facts.db")

        async def texts(session: str) -> list[str]:
            rows = Range(session=session, memory="wm0", first=1, last=99)
            found = await provider.transcript("friend", s.task_queue, [rows])
            return [row.text for row in found if row.role in ("user", "assistant")]

        new = ["I am Ada.", "Hello Ada.", "I live in Bergen.", "Bergen it is."]
        assert await texts(first) == new
        unread = await provider.unread("friend", s.task_queue, 100_000)
        assert [row.text for row in unread] == new
        assert "I live in Rome." in await texts(f"{first}~1")
        assert await provider.recall("friend", s.task_queue) == {"city": "Rome"}
        (version,) = await provider.history("friend", s.task_queue, "city")
        assert {item.session for item in version.evidence} == {f"{first}~1"}
        await again.signal(Chatting.end)
        await again.result()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "agentmem", "memory", "resets", "-a", "friend"),
        *("-s", s.task_queue, "-d", f"sqlite:///{tmp_path / 'facts.db'}", "--json"),
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await process.communicate()
    assert process.returncode == 0
    assert b'"key":"city"' in out.replace(b": ", b":")


@pytest.mark.timeout(180)
@pytest.mark.stuck  # Temporal records a reset as a workflow task that failed
@pytest.mark.parametrize(
    ("on", "said", "facts"),
    [
        ("complete", ["My cat is named Rex."], {"cat_Momo", "cat_Rex"}),
        ("end", ["My cat is named Rex."], {"cat_Rex"}),
        ("end", [], set[str]()),
    ],
)
async def test_a_session_goes_on_without_the_words_that_a_reset_took(
    client: Client, tmp_path: Path, on: str, said: list[str], facts: set[str]
) -> None:
    """Its transcript has what it says now, and no dream fetches the rest from the run before.

    A dream at its end finds the run that was given up closed like one that somebody terminated.
    """
    agents = (
        f'[agents.assistant]\nlong_term_memory.provider = "sqlite:memory.db"\ndream.on = ["{on}"]\n'
    )
    async with stack(client, tmp_path, served(learned("Momo", "Rex")), agents=agents) as s:
        scope = f"user-{uuid.uuid4()}"
        handle = await s.start(agent="assistant", scope=scope, session=True)
        first = handle.first_execution_run_id or ""
        provider = await s.configuration.providers.get("sqlite:memory.db")
        for text in ("I am Ada.", "My cat is named Momo.", "She is nice."):
            await handle.execute_update("send", text)
        if on == "complete":  # a dream that reads what the reset takes could not commit it
            async with asyncio.timeout(60):
                while await provider.unread("assistant", scope, 1_000_000):  # noqa: ASYNC110
                    await asyncio.sleep(0.1)
            await dreamed(s, dream_id(place(scope)))
        again = client.get_workflow_handle(handle.id, run_id=await reset_to_turn(client, handle, 1))
        for text in said:
            await again.execute_update("send", text)
        await again.execute_update("end")
        assert await again.result() == {"turns": 1 + len(said)}
        await dreamed(s, dream_id(place(scope)))
        rows = Range(session=first, memory="wm0", first=1, last=99)
        found = await provider.transcript("assistant", scope, [rows])
        assert [row.text for row in found if row.role == "user"] == ["I am Ada.", *said]
        assert set(await provider.recall("assistant", scope)) == facts
