"""Talking to a session from a script."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from agentmem.client import ask, running_dreams
from agentmem.contracts import Answer, Usage
from agentmem.testing import reply
from tests.stack import stack


async def test_a_turn_id_sent_twice_is_one_turn(client: Client, tmp_path: Path) -> None:
    """A caller that chose the turn's id may send again: same answer, no second model call."""
    async with stack(client, tmp_path, [reply("first"), reply("second")]) as running:
        session = await running.start(agent="plain", session=True)
        answer = await ask(session, "Hello", turn="t-1")
        assert (answer.turn, answer.text) == (1, "first")
        assert await ask(session, "Hello", turn="t-1") == answer
        assert (await ask(session, "Hello again")).text == "second"
        assert len(running.model.requests) == 2
        await session.signal("end")
        assert await session.result() == {"turns": 2}


async def test_a_message_taken_back_in_the_change_is_sent_again() -> None:
    """A change that collides with a signal aborts the messages that came with it."""
    sent: list[str] = []
    answer = Answer(turn=1, text="first", usage=Usage())

    class Changing:
        async def execute_update(self, _: str, __: str, *, id: str, **___: Any) -> Answer:
            sent.append(id)
            if len(sent) == 1:
                text = "Unable to perform workflow execution update due to unexpected ..."
                raise RPCError(text, RPCStatusCode.FAILED_PRECONDITION, b"")
            return answer

    session: Any = Changing()
    assert await ask(session, "Hello", turn="t-1") == answer
    assert sent == ["t-1", "t-1"]


async def test_what_a_session_refuses_says_why(client: Client, tmp_path: Path) -> None:
    """A refused message raises at once, with the reason's type; nothing is retried."""
    async with stack(client, tmp_path, [reply("first")]) as running:
        session = await running.start(agent="plain", session=True)
        with pytest.raises(WorkflowUpdateFailedError) as caught:
            await ask(session, " ")
        assert isinstance(caught.value.cause, ApplicationError)
        assert caught.value.cause.type == "InvalidInput"
        assert (await ask(session, "Hello")).text == "first"
        await session.signal("end")
        await session.result()


async def test_running_dreams_are_listed(client: Client, task_queue: str) -> None:
    """Dreams of all scopes, by their ids; one that ended is not among them."""
    name = f"dream/in_memory%3Ax/agent/{task_queue}"
    dream = await client.start_workflow("agent_dream", id=name, task_queue=task_queue)
    await listed(client, name, True)
    await dream.terminate()
    await listed(client, name, False)


async def listed(client: Client, name: str, expected: bool) -> None:
    async with asyncio.timeout(10):
        while True:
            if (name in await running_dreams(client)) == expected:
                return
            await asyncio.sleep(0.1)
