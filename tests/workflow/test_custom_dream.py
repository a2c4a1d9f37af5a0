"""The example of a dream of one's own, on a worker."""

import uuid
from pathlib import Path
from typing import Any

from temporalio import activity
from temporalio.client import Client
from temporalio.worker import Worker

from agentmem.contracts import Begun, DreamInput, Store
from agentmem.dreaming.hook import dream_id
from agentmem.testing import Reply, Request, reply
from examples.custom_dream import Diary, MyDream
from tests.dreams import Script, changes, findings, served
from tests.stack import stack, task_failures


async def test_a_dream_of_ones_own_has_limits_and_a_phase_more(
    client: Client, tmp_path: Path
) -> None:
    """`dream(workflow="my_dream")` starts it with the scope's id; its portrait is stored."""
    learned = Script(
        gather_signal=findings({"statement": "Cat is named Momo", "evidence": ["a1"]}),
        consolidate=changes({"op": "add", "key": "cat", "value": "Cat is named Momo"}),
    )
    dreams = served(learned, "I see.")

    async def serve(request: Request) -> Reply:
        if "two sentences" in str(request.messages[0]["content"]):
            assert "Cat is named Momo" in str(request.messages)
            return reply("Keeps a cat. It is named Momo.")
        return await dreams(request)

    async with stack(client, tmp_path, serve, extra=[MyDream, Diary]) as s:
        scope = f"user-{uuid.uuid4()}"
        answer = await s.run("diary", scope, "My cat is named Momo.")
        assert answer == "I see."
        name = dream_id(Store(provider="sqlite:diary.db", agent="diary", scope=scope))
        handle = client.get_workflow_handle(name)
        report: Any = await handle.result()
        assert (report["status"], report["applied"]) == ("completed", ["add cat"])
        assert (await handle.describe()).workflow_type == "my_dream"
        store = await s.configuration.providers.get("sqlite:diary.db")
        assert await store.recall("diary", scope) == {"cat": "Cat is named Momo"}
        assert await store.recall("portraits", scope) == {
            "portrait": "Keeps a cat. It is named Momo."
        }
        assert await task_failures(handle) == []


async def test_a_dream_of_ones_own_that_finds_nothing_leaves_no_late_message(
    client: Client,
) -> None:
    """Told of more between its look and its end, it looks again: nobody else is told."""
    name, queue = f"dream-{uuid.uuid4()}", f"queue-{uuid.uuid4()}"
    looks: list[str] = []

    @activity.defn(name="dream.begin")
    async def begin(request: DreamInput) -> Begun:
        looks.append(request.scope)
        if len(looks) == 1:  # somebody appends behind the look, and says so
            await client.get_workflow_handle(name).signal("more")
        store = Store(provider="sqlite:x.db", agent="diary", scope=request.scope)
        return Begun(status="nothing_new", store=store)

    async with Worker(client, task_queue=queue, workflows=[MyDream], activities=[begin]):
        request = DreamInput(agent="diary", scope="ada")
        report = await client.execute_workflow(MyDream.run, request, id=name, task_queue=queue)
    assert (report.status, looks) == ("nothing_new", ["ada", "ada"])


async def test_a_dream_of_ones_own_goes_round_five_times_at_most(client: Client) -> None:
    """Where people never stop talking, what is left waits for the next trigger."""
    name, queue = f"dream-{uuid.uuid4()}", f"queue-{uuid.uuid4()}"
    rounds: list[int] = []

    @activity.defn(name="dream.begin")
    async def begin(request: DreamInput) -> Begun:
        rounds.append(request.rounds)
        store = Store(provider="sqlite:x.db", agent="diary", scope=request.scope)
        return Begun(status="nothing_new", store=store, more_evidence=True)

    async with Worker(client, task_queue=queue, workflows=[MyDream], activities=[begin]):
        request = DreamInput(agent="diary", scope="ada")
        await client.execute_workflow(MyDream.run, request, id=name, task_queue=queue)
    assert rounds == [0, 1, 2, 3, 4]
