"""A session of a contender, and what its server says of it."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any

from temporalio.client import Client, WorkflowHandle

from agentmem.client import ask
from benchmarks.texts import question


class Talk:
    """One session of a contender."""

    def __init__(self, client: Client, handle: WorkflowHandle[Any, Any], *, ours: bool) -> None:
        self.handle = handle
        self._client = client
        self._ours = ours
        self._run = ""
        self._before = (0, 0)

    async def say(self, text: str) -> float:
        """Send a message; returns the seconds until its answer."""
        began = time.perf_counter()
        if self._ours:
            await ask(self.handle, text)  # waits where a session is changing to a new run
        else:
            await self.handle.execute_update("send", text)
        return time.perf_counter() - began

    async def settled(self) -> None:
        """Wait for what goes on after an answer: hooks, and the dream that they start."""
        while True:
            now = (await self.handle.describe()).raw_description
            task = now.HasField("pending_workflow_task")
            if not (task or now.pending_activities or now.pending_children):
                return
            await asyncio.sleep(0.05)

    async def history(self) -> tuple[int, int]:
        """Return the session's bytes and events so far, in all of its runs."""
        current = (await self.handle.describe()).raw_description.workflow_execution_info
        if current.execution.run_id != self._run and self._run:
            old = self._client.get_workflow_handle(self.handle.id, run_id=self._run)
            ended = (await old.describe()).raw_description.workflow_execution_info
            size, events = self._before
            self._before = size + ended.history_size_bytes, events + ended.history_length
        self._run = current.execution.run_id
        size, events = self._before
        return size + current.history_size_bytes, events + current.history_length


async def take_turns(talks: Sequence[Talk], turns: int) -> None:
    """Have each session take turns one after another, all sessions at once."""

    async def work(talk: Talk) -> None:
        for number in range(turns):
            await talk.say(question(number))

    await asyncio.gather(*(work(talk) for talk in talks))
