"""A worker process for the floors, as `worker.py` is one for agentmem."""

import asyncio
import os
from collections import defaultdict
from datetime import timedelta

from temporalio import activity
from temporalio.worker import Worker

from activities.llm import Models
from agentmem.cli.worker import say
from agentmem.client import connect
from agentmem.tools.box import tool_schema
from benchmarks.turn_floors import SAID_BYTES, FloorSession, Message, look_up

HELD_BYTES = 200_000
"""Of conversation that a request carries: what agentmem's budget of 50,000 tokens is in English."""


class FloorActivities:
    """The model, the tool, and an answer without a model."""

    def __init__(self, models: Models, *, tools: bool) -> None:
        """Ask these models, with a tool or without."""
        self._models = models
        self._tools = [tool_schema(look_up)] if tools else []
        self._held: defaultdict[str, list[Message]] = defaultdict(list)

    @activity.defn(name="floor.reply")
    async def reply(self, text: str) -> str:
        """Answer without a model."""
        return "y" * SAID_BYTES

    @activity.defn(name="floor.tool")
    async def tool(self, page: int) -> str:
        """Run the tool."""
        return look_up(page)

    @activity.defn(name="floor.model")
    async def model(self, messages: list[Message], held: bool) -> Message:
        """Ask the model; what is held comes before the messages."""
        said = self._held[activity.info().workflow_run_id or ""] if held else []
        said += messages
        request = {
            "model": "openai/test-model",
            "messages": [{"role": "system", "content": "Be brief."}, *_newest(said)],
            "max_tokens": 4096,
            **({"tools": self._tools} if self._tools else {}),
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
    floors = FloorActivities(models, tools=os.environ["BENCH_TOOLS"] == "1")
    async with Worker(
        client,
        task_queue=os.environ["AGENTMEM_TASK_QUEUE"],
        workflows=[FloorSession],
        activities=[floors.reply, floors.tool, floors.model],
        sticky_queue_schedule_to_start_timeout=timedelta(seconds=2),  # as worker.py has it
    ):
        models.start_loading()
        say("The worker is running")
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
