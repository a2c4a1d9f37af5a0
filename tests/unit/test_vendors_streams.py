"""Streams as servers send them, where litellm loses something or sees no error in them.

Each server is a local one that answers with the bytes of its documents, its code or of reports
from the field, through litellm's code for it.
"""

import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
from aiohttp import web

from activities.llm import Models
from agentmem.contracts import FailedCall, ModelCall, ModelReply, Prompt
from agentmem.errors import ModelCallError
from agentmem.llm.response import read_reply
from agentmem.wire import JSONObject

pytestmark = pytest.mark.timeout(180)  # the first one waits for litellm's import

SSE, NDJSON, JSON = "text/event-stream", "application/x-ndjson", "application/json"
OPENAI = ["openai/m", "hosted_vllm/m", "lm_studio/m"]
HEAD: JSONObject = {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "m"}
ROME = '{"city": "Rome"}'


@pytest.fixture(scope="session")
async def models() -> AsyncIterator[Models]:
    """The process's models, which keep its connections."""
    made = Models()
    made.start_loading()
    yield made
    await made.close()


@asynccontextmanager
async def serving(body: str, kind: str, status: int = 200) -> AsyncGenerator[str]:
    """Answer every request with this; gives the address."""

    async def answer(http: web.Request) -> web.StreamResponse:
        await http.read()
        response = web.StreamResponse(status=status, headers={"Content-Type": kind})
        await response.prepare(http)
        await response.write(body.encode())
        await response.write_eof()
        return response

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def asked(
    model: str, body: str, kind: str = SSE, *, stream: bool = True, status: int = 200
) -> ModelReply:
    """Ask a model whose server answers so, by models of its own, which know no rate limit."""
    own = Models(timeout=timedelta(seconds=2.3))
    call = ModelCall(
        prompt=Prompt(memory="wm0", view=["m1"]), reply="m2", turn=1, model=model, tools=["look"]
    )
    async with serving(body, kind, status) as address:
        request: JSONObject = {
            "model": model,
            "messages": [{"role": "user", "content": "where?"}],
            "api_base": address,
            "api_key": "k",
        }
        try:
            reply = await own.complete(request, stream=stream, seconds=20)
        finally:
            await own.close()
    return read_reply(reply, call, attempt=1)


async def failed(
    model: str, body: str, kind: str = SSE, *, stream: bool = True, status: int = 200
) -> tuple[str, bool]:
    """Return the kind of a failed call, and whether it is final."""
    with pytest.raises(ModelCallError) as caught:
        await asked(model, body, kind, stream=stream, status=status)
    [detail] = caught.value.details
    assert isinstance(detail, FailedCall)
    return detail.kind, caught.value.non_retryable


def events(*bodies: JSONObject | str, done: bool = True) -> str:
    """Write events as OpenAI's protocol has them."""
    lines = [body if isinstance(body, str) else json.dumps(body) for body in bodies]
    return "".join(f"data: {line}\n\n" for line in [*lines, *(["[DONE]"] if done else [])])


def chunk(finish: str | None = None, **delta: Any) -> JSONObject:
    """A chunk as OpenAI's protocol has it."""
    return {**HEAD, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def whole(finish: str = "stop", **message: Any) -> JSONObject:
    """A whole reply."""
    return {
        **HEAD,
        "object": "chat.completion",
        "choices": [
            {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
        ],
        "usage": {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12},
    }


VLLM = {"object": "error", "message": "?", "type": "BadRequestError", "param": None, "code": 400}
BARE: list[tuple[str, tuple[str, bool]]] = [
    (events(VLLM), ("invalid", True)),
    (
        events(chunk(content="Cai"), VLLM | {"type": "InternalServerError", "code": 500}),
        ("down", False),
    ),
    (events({"message": "?", "status_code": 429}), ("limited", False)),
    (events({"error": "?", "error_type": "overloaded"}, done=False), ("limited", False)),
    (events({"error": "?", "error_type": "validation"}, done=False), ("invalid", True)),
    (f"error: {json.dumps({'code': 401, 'message': '?'})}\n\n", ("key", True)),
    (f"error: {json.dumps({'error': {'code': 503, 'message': '?'}})}\n\n", ("down", False)),
    (events(chunk(content="Cai"), {"detail": "?", "message": "?"}), ("failing", False)),
]


@pytest.mark.parametrize("model", OPENAI)
@pytest.mark.parametrize(("body", "expected"), BARE)
async def test_an_error_that_no_field_names_is_an_error(
    models: Models, model: str, body: str, expected: tuple[str, bool]
) -> None:
    """Not a blank reply, and not the half that came before it, though the stream says [DONE]."""
    assert await failed(model, body) == expected


@pytest.mark.parametrize("code", [400, 429, 503])
async def test_an_error_with_the_status_of_a_reply(models: Models, code: int) -> None:
    """Whole, with HTTP 200: by its code."""
    expected = {400: ("invalid", True), 429: ("limited", False), 503: ("down", False)}[code]
    for body in (VLLM | {"code": code, "type": "?"}, {"error": {"code": code, "message": "?"}}):
        assert await failed("openai/m", json.dumps(body), JSON, stream=False) == expected


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("status", [409, 424, 425, 498, 499])
async def test_a_servers_own_trouble_is_tried_again(
    models: Models, status: int, *, stream: bool
) -> None:
    """Under 500 as well: a part that failed, no capacity, a connection closed between."""
    body = json.dumps({"error": {"message": "?", "type": "nobody_knows"}})
    found = await failed("openai/m", body, JSON, stream=stream, status=status)
    assert found == ("failing", False)


@pytest.mark.parametrize("code", ["tool_use_failed", "json_validate_failed", "output_parse_failed"])
@pytest.mark.parametrize("model", ["openai/m", "groq/m"])
async def test_a_call_that_the_server_could_not_read_is_tried_again(
    models: Models, model: str, code: str
) -> None:
    """The model wrote it, so the next one may be right; whatever status a stream gives it."""
    error = {"message": "?", "type": "invalid_request_error", "code": code, "status_code": 400}
    assert await failed(model, f"event: error\n{events({'error': error})}") == ("failing", False)


@pytest.mark.parametrize("body", ["", "<html>gateway</html>", ": keep\n\n", "retry: 3\n\n"])
async def test_a_stream_without_an_event_is_no_reply(models: Models, body: str) -> None:
    """A proxy's page or nothing at all: tried again, not taken for a blank answer."""
    assert await failed("openai/m", body) == ("broken", False)


@pytest.mark.parametrize(
    "ping", ["retry: 3\n\n", "event: ping\n\n", ": still here\n\n", "data:\n\n"]
)
async def test_pings_between_events_are_nothing(models: Models, ping: str) -> None:
    """A stream is kept open by events without data."""
    text = events(chunk(content="Cai"), chunk(content="ro."), chunk("stop"))
    made = await asked("openai/m", ping + text.replace("\n\n", f"\n\n{ping}"))
    assert made.message.text == "Cairo."


@pytest.mark.parametrize("end", ["data: [DONE]", "data:[DONE]\n", "\ndata: [DONE]\r\n"])
async def test_done_needs_no_blank_line_behind_it(models: Models, end: str) -> None:
    """A parser of events drops a last one that is not closed."""
    made = await asked("openai/m", events(chunk(content="Cairo."), done=False) + end)
    assert made.message.text == "Cairo."


@pytest.mark.parametrize("model", OPENAI)
@pytest.mark.parametrize(
    "body",
    [
        whole(content="Cairo."),
        whole(content=[{"type": "text", "text": "Cairo."}]),
        whole(content="<think>hm</think>Cairo."),
    ],
)
async def test_a_server_that_sends_no_stream_is_heard(
    models: Models, model: str, body: JSONObject
) -> None:
    """Some know no streams, and some gateways answer from a cache: the whole reply is one."""
    made = await asked(model, json.dumps(body), JSON)
    assert (made.message.text, made.usage.prompt) == ("Cairo.", 5)


@pytest.mark.parametrize(
    "pieces",
    [
        [{"name": "look", "arguments": ROME}],
        [{"name": "look", "arguments": ""}, {"arguments": ROME}],
        [{"name": "look"}, {"arguments": '{"city"'}, {"arguments": ': "Rome"}'}],
        [{"name": "look", "arguments": ROME}, {"name": "look", "arguments": ROME}],
    ],
)
async def test_a_call_in_the_form_before_tools(models: Models, pieces: list[JSONObject]) -> None:
    """In pieces as in whole replies: one call."""
    chunks = [chunk(function_call=one) for one in pieces]
    made = await asked("openai/m", events(*chunks, chunk("function_call")))
    last = whole("function_call", content=None, function_call={"name": "look", "arguments": ROME})
    same = await asked("openai/m", json.dumps(last), JSON, stream=False)
    assert made.message.calls == same.message.calls
    assert [(call.name, call.arguments) for call in made.message.calls] == [
        ("look", {"city": "Rome"})
    ]


def texts(*parts: str) -> list[JSONObject]:
    """Parts of text."""
    return [{"type": "text", "text": part} for part in parts]


THINKS: JSONObject = {"type": "thinking", "thinking": texts("hm")}


@pytest.mark.parametrize("model", ["openai/m", "mistral/m"])
@pytest.mark.parametrize(
    "contents",
    [
        [texts("Cai"), texts("ro.")],
        [[THINKS], "Cai", "ro."],
        ["Cai", texts("ro", ".")],
        [[THINKS, *texts("Cai")], "ro."],
    ],
)
async def test_a_text_in_lists_of_parts(models: Models, model: str, contents: list[Any]) -> None:
    """Mistral's reasoning models stream them; all of the text, and none of the thought in it."""
    body = events(*(chunk(content=one) for one in contents), chunk("stop", content=""))
    made = await asked(model, body)
    assert made.message.text == "Cairo."
    assert ("hm" in str(made.message.reasoning)) == ("hm" in str(contents))


def gemini(**fields: Any) -> JSONObject:
    """A reply of Gemini without any text."""
    return {**fields, "usageMetadata": {"promptTokenCount": 5, "totalTokenCount": 5}}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (gemini(promptFeedback={"blockReason": "PROHIBITED_CONTENT"}), "content_filter"),
        (gemini(promptFeedback={"blockReason": "SAFETY"}), "content_filter"),
        (gemini(candidates=[{"finishReason": "SAFETY", "index": 0}]), "content_filter"),
        (
            gemini(candidates=[{"finishReason": "MALFORMED_FUNCTION_CALL"}]),
            "malformed_function_call",
        ),
        (gemini(candidates=[{"finishReason": "UNEXPECTED_TOOL_CALL"}]), "unexpected_tool_call"),
    ],
)
async def test_gemini_says_why_it_said_nothing(
    models: Models, body: JSONObject, reason: str, *, stream: bool
) -> None:
    """In its own word, whole and streamed; a blocked prompt is no stream that broke off."""
    text = events(body, done=False) if stream else json.dumps(body)
    made = await asked("gemini/own", text, SSE if stream else JSON, stream=stream)
    assert (made.message.text, made.reason) == ("", reason)
    assert (made.finish == "content_filter") == (reason == "content_filter")
