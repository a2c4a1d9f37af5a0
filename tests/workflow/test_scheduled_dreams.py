"""Dreams by a Temporal Schedule: sessions hand their words over, and the night learns from them."""

import asyncio
from pathlib import Path

import pytest
from temporalio.client import Client, Schedule, ScheduleActionStartWorkflow, ScheduleSpec
from temporalio.service import RPCError

from agentmem.contracts import DreamReport, ScopeRef
from agentmem.dreaming.hook import dream_id
from tests.dreams import served
from tests.stack import stack
from tests.workflow.test_dream_hook import learned

AGENTS = """[agents.assistant]
long_term_memory.provider = "sqlite:memory.db"
dream.on = ["schedule"]
"""


async def test_sessions_hand_over_and_a_schedule_dreams(client: Client, tmp_path: Path) -> None:
    """Neither a session nor a single answer dreams; the schedule's dream reads both."""
    async with stack(client, tmp_path, served(learned("Momo", "Rex")), agents=AGENTS) as s:
        scope = s.task_queue
        session = await s.start(agent="assistant", scope=scope, session=True)
        await session.execute_update("send", "My cat is named Momo.")
        await session.execute_update("end")
        await session.result()
        single = await s.start(agent="assistant", scope=scope, message="My cat is named Rex.")
        await single.result()
        store = ScopeRef(provider="sqlite:memory.db", agent="assistant", scope=scope)
        handle = client.get_workflow_handle(dream_id(store))
        with pytest.raises(RPCError, match="not found"):  # no session dreamt
            await handle.describe()
        nightly = await client.create_schedule(
            f"nightly-{scope}",
            Schedule(
                action=ScheduleActionStartWorkflow(
                    "agent_dream",
                    {"agent": "assistant", "scope": scope, "provider": "sqlite:memory.db"},
                    id=f"nightly-{scope}",
                    task_queue=s.task_queue,
                ),
                spec=ScheduleSpec(cron_expressions=["0 3 * * *"]),
            ),
            trigger_immediately=True,
        )
        try:
            async with asyncio.timeout(30):
                report = await _report(client, handle.id)
        finally:
            await nightly.delete()
        assert report.status == "completed"
        provider = await s.configuration.providers.get("sqlite:memory.db")
        assert await provider.recall("assistant", scope) == {
            "cat_Momo": "Cat is named Momo",
            "cat_Rex": "Cat is named Rex",
        }


async def _report(client: Client, name: str) -> DreamReport:
    while True:
        try:
            return await client.get_workflow_handle(name, result_type=DreamReport).result()
        except RPCError:  # the schedule has not started it yet
            await asyncio.sleep(0.2)
