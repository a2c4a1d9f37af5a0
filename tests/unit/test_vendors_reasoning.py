"""The vendor's reasoning that survives litellm, there and back, in the vendor's own protocol.

Each vendor is a local server that answers in the shape of its documents: first with reasoning and
a tool call, then with text. What stands in its second request is what it gets back.
"""

import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from activities.llm import Models
from agentmem.contracts import ModelCall, Prompt
from agentmem.llm.request import render_request
from agentmem.llm.response import read_reply
from agentmem.messages import Message, Role
from agentmem.testing import ScriptedModel, call, reply
from agentmem.wire import JSONObject

pytestmark = pytest.mark.timeout(180)  # the first one waits for litellm's import

TOOL: JSONObject = {
    "type": "function",
    "function": {
        "name": "look",
        "description": "Look.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}


@pytest.fixture(scope="session")
async def models() -> AsyncIterator[Models]:
    """The process's models."""
    made = Models()
    yield made
    await made.close()


@asynccontextmanager
async def vendor(*replies: JSONObject) -> AsyncGenerator[tuple[str, list[JSONObject]]]:
    """Serve replies in order on any path; gives the address and the requests."""
    asked: list[JSONObject] = []

    async def answer(http: web.Request) -> web.Response:
        asked.append(await http.json())
        return web.json_response(replies[len(asked) - 1])

    app = web.Application()
    app.router.add_post("/{path:.*}", answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}", asked
    finally:
        await runner.cleanup()


async def tool_round(models: Models, model: str, **options: Any) -> None:
    """Have a tool round, the replies stored as a history stores them."""
    talk = [Message(id="m0", role=Role.USER, content="Where is it warm?", turn=1)]
    for step in (1, 2):
        call = ModelCall(
            prompt=Prompt(memory="wm0", view=[message.id for message in talk]),
            reply=f"m{step}",
            turn=1,
            step=step,
            model=model,
            tools=["look"],
        )
        body = await models.complete({**render_request(call, talk, [TOOL]), **options})
        made = read_reply(body, call, attempt=1).message
        stored = Message.model_validate_json(made.model_dump_json())
        results = [
            Message(id=f"m{9 + n}", role=Role.TOOL_RESULT, content="20", call=one.id, turn=1)
            for n, one in enumerate(stored.calls)
        ]
        talk += [stored, *results]
    assert talk[-1].text == "Cairo."


async def second_request(
    models: Models, model: str, first: JSONObject, last: JSONObject, path: str = "", **options: Any
) -> JSONObject:
    """Have a tool round with a vendor; give the second request that it got."""
    async with vendor(first, last) as (address, asked):
        await tool_round(models, model, api_base=address + path, api_key="k", **options)
        return asked[1]


ANTHROPIC_PARTS: list[JSONObject] = [
    {"type": "thinking", "thinking": "Let me look.", "signature": "s1"},
    {"type": "redacted_thinking", "data": "d"},
]


def anthropic(*content: JSONObject, stop: str) -> JSONObject:
    """A reply of Anthropic's Messages API."""
    usage = {"input_tokens": 5, "output_tokens": 5}
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5",
        "content": list(content),
        "stop_reason": stop,
        "usage": usage,
    }


async def test_anthropic_gets_its_thinking_back_unchanged(models: Models) -> None:
    """Blocks, redacted ones and signatures, in order, before the call they led to."""
    use = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"city": "Cairo"}}
    got = await second_request(
        models,
        "anthropic/claude-sonnet-4-5",
        anthropic(*ANTHROPIC_PARTS, use, stop="tool_use"),
        anthropic({"type": "text", "text": "Cairo."}, stop="end_turn"),
        reasoning_effort="low",
    )
    assistant = got["messages"][1]
    assert assistant["content"][:2] == ANTHROPIC_PARTS
    assert assistant["content"][2]["type"] == "tool_use"
    assert got["messages"][2]["content"][0]["tool_use_id"] == assistant["content"][2]["id"]


async def test_gemini_gets_its_thought_signature_back(models: Models) -> None:
    """The signature stands on the call that it came with."""
    looks = {"name": "look", "args": {"city": "Cairo"}}
    asks = {"functionCall": looks, "thoughtSignature": "c2ln"}

    def gemini(*parts: JSONObject) -> JSONObject:
        content = {"role": "model", "parts": list(parts)}
        usage = {"promptTokenCount": 5, "candidatesTokenCount": 5, "totalTokenCount": 10}
        candidate = {"content": content, "finishReason": "STOP", "index": 0}
        return {"candidates": [candidate], "usageMetadata": usage}

    got = await second_request(
        models,
        "gemini/gemini-2.5-flash",
        gemini({"text": "Let me look.", "thought": True}, asks),
        gemini({"text": "Cairo."}),
    )
    parts = got["contents"][1]["parts"]
    (asked,) = [part for part in parts if {"functionCall", "function_call"} & part.keys()]
    assert "c2ln" in json.dumps(asked)


def openai(message: JSONObject) -> JSONObject:
    """A reply of OpenAI's chat completions, and of those who speak that protocol."""
    return {
        "id": "c",
        "object": "chat.completion",
        "created": 0,
        "model": "m",
        "choices": [
            {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop"}
        ],
        "usage": {"prompt_tokens": 5, "completion_tokens": 5, "total_tokens": 10},
    }


CALL: JSONObject = {
    "id": "x",
    "type": "function",
    "function": {"name": "look", "arguments": '{"city": "Cairo"}'},
}


@pytest.mark.parametrize("model", ["openai/m", "deepseek/deepseek-reasoner", "hosted_vllm/m"])
async def test_reasoning_content_comes_back_on_the_same_message(models: Models, model: str) -> None:
    """Those who speak OpenAI's protocol get the text of their reasoning."""
    got = await second_request(
        models,
        model,
        openai({"content": None, "reasoning_content": "Let me look.", "tool_calls": [CALL]}),
        openai({"content": "Cairo."}),
        path="/v1",
    )
    assert got["messages"][1]["reasoning_content"] == "Let me look."


async def test_openrouter_gets_its_reasoning_details_back(models: Models) -> None:
    """The list with its signatures, unchanged."""
    details = [{"type": "reasoning.text", "text": "Let me look.", "signature": "s1", "index": 0}]
    got = await second_request(
        models,
        "openrouter/anthropic/claude-sonnet-4.5",
        openai({"content": None, "reasoning_details": details, "tool_calls": [CALL]}),
        openai({"content": "Cairo."}),
        path="/v1",
    )
    assert got["messages"][1]["reasoning_details"] == details


async def test_ollama_gets_the_text_of_its_thinking_back(
    models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In Ollama's own field."""
    # In a thread: litellm asks Ollama what a model can do, and blocks the loop for that.
    thinking = {"reasoning_content": "Let me look."}
    script = [reply(calls=[call("look", city="Cairo")], extra=thinking), reply("Cairo.")]
    async with ScriptedModel(script) as model:
        for name, value in model.env().items():
            monkeypatch.setenv(name, value)
        await tool_round(models, "ollama/m")
        assert model.requests[1].body["messages"][1]["thinking"] == "Let me look."
