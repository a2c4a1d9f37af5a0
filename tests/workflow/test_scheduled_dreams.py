"""Dreams by a Temporal Schedule: sessions hand their words over, and the night learns from them."""

import asyncio
import shlex
from pathlib import Path

import pytest
from temporalio.client import Client
from temporalio.service import RPCError

from agentmem.contracts import DreamReport, ScopeRef
from agentmem.dreaming.hook import dream_id
from tests.conftest import temporal_binary
from tests.dreams import served
from tests.stack import stack
from tests.workflow.test_dream_hook import learned

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "dreams.md"
AGENTS = """[agents.assistant]
long_term_memory.provider = "{provider}"
dream.on = ["schedule"]
"""


def printed(name: str) -> list[str]:
    """Return the page's command, with a task queue and ids of the test's own."""
    (block,) = [one for one in PAGE.read_text().split("```") if "schedule create" in one]
    _, *words = shlex.split(block.replace("\\\n", " "))
    own = {"--schedule-id", "--workflow-id", "--task-queue"}
    return [
        name if before in own else word for before, word in zip(["", *words], words, strict=False)
    ]


async def temporal(client: Client, *words: str) -> None:
    """Run a command of the Temporal CLI."""
    address = client.service_client.config.target_host
    process = await asyncio.create_subprocess_exec(
        temporal_binary(), *words, "--address", address, stdout=asyncio.subprocess.DEVNULL
    )
    assert await process.wait() == 0


@pytest.mark.parametrize("provider", ["sqlite:memory.db", "sqlite:other.db"])
async def test_sessions_hand_over_and_a_schedule_dreams(
    client: Client, tmp_path: Path, provider: str
) -> None:
    """Neither a session nor a single answer dreams; the schedule's dream reads both.

    It is the page's command, also where the agent's store is not the worker's default.
    """
    agents = AGENTS.format(provider=provider)
    async with stack(client, tmp_path, served(learned("Momo", "Rex")), agents=agents) as s:
        scope = "ada"
        session = await s.start(agent="assistant", scope=scope, session=True)
        await session.execute_update("send", "My cat is named Momo.")
        await session.execute_update("end")
        await session.result()
        single = await s.start(agent="assistant", scope=scope, message="My cat is named Rex.")
        await single.result()
        store = ScopeRef(provider=provider, agent="assistant", scope=scope)
        handle = client.get_workflow_handle(dream_id(store))
        with pytest.raises(RPCError, match="not found"):  # no session dreamt
            await handle.describe()
        await temporal(client, *printed(s.task_queue))
        try:
            await temporal(client, "schedule", "trigger", "--schedule-id", s.task_queue)
            async with asyncio.timeout(30):
                report = await _report(client, handle.id)
        finally:
            await temporal(client, "schedule", "delete", "--schedule-id", s.task_queue)
        assert report.status == "completed"
        facts = await s.configuration.providers.get(provider)
        assert await facts.recall("assistant", scope) == {
            "cat_Momo": "Cat is named Momo",
            "cat_Rex": "Cat is named Rex",
        }


async def _report(client: Client, name: str) -> DreamReport:
    while True:
        try:
            return await client.get_workflow_handle(name, result_type=DreamReport).result()
        except RPCError:  # the schedule has not started it yet
            await asyncio.sleep(0.2)
