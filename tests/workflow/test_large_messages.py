"""Large messages and long conversations: cut, refused or read by page, never a stuck workflow."""

from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client, WorkflowHandle, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError

from agentmem.agent.loop import TURN_BYTES
from agentmem.client import ask
from agentmem.inputs import MESSAGE_BYTES
from agentmem.testing import Reply, Request, call, reply
from agentmem.wire import encoded_size
from tests.long_workflows import LongTalk, dump, read_page
from tests.stack import last_user_text, stack
from tests.workflow.test_compaction import hand_in

AGENTS = """
[agents.plain]
system_prompt = "Be brief."
working_memory.max_tokens = 50000
[agents.dumper]
tools = ["dump"]
max_tool_calls = 100
working_memory.max_tokens = 50000
[agents.reader]
tools = ["read_page"]
working_memory.max_tokens = 50000
"""
TOOLS = [dump, read_page]
KINDS = {"plain": "x", "quotes": '"', "emoji": "\U0001f680", "nuls": "\x00"}


def echo(request: Request) -> Reply:
    return reply(f"{len(last_user_text(request.messages))} characters")


async def history(session: WorkflowHandle[Any, Any]) -> tuple[int, int]:
    """Return a run's history: events and bytes."""
    info = (await session.describe()).raw_description.workflow_execution_info
    return info.history_length, info.history_size_bytes


@pytest.mark.parametrize("kind", KINDS)
async def test_a_message_at_the_limit_is_answered_and_over_it_refused(
    client: Client, tmp_path: Path, kind: str
) -> None:
    """Limits count encoded bytes; what is refused never reaches the history."""
    character = KINDS[kind]
    most = MESSAGE_BYTES // encoded_size(character)
    async with stack(client, tmp_path, echo, agents=AGENTS, extra=TOOLS) as s:
        session = await s.start(agent="plain", session=True)
        await session.execute_update("send", "hello")
        before = await history(session)
        with pytest.raises(WorkflowUpdateFailedError) as caught:
            await session.execute_update("send", character * (most + 1))
        assert isinstance(caught.value.cause, ApplicationError)
        assert caught.value.cause.type == "InvalidInput"
        assert f"{(most + 1) * encoded_size(character)} bytes" in caught.value.cause.message
        assert await history(session) == before
        await session.execute_update("send", character * most)
        shown = last_user_text(s.model.requests[-1].messages)
        fits = len(character.encode()) * most < 4 * 50_000  # the agent's budget counts UTF-8
        notice = f"... [cut: {most * encoded_size(character)} bytes in full]"
        assert shown == character * most if fits else shown.endswith(notice)
        assert await session.execute_update("send", "still there?") == "12 characters"
        s.model.assert_strict()


@pytest.mark.parametrize("at_once", [True, False], ids=["at once", "one by one"])
async def test_a_turn_with_megabytes_of_results_ends_with_an_answer(
    client: Client, tmp_path: Path, at_once: bool
) -> None:
    """25 results of 1 MiB; at 20 MiB of history the model is asked for its answer."""

    def script(request: Request) -> Reply:
        results = sum(message["role"] == "tool" for message in request.messages)
        asked = last_user_text(request.messages)
        may_call = request.body.get("tool_choice") != "none"
        if asked == "dump it" and may_call and (not at_once or not results):
            return reply(calls=[call("dump", number=i) for i in range(25 if at_once else 1)])
        return reply("That was much.")

    async with stack(client, tmp_path, script, agents=AGENTS, extra=TOOLS) as s:
        session = await s.start(agent="dumper", session=True)
        answer = await ask(session, "dump it")
        assert answer.text == "That was much."
        _, size = await history(session)
        assert TURN_BYTES < size < 30_000_000
        assert s.model.requests[-1].body["tool_choice"] == "none"
        shown = [m for m in s.model.requests[-1].messages if m["role"] == "tool"]
        assert shown
        assert all("bytes in full]" in str(m["content"]) for m in shown)
        assert (await ask(session, "and now?")).text == "That was much."
        s.model.assert_strict()


async def test_a_reply_of_megabytes_is_cut_and_the_session_lives(
    client: Client, tmp_path: Path
) -> None:
    """3 MB of answer become 1 MiB that says its full size; the next turn is answered."""
    script = [reply("y" * 3_000_000), reply("short")]
    async with stack(client, tmp_path, script, agents=AGENTS, extra=TOOLS) as s:
        session = await s.start(agent="plain", session=True)
        text = await session.execute_update("send", "write much")
        assert "[cut: 3000000 bytes in full" in text
        assert await session.execute_update("send", "thanks") == "short"


async def test_an_unbounded_view_of_three_megabytes_is_read_by_page(
    client: Client, tmp_path: Path
) -> None:
    """300 messages of 10 kB, window None: no argument near the limit, all of it sent."""
    async with stack(client, tmp_path, echo, extra=[LongTalk]) as s:
        result = await s.run("LongTalk", 300, 10_000, {})
        first, second = s.model.requests
    assert result == ["14 characters", "15 characters", "m0", "m303"]
    assert (len(first.messages), len(second.messages)) == (302, 304)


@pytest.mark.slow
@pytest.mark.timeout(120)
async def test_five_thousand_messages_hold_no_task_up(client: Client, tmp_path: Path) -> None:
    """View, budget and compaction of 10 MB take no task longer than Temporal allows."""

    def script(request: Request) -> Reply:
        return hand_in("They talked so far.") if request.model == "summariser" else echo(request)

    memory = {"window": 400, "max_tokens": 50_000, "compact_model": "openai/summariser"}
    async with stack(client, tmp_path, script, extra=[LongTalk]) as s:
        result = await s.run("LongTalk", 5_000, 2_000, memory)
        models = [request.model for request in s.model.requests]
    assert result[:2] == ["14 characters", "15 characters"]
    assert models.count("test-model") == 2
    assert "summariser" in models


@pytest.mark.slow
@pytest.mark.timeout(400)
async def test_three_hundred_turns_with_large_tool_results(client: Client, tmp_path: Path) -> None:
    """6 MB of tool results; every turn is answered, whatever runs it takes."""

    def script(request: Request) -> Reply:
        number = int(last_user_text(request.messages).split()[1])
        if request.messages[-1]["role"] == "user":
            return reply(calls=[call("read_page", number=number)])
        content = str(request.messages[-1]["content"])
        return reply(" ".join(content.split()[:2]))

    async with stack(client, tmp_path, script, agents=AGENTS, extra=TOOLS) as s:
        session = await s.start(agent="reader", session=True)
        for number in range(300):
            assert (await ask(session, f"read {number}")).text == f"page {number}"
        _, size = await history(session)
        assert size < 10_000_000
        assert (await session.describe()).run_id != session.first_execution_run_id
        assert (await session.query("status"))["turns"] == 300
        s.model.assert_strict()
