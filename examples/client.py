"""A session of the ready-made `agent` workflow, from the SDK.

Start a worker first, `python worker.py --dev`, then run `python examples/client.py`.
"""

import asyncio
import sys
from uuid import uuid4

from agentmem import AgentInput
from agentmem.client import connect
from agentmem.contracts import TASK_QUEUE


async def main() -> None:
    """Start a session, talk, end it."""
    client = await connect()
    session = await client.start_workflow(
        "agent",
        AgentInput(agent="assistant", scope="user-1", session=True),
        id=f"session-{uuid4()}",
        task_queue=TASK_QUEUE,
    )
    for message in ("My name is Ada, and I live in Bergen.", "Where do I live?"):
        answer = await session.execute_update("send", message)
        sys.stdout.write(f"you: {message}\nassistant: {answer}\n")
    await session.execute_update("end")
    sys.stdout.write(f"ended after {(await session.result())['turns']} turns\n")


if __name__ == "__main__":
    asyncio.run(main())
