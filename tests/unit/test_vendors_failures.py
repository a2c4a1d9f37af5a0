"""Failures as vendors send them, through litellm's code for each: told by status, code and size.

Each vendor is a local server that answers with the status and the body of its documents or of
reports from the field. What none of them shares is the wording.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
from aiohttp import web

from activities.llm import Models
from agentmem.contracts import FailedCall
from agentmem.errors import ModelCallError
from agentmem.wire import JSONObject

pytestmark = pytest.mark.timeout(180)  # the first one waits for litellm's import

LONG = "word " * 16_000  # above half of the context that Ollama is asked for
VENDORS = {
    "openai": "openai/own-model",
    "anthropic": "anthropic/claude-own",
    "gemini": "gemini/own-model",
    "mistral": "mistral/own-model",
    "groq": "groq/own-model",
    "deepseek": "deepseek/own-model",
    "xai": "xai/own-model",
    "openrouter": "openrouter/vendor/own-model",
    "together": "together_ai/own-model",
    "vllm": "hosted_vllm/own-model",
    "moonshot": "moonshot/own-model",
    "glm": "zai/own-model",
    "sambanova": "sambanova/own-model",
    "ai21": "ai21_chat/own-model",
    "alibaba": "dashscope/own-model",
    "cohere": "cohere_chat/own-model",
    "ollama": "ollama/own-model",
}


@pytest.fixture(scope="session")
async def models() -> AsyncIterator[Models]:
    """The process's models."""
    made = Models()
    yield made
    await made.close()


async def complete(models: Models, request: JSONObject, **options: Any) -> JSONObject:
    """Ask by models of their own, which know of no rate limit and wait 0.3 seconds for one.

    The process's models keep the connections meanwhile.
    """
    models.start_loading()
    own = Models(timeout=timedelta(seconds=2.3))
    try:
        return await own.complete(request, **options)
    finally:
        await own.close()


@asynccontextmanager
async def refusing(status: int, body: JSONObject) -> AsyncGenerator[tuple[str, list[str]]]:
    """Answer every request with an error; gives the address and the paths."""
    asked: list[str] = []

    async def answer(http: web.Request) -> web.Response:
        await http.read()
        asked.append(http.path)
        return web.json_response(body, status=status)

    app = web.Application(client_max_size=1 << 24)
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}", asked
    finally:
        await runner.cleanup()


async def failure(
    models: Models, model: str, status: int, body: JSONObject, *, stream: bool, text: str = "hi"
) -> tuple[str, bool]:
    """Return the kind of a failed call, and whether it is final; asked once."""
    messages = [{"role": "user", "content": text}]
    async with refusing(status, body) as (address, asked):
        request = {"model": model, "messages": messages, "api_base": address, "api_key": "k"}
        with pytest.raises(ModelCallError) as caught:
            await complete(models, request, stream=stream, seconds=20)
    assert len(asked) == 1
    [failed] = caught.value.details
    assert isinstance(failed, FailedCall)
    return failed.kind, caught.value.non_retryable


both = pytest.mark.parametrize("stream", [False, True])

OVERFLOWS: list[tuple[str, int, JSONObject]] = [
    ("openai", 400, {"error": {"message": "x", "code": "context_length_exceeded"}}),
    (
        "anthropic",
        400,
        {"type": "error", "error": {"type": "invalid_request_error", "message": "?"}},
    ),
    ("anthropic", 413, {"type": "error", "error": {"type": "request_too_large", "message": "?"}}),
    ("gemini", 400, {"error": {"code": 400, "status": "INVALID_ARGUMENT", "message": "太多"}}),
    ("mistral", 422, {"object": "error", "type": "invalid_request_error", "message": "?"}),
    ("groq", 413, {"error": {"message": "?", "type": "tokens", "code": "rate_limit_exceeded"}}),
    ("deepseek", 400, {"error": {"message": "?", "type": "invalid_request_error"}}),
    ("xai", 400, {"code": "Client specified an invalid argument", "error": "?"}),
    ("openrouter", 400, {"error": {"code": 400, "message": "Provider returned error"}}),
    ("together", 422, {"error": {"message": "`inputs` + `max_new_tokens`: ?", "type": "?"}}),
    ("vllm", 400, {"object": "error", "message": "the decoder prompt: ?", "code": 400}),
    ("moonshot", 400, {"error": {"message": "?", "type": "invalid_request_error"}}),
    ("glm", 400, {"error": {"code": "1261", "message": "Prompt 超长"}}),
    ("sambanova", 400, {"error": {"message": "?", "code": None}}),
    ("ai21", 422, {"detail": "?"}),
    ("alibaba", 400, {"error": {"code": "invalid_parameter_error", "message": "?"}}),
    ("cohere", 400, {"message": "?"}),
    ("ollama", 400, {"error": "?"}),
]


@both
@pytest.mark.parametrize(("vendor", "status", "body"), OVERFLOWS)
async def test_a_large_request_that_is_refused(
    models: Models, vendor: str, status: int, body: JSONObject, *, stream: bool
) -> None:
    """Whatever the words, and the words are question marks: it may be too long."""
    model = VENDORS[vendor]
    kind, final = await failure(models, model, status, body, stream=stream, text=LONG)
    assert final
    assert kind in ("overflow", "large")


@both
@pytest.mark.parametrize("vendor", VENDORS)
async def test_a_rate_limit_a_bill_and_an_overload(
    models: Models, vendor: str, *, stream: bool
) -> None:
    """By status alone, where the text says something else."""
    text = "usage limit of 3 concurrent requests: billing APIConnectionError, slow down"
    for status, expected in (
        (429, ("limited", False)),
        (402, ("quota", True)),
        (401, ("key", True)),
        (503, ("down", False)),
        (422, ("invalid", True)),
    ):
        body: JSONObject = {"error": {"message": text}, "message": text}
        found = await failure(models, VENDORS[vendor], status, body, stream=stream)
        assert (status, found) == (status, expected)


ANTHROPIC = (
    'event: message_start\ndata: {"type": "message_start", "message": {"id": "m", "type": '
    '"message", "role": "assistant", "model": "m", "content": [], "stop_reason": null, "usage": '
    '{"input_tokens": 5, "output_tokens": 1}}}\n\n'
    'event: content_block_start\ndata: {"type": "content_block_start", "index": 0, '
    '"content_block": {"type": "text", "text": ""}}\n\n'
    'event: content_block_delta\ndata: {"type": "content_block_delta", "index": 0, "delta": '
    '{"type": "text_delta", "text": "Cai"}}\n\n'
    "event: error\ndata: "
)
OPENAI = (
    'data: {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "m", "choices": '
    '[{"index": 0, "delta": {"content": "Cai"}, "finish_reason": null}]}\n\ndata: '
)
GEMINI = (
    'data: {"candidates": [{"content": {"role": "model", "parts": [{"text": "Cai"}]}, '
    '"index": 0}]}\n\ndata: '
)
OLLAMA = (
    '{"model": "m", "created_at": "2026-01-01T00:00:00Z", "done": false, "message": '
    '{"role": "assistant", "content": "Cai"}}\n'
)


@asynccontextmanager
async def streaming(text: str, kind: str) -> AsyncGenerator[tuple[str, list[str]]]:
    """Answer every request with a stream; gives the address and the paths."""
    asked: list[str] = []

    async def answer(http: web.Request) -> web.Response:
        await http.read()
        asked.append(http.path)
        return web.Response(text=text, content_type=kind)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}", asked
    finally:
        await runner.cleanup()


STREAMS = [
    ("anthropic", ANTHROPIC, '{"type": "error", "error": {"type": "%s", "message": "?"}}'),
    ("openai", OPENAI, '{"error": {"type": "%s", "message": "?"}}'),
    ("mistral", OPENAI, '{"error": {"type": "%s", "message": "?"}}'),
    ("openrouter", OPENAI, '{"error": {"type": "%s", "message": "?"}}'),
    ("vllm", OPENAI, '{"error": {"type": "%s", "message": "?"}}'),
    ("gemini", GEMINI, '{"error": {"status": "%s", "message": "?"}}'),
    ("ollama", OLLAMA, '{"error": {"type": "%s", "message": "?"}}'),
]


@pytest.mark.parametrize(("vendor", "begun", "error"), STREAMS)
async def test_an_error_in_the_middle_of_a_stream(
    models: Models, vendor: str, begun: str, error: str
) -> None:
    """The status was 200; the error's own code says whether a retry can help."""
    kind = "application/x-ndjson" if vendor == "ollama" else "text/event-stream"
    for code, expected in (
        ("overloaded_error", ("down", False)),
        ("rate_limit_error", ("limited", False)),
        ("invalid_request_error", ("invalid", True)),
        ("authentication_error", ("key", True)),
        ("nobody_knows", ("failing", False)),
    ):
        async with streaming(f"{begun}{error % code}\n\n", kind) as (address, _):
            request = {
                "model": VENDORS[vendor],
                "messages": [{"role": "user", "content": "where?"}],
                "api_base": address,
                "api_key": "k",
            }
            with pytest.raises(ModelCallError) as caught:
                await complete(models, request, stream=True, seconds=20)
        [failed] = caught.value.details
        assert (code, failed.kind, caught.value.non_retryable) == (code, *expected)


@pytest.mark.parametrize(("vendor", "begun", "error"), STREAMS)
async def test_a_stream_that_is_cut_is_no_reply(
    models: Models, vendor: str, begun: str, error: str
) -> None:
    """Closed in good order after half of the text: tried again, not taken for the answer."""
    kind = "application/x-ndjson" if vendor == "ollama" else "text/event-stream"
    text = begun.removesuffix("data: ").removesuffix("event: error\n")
    async with streaming(text, kind) as (address, _):
        request = {
            "model": VENDORS[vendor],
            "messages": [{"role": "user", "content": "where?"}],
            "api_base": address,
            "api_key": "k",
        }
        with pytest.raises(ModelCallError) as caught:
            await complete(models, request, stream=True, seconds=20)
    assert not caught.value.non_retryable


ANTHROPIC_END = (
    'event: message_delta\ndata: {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, '
    '"usage": {"output_tokens": 2}}\n\nevent: message_stop\ndata: {"type": "message_stop"}\n\n'
)
GEMINI_END = (
    '{"candidates": [{"content": {"role": "model", "parts": [{"text": "ro."}]}, "finishReason": '
    '"STOP", "index": 0}], "usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 2, '
    '"totalTokenCount": 7}}\n\n'
)
ENDS = [
    ("anthropic", ANTHROPIC.removesuffix("event: error\ndata: "), ANTHROPIC_END),
    ("gemini", GEMINI, GEMINI_END),
]


@pytest.mark.parametrize(("vendor", "begun", "end"), ENDS)
async def test_a_stream_that_ends_as_its_protocol_says_is_a_reply(
    models: Models, vendor: str, begun: str, end: str
) -> None:
    """A stream is required to hold only what the vendor sends."""
    async with streaming(f"{begun}{end}", "text/event-stream") as (address, _):
        request = {
            "model": VENDORS[vendor],
            "messages": [{"role": "user", "content": "where?"}],
            "api_base": address,
            "api_key": "k",
        }
        reply = await complete(models, request, stream=True, seconds=20)
    assert reply["choices"][0]["message"]["content"].startswith("Cai")
    assert reply["choices"][0]["finish_reason"] == "stop"
