"""A worker that dies: the session goes on, and no answer that is recorded is asked for again."""

import asyncio
import signal
import uuid
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client, WorkflowHandle
from temporalio.testing import WorkflowEnvironment

from agentmem.testing import Request, ScriptedModel, reply
from tests.e2e.worker_process import READY, WorkerProcess, worker_process
from tests.stack import PLAIN, eventually, last_user_text


class Worker:
    """A worker process that can be killed and started again, on one queue and one model."""

    def __init__(self, env: WorkflowEnvironment, folder: Path, model: ScriptedModel) -> None:
        (folder / "agentmem.toml").write_text(PLAIN)
        self.queue = f"crash-{uuid.uuid4()}"
        self._folder = folder
        self._settings = {
            **model.env(),
            "TEMPORAL_ADDRESS": env.client.service_client.config.target_host,
            "AGENTMEM_TASK_QUEUE": self.queue,
            "AGENTMEM_MODEL": "openai/test-model",
        }

    def start(self) -> Any:
        """Start the worker."""
        return worker_process(self._folder, settings=self._settings)

    async def session(self, client: Client) -> WorkflowHandle[Any, Any]:
        """Start a session on the worker's queue."""
        return await client.start_workflow(
            "agent",
            {"agent": "plain", "session": True},
            id=self.queue,
            task_queue=self.queue,
        )


async def sigkill(process: WorkerProcess) -> None:
    """End a worker without a word."""
    process.send(signal.SIGKILL)
    await process.ended()


@pytest.mark.timeout(300)
async def test_a_worker_killed_in_a_model_call_is_replaced(
    env: WorkflowEnvironment, client: Client, tmp_path: Path
) -> None:
    """The call in flight is sent once more, byte for byte equal; nothing before it is."""
    held = asyncio.Event()

    async def script(request: Request) -> Any:
        text = last_user_text(request.messages)
        if text == "second" and not held.is_set():
            held.set()
            await asyncio.sleep(3600)
        return reply(f"re: {text}")

    async with ScriptedModel(script) as model:
        worker = Worker(env, tmp_path, model)
        async with worker.start() as process:
            await process.says(READY)
            session = await worker.session(client)
            assert await session.execute_update("send", "first") == "re: first"
            second = asyncio.create_task(session.execute_update("send", "second"))
            await eventually(held.is_set, 30)
            await sigkill(process)
        async with worker.start() as process:
            assert await second == "re: second"
            assert await session.execute_update("send", "third") == "re: third"
            asked = [last_user_text(request.messages) for request in model.requests]
            assert asked == ["first", "second", "second", "third"]
            assert model.requests[1].raw == model.requests[2].raw
            said = [m["content"] for m in model.requests[3].messages]
            assert said == ["Be brief.", "first", "re: first", "second", "re: second", "third"]
            model.assert_strict()
            await session.signal("end")
            assert await session.result() == {"turns": 3}


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_a_worker_killed_between_turns_is_replaced(
    env: WorkflowEnvironment, client: Client, tmp_path: Path
) -> None:
    """A new worker has the whole conversation from the history, and asks nothing again."""

    def script(request: Request) -> Any:
        return reply(f"re: {last_user_text(request.messages)}")

    async with ScriptedModel(script) as model:
        worker = Worker(env, tmp_path, model)
        texts = ["one", "two", "three"]
        async with worker.start() as process:
            await process.says(READY)
            session = await worker.session(client)
            await session.execute_update("send", texts[0])
            await sigkill(process)
        async with worker.start() as process:
            await session.execute_update("send", texts[1])
            await sigkill(process)
        async with worker.start():
            await session.execute_update("send", texts[2])
            assert [last_user_text(request.messages) for request in model.requests] == texts
            said = [m["content"] for m in model.requests[2].messages]
            assert said == ["Be brief.", "one", "re: one", "two", "re: two", "three"]
            await session.signal("end")
            assert await session.result() == {"turns": 3}
