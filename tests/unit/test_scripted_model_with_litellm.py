"""The scripted model as litellm sees it, in OpenAI's protocol and in Ollama's."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from types import ModuleType
from typing import Any

import pytest

from agentmem.testing import ScriptedModel, call, fail, hang, reply, reset

USER = {"role": "user", "content": "What is the weather?"}
TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {"name": "get_weather", "parameters": {"type": "object", "properties": {}}},
    }
]
PROTOCOLS = ["openai/scripted", "ollama_chat/llama3.2"]

Ask = Callable[..., Any]


@pytest.fixture(scope="session")
def litellm() -> ModuleType:
    """The library, imported once: it takes seconds."""
    import litellm

    return litellm


@pytest.fixture(params=PROTOCOLS)
def ask(
    request: pytest.FixtureRequest, litellm: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> Ask:
    """Ask a scripted model through litellm, in one of the two protocols."""

    async def ask(model: ScriptedModel, *messages: dict[str, Any], **options: Any) -> Any:
        for name, value in model.env().items():
            monkeypatch.setenv(name, value)
        return await litellm.acompletion(
            model=request.param, messages=list(messages) or [USER], num_retries=0, **options
        )

    return ask


async def failure(asking: Awaitable[Any], kind: type[Exception]) -> Any:
    with pytest.raises(kind) as caught:
        await asking
    return caught.value


async def test_litellm_reads_a_text_and_its_usage(ask: Ask) -> None:
    """A text arrives with finish reason stop; usage is the request's bytes by four."""
    async with ScriptedModel([reply("Sunny.")]) as model:
        answer = await ask(model)
    assert answer.choices[0].message.content == "Sunny."
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage.prompt_tokens == len(model.requests[0].raw) // 4


async def test_litellm_reads_given_usage(ask: Ask) -> None:
    """Token counts in a reply replace the estimate."""
    usage = {"prompt_tokens": 7000, "completion_tokens": 5}
    async with ScriptedModel([reply("Sunny.", usage=usage)]) as model:
        answer = await ask(model)
    assert (answer.usage.prompt_tokens, answer.usage.total_tokens) == (7000, 7005)


async def test_litellm_reads_one_tool_call(ask: Ask) -> None:
    """A call arrives with its name and arguments; the tools are declared natively."""
    async with ScriptedModel([reply(calls=[call("get_weather", city="Oslo")])]) as model:
        answer = await ask(model, tools=TOOLS)
    (asked,) = answer.choices[0].message.tool_calls
    assert (asked.function.name, json.loads(asked.function.arguments)) == (
        "get_weather",
        {"city": "Oslo"},
    )
    assert answer.choices[0].finish_reason == "tool_calls"
    assert model.requests[0].tools == TOOLS


async def test_a_tool_round_with_parallel_calls_passes_strict(ask: Ask) -> None:
    """Two calls of one reply, sent back with their results, are a sound next request."""
    cities = [call("get_weather", city="Oslo"), call("get_weather", city="Cairo")]
    async with ScriptedModel([reply(calls=cities), reply("Cold and hot.")]) as model:
        answer = await ask(model, tools=TOOLS)
        asked = answer.choices[0].message.model_dump(exclude_none=True)
        ids = [one["id"] for one in asked["tool_calls"]]
        results = [{"role": "tool", "tool_call_id": i, "content": "20"} for i in ids]
        answer = await ask(model, USER, asked, *results, tools=TOOLS)
    assert answer.choices[0].message.content == "Cold and hot."
    assert len(set(ids)) == 2
    model.assert_strict()


async def test_reasoning_sent_back_passes_and_reasoning_lost_is_refused(
    ask: Ask, litellm: ModuleType
) -> None:
    """The endpoint knows over the wire which reasoning it gave with which message."""
    thought = reply("Hello.", extra={"reasoning_content": "A greeting."})
    async with ScriptedModel([thought, reply("Yes.")]) as model:
        answer = await ask(model)
        said = answer.choices[0].message.model_dump(exclude_none=True)
        assert said["reasoning_content"] == "A greeting."
        await ask(model, USER, said, USER)
        model.assert_strict()
        del said["reasoning_content"]
        with pytest.raises(litellm.BadRequestError, match="reasoning: "):
            await ask(model, USER, said, USER)


async def test_a_failure_carries_status_and_headers(ask: Ask, litellm: ModuleType) -> None:
    """A 429 is a RateLimitError, and its Retry-After can be read from the exception."""
    async with ScriptedModel([fail(429, "slow down", headers={"Retry-After": "7"})]) as model:
        error = await failure(ask(model), litellm.RateLimitError)
    assert "slow down" in str(error)
    assert error.litellm_response_headers["retry-after"] == "7"


async def test_a_context_length_error_keeps_its_wording(ask: Ask, litellm: ModuleType) -> None:
    """A 400 arrives as BadRequestError with the provider's own sentence."""
    async with ScriptedModel([fail(400, "input tokens exceed the limit of 8000")]) as model:
        error = await failure(ask(model), litellm.BadRequestError)
    assert "input tokens exceed the limit of 8000" in str(error)


@pytest.mark.parametrize("headers_first", [False, True])
async def test_a_reset_is_a_connection_error(
    ask: Ask, litellm: ModuleType, headers_first: bool
) -> None:
    """A connection reset before or halfway through the answer is an error, then over."""
    async with ScriptedModel([reset(headers_first=headers_first), reply("Sunny.")]) as model:
        with pytest.raises((litellm.InternalServerError, litellm.APIConnectionError)):
            await ask(model)
        assert (await ask(model)).choices[0].message.content == "Sunny."
    assert len(model.requests) == 2


@pytest.mark.parametrize("headers_first", [False, True])
async def test_a_cancelled_call_is_seen_by_the_server(ask: Ask, headers_first: bool) -> None:
    """Cancelling the call closes the HTTP request, with and without headers received."""
    async with ScriptedModel([hang(headers_first=headers_first)]) as model:
        asking = asyncio.create_task(ask(model))
        request = await model.received(1)
        assert not request.disconnected
        asking.cancel()
        async with asyncio.timeout(5):
            assert await model.disconnected(1) is request
        with pytest.raises(asyncio.CancelledError):
            await asking


async def test_a_timeout_is_seen_by_the_server(ask: Ask, litellm: ModuleType) -> None:
    """An endpoint that never answers ends in the client's timeout, and is told so."""
    async with ScriptedModel([hang()]) as model:
        with pytest.raises(litellm.Timeout):
            await ask(model, timeout=0.3)
        async with asyncio.timeout(5):
            await model.disconnected(1)
