"""A whole worker for tests: real activities, a scripted model endpoint, real stores."""

import asyncio
import os
import uuid
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import SecretStr
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowHandle

from agentmem.config import Configuration, configure
from agentmem.settings import Settings
from agentmem.testing import Reply, ScriptedModel
from agentmem.testing.scripted import Script
from agentmem.wire import JSONObject
from worker import running

PLAIN = '[agents.plain]\nsystem_prompt = "Be brief."\nworking_memory.max_tokens = 50000\n'
"""An agent with nothing but its conversation."""


@dataclass(frozen=True, kw_only=True)
class Stack:
    """A running worker and the endpoint that its model calls reach."""

    client: Client
    model: ScriptedModel
    configuration: Configuration

    @property
    def task_queue(self) -> str:
        """The task queue that the worker polls."""
        return self.configuration.settings.task_queue

    async def start(self, **request: Any) -> WorkflowHandle[Any, Any]:
        """Start an `agent` workflow with this input."""
        return await self.client.start_workflow(
            "agent", request, id=f"agent-{uuid.uuid4()}", task_queue=self.task_queue
        )

    async def run(self, workflow: Any, *args: Any) -> Any:
        """Run a workflow of the test's own to its end."""
        return await self.client.execute_workflow(
            workflow, args=args, id=f"own-{uuid.uuid4()}", task_queue=self.task_queue
        )


@asynccontextmanager
async def stack(
    client: Client,
    data: Path,
    script: Iterable[Reply] | Script = (),
    *,
    agents: str = PLAIN,
    extra: Sequence[object] = (),
    task_queue: str = "",
    model_name: str = "openai/test-model",
    database_url: str | None = None,
    strict: bool = True,
    **more: Any,
) -> AsyncGenerator[Stack, None]:
    """Run a worker whose model is a scripted one, on a task queue of its own.

    What else is given are settings of the worker. With `strict` it refuses what is not
    deterministic, which a worker in use does not look for.
    """
    file = data / "agents.toml"
    file.write_text(agents)
    given: dict[str, Any] = {"resolve_seconds": 0, **more}
    settings = Settings(
        agents=file,
        data=data,
        model=model_name,
        task_queue=task_queue or f"test-{uuid.uuid4()}",
        database_url=SecretStr(database_url) if database_url else None,
        **given,
    )
    async with ScriptedModel(script) as model:
        os.environ.update(model.env())
        configuration = configure(settings, extra=extra)
        async with running(client, configuration, strict=strict):
            yield Stack(client=client, model=model, configuration=configuration)


async def task_failures(handle: WorkflowHandle[Any, Any]) -> list[str]:
    """Return the failures of workflow tasks in a run's history: a stuck workflow has some."""
    history = await handle.fetch_history()
    return [
        event.workflow_task_failed_event_attributes.failure.message
        for event in history.events
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED
    ]


async def eventually(holds: Callable[[], bool], seconds: float = 10) -> None:
    """Wait until a condition of the test's own process holds."""
    async with asyncio.timeout(seconds):
        while not holds():  # noqa: ASYNC110 - what it waits for is no event of this loop
            await asyncio.sleep(0.02)


async def status_where(
    handle: WorkflowHandle[Any, Any], holds: Callable[[JSONObject], Any], seconds: float = 15
) -> JSONObject:
    """Query a session's status until it holds, and return it."""
    async with asyncio.timeout(seconds):
        while True:
            status: JSONObject = await handle.query("status")
            if holds(status):
                return status
            await asyncio.sleep(0.05)


async def waiting_call(handle: WorkflowHandle[Any, Any], place: str) -> str:
    """Wait for a call to need a person; returns the name under which it waits.

    `place` is its turn, step and call: `t1.s1.c0`.
    """

    def named(status: JSONObject) -> list[str]:
        calls = [str(one["call"]) for one in status["approvals"]]
        return [call for call in calls if call.startswith(f"{place}-")]

    [name] = named(await status_where(handle, named))
    return name


def last_user_text(messages: list[JSONObject]) -> str:
    """Return what the user said last in a request."""
    return next(str(m["content"]) for m in reversed(messages) if m["role"] == "user")
