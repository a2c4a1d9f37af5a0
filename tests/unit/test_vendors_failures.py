"""Failures as vendors send them, through litellm's code for each: told by status, code and size.

Each vendor is a local server that answers with the status and the body of its documents or of
reports from the field. What none of them shares is the wording.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from activities.llm import Models
from agentmem.contracts import FailedCall
from agentmem.errors import ModelCallError
from agentmem.values import JSONObject

pytestmark = pytest.mark.timeout(180)  # the first one waits for litellm's import

LONG = "word " * 4_000  # above half of the smallest context
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
            await models.complete(request, stream=stream, seconds=20)
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
        (503, ("failing", False)),
        (422, ("invalid", True)),
    ):
        body: JSONObject = {"error": {"message": text}, "message": text}
        found = await failure(models, VENDORS[vendor], status, body, stream=stream)
        assert (status, found) == (status, expected)
