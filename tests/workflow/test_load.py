"""A full worker: who waits for a slot, for how long, and what the wait counts against."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio.api.history.v1 import ActivityTaskScheduledEventAttributes as Scheduled
from temporalio.client import Client, WorkflowHandle
from temporalio.common import Priority
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.testing import WorkflowEnvironment

from activities.llm import Models
from agentmem import queues
from agentmem.priorities import fairness_key
from agentmem.testing import Reply, Request, ScriptedModel, call, reply
from tests.conftest import temporal_binary
from tests.dreams import SYSTEM, VERIFY
from tests.replayer import replayer
from tests.stack import PLAIN, eventually, last_user_text, stack, task_failures
from tests.tools import ping
from tests.workflow.test_dream_workflow import Scope
from workflows.agent import AgentWorkflow

pytestmark = pytest.mark.timeout(240)

TWO = PLAIN + "[agents.other]\n"
HASTY = PLAIN + '[agents.hasty]\nturn_minutes = 0.1\ntools = ["ping"]\n'


class Held:
    """A model that answers what it holds one after the other, when the test lets it.

    Attributes:
        asked: What users said, in the order in which requests came.
        open: Set once everything is answered at once.
    """

    def __init__(self, holds: str) -> None:
        self._holds = holds
        self._gate = asyncio.Semaphore(0)
        self.asked: list[str] = []
        self.open = asyncio.Event()

    def release(self, number: int = 1) -> None:
        """Answer so many of the held requests."""
        for _ in range(number):
            self._gate.release()

    async def __call__(self, request: Request) -> Reply:
        """Answer at once, or wait to be released."""
        said = last_user_text(request.messages)
        self.asked.append(said)
        if said.startswith(self._holds) and not self.open.is_set():
            released = asyncio.create_task(self._gate.acquire())
            opened = asyncio.create_task(self.open.wait())
            await asyncio.wait([released, opened], return_when=asyncio.FIRST_COMPLETED)
            released.cancel()
            opened.cancel()
        return reply(f"answer to {said}")


async def scheduled(handle: WorkflowHandle[Any, Any]) -> list[Scheduled]:
    """Return the activities of a run's history."""
    history = await handle.fetch_history()
    return [
        event.activity_task_scheduled_event_attributes
        for event in history.events
        if event.HasField("activity_task_scheduled_event_attributes")
    ]


@pytest.fixture(scope="module")
async def fair_client(clean_environment: None) -> AsyncIterator[Client]:
    """A client of a server that shares workers by fairness keys.

    One partition for each task queue: across partitions the order is approximate.
    """
    flags = [
        "matching.enableFairness=true",
        "matching.numTaskqueueReadPartitions=1",
        "matching.numTaskqueueWritePartitions=1",
    ]
    async with await WorkflowEnvironment.start_local(
        dev_server_existing_path=temporal_binary(),
        dev_server_extra_args=[f"--dynamic-config-value={flag}" for flag in flags],
        data_converter=pydantic_data_converter,
    ) as environment:
        yield environment.client


async def test_a_flood_of_one_agent_does_not_hold_up_another(
    fair_client: Client, tmp_path: Path
) -> None:
    """Thirty slow calls of one agent, eight slots: another agent's call takes the next free slot.

    In the order of arrival it would wait until 22 of them had their answers.
    """
    model = Held("slow")
    settings: dict[str, Any] = {"model_queue": f"models-{uuid.uuid4()}", "model_slots": 8}
    async with stack(fair_client, tmp_path, model, agents=TWO, **settings) as s:
        flood = [await s.start(agent="plain", message=f"slow {n}") for n in range(30)]
        await eventually(lambda: len(model.asked) == 8, 60)
        for one in flood:  # all are at the queue before the other comes
            await _waits_for_its_model(one)
        other = await s.start(agent="other", message="quick")
        await _waits_for_its_model(other)
        for released in range(1, 5):
            model.release()
            await eventually(lambda n=8 + released: len(model.asked) >= n, 60)
        assert await other.result() == "answer to quick"
        assert "quick" in model.asked[:12]
        model.open.set()
        for one in flood:
            await one.result()


async def _waits_for_its_model(handle: WorkflowHandle[Any, Any]) -> None:
    async with asyncio.timeout(60):
        while (await _last(handle)) != "agentmem.model":  # noqa: ASYNC110 - the server's event
            await asyncio.sleep(0.05)


async def _last(handle: WorkflowHandle[Any, Any]) -> str:
    work = await scheduled(handle)
    return work[-1].activity_type.name if work else ""


async def test_dreams_leave_the_slots_of_turns_alone(client: Client, tmp_path: Path) -> None:
    """All work of dreams is slow and there is much of it: a turn's model call starts at once."""
    dreams, over = 0, asyncio.Event()

    async def model(request: Request) -> Reply:
        nonlocal dreams
        if request.messages[0]["content"] not in (SYSTEM, VERIFY):
            return reply("at once")
        dreams += 1
        await over.wait()
        return reply("no hand-in")

    async with stack(client, tmp_path, model, slots=2, dream_slots=3) as s:
        dreaming: list[WorkflowHandle[Any, Any]] = []
        for _ in range(8):
            scope = await Scope.make(s)
            await scope.said("My cat is named Momo.")
            dreaming.append(await scope.start())
        await eventually(lambda: dreams == 3, 60)
        for number in range(3):
            handle = await s.start(agent="plain", message=f"hi {number}")
            assert await handle.result() == "at once"
        assert dreams == 3  # they fill their own slots, and no other
        queue = f"{s.task_queue}-dreams"
        for one in dreaming:
            work = await scheduled(one)
            assert {activity.task_queue.name for activity in work} == {queue}
            assert {activity.priority.priority_key for activity in work} == {5}
            await one.terminate()
        over.set()


async def test_waiting_for_a_slot_is_not_the_turns_time(client: Client, tmp_path: Path) -> None:
    """A turn of six seconds waits nine for a slot, calls a tool, asks again and answers."""

    async def model(request: Request) -> Reply:
        said = last_user_text(request.messages)
        if said != "hurry":
            return await held(request)
        return reply(calls=[call("ping")]) if len(request.messages) < 3 else reply("in time")

    held = Held("slow")
    settings: dict[str, Any] = {"model_queue": f"models-{uuid.uuid4()}", "model_slots": 1}
    async with stack(client, tmp_path, model, agents=HASTY, extra=[ping], **settings) as s:
        slow = await s.start(agent="plain", message="slow")
        await eventually(lambda: held.asked == ["slow"], 60)
        hasty = await s.start(agent="hasty", message="hurry")
        await _waits_for_its_model(hasty)
        await asyncio.sleep(9)
        held.release()
        assert await hasty.result() == "in time"
        assert await slow.result() == "answer to slow"


async def test_calls_carry_keys_that_name_nobody(client: Client, tmp_path: Path) -> None:
    """Every activity of a turn has its scope's digest as its key, and the starter's level."""
    agents = '[agents.friend]\nlong_term_memory.provider = "sqlite:facts.db"\n'
    script = [reply(calls=[call("recall_memory")]), reply("nothing yet"), reply("again")]
    async with stack(client, tmp_path, script, agents=agents) as s:
        request = {"agent": "friend", "scope": "ada@example.org", "message": "hi"}
        handle = await s.client.start_workflow(
            "agent",
            request,
            id=f"agent-{uuid.uuid4()}",
            task_queue=s.task_queue,
            priority=Priority(priority_key=2),
        )
        assert await handle.result() == "nothing yet"
        keys = {
            one.activity_type.name: one.priority.fairness_key for one in await scheduled(handle)
        }
        assert set(keys) == {"agentmem.resolve", "agentmem.model", "recall_memory"}
        assert set(keys.values()) == {fairness_key("friend", "ada@example.org")}
        assert "ada" not in "".join(keys.values())

        tenant = await s.client.start_workflow(
            "agent",
            request,
            id=f"agent-{uuid.uuid4()}",
            task_queue=s.task_queue,
            priority=Priority(fairness_key="tenant-7"),
        )
        assert await tenant.result() == "again"
        work = await scheduled(tenant)
        assert {one.priority.fairness_key for one in work} <= {"", "tenant-7"}


async def test_switching_a_queue_of_its_own_on_and_off_strands_no_session(
    client: Client, tmp_path: Path, task_queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rolling switch, on and off again, with turns under way at each step.

    Workers with and without the setting run side by side. The last worker with it stops with one
    call running and one waiting on its queue: both are made again where the settings say then.
    """
    monkeypatch.setattr(queues, "FIRST_LOOK", timedelta(seconds=3))
    models = f"models-{uuid.uuid4()}"
    apart: dict[str, Any] = {"model_queue": models, "model_slots": 1}
    held = Held("slow")
    places = [tmp_path / name for name in ("a", "b", "c")]
    for place in places:
        place.mkdir()
    common: dict[str, Any] = {"task_queue": task_queue}
    async with stack(client, places[0], held, **common) as s:
        session = await s.start(agent="plain", session=True)
        second = await s.start(agent="plain", session=True)
        assert await session.execute_update("send", "before") == "answer to before"
        # The SDK takes one worker of a queue for each connection.
        beside = await Client.connect(
            client.service_client.config.target_host, data_converter=pydantic_data_converter
        )
        async with stack(beside, places[1], held, **common, **apart):
            for number in range(6):
                assert await session.execute_update("send", f"both {number}")
    async with stack(client, places[1], held, **common, **apart):
        assert await session.execute_update("send", "on") == "answer to on"
        running = asyncio.create_task(session.execute_update("send", "slow one"))
        await eventually(lambda: "slow one" in held.asked, 60)
        waiting = asyncio.create_task(second.execute_update("send", "second"))
        await _waits_for_its_model(second)
    held.open.set()
    async with stack(client, places[2], held, **common):
        assert await running == "answer to slow one"
        assert await waiting == "answer to second"
        assert await session.execute_update("send", "off") == "answer to off"
        for handle in (session, second):
            await handle.execute_update("end")
            await handle.result()
            assert await task_failures(handle) == []
            asked = [one for one in await scheduled(handle) if "model" in one.activity_type.name]
            assert {one.task_queue.name for one in asked} == {task_queue, models}
            # The worker that replays has no such setting, nor the queues of those before.
            await replayer(AgentWorkflow).replay_workflow(await handle.fetch_history())


async def test_no_call_waits_in_the_http_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred and thirty slow calls to one endpoint are open at once; slots alone bound them."""
    held = Held("slow")
    async with ScriptedModel(held) as model:
        for name, value in model.env().items():
            monkeypatch.setenv(name, value)
        models = Models()
        request = {"model": "openai/m", "messages": [{"role": "user", "content": "slow"}]}
        asking = [asyncio.create_task(models.complete(request)) for _ in range(130)]
        await eventually(lambda: len(held.asked) == 130, 60)
        held.open.set()
        await asyncio.gather(*asking)
        await models.close()


async def test_dreams_may_have_a_rate_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nine requests of dreams at two per second, after a burst of four; a turn's goes between."""
    async with ScriptedModel(Held("nothing")) as model:
        for name, value in model.env().items():
            monkeypatch.setenv(name, value)
        models = Models(dream_rate=2)
        request = {"model": "openai/m", "messages": [{"role": "user", "content": "dream"}]}
        turn = {**request, "messages": [{"role": "user", "content": "turn"}]}
        await models.complete(turn)  # waits for litellm's import
        dreams = [asyncio.create_task(models.ask(request)) for _ in range(9)]
        await model.received(5)
        await models.complete(turn)
        await asyncio.gather(*dreams)
        await models.close()
        said = [last_user_text(one.messages) for one in model.requests]
        assert said.index("turn", 1) < 10
        at = [one.at for one in model.requests if last_user_text(one.messages) == "dream"]
        assert at[8] - at[4] > 1.5
