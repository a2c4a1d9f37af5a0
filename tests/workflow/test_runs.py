"""Sessions that go on in new runs: no turn lost, none answered twice."""

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client, WorkflowFailureError, WorkflowUpdateStage
from temporalio.exceptions import ApplicationError

from agentmem.client import ask
from agentmem.testing import call, reply
from agentmem.wire import PACKED_BYTES
from tests.own_workflows import Relay
from tests.runs import (
    SHORT,
    carried_bytes,
    histories,
    history_bytes,
    hold_appends,
    replay_all,
    transcript,
)
from tests.stack import eventually, last_user_text, stack, status_where
from tests.tools import delete_file, runs

DREAMING = """[agents.plain]
system_prompt = "Be brief."
run_limits.events = 60
[agents.plain.long_term_memory]
provider = "in_memory:runs"
[agents.plain.dream]
on = ["complete"]
"""


UNBOUNDED = """system_prompt = "Be brief."
[agents.plain.working_memory]
window = 100000
max_tokens = 100000000
"""


def echo(request: Any) -> Any:
    """Answer with what was said last."""
    return reply(f"re: {last_user_text(request.messages)}")


def forgetful_echo(request: Any) -> Any:
    """Answer with its beginning; keep no request: thousands would fill the test's memory."""
    text = last_user_text(request.messages)
    request.raw, request.body = b"", {}
    return reply(f"re: {text[:40]}")


async def test_four_clients_without_a_pause_get_each_their_answer(
    client: Client, tmp_path: Path
) -> None:
    """Several runs, each turn answered once, the transcript is what was said."""
    async with stack(client, tmp_path, echo, agents=SHORT) as s:
        session = await s.start(agent="plain", session=True, message="start")

        async def talk(name: str) -> None:
            for number in range(12):
                said = f"{name}{number}"
                assert (await ask(session, said)).text == f"re: {said}"

        await asyncio.gather(*(talk(name) for name in "abcd"))
        assert (await session.query("status"))["turns"] == 49
        assert (await session.query("usage"))["requests"] == 49
        assert await session.execute_update("end") == {"turns": 49}
        assert await session.result() == {"turns": 49}
        said = [last_user_text(request.messages) for request in s.model.requests]
        assert len(said) == len(set(said)) == 49
        s.model.assert_strict()
        rows = await transcript(s.configuration.providers, "plain")
        assert rows == [
            pair for text in said for pair in (("user", text), ("assistant", f"re: {text}"))
        ]
        found = await histories(client, session)
    assert len(found) >= 4
    assert all(0 < carried_bytes(history) < 10_000 for history in found[1:])
    await replay_all(found)


async def test_a_turn_sent_again_in_a_later_run_is_not_answered_twice(
    client: Client, tmp_path: Path
) -> None:
    """Temporal knows an update's id within one run; the session knows it for its last turns."""
    async with stack(client, tmp_path, echo, agents=SHORT) as s:
        session = await s.start(agent="plain", session=True)
        first = await ask(session, "one", turn="t-1")
        for number in range(8):
            await ask(session, f"more {number}")
        assert len(await histories(client, session)) == 2
        assert await ask(session, "one", turn="t-1") == first
        assert len(s.model.requests) == 9
        await session.execute_update("end")


async def test_the_next_run_knows_what_the_one_before_said(client: Client, tmp_path: Path) -> None:
    """The model is shown the same as without a change of runs; ids and turns go on."""
    prompts: list[list[list[Any]]] = []
    for events in (60, 5_000):
        agents = SHORT.replace("60", str(events))
        async with stack(client, tmp_path, echo, agents=agents) as s:
            session = await s.start(agent="plain", session=True)
            answers = [await ask(session, f"say {number}") for number in range(12)]
            assert [answer.turn for answer in answers] == list(range(1, 13))
            prompts.append([request.messages for request in s.model.requests])
            page = await session.query("messages")
            assert [entry["id"] for entry in page["messages"]] == [f"m{n}" for n in range(24)]
            await session.execute_update("end")
            count = len(await histories(client, session))
            assert (count > 1) == (events == 60)
    assert prompts[0] == prompts[1]


@pytest.mark.parametrize("tool", ["delete_file", "ask_user"])
async def test_waiting_for_a_person_postpones_the_change(
    client: Client, tmp_path: Path, tool: str
) -> None:
    """While one is waited for, sends are taken; then all is answered, then the change.

    The new run is due before the person is asked. The answer comes to another worker; the next run
    knows the result and what was said.
    """

    def script(request: Any) -> Any:
        text = last_user_text(request.messages)
        asks = text == "go" and request.messages[-1]["role"] == "user"
        arguments = {"path": "a"} if tool == "delete_file" else {"question": "which?"}
        if asks:
            return reply(calls=[call(tool, **arguments)])
        return reply(f"re: {text}", delay=2 if text == "one" else 0)

    agents = SHORT.replace("60", "1") + f'tools = ["{tool}"]\n'
    options: dict[str, Any] = {"agents": agents, "extra": [delete_file]}
    runs.clear()
    async with stack(client, tmp_path, script, **options) as s:
        session = await s.start(agent="plain", session=True, message="one")
        waiting = await session.start_update(
            "send", "go", wait_for_stage=WorkflowUpdateStage.ACCEPTED
        )
        status = await status_where(session, lambda found: found["approvals"], 30)
        assert status["turns"] == 2
    async with stack(client, tmp_path, script, task_queue=s.task_queue, **options) as s:
        other = await session.start_update(
            "send", "two", wait_for_stage=WorkflowUpdateStage.ACCEPTED
        )
        assert len(await histories(client, session)) == 1
        answer = {"call": status["approvals"][0]["call"], "ok": True, "answer": "the left one"}
        assert await session.execute_update("approve", answer)
        assert await waiting.result() == "re: go"
        assert await other.result() == "re: two"
        assert (await ask(session, "three")).text == "re: three"
        told = [m["content"] for m in s.model.requests[-1].messages if m["role"] == "tool"]
        assert told == ["deleted a" if tool == "delete_file" else "the left one"]
        assert runs == (["delete a"] if tool == "delete_file" else [])
        await session.execute_update("end")
        found = await histories(client, session)
        s.model.assert_strict()
    assert len(found) >= 2
    await replay_all(found)


async def test_a_session_dreams_across_its_runs(client: Client, tmp_path: Path) -> None:
    """A change right after a dream was started loses neither; each message is there once."""
    async with stack(client, tmp_path, echo, agents=DREAMING) as s:
        session = await s.start(agent="plain", scope=s.task_queue, session=True)
        said = [f"say {number}" for number in range(15)]
        for text in said:
            assert (await ask(session, text)).text == f"re: {text}"
        await session.signal("end")
        assert await session.result() == {"turns": 15}
        found = await histories(client, session)
        provider = await s.configuration.providers.get("in_memory:runs")
        rows = await provider.unread("plain", s.task_queue, 1_000_000)
    assert len(found) >= 2
    assert [row.text for row in rows if row.role == "user"] == said
    assert [row.seq for row in rows] == list(range(1, 31))
    await replay_all(found)


async def test_what_the_store_did_not_take_goes_along(client: Client, tmp_path: Path) -> None:
    """A store that fails at the change loses nothing: a later change appends it."""
    database = tmp_path / "memory.db"
    async with stack(client, tmp_path, echo, agents=SHORT) as s:
        session = await s.start(agent="plain", session=True)
        provider: Any = await s.configuration.providers.get("default")
        original, broken = provider.append, asyncio.Event()

        async def refuse(*_: Any) -> int:
            broken.set()
            raise ApplicationError("the disk is full", non_retryable=True)

        provider.append = refuse
        for number in range(8):
            await ask(session, f"say {number}")
        assert broken.is_set()
        assert len(await histories(client, session)) == 2
        provider.append = original
        for number in range(8, 12):
            await ask(session, f"say {number}")
        await session.execute_update("end")
        await session.result()
        rows = await transcript(s.configuration.providers, "plain")
        assert [text for role, text in rows if role == "user"] == [f"say {n}" for n in range(12)]
    assert database.exists()


async def test_end_while_the_run_changes_ends_the_session(client: Client, tmp_path: Path) -> None:
    """A signal that comes in the middle of the change is not lost with the old run."""
    async with stack(client, tmp_path, echo, agents=SHORT.replace("60", "11")) as s:
        entered, go = hold_appends(await s.configuration.providers.get("default"))
        session = await s.start(agent="plain", session=True, message="one")
        await eventually(entered.is_set)
        await session.signal("end")
        go.set()
        assert await session.result() == {"turns": 1}
        assert len(await histories(client, session)) == 1


@pytest.mark.parametrize("second", [b"", b"junk", "text", None], ids=str)
async def test_a_second_argument_that_no_run_handed_on_is_refused(
    client: Client, tmp_path: Path, second: Any
) -> None:
    """The workflow fails with a reason; it is not left running with failing tasks."""
    async with stack(client, tmp_path) as s:
        with pytest.raises(WorkflowFailureError) as caught:
            await client.execute_workflow(
                "agent",
                args=[{"agent": "plain", "session": True}, second],
                id=s.task_queue,
                task_queue=s.task_queue,
            )
    assert isinstance(caught.value.cause, ApplicationError)
    assert caught.value.cause.type == "InvalidInput"


async def test_a_workflow_of_ones_own_goes_on_in_new_runs(client: Client, tmp_path: Path) -> None:
    """`dump` and `restore`: three runs, one conversation, ids that go on."""
    async with stack(client, tmp_path, echo, extra=[Relay]) as s:
        said: list[dict[str, str]] = await s.run("Relay", ["a", "b", "c", "d", "e"])
        s.model.assert_strict()
        last = s.model.requests[-1].messages
    assert [entry["id"] for entry in said] == [f"m{number}" for number in range(10)]
    assert [entry["content"] for entry in said][::2] == ["a", "b", "c", "d", "e"]
    assert [m["content"] for m in last if m["role"] == "user"] == ["a", "b", "c", "d", "e"]


@pytest.mark.slow
@pytest.mark.timeout(1200)
async def test_a_session_of_2500_turns(client: Client, tmp_path: Path) -> None:
    """The default limits; every answer is right, the transcript is what was said."""
    turns = 2_500
    agents = '[agents.plain]\nsystem_prompt = "Be brief."\nworking_memory.max_tokens = 2000\n'
    async with stack(client, tmp_path, forgetful_echo, agents=agents) as s:
        session = await s.start(agent="plain", session=True)
        said = [f"turn {number}: {'lorem ipsum ' * 5}" for number in range(turns)]
        for text in said:
            assert (await ask(session, text)).text == f"re: {text[:40]}"
        assert len(s.model.requests) == turns
        s.model.assert_strict()
        await session.execute_update("end")
        assert await session.result() == {"turns": turns}
        rows = await transcript(s.configuration.providers, "plain")
        found = await histories(client, session)
    assert rows == [
        row for text in said for row in (("user", text), ("assistant", f"re: {text[:40]}"))
    ]
    assert len(found) >= 10
    assert all(len(history.events) < 2_500 for history in found)
    await replay_all(found[:2] + found[-1:])


@pytest.mark.slow
@pytest.mark.timeout(1200)
async def test_500_turns_of_20_kilobytes_unbounded(client: Client, tmp_path: Path) -> None:
    """Nothing bounds the view; what a run hands on and its history stay small."""
    words = random.Random(7)

    def message(number: int) -> str:
        made = "".join(words.choices("abcdefghijklmnopqrstuvwxyz      ", k=20_000))
        return f"{number} {made}"

    async with stack(client, tmp_path, forgetful_echo, agents="[agents.plain]\n" + UNBOUNDED) as s:
        session = await s.start(agent="plain", session=True)
        said = [message(number) for number in range(500)]
        for text in said:
            assert (await ask(session, text)).text == f"re: {text[:40]}"
        s.model.assert_strict()
        await session.execute_update("end")
        await session.result()
        rows = await transcript(s.configuration.providers, "plain")
        found = await histories(client, session)
    assert [text for role, text in rows if role == "user"] == said
    assert len(found) > 3
    assert 500_000 < max(map(carried_bytes, found)) <= PACKED_BYTES
    assert all(history_bytes(history) < 10_000_000 for history in found)
