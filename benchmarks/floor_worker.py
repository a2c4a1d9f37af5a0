"""A worker process for the floors, as somebody would write it on temporalio and litellm alone.

It imports nothing of agentmem, which would then count as the floor's. What is not the point of a
comparison is as our worker has it: what litellm is asked, its import in a thread, its settings.
"""

import asyncio
import gc
import importlib
import json
import os
import signal
import sys
from collections import defaultdict
from datetime import timedelta
from typing import Any

from temporalio import activity
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import UnsandboxedWorkflowRunner, Worker
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner

from benchmarks.floor_session import FloorSession, Message
from benchmarks.texts import asked, page_text

HELD_BYTES = 200_000
"""The most bytes of conversation in a request: agentmem's budget, 50,000 tokens, in English."""


class FloorActivities:
    """The model, the tool, and an answer without a model."""

    def __init__(self, tools: dict[str, list[Any]]) -> None:
        """Offer the model these tools, by the agent of ours that a session is compared with."""
        self._tools = tools
        self._held: defaultdict[str, list[Message]] = defaultdict(list)
        self._loading: asyncio.Task[Any] | None = None

    def load(self) -> asyncio.Task[Any]:
        """Import litellm in a thread; more calls change nothing."""
        self._loading = self._loading or asyncio.create_task(asyncio.to_thread(_load_litellm))
        return self._loading

    @activity.defn(name="floor.reply")
    async def reply(self, text: str) -> str:
        """Answer without a model."""
        return "y" * asked(text)[1]

    @activity.defn(name="floor.tool")
    async def tool(self, page: int, call: str) -> str:
        """Run the tool; the result is held as an answer to a call, if one is named."""
        info = activity.info()
        text = "null" if (info.workflow_id or "").startswith("memory/") else page_text(page)
        if call:
            result = {"role": "tool", "tool_call_id": call, "content": text}
            self._held[info.workflow_run_id or ""].append(result)
        return text

    @activity.defn(name="floor.model")
    async def model(self, messages: list[Message], held: bool) -> Message:
        """Ask the model; what is held comes before the messages."""
        info = activity.info()
        said = self._held[info.workflow_run_id or ""] if held else []
        said += messages
        tools = self._tools.get((info.workflow_id or "").partition("/")[0])
        litellm = await self.load()
        reply = await litellm.acompletion(
            model="openai/test-model",
            messages=[{"role": "system", "content": "Be brief."}, *_newest(said)],
            max_tokens=4096,
            num_retries=0,
            max_retries=0,
            drop_params=True,
            timeout=540,
            **({"tools": tools} if tools else {}),
        )
        answer = reply.choices[0].message.model_dump()
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


def _load_litellm() -> Any:
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    gc.disable()
    litellm: Any = importlib.import_module("litellm")
    gc.freeze()
    gc.enable()
    litellm.telemetry = False
    litellm.suppress_debug_info = True
    litellm.turn_off_message_logging = True
    litellm.disable_aiohttp_transport = True
    return litellm


async def main() -> None:
    """Run until the process is told to stop."""
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    client = await Client.connect(
        os.environ["TEMPORAL_ADDRESS"], data_converter=pydantic_data_converter
    )
    floors = FloorActivities(json.loads(os.environ["FLOOR_TOOLS"]))
    free = "FLOOR_FREE" in os.environ  # of the sandbox, which is Temporal's default
    async with Worker(
        client,
        task_queue=os.environ["AGENTMEM_TASK_QUEUE"],
        workflows=[FloorSession],
        activities=[floors.reply, floors.tool, floors.model],
        workflow_runner=UnsandboxedWorkflowRunner() if free else SandboxedWorkflowRunner(),
        max_cached_workflows=int(os.environ.get("CACHED_WORKFLOWS", "1000")),
        sticky_queue_schedule_to_start_timeout=timedelta(seconds=2),  # as worker.py has it
    ):
        floors.load()
        sys.stdout.write("The worker is running\n")
        sys.stdout.flush()
        await stopped.wait()


if __name__ == "__main__":
    asyncio.run(main())
