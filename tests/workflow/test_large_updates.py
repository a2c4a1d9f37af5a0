"""Updates that are too large to be answered: refused at once, and the session hears nothing."""

import asyncio
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import pytest
from temporalio.api.common.v1 import Header, Payload, Payloads, WorkflowExecution
from temporalio.api.enums.v1 import UpdateWorkflowExecutionLifecycleStage
from temporalio.api.update.v1 import Input, Meta, Request, WaitPolicy
from temporalio.api.workflowservice.v1 import UpdateWorkflowExecutionRequest
from temporalio.client import Client, WorkflowHandle, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError

from agentmem.client import ask
from agentmem.errors import InvalidInput
from agentmem.testing import reply
from tests.small_workflows import Patient
from tests.stack import PLAIN, Stack, stack, task_failures

SECONDS = 15
"""On a quiet machine 0.2 s; without the limit 20 to 45 s, and a failed workflow task."""

MIB = 1024 * 1024


async def refusal(update: Awaitable[Any]) -> str:
    """Return the type of an update's refusal, which must come soon."""
    async with asyncio.timeout(SECONDS):
        with pytest.raises(WorkflowUpdateFailedError) as caught:
            await update
    assert isinstance(caught.value.cause, ApplicationError)
    return caught.value.cause.type or ""


async def refusals(handle: WorkflowHandle[Any, Any], updates: list[str], size: int) -> set[str]:
    """Send updates one after another, and return the types of their refusals."""
    return {await refusal(handle.execute_update(name, "x" * size)) for name in updates}


async def session_in_a_turn(s: Stack) -> tuple[WorkflowHandle[Any, Any], asyncio.Task[Any]]:
    """Start a session, and a turn whose model call takes a while."""
    handle = await s.start(agent="plain", session=True)
    turn = asyncio.create_task(handle.execute_update("send", "hi"))
    await s.model.received(1)
    return handle, turn


@pytest.mark.parametrize("size", [2 * MIB - 50_000, 3_000_000, 4_100_000])
async def test_a_large_update_is_refused_at_once_beside_a_running_turn(
    client: Client, tmp_path: Path, size: int
) -> None:
    """Whatever the update is, known or not: the running turn is answered, no task has failed."""
    script = [reply("slow", delay=3), reply("next")]
    async with stack(client, tmp_path, script, agents=PLAIN) as s:
        handle, turn = await session_in_a_turn(s)
        names = ["send", "ask", "approve", "cancel_turn", "end", "no_such_update"]
        assert await refusals(handle, names, size) == {"UnprocessedUpdate"}
        assert await turn == "slow"
        assert await handle.execute_update("send", "and now?") == "next"
        assert await task_failures(handle) == []


@pytest.mark.parametrize("part", ["a header", "the name"])
async def test_a_small_message_in_a_large_update_is_refused_at_once(
    client: Client, tmp_path: Path, part: str
) -> None:
    """An answer carries the whole update: its headers and its name count like its arguments."""
    large = "x" * 2_500_000
    fields = {"large": Payload(data=large.encode())} if part == "a header" else {}
    name = large if part == "the name" else "send"
    script = [reply("slow", delay=3), reply("next")]
    async with stack(client, tmp_path, script, agents=PLAIN) as s:
        handle, turn = await session_in_a_turn(s)
        request = UpdateWorkflowExecutionRequest(
            namespace=client.namespace,
            workflow_execution=WorkflowExecution(workflow_id=handle.id),
            wait_policy=WaitPolicy(
                lifecycle_stage=(
                    UpdateWorkflowExecutionLifecycleStage.UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_COMPLETED
                )
            ),
            request=Request(
                meta=Meta(update_id="large"),
                input=Input(
                    header=Header(fields=fields),
                    name=name,
                    args=Payloads(payloads=[Payload(data=b'"hi"')]),
                ),
            ),
        )
        async with asyncio.timeout(SECONDS):
            answer = await client.workflow_service.update_workflow_execution(request)
        assert answer.outcome.failure.application_failure_info.type == "UnprocessedUpdate"
        assert await turn == "slow"
        assert await handle.execute_update("send", "and now?") == "next"
        assert await task_failures(handle) == []


async def test_large_updates_that_come_together_do_not_stop_a_session(
    client: Client, tmp_path: Path
) -> None:
    """Each could be answered, all of them together could not: they are refused, one by one."""
    script = [reply("slow", delay=3), reply("next")]
    async with stack(client, tmp_path, script, agents=PLAIN) as s:
        handle, turn = await session_in_a_turn(s)
        kinds = await asyncio.gather(
            *(refusal(handle.execute_update("send", "x" * 1_800_000)) for _ in range(4))
        )
        assert set(kinds) <= {"UnprocessedUpdate", "InvalidInput"}
        assert await turn == "slow"
        assert await handle.execute_update("send", "and now?") == "next"
        assert await task_failures(handle) == []


async def test_workflows_of_the_app_are_spared_too(client: Client, tmp_path: Path) -> None:
    """The limit holds for every workflow that the worker runs, in the sandbox too."""
    async with stack(client, tmp_path, extra=[Patient]) as s:
        handle = await client.start_workflow(
            Patient.run, id=f"own-{s.task_queue}", task_queue=s.task_queue
        )
        assert await refusals(handle, ["say"], 3_000_000) == {"UnprocessedUpdate"}
        assert await handle.execute_update("say", "x" * 1000) == 1000
        assert await task_failures(handle) == []


async def test_our_client_sends_no_message_over_the_limit(client: Client, tmp_path: Path) -> None:
    """`ask` says what is wrong, and by how much, before anything is sent."""
    async with stack(client, tmp_path, agents=PLAIN) as s:
        handle = await s.start(agent="plain", session=True)
        with pytest.raises(InvalidInput, match="takes 3000000 bytes encoded, the limit is 1048576"):
            await ask(handle, "x" * 3_000_000)
