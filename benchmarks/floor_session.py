"""The floor that turns are measured against: one workflow on bare Temporal, in three ways.

`bare`: an update and an activity that answers by itself. `held`: the activity asks the model, and
the worker holds the conversation in memory, so that only what agentmem adds counts (a worker that
dies loses it). `naive`: the whole conversation travels with each call. This module imports nothing
of agentmem: the sandbox imports it for each run.
"""

import asyncio
from datetime import timedelta
from typing import Any

from temporalio import workflow

Message = dict[str, Any]

_TIMEOUT = timedelta(minutes=2)


@workflow.defn(name="floor.session")
class FloorSession:
    """A conversation without agentmem."""

    @workflow.init
    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._said: list[Message] = []
        self._ended = False

    @workflow.run
    async def run(self, kind: str) -> None:
        """Wait for the end."""
        await workflow.wait_condition(lambda: self._ended)

    @workflow.update
    async def send(self, text: str) -> str:
        """Answer a message."""
        if self._kind == "bare":
            return await self._bare(text)
        answer = await self._model([{"role": "user", "content": text}])
        while answer.get("tool_calls"):
            ids = [call["id"] for call in answer["tool_calls"]]
            held = self._kind == "held"
            results = await self._tools(ids if held else [""] * len(ids))
            answer = await self._model(
                [
                    {"role": "tool", "tool_call_id": call, "content": result}
                    for call, result in zip(ids, results, strict=True)
                    if not held  # then they are in the worker's memory already
                ]
            )
        return answer["content"]

    @workflow.signal
    def end(self) -> None:
        """End it."""
        self._ended = True

    async def _bare(self, text: str) -> str:
        answer = await self._activity("floor.reply", text)
        calls = int(text.split()[3])
        if calls:
            await self._tools([""] * calls)
            answer = await self._activity("floor.reply", text)
        return answer

    async def _tools(self, ids: list[str]) -> list[str]:
        calls = (self._activity("floor.tool", page, call) for page, call in enumerate(ids))
        return await asyncio.gather(*calls)

    async def _model(self, new: list[Message]) -> Message:
        if self._kind == "held":
            return await self._activity("floor.model", new, True)
        self._said += new
        answer = await self._activity("floor.model", self._said, False)
        self._said.append(answer)
        return answer

    async def _activity(self, name: str, *args: Any) -> Any:
        return await workflow.execute_activity(name, args=args, start_to_close_timeout=_TIMEOUT)
