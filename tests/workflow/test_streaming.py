"""Replies read piece by piece: the same answers, and slow is not silent."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client, WorkflowFailureError, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError

from agentmem.testing import Reply, call, hang, reply
from tests.counted_tools import get_temp, most
from tests.stack import eventually, stack

AGENTS = '[agents.plain]\ntools = ["get_temp"]\nstream = true\nreply_minutes = 0.05\n'  # 3 seconds
ALL: dict[str, Any] = {"agents": AGENTS, "extra": [get_temp]}
TEXT = "The weather in Oslo is cold, and it is warm in Cairo."
HELLO: dict[str, Any] = {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "m"}


def chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    """A chunk as OpenAI's protocol has it."""
    return {**HELLO, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


@pytest.mark.parametrize("model", ["openai/test-model", "ollama/test-model"])
async def test_a_streamed_turn_is_the_same_turn(client: Client, tmp_path: Path, model: str) -> None:
    """Parallel calls, text, reasoning and usage arrive through litellm as they were."""
    both = [call("get_temp", city="Rome"), call("get_temp", city="Cairo")]
    script = [
        reply(calls=both, extra={"reasoning_content": "Both of them, at once."}),
        reply(TEXT, usage={"prompt_tokens": 50, "completion_tokens": 20}),
    ]
    async with stack(client, tmp_path, script, model_name=model, **ALL) as s:
        handle = await s.start(agent="plain", session=True)
        answer = await handle.execute_update("ask", "where is it warm?")
        assert answer["text"] == TEXT
        assert answer["usage"]["completion"] >= 20
        first, second = s.model.requests
        assert first.body["stream"] is second.body["stream"] is True
        results = [m["content"] for m in second.messages if m["role"] == "tool"]
        assert results == ["Rome: 20", "Cairo: 20"]
        page = await handle.query("messages")
        roles = [entry["role"] for entry in page["messages"]]
        assert roles[:2] == ["user", "reasoning"]
        assert roles[2:] == ["tool_call", "tool_result", "tool_result", "assistant"]
        await handle.execute_update("end")
        s.model.assert_strict()


@pytest.mark.parametrize("index", [0, None])
async def test_calls_that_a_provider_numbers_badly_are_kept_apart(
    client: Client, tmp_path: Path, index: int | None
) -> None:
    """Two calls at one place, no usage, a chunk without a delta: two right results."""
    most.clear()
    given = (("a", '{"city": "Rome"}'), ("b", '{"city": "Cairo"}'))
    functions = [(i, {"name": "get_temp", "arguments": arguments}) for i, arguments in given]
    chunks: list[dict[str, Any]] = [chunk(role="assistant", content=None)]
    for i, function in functions:
        chunks.append(chunk(tool_calls=[{"index": index, "id": i, "function": function}]))
    chunks += [chunk("tool_calls"), {**HELLO, "choices": []}]
    script = [reply("unused", chunks=chunks), reply(TEXT)]
    async with stack(client, tmp_path, script, **ALL) as s:
        handle = await s.start(agent="plain", message="where is it warm?")
        assert await handle.result() == TEXT
        results = [m["content"] for m in s.model.requests[1].messages if m["role"] == "tool"]
        assert results == ["Rome: 20", "Cairo: 20"]
        assert most["together"] == 2


async def test_a_slow_model_that_keeps_sending_is_not_given_up(
    client: Client, tmp_path: Path
) -> None:
    """A reply takes longer than the limit for a silence; it is asked for once."""
    async with stack(client, tmp_path, [reply(TEXT, pause=0.8)], **ALL) as s:
        handle = await s.start(agent="plain", message="hi")
        began = asyncio.get_running_loop().time()
        assert await handle.result() == TEXT
        assert asyncio.get_running_loop().time() - began > 4
        assert len(s.model.requests) == 1


@pytest.mark.slow
async def test_without_stream_the_limit_is_for_the_whole_reply(
    client: Client, tmp_path: Path
) -> None:
    """One that takes longer is closed, tried again within the turn's time, and named."""
    agents = AGENTS.replace("stream = true", "turn_minutes = 0.12")
    slow = reply(TEXT, delay=60)
    async with stack(client, tmp_path, [slow] * 5, agents=agents, extra=[get_temp]) as s:
        handle = await s.start(agent="plain", message="hi")
        with pytest.raises(WorkflowFailureError) as caught:
            await handle.result()
        assert isinstance(caught.value.cause, ApplicationError)
        assert "in time" in caught.value.cause.message
        assert 2 <= len(s.model.requests) <= 3


ERROR = {"error": {"message": "Overloaded", "type": "overloaded_error", "code": 529}}
PIECES = [chunk(role="assistant", content=""), *[chunk(content="half ") for _ in range(10)]]


@pytest.mark.slow
@pytest.mark.parametrize(
    "broken",
    [
        reply("x", chunks=[ERROR]),
        reply("x", chunks=[*PIECES, ERROR]),
        Reply(content=TEXT, chunks=PIECES, ending="hang"),
        Reply(content=TEXT, chunks=PIECES, ending="reset"),
    ],
    ids=["first", "after ten", "silent", "reset"],
)
async def test_a_stream_that_breaks_is_asked_for_again(
    client: Client, tmp_path: Path, broken: Reply
) -> None:
    """The half that came is dropped; the answer stands in the talk once."""
    async with stack(client, tmp_path, [broken, reply(TEXT)], **ALL) as s:
        handle = await s.start(agent="plain", session=True)
        assert await handle.execute_update("send", "hi") == TEXT
        page = await handle.query("messages")
        assert [entry["content"] for entry in page["messages"]] == ["hi", TEXT]
        assert len(s.model.requests) == 2
        await handle.execute_update("end")
        s.model.assert_strict()


@pytest.mark.slow
@pytest.mark.parametrize("stream", ["true", "false"])
async def test_cancelling_a_turn_closes_its_connection(
    client: Client, tmp_path: Path, stream: str
) -> None:
    """Within two seconds, of pieces and of a whole reply; the next turn works."""
    slow = reply(TEXT * 20, pause=0.5) if stream == "true" else hang(headers_first=True)
    options: dict[str, Any] = {**ALL, "agents": AGENTS.replace("true", stream)}
    async with stack(client, tmp_path, [slow, hang(), reply(TEXT)], **options) as s:
        handle = await s.start(agent="plain", session=True)
        for number in (1, 2):
            turn = asyncio.create_task(handle.execute_update("send", "hi"))
            await eventually(lambda number=number: len(s.model.requests) == number)
            await asyncio.sleep(0.5)
            assert await handle.execute_update("cancel_turn") is True
            await eventually(lambda number=number: s.model.requests[number - 1].disconnected, 2)
            with pytest.raises(WorkflowUpdateFailedError):
                await turn
        assert await handle.execute_update("send", "hi") == TEXT
        await handle.execute_update("end")
        s.model.assert_strict()
