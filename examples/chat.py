"""A chat in a workflow of your own: turns by updates, approval, dreams on answers and on pauses.

Run it alone, `python examples/chat.py`, and type; an empty line ends it.
"""

import asyncio
import sys
from typing import Any
from uuid import uuid4

from temporalio import workflow
from temporalio.client import WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError

from agentmem import Assistant, agent, dream, in_memory, long_term_memory, tool, working_memory


@tool
def get_weather(city: str) -> str:
    """Tell the weather in a city.

    Args:
        city: The city's name.
    """
    return f"Sunny in {city}, 21 degrees."


@tool(approval=True, writes=True)
def send_mail(to: str, text: str) -> str:
    """Send a mail.

    Args:
        to: The address.
        text: What to write.
    """
    return f"Sent {len(text)} characters to {to}."


@workflow.defn
class Chat:
    """Holds a conversation: each update `say` is a turn, the update `leave` ends it.

    A call of `send_mail` waits for the update `approve`, which `agent()` registers. Before its
    history gets too long, the chat goes on in a new run.
    """

    @workflow.init
    def __init__(self, scope: str, before: bytes | None = None) -> None:
        self._scope = scope
        self._assistant: Assistant | None = None
        self._turns = asyncio.Lock()
        self._left = False
        self._long = False

    @workflow.run
    async def run(self, scope: str, before: bytes | None = None) -> None:
        """Talk until someone leaves; `before` is what the run before handed on."""
        wm = working_memory(max_tokens=50_000, restore=before)
        ltm = long_term_memory(provider=in_memory(), agent="chat", scope=self._scope)
        dreams = dream(working_memory=wm, long_term_memory=ltm)
        self._assistant = await agent(
            "You are a friendly assistant.",
            tools=[get_weather, send_mail],
            working_memory=wm,
            long_term_memory=ltm,
            on_complete=[dreams],
            on_pause=[dreams],
        )
        await workflow.wait_condition(lambda: self._left or self._long)
        await workflow.wait_condition(workflow.all_handlers_finished)
        if not self._left:
            workflow.continue_as_new(args=[scope, wm.dump()])

    @workflow.update
    async def say(self, text: str) -> str:
        """Answer a message; one turn at a time."""
        await workflow.wait_condition(lambda: self._assistant is not None)
        assert self._assistant is not None
        async with self._turns:
            answer = await self._assistant(text)
            self._long = workflow.info().is_continue_as_new_suggested()
            return answer

    @say.validator
    def _check_say(self, text: str) -> None:
        if self._long:
            raise ApplicationError("the chat is changing to a new run; say it again in a moment")

    @workflow.update
    async def leave(self) -> None:
        """End the conversation."""
        self._left = True

    @workflow.query
    def waiting(self) -> list[dict[str, Any]]:
        """Return the calls that wait for approval."""
        return self._assistant.approvals.waiting() if self._assistant else []


async def main() -> None:
    """Start a server and a worker in this process, and talk on the terminal."""
    from worker import local  # only here: no workflow may import the worker

    async with local(workflows=[Chat], tools=[get_weather, send_mail]) as running:
        chat = await running.client.start_workflow(
            Chat.run, "terminal", id=f"chat-{uuid4()}", task_queue=running.task_queue
        )
        while text := (await asyncio.to_thread(input, "you: ")).strip():
            answer = asyncio.create_task(chat.execute_update(Chat.say, text))
            while not (await asyncio.wait([answer], timeout=0.5))[0]:
                for call in await chat.query(Chat.waiting):
                    ok = await asyncio.to_thread(input, f"allow {call['tool']}? [y/n] ")
                    await chat.execute_update(
                        "approve", {"call": call["call"], "ok": ok.strip().lower() == "y"}
                    )
            try:
                said = await answer
            except WorkflowUpdateFailedError as error:  # no answer, and why; the chat goes on
                said = str(error.cause)
            sys.stdout.write(f"chat: {said}\n")
        await chat.execute_update(Chat.leave)


if __name__ == "__main__":
    asyncio.run(main())
