"""Worker Versioning: the documented steps, with two versions of a worker on one queue."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client, WorkflowHandle

from agentmem.client import ask, connect
from agentmem.settings import Settings
from tests.conftest import temporal_binary
from tests.stack import Stack, stack

AGENTS = """
[agents.short]
system_prompt = "Be brief."
run_limits.events = 30
"""


@asynccontextmanager
async def version(
    client: Client, folder: Path, build: str, task_queue: str, versioning: str
) -> AsyncGenerator[Stack, None]:
    """Run a worker of a build of the deployment, which has the queue's name; "" has no version."""
    own_folder = folder / (build or "unversioned")
    own_folder.mkdir()
    own = await connect(client.service_client.config.target_host)
    async with stack(
        own,
        own_folder,
        agents=AGENTS,
        model_name="agentmem/offline",  # an endpoint would end with the worker that set it up
        task_queue=task_queue,
        deployment=task_queue if build else "",
        build_id=build,
        versioning=versioning,
    ) as s:
        yield s


async def make_current(client: Client, deployment: str, build: str) -> None:
    """Run the documented command; a version exists once its worker has polled."""
    async with asyncio.timeout(30):
        while True:
            process = await asyncio.create_subprocess_exec(
                temporal_binary(),
                *("worker", "deployment", "set-current-version", "--yes"),
                *("--address", client.service_client.config.target_host),
                *("--deployment-name", deployment, "--build-id", build),
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
            )
            if await process.wait() == 0:
                return
            await asyncio.sleep(0.2)


async def build_of(client: Client, session: WorkflowHandle[Any, Any]) -> str:
    """Return the build that took the session's last task."""
    described = await client.get_workflow_handle(session.id).describe()
    info = described.raw_description.workflow_execution_info.versioning_info
    return info.deployment_version.build_id


@pytest.mark.slow
@pytest.mark.parametrize("before", ["one", ""])
async def test_sessions_go_on_with_a_new_version(
    client: Client, tmp_path: Path, task_queue: str, before: str
) -> None:
    """By default the next task is the current version's; workers without a version go before it."""
    async with AsyncExitStack() as new, AsyncExitStack() as old:
        s = await old.enter_async_context(
            version(client, tmp_path, before, task_queue, "auto_upgrade")
        )
        if before:
            await make_current(client, task_queue, before)
        session = await s.start(agent="short", session=True)
        await ask(session, "hi")
        assert await build_of(client, session) == before
        await new.enter_async_context(version(client, tmp_path, "two", task_queue, "auto_upgrade"))
        await make_current(client, task_queue, "two")
        await talk_until(client, session, "two")
        await old.aclose()
        await talk(client, session, turns=4)


@pytest.mark.slow
async def test_an_upgrade_can_be_taken_back(
    client: Client, tmp_path: Path, task_queue: str
) -> None:
    """The old build is made the current one again; sessions go back to it."""
    async with AsyncExitStack() as new, AsyncExitStack() as old:
        s = await old.enter_async_context(
            version(client, tmp_path, "one", task_queue, "auto_upgrade")
        )
        await make_current(client, task_queue, "one")
        session = await s.start(agent="short", session=True)
        await new.enter_async_context(version(client, tmp_path, "two", task_queue, "auto_upgrade"))
        await make_current(client, task_queue, "two")
        await talk_until(client, session, "two")
        await make_current(client, task_queue, "one")
        await talk_until(client, session, "one")
        await new.aclose()
        await talk(client, session, turns=2)


@pytest.mark.slow
async def test_pinned_sessions_change_their_version_with_their_run(
    client: Client, tmp_path: Path, task_queue: str
) -> None:
    """A pinned session stays with its version until its run changes; then the old one may stop."""
    async with AsyncExitStack() as new, AsyncExitStack() as old:
        s = await old.enter_async_context(version(client, tmp_path, "one", task_queue, "pinned"))
        await make_current(client, task_queue, "one")
        session = await s.start(agent="short", session=True)
        await ask(session, "hi")
        await new.enter_async_context(version(client, tmp_path, "two", task_queue, "pinned"))
        await make_current(client, task_queue, "two")
        await ask(session, "and now?")
        assert await build_of(client, session) == "one"
        begun = await s.start(agent="short", message="hi")
        assert await begun.result()
        assert await build_of(client, begun) == "two"
        first = session.first_execution_run_id
        while (await client.get_workflow_handle(session.id).describe()).run_id == first:
            await ask(session, "go on")
        await ask(session, "and in the new run?")
        assert await build_of(client, session) == "two"
        await old.aclose()
        await talk(client, session, turns=2)


async def talk_until(client: Client, session: WorkflowHandle[Any, Any], build: str) -> None:
    """Take turns until a build takes them: the queue hears of a new current version in moments."""
    async with asyncio.timeout(60):
        while await build_of(client, session) != build:
            assert (await ask(session, "and now?")).text


async def talk(client: Client, session: WorkflowHandle[Any, Any], *, turns: int) -> None:
    """Take some turns, and end the session."""
    for turn in range(turns):
        assert (await ask(session, f"turn {turn}")).text
    await client.get_workflow_handle(session.id).execute_update("end")


def test_a_version_has_two_names() -> None:
    """A deployment without a build, or the other way round, is refused."""
    with pytest.raises(ValueError, match="set both or neither"):
        Settings(deployment="agents")
    with pytest.raises(ValueError, match="set both or neither"):
        Settings(build_id="1")
