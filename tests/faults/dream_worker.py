"""A worker for dreams alone, quick to start: its model is asked by plain HTTP.

Run as `python -m tests.faults.dream_worker ADDRESS QUEUE FOLDER MODEL`; FOLDER holds `memory.db`.
Its dreams wait for half a second at most between two tries.
"""

import asyncio
import sys
from datetime import timedelta
from pathlib import Path

import httpx
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import Worker

from activities.dream import DreamActivities
from agentmem.dreaming import patience
from agentmem.errors import ModelUnavailable
from agentmem.storage.registry import Providers
from agentmem.wire import JSONObject
from workflows.dream import AgentDream


async def main(address: str, queue: str, folder: str, model: str) -> None:
    """Work until killed."""
    patience.FIRST_WAIT, patience.LONGEST_WAIT = timedelta(seconds=0.1), timedelta(seconds=0.5)
    async with httpx.AsyncClient(timeout=600) as http:

        async def ask(request: JSONObject) -> JSONObject:
            try:
                answer = await http.post(f"{model}/v1/chat/completions", json=request)
                answer.raise_for_status()
            except httpx.HTTPError as error:
                raise ModelUnavailable(str(error)) from None
            choice = answer.json()["choices"][0]
            return {"message": choice["message"], "finish": choice["finish_reason"], "usage": {}}

        client = await Client.connect(address, data_converter=pydantic_data_converter)
        activities = DreamActivities(Providers(Path(folder)), ask, model="scripted").activities
        async with Worker(
            client,
            task_queue=queue,
            workflows=[AgentDream],
            activities=activities,
            sticky_queue_schedule_to_start_timeout=timedelta(seconds=1),
        ):
            await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
