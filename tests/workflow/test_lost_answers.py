"""Stores whose answers get lost: what an activity did is there once when it is tried again."""

import uuid
from pathlib import Path
from typing import Any

import pytest
from temporalio import activity
from temporalio.client import Client

from agentmem.dreaming.hook import dream_id
from agentmem.errors import StoreUnavailable
from agentmem.facts import Write
from agentmem.storage.sql.provider import SqlProvider
from agentmem.testing import call, reply
from tests.dreams import served
from tests.keeping_workflows import Storing
from tests.stack import stack, task_failures
from tests.workflow.test_dream_hook import dreamed, learned
from tests.workflow.test_dream_hook import store as place

pytestmark = pytest.mark.timeout(180)

WRITES = (
    *("write", "forget", "append", "open_session", "open_dream", "save_dream", "save_reply"),
    *("end_dream", "commit"),
)


def lose_answers(provider: Any, agent: str, scope: str) -> set[str]:
    """Have each activity's first call of each writing method done, and its answer lost.

    Before the activity is tried again, somebody else stores a fact under the key `between`.

    Returns:
        The methods that it happened to, as it happens.
    """
    lost: set[str] = set()
    seen: set[tuple[str | None, str, str]] = set()

    def losing(name: str) -> Any:
        original = getattr(provider, name)

        async def method(*args: Any, **options: Any) -> Any:
            answer = await original(*args, **options)
            info = activity.info()
            if (which := (info.workflow_run_id, info.activity_id, name)) in seen:
                return answer
            seen.add(which)
            lost.add(name)
            await SqlProvider.write(provider, agent, scope, [Write(key="between", value=1)])
            raise StoreUnavailable("the line broke")

        return method

    for name in WRITES:
        setattr(provider, name, losing(name))
    return lost


async def test_a_workflow_of_ones_own_does_everything_once(client: Client, tmp_path: Path) -> None:
    """By code, by the model's tools, and in the transcript; what others stored meanwhile stays."""
    script = [
        reply(calls=[call("store_memory", key="city", value="Oslo"), call("recall_memory")]),
        reply(calls=[call("forget_memory", key="kept")]),
        reply("done"),
    ]
    async with stack(client, tmp_path, script, extra=[Storing]) as s:
        scope = s.task_queue
        provider = await s.configuration.providers.get("sqlite:facts.db")
        lost = lose_answers(provider, "friend", scope)
        handle = await client.start_workflow(
            Storing.run, args=[scope, "hello"], id=scope, task_queue=scope
        )
        assert await handle.result() == "done"
        assert await task_failures(handle) == []
        assert lost == {"write", "forget", "append"}
        assert await provider.recall("friend", scope) == {"between": 1, "city": "Oslo"}
        expected = {"old": ["set", "remove"], "gone": ["set", "remove"], "city": ["set"]}
        for key, steps in {**expected, "kept": ["set", "remove"]}.items():
            versions = await provider.history("friend", scope, key)
            assert [version.op for version in versions] == steps
        rows = await provider.unread("friend", scope, 1_000_000)
        assert [row.seq for row in rows] == list(range(1, 8))


async def test_a_session_and_its_dream_do_everything_once(client: Client, tmp_path: Path) -> None:
    """The transcript has each word once, and the dream learns each fact once."""
    agents = (
        '[agents.assistant]\nlong_term_memory.provider = "sqlite:memory.db"\ndream.on = ["end"]\n'
    )
    async with stack(client, tmp_path, served(learned("Momo")), agents=agents) as s:
        scope = f"user-{uuid.uuid4()}"
        provider = await s.configuration.providers.get("sqlite:memory.db")
        lost = lose_answers(provider, "assistant", scope)
        handle = await s.start(agent="assistant", scope=scope, session=True)
        for text in ("My cat is named Momo.", "She is nice."):
            await handle.execute_update("send", text)
        await handle.execute_update("end")
        assert await handle.result() == {"turns": 2}
        assert (await dreamed(s, dream_id(place(scope)))).status == "completed"
        assert {"append", "open_dream", "save_reply", "commit"} <= lost
        assert await provider.recall("assistant", scope, "cat_Momo") == "Cat is named Momo"
        assert len(await provider.history("assistant", scope, "cat_Momo")) == 1
        assert (await provider.scope_state("assistant", scope)).failures == 0
        assert await provider.unread("assistant", scope, 1_000_000) == []
        assert len(await provider.dreams("assistant", scope)) == 1
