"""Dreams started by a workflow's hook: abandoned, one a scope, never the agent's failure."""

import asyncio
import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import DeleteWorkflowExecutionRequest
from temporalio.client import (
    Client,
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowHandle,
)
from temporalio.exceptions import TimeoutError
from temporalio.service import RPCError

from agentmem.contracts import DreamInput, DreamLimits, DreamReport, ScopeRef
from agentmem.dreaming.hook import ID_BYTES, dream, dream_id
from agentmem.facts import KEY_BYTES
from agentmem.policies import dream_run_timeout
from agentmem.testing import Reply, Request
from tests.dreams import Answer, Script, blocks_of, changes, findings, served
from tests.stack import Stack, stack, task_failures
from tests.talk import Chat, Talk


def store(scope: str, provider: str = "sqlite:memory.db") -> ScopeRef:
    """Name a scope of these tests."""
    return ScopeRef(provider=provider, agent="assistant", scope=scope)


async def talk(s: Stack, scope: str, *said: str, **options: Any) -> str:
    """Run the workflow; returns its id."""
    name = f"talk-{uuid.uuid4()}"
    result = await s.client.execute_workflow(
        Talk.run, args=[scope, list(said), options], id=name, task_queue=s.task_queue
    )
    assert result == "done"
    return name


async def dreamed(s: Stack, name: str) -> DreamReport:
    """Return a dream's report."""
    result: Any = await s.client.get_workflow_handle(name).result()
    return DreamReport.model_validate(result)


async def facts(s: Stack, scope: str) -> Any:
    """Return a scope's facts."""
    provider = await s.configuration.providers.get("sqlite:memory.db")
    return await provider.recall("assistant", scope)


def learned(*names: str) -> Script:
    """Script a dream that learns each cat's name that it reads about."""

    async def find(request: Any) -> Answer:
        lines = blocks_of(request)["TRANSCRIPT"]
        told = {
            name: [line["id"] for line in lines if f"named {name}" in line.get("text", "")]
            for name in names
        }
        return findings(
            *(
                {"statement": f"Cat is named {name}", "evidence": cited[:1]}
                for name, cited in told.items()
                if cited
            )
        )

    async def add(request: Any) -> Answer:
        found = {line["statement"]: line["f"] for line in blocks_of(request)["FINDINGS"]}
        told = [name for name in names if f"Cat is named {name}" in found]
        return changes(
            *(
                {"op": "add", "key": f"cat_{name}", "value": f"Cat is named {name}"}
                | {"findings": [found[f"Cat is named {name}"]]}
                for name in told
            )
        )

    return Script(gather_signal=[find] * 9, consolidate=[add] * 9)


@asynccontextmanager
async def outlived(client: Client, data: Path) -> AsyncGenerator[tuple[str, str]]:
    """A parent that has completed and its dream, which runs until the context ends, then well."""
    gate = asyncio.Event()
    serve = served(learned("Momo"))

    async def slow(request: Request) -> Reply:
        await gate.wait()
        return await serve(request)

    async with stack(client, data, slow, extra=[Talk]) as s:
        scope = f"user-{uuid.uuid4()}"
        parent = await talk(s, scope, "My cat is named Momo.")
        name = dream_id(store(scope))
        described = await client.get_workflow_handle(name).describe()
        assert described.status is WorkflowExecutionStatus.RUNNING
        yield parent, name
        gate.set()
        assert (await dreamed(s, name)).status == "completed"
        assert await facts(s, scope) == {"cat_Momo": "Cat is named Momo"}


async def test_the_dream_goes_on_when_its_parent_completes(client: Client, tmp_path: Path) -> None:
    """A parent completes while its dream runs to its end, named for people, in the background."""
    async with outlived(client, tmp_path) as (parent, name):
        described = await client.get_workflow_handle(parent).describe()
        assert described.status is WorkflowExecutionStatus.COMPLETED
        described = await client.get_workflow_handle(name).describe()
        scope = name.rpartition("/")[2]
        assert await described.static_summary() == f"Dream of assistant, {scope}"
        assert described.raw_description.workflow_execution_info.priority.priority_key == 5


@pytest.mark.slow
@pytest.mark.timeout(180)
async def test_the_dream_goes_on_when_its_parent_is_deleted(client: Client, tmp_path: Path) -> None:
    """A parent may even be deleted meanwhile; the server takes its time for that."""
    async with outlived(client, tmp_path) as (parent, _):
        await client.workflow_service.delete_workflow_execution(
            DeleteWorkflowExecutionRequest(
                namespace=client.namespace,
                workflow_execution=WorkflowExecution(workflow_id=parent),
            )
        )
        async with asyncio.timeout(120):
            while await exists(client, parent):  # noqa: ASYNC110 - the server tells nobody
                await asyncio.sleep(0.2)


async def test_two_chats_of_one_scope_that_end_at_once_share_a_dream(
    client: Client, tmp_path: Path
) -> None:
    """One dream runs, reads both conversations, and doubles nothing."""
    script = learned("Momo", "Rex")
    async with stack(client, tmp_path, served(script), extra=[Talk]) as s:
        scope = f"user-{uuid.uuid4()}"
        await asyncio.gather(
            talk(s, scope, "My cat is named Momo."),
            talk(s, scope, "My cat is named Rex.", "And my cat is named Momo."),
        )
        report = await dreamed(s, dream_id(store(scope)))
        assert report.status == "completed"
        assert await facts(s, scope) == {
            "cat_Momo": "Cat is named Momo",
            "cat_Rex": "Cat is named Rex",
        }
        read = "".join(str(request["messages"][2]) for request in script.of("gather_signal"))
        assert read.count("My cat is named Momo.") == read.count("My cat is named Rex.") == 1


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_no_message_is_left_behind_by_the_races_of_more(
    client: Client, tmp_path: Path
) -> None:
    """In 40 of 40 pairs of chats, the second ending anywhere in the first one's dream, all is read.

    The dream may be about to read, about to end, or gone between the start that finds it and the
    signal that tells it: whatever the second chat meets, its messages are consumed.
    """
    async with stack(client, tmp_path, served(Script()), extra=[Talk]) as s:
        left: list[str] = []
        for pair in range(40):
            scope = f"user-{uuid.uuid4()}"

            async def second(scope: str = scope, delay: float = pair * 0.02) -> None:
                await asyncio.sleep(delay)
                await talk(s, scope, "My dog is named Rex.")

            await asyncio.gather(talk(s, scope, "My cat is named Momo."), second())
            await dreamed(s, dream_id(store(scope)))
            provider = await s.configuration.providers.get("sqlite:memory.db")
            left += [row.text for row in await provider.unread("assistant", scope, 1_000)]
        assert left == []


async def test_a_hook_that_fails_is_a_warning(
    client: Client, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """An error in a dream's start is logged, and the agent's answer stands."""
    async with stack(client, tmp_path, served(Script()), extra=[Talk]) as s:
        await talk(s, "user-1", "Hello.", provider="named:nowhere")
        assert "no dream was started" in caplog.text
        assert "'nowhere'" in caplog.text


@pytest.mark.stuck
async def test_a_dream_of_an_unknown_type_waits_and_harms_nobody(
    client: Client, tmp_path: Path
) -> None:
    """A custom dream that no worker knows shows as running; once it is gone, the scope dreams."""
    async with stack(client, tmp_path, served(learned("Momo")), extra=[Talk]) as s:
        scope = f"user-{uuid.uuid4()}"
        await talk(s, scope, "My cat is named Momo.", workflow="my_dream")
        handle = client.get_workflow_handle(dream_id(store(scope)))
        described = await handle.describe()
        assert (described.status, described.workflow_type) == (
            WorkflowExecutionStatus.RUNNING,
            "my_dream",
        )
        timeout = described.raw_description.execution_config.workflow_run_timeout
        assert timeout.ToTimedelta() == dream_run_timeout(DreamLimits())
        await handle.terminate()  # as the timeout would, and what it waited with is read
        await talk(s, scope, "Hello again.")
        assert (await dreamed(s, dream_id(store(scope)))).status == "completed"
        assert await facts(s, scope) == {"cat_Momo": "Cat is named Momo"}


@pytest.mark.stuck
async def test_a_scope_dreams_again_when_an_unknown_dream_has_timed_out(
    client: Client, tmp_path: Path
) -> None:
    """The session that finds it waiting is untouched; after the run timeout all is read."""
    async with stack(client, tmp_path, served(learned("Momo", "Rex")), extra=[Talk]) as s:
        scope = f"user-{uuid.uuid4()}"
        name = dream_id(store(scope))
        waiting = await client.start_workflow(
            "my_dream", id=name, task_queue=s.task_queue, run_timeout=timedelta(seconds=3)
        )
        parent = await talk(s, scope, "My cat is named Momo.", workflow="my_dream")
        assert await task_failures(client.get_workflow_handle(parent)) == []
        with pytest.raises(WorkflowFailureError) as caught:
            await waiting.result()
        assert isinstance(caught.value.cause, TimeoutError)
        await talk(s, scope, "My dog is named Rex.")
        assert (await dreamed(s, name)).status == "completed"
        assert set(await facts(s, scope)) == {"cat_Momo", "cat_Rex"}


async def test_model_limits_and_task_queue_reach_the_dream(client: Client, tmp_path: Path) -> None:
    """The dream's input holds what `dream()` was given; None leaves the worker's choice."""
    async with stack(client, tmp_path, served(Script()), extra=[Talk]) as s:
        scope = f"user-{uuid.uuid4()}"
        other = f"other-{uuid.uuid4()}"
        await talk(s, scope, "Hello.", model="openai/other", task_queue=other)
        handle = client.get_workflow_handle(dream_id(store(scope)))
        started = await started_with(handle)
        assert started.task_queue.name == other
        assert started.input.payloads[0].data == (
            b'{"agent":"assistant","scope":"'
            + scope.encode()
            + b'","provider":"sqlite:memory.db","model":"openai/other"}'
        )
        await handle.terminate()


@pytest.mark.parametrize(
    ("options", "model"),
    [({}, "openai/agents-own"), ({"model": "openai/other"}, "openai/other")],
    ids=["the agent's", "its own"],
)
async def test_an_agents_dream_asks_the_agents_model(
    client: Client, tmp_path: Path, options: dict[str, Any], model: str
) -> None:
    """In a workflow of one's own as in the agents' file, unless `dream()` names a model."""
    async with stack(client, tmp_path, served(learned("Momo")), extra=[Chat]) as s:
        scope = f"user-{uuid.uuid4()}"
        await s.run("Chat", scope, "openai/agents-own", options)
        handle = client.get_workflow_handle(dream_id(store(scope)))
        assert (await dreamed(s, handle.id)).status == "completed"
        started = await started_with(handle)
        assert DreamInput.model_validate_json(started.input.payloads[0].data).model == model


async def started_with(handle: WorkflowHandle[Any, Any]) -> Any:
    """Return the attributes of a workflow's first event."""
    return (await handle.fetch_history()).events[0].workflow_execution_started_event_attributes


async def test_the_default_provider_is_resolved_before_the_dream_is_named(
    client: Client, tmp_path: Path
) -> None:
    """Two names of one store are one scope: the id holds the store that the worker's default is."""
    async with stack(client, tmp_path, served(learned("Momo")), extra=[Talk]) as s:
        scope = f"user-{uuid.uuid4()}"
        await talk(s, scope, "My cat is named Momo.", provider="default")
        report = await dreamed(s, dream_id(store(scope)))
        assert report.status == "completed"


async def test_the_longest_names_do_not_hang_the_parent(client: Client, tmp_path: Path) -> None:
    """A scope of 512 bytes, of any characters, has a dream like any other."""
    async with stack(client, tmp_path, served(learned("Momo")), extra=[Talk]) as s:
        scope = ("ü/" + uuid.uuid4().hex + "%" * KEY_BYTES)[: KEY_BYTES - 1]
        parent = await talk(s, scope, "My cat is named Momo.")
        assert await task_failures(client.get_workflow_handle(parent)) == []
        report = await dreamed(s, dream_id(store(scope)))
        assert report.status == "completed"
        assert await facts(s, scope) == {"cat_Momo": "Cat is named Momo"}


async def test_a_session_dreams_at_its_end(client: Client, tmp_path: Path) -> None:
    """The ready-made agent starts the dream of its scope when its session ends."""
    agents = '[agents.assistant]\nlong_term_memory.provider = "sqlite:memory.db"\n'
    agents += 'dream.on = ["end"]\n'
    async with stack(client, tmp_path, served(learned("Momo")), agents=agents) as s:
        scope = f"user-{uuid.uuid4()}"
        handle = await s.start(agent="assistant", scope=scope, session=True)
        await handle.execute_update("send", "My cat is named Momo.")
        await handle.signal("end")
        await handle.result()
        report = await dreamed(s, dream_id(store(scope)))
        assert report.status == "completed"
        assert await facts(s, scope) == {"cat_Momo": "Cat is named Momo"}


def test_a_dreams_id_names_provider_agent_and_scope() -> None:
    """Each part is quoted, so that no two scopes share an id."""
    assert dream_id(store("a/b")) == "dream/sqlite%3Amemory.db/assistant/a%2Fb"
    assert dream_id(store("a_b")) != dream_id(store("a-b"))


def test_a_long_id_is_cut_with_a_digest_of_the_whole() -> None:
    """Over 200 bytes the first 40 characters and a digest stand for the whole id."""
    short = store("x" * (ID_BYTES - len(dream_id(store("")))))
    assert len(dream_id(short)) == ID_BYTES
    long, other = dream_id(store("ü" * 256)), dream_id(store("ü" * 255 + "u"))
    assert long != other
    assert long[:40] == other[:40] == "dream/sqlite%3Amemory.db/assistant/%C3%B"
    assert len(long) == 40 + 1 + 64


def test_making_a_hook_does_nothing() -> None:
    """`dream()` itself does no I/O: nothing that it is given is touched."""
    nothing: Any = object()
    limits = DreamLimits(keys=5)
    assert callable(dream(working_memory=nothing, long_term_memory=nothing, limits=limits))


async def exists(client: Client, name: str) -> bool:
    """Tell whether the server still has a workflow."""
    try:
        await client.get_workflow_handle(name).describe()
    except RPCError:
        return False
    return True


async def test_a_session_dreams_after_every_second_answer_and_at_its_end(
    client: Client, tmp_path: Path
) -> None:
    """Quiet between: of three answers the second is followed by a dream, the third by the end's."""
    agents = '[agents.assistant]\nlong_term_memory.provider = "sqlite:memory.db"\n'
    agents += 'dream.on = ["complete"]\ndream.every = 2\n'
    script = learned("Momo", "Rex", "Bob")
    async with stack(client, tmp_path, served(script), agents=agents) as s:
        scope = f"user-{uuid.uuid4()}"
        handle = await s.start(agent="assistant", scope=scope, session=True)
        await handle.execute_update("send", "My cat is named Momo.")
        await handle.execute_update("send", "My cat is named Rex.")
        async with asyncio.timeout(20):
            while not await facts(s, scope):  # noqa: ASYNC110 - a store tells of no event
                await asyncio.sleep(0.1)
        assert (await dreamed(s, dream_id(store(scope)))).status == "completed"
        read = [str(request["messages"][2]) for request in script.of("gather_signal")]
        assert [("Momo" in text, "Rex" in text) for text in read] == [(True, True)]
        await handle.execute_update("send", "My cat is named Bob.")
        await handle.execute_update("end")
        await handle.result()
        await dreamed(s, dream_id(store(scope)))
        assert set(await facts(s, scope)) == {"cat_Momo", "cat_Rex", "cat_Bob"}


async def test_a_session_may_only_propose(client: Client, tmp_path: Path) -> None:
    """With `mode = "propose"` the report says what would be done, and the store is unchanged.

    What the agent sets of a phase reaches the dream in the same way.
    """
    agents = '[agents.assistant]\nlong_term_memory.provider = "sqlite:memory.db"\n'
    agents += 'dream.mode = "propose"\ndream.phases.gather_signal.model = "openai/large"\n'
    script = learned("Momo")
    async with stack(client, tmp_path, served(script), agents=agents) as s:
        scope = f"user-{uuid.uuid4()}"
        handle = await s.start(agent="assistant", scope=scope, session=True)
        await handle.execute_update("send", "My cat is named Momo.")
        await handle.execute_update("end")
        await handle.result()
        report = await dreamed(s, dream_id(store(scope)))
        assert (report.status, report.proposed) == ("proposed", ["add cat_Momo"])
        assert [one["model"] for one in script.of("gather_signal")] == ["large"]
        assert [one["model"] for one in script.of("consolidate")] == ["test-model"]
        assert await facts(s, scope) == {}
