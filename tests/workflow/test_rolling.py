"""Deployments under way: workers of two versions on one queue, and no session fails."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import (
    Client,
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowHandle,
)
from temporalio.service import RPCError

from agentmem.client import ask, connect
from agentmem.contracts import Definition
from agentmem.session.continue_as_new import SessionState
from agentmem.testing import Reply, Request, call, reply
from agentmem.wire import pack
from tests.e2e.worker_process import worker_process
from tests.small_workflows import Handed, Starts, Unknowing
from tests.stack import stack, task_failures
from tests.tools import ping

LAST_FORMAT = Path(__file__).parents[1] / "last_format_worker.py"
SHORT = """
[agents.short]
system_prompt = "Be brief."
run_limits.events = 20
"""


async def unreadable(client: Client, kind: str, task_queue: str, *args: Any) -> str:
    """Start a workflow that hands these arguments on; return its next run's task failure."""
    handle: WorkflowHandle[Any, Any] = await client.start_workflow(
        Handed.run, [kind, *args], id=task_queue, task_queue=task_queue
    )
    last = client.get_workflow_handle(handle.id)  # of whichever run is the last
    async with asyncio.timeout(50):
        while True:
            run = await last.describe()
            if run.workflow_type == kind and (failures := await task_failures(last)):
                assert run.status == WorkflowExecutionStatus.RUNNING
                await last.terminate()
                return failures[0]
            await asyncio.sleep(0.2)


@pytest.mark.stuck
@pytest.mark.parametrize("what", ["a field", "a format", "an input", "a dream"])
async def test_what_a_newer_run_hands_on_fails_the_task_and_not_the_run(
    client: Client, tmp_path: Path, what: str
) -> None:
    """A newer worker can still take it; the failure says so."""
    state = SessionState(definition=Definition(name="plain", model="openai/test-model"))
    newer = pack(_Newer(definition=state.definition, from_the_future=1))
    request: dict[str, Any] = {"agent": "plain", "session": True}
    arguments: dict[str, list[Any]] = {
        "a field": ["agent", request, newer.hex()],
        "a format": ["agent", request, b"zstd of the future".hex()],
        "an input": ["agent", {**request, "from_the_future": 1}],
        "a dream": ["agent_dream", {"agent": "a", "scope": "b", "from_the_future": 1}],
    }
    async with stack(client, tmp_path, extra=[Handed]) as s:
        kind, *handed = arguments[what]
        failure = await unreadable(client, kind, s.task_queue, *handed)
    assert "A newer version of agentmem wrote this" in failure


@pytest.mark.stuck
async def test_a_dream_that_newer_code_started_waits_for_a_newer_worker(
    client: Client, tmp_path: Path
) -> None:
    """Under a scope's id, as a child: our own code started it. Under another id it is a mistake."""
    request = {"agent": "a", "scope": "b", "from_the_future": 1}
    async with stack(client, tmp_path, extra=[Starts]) as s:
        with pytest.raises(WorkflowFailureError) as caught:
            await s.run(Starts.run, f"own-dream-{s.task_queue}", request)
        assert "unknown field 'from_the_future'" in str(caught.value.cause.__cause__)
        name = f"dream/{s.task_queue}"
        parent = asyncio.create_task(s.run(Starts.run, name, request))
        found = client.get_workflow_handle(name)
        async with asyncio.timeout(50):
            while not (failures := await _failures_if_there(found)):  # noqa: ASYNC110 - of the server
                await asyncio.sleep(0.2)
        assert "A newer version of agentmem wrote this" in failures[0]
        await found.terminate()
        with pytest.raises(WorkflowFailureError):
            await parent


async def _failures_if_there(handle: WorkflowHandle[Any, Any]) -> list[str]:
    try:
        return await task_failures(handle)
    except RPCError:
        return []


class _Newer(SessionState):
    from_the_future: int = 0


async def test_a_mistake_of_the_caller_fails_at_once(client: Client, tmp_path: Path) -> None:
    """The same inputs at a start by hand are mistakes, and their field is named."""
    async with stack(client, tmp_path) as s:
        for kind, request in [
            ("agent", {"agent": "plain", "message": "hi", "from_the_future": 1}),
            ("agent_dream", {"agent": "a", "scope": "b", "from_the_future": 1}),
        ]:
            with pytest.raises(WorkflowFailureError) as caught:
                await client.execute_workflow(
                    kind, request, id=f"dream/{kind}-{s.task_queue}", task_queue=s.task_queue
                )
            assert "unknown field 'from_the_future'" in str(caught.value.cause)


@pytest.mark.slow
async def test_sessions_live_through_a_deployment(client: Client, tmp_path: Path) -> None:
    """Half of the workers read the last format only: every turn is answered, no session fails."""

    def count(request: Request) -> Reply:
        return reply(f"{sum(m['role'] == 'user' for m in request.messages)}")

    async with stack(client, tmp_path, count, agents=SHORT) as s:
        settings = {
            "TEMPORAL_ADDRESS": client.service_client.config.target_host,
            "AGENTMEM_TASK_QUEUE": s.task_queue,
            "AGENTMEM_AGENTS": str(tmp_path / "agents.toml"),
            "AGENTMEM_DATA": str(tmp_path),
            "AGENTMEM_MODEL": "openai/test-model",
            **s.model.env(),
        }
        async with worker_process(tmp_path, script=LAST_FORMAT, settings=settings) as old:
            await old.says("The worker is running")
            sessions = [await s.start(agent="short", session=True) for _ in range(4)]
            for turn in range(1, 9):
                answers = await asyncio.gather(*(ask(one, f"turn {turn}") for one in sessions))
                assert [answer.text for answer in answers] == [str(turn)] * len(sessions)
            workers: set[str] = set()
            for one in sessions:
                last = client.get_workflow_handle(one.id)
                assert (await last.describe()).run_id != one.first_execution_run_id
                await last.execute_update("end")
                workers |= await _workers(last)
            assert len(workers) == 2, "both versions took part"


async def test_a_session_whose_agent_lost_a_tool_keeps_answering(
    client: Client, tmp_path: Path
) -> None:
    """The model is told what is gone; a call of it is not run, and the next run does without."""
    agents = SHORT + 'tools = ["ping"]\n'
    said: list[Request] = []

    def answer(request: Request) -> Reply:
        said.append(request)
        if len(said) == 1:
            return reply(calls=[call("ping")])
        return reply("fine")

    async with stack(client, tmp_path, [reply("hello")], agents=agents, extra=[ping]) as s:
        session = await s.start(agent="short", session=True)
        assert (await ask(session, "hi")).text == "hello"
        queue = s.task_queue
    async with stack(client, tmp_path, answer, agents=SHORT, task_queue=queue):
        for turn in range(4):
            assert (await ask(session, f"turn {turn}")).text == "fine"
        await client.get_workflow_handle(session.id).execute_update("end")
    first, second, *_, last = said
    assert "not available now, do not call them: ping" in str(first.messages[0]["content"])
    assert second.messages[-1]["content"] == "Not run: the tool ping is not available any more."
    assert "not available" not in str(last.messages[0]["content"])


async def test_a_new_tool_is_there_from_the_next_run_on(client: Client, tmp_path: Path) -> None:
    """A session takes what its agent is by now when it changes its run."""
    said: list[Request] = []

    def answer(request: Request) -> Reply:
        said.append(request)
        return reply("fine")

    async with stack(client, tmp_path, [reply("hello")], agents=SHORT) as s:
        session = await s.start(agent="short", session=True)
        await ask(session, "hi")
        queue = s.task_queue
    more = SHORT + 'tools = ["ping"]\n'
    async with stack(client, tmp_path, answer, agents=more, task_queue=queue, extra=[ping]):
        for turn in range(4):
            await ask(session, f"turn {turn}")
        await client.get_workflow_handle(session.id).execute_update("end")
    offered = [[one["function"]["name"] for one in request.tools or []] for request in said]
    assert offered[0] == []
    assert offered[-1] == ["ping"]


async def test_a_start_waits_for_a_worker_that_knows_the_agent(
    client: Client, tmp_path: Path
) -> None:
    """The pending activity says at once what is known; the session starts when a worker knows."""
    (tmp_path / "new").mkdir()
    async with stack(client, tmp_path, resolve_seconds=60) as old:
        handle = await old.start(agent="short", message="hi")
        async with asyncio.timeout(30):
            while not (seen := await _last_failure(handle)):  # noqa: ASYNC110 - of the server
                await asyncio.sleep(0.1)
        assert "no agent is named 'short'; this worker has assistant, plain" in seen
        assert "Other workers are asked for" in seen
        # One client takes one worker for a queue.
        other = await connect(client.service_client.config.target_host)
        async with stack(
            other, tmp_path / "new", [reply("hello")], agents=SHORT, task_queue=old.task_queue
        ):
            assert await handle.result() == "hello"


@pytest.mark.parametrize("seconds", [0, 2])
async def test_a_start_that_no_worker_knows_fails_in_the_end(
    client: Client, tmp_path: Path, seconds: float
) -> None:
    """After its time it fails with what the workers have; for an own workflow's tools too."""
    async with stack(client, tmp_path, resolve_seconds=seconds, extra=[Unknowing]) as s:
        for work in (
            (await s.start(agent="nobody", message="hi")).result(),
            s.run(Unknowing.run),
        ):
            with pytest.raises(WorkflowFailureError) as caught:
                await work
            assert "this worker has" in str(caught.value.cause)


async def _workers(handle: WorkflowHandle[Any, Any]) -> set[str]:
    """Return the identities of the workers that took the tasks of a run."""
    events = (await handle.fetch_history()).events
    done = [event.workflow_task_completed_event_attributes.identity for event in events]
    return {identity for identity in done if identity}


async def _last_failure(handle: WorkflowHandle[Any, Any]) -> str:
    described = await handle.describe()
    return "".join(
        pending.last_failure.message for pending in described.raw_description.pending_activities
    )
