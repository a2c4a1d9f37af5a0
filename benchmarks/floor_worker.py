"""A worker process for the floors, as `worker.py` is one for agentmem."""

import asyncio
import os
from collections import defaultdict
from datetime import timedelta

from temporalio import activity
from temporalio.worker import UnsandboxedWorkflowRunner, Worker
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner

from activities.llm import Models
from agentmem.cli.worker import say
from agentmem.client import connect
from agentmem.memory.tools import MEMORY_TOOLS
from agentmem.tools.box import tool_schema
from agentmem.values import JSONObject
from benchmarks.floor_session import FloorSession, Message
from benchmarks.model import asked
from benchmarks.tool import look_up

HELD_BYTES = 200_000
"""Of conversation that a request carries: what agentmem's budget of 50,000 tokens is in English."""

TOOLS: dict[str, list[JSONObject]] = {
    "tools": [tool_schema(look_up)],
    "memory": [schema for _, schema in MEMORY_TOOLS.values()],
    "dreamer": [schema for _, schema in MEMORY_TOOLS.values()],
}
"""What the model is offered, as it is with our agent of that name."""


class FloorActivities:
    """The model, the tool, and an answer without a model."""

    def __init__(self, models: Models) -> None:
        """Ask these models."""
        self._models = models
        self._held: defaultdict[str, list[Message]] = defaultdict(list)

    @activity.defn(name="floor.reply")
    async def reply(self, text: str) -> str:
        """Answer without a model."""
        return "y" * asked(text)[1]

    @activity.defn(name="floor.tool")
    async def tool(self, page: int) -> str:
        """Run the tool."""
        return look_up(page)

    @activity.defn(name="floor.model")
    async def model(self, messages: list[Message], held: bool) -> Message:
        """Ask the model; what is held comes before the messages."""
        info = activity.info()
        said = self._held[info.workflow_run_id or ""] if held else []
        said += messages
        tools = TOOLS.get((info.workflow_id or "").partition("/")[0])
        request = {
            "model": "openai/test-model",
            "messages": [{"role": "system", "content": "Be brief."}, *_newest(said)],
            "max_tokens": 4096,
            **({"tools": tools} if tools else {}),
        }
        answer = (await self._models.ask(request))["message"]
        kept = {
            name: answer[name] for name in ("role", "content", "tool_calls") if answer.get(name)
        }
        said.append(kept)
        return kept


def _newest(said: list[Message]) -> list[Message]:
    size = 0
    for at in range(len(said) - 1, -1, -1):
        size += len(said[at].get("content") or "")
        if size > HELD_BYTES:
            later = range(at + 1, len(said))
            return said[next(i for i in later if said[i]["role"] == "user") :]
    return said


async def main() -> None:
    """Run until the process is ended."""
    models = Models()
    client = await connect()
    floors = FloorActivities(models)
    free = "FLOOR_FREE" in os.environ  # of the sandbox, which is Temporal's default
    async with Worker(
        client,
        task_queue=os.environ["AGENTMEM_TASK_QUEUE"],
        workflows=[FloorSession],
        activities=[floors.reply, floors.tool, floors.model],
        workflow_runner=UnsandboxedWorkflowRunner() if free else SandboxedWorkflowRunner(),
        sticky_queue_schedule_to_start_timeout=timedelta(seconds=2),  # as worker.py has it
    ):
        models.start_loading()
        say("The worker is running")
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
