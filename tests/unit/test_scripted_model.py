"""The scripted model over real HTTP: by a plain client, and by litellm in both protocols."""

import asyncio
import json
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable
from types import ModuleType
from typing import Any

import aiohttp
import pytest

from agentmem.testing import (
    Call,
    Reply,
    Request,
    ScriptedModel,
    call,
    fail,
    hang,
    reply,
    reset,
)

USER = {"role": "user", "content": "What is the weather?"}
TOOLS: list[dict[str, Any]] = [
    {"type": "function", "function": {"name": "get_weather", "parameters": {}}}
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
    """Rule 9 over the wire: the endpoint knows which reasoning it gave with which message."""
    thought = reply("Hello.", extra={"reasoning_content": "A greeting."})
    async with ScriptedModel([thought, reply("Yes.")]) as model:
        answer = await ask(model)
        said = answer.choices[0].message.model_dump(exclude_none=True)
        assert said["reasoning_content"] == "A greeting."
        await ask(model, USER, said, USER)
        model.assert_strict()
        del said["reasoning_content"]
        with pytest.raises(litellm.BadRequestError, match="rule 9"):
            await ask(model, USER, said, USER)


async def test_a_failure_carries_status_and_headers(ask: Ask, litellm: ModuleType) -> None:
    """E-01: a 429 is a RateLimitError, and its Retry-After can be read from the exception."""
    async with ScriptedModel([fail(429, "slow down", headers={"Retry-After": "7"})]) as model:
        error = await failure(ask(model), litellm.RateLimitError)
    assert "slow down" in str(error)
    assert error.litellm_response_headers["retry-after"] == "7"


async def test_a_context_length_error_keeps_its_wording(ask: Ask, litellm: ModuleType) -> None:
    """E-03: a 400 arrives as BadRequestError with the provider's own sentence."""
    async with ScriptedModel([fail(400, "input tokens exceed the limit of 8000")]) as model:
        error = await failure(ask(model), litellm.BadRequestError)
    assert "input tokens exceed the limit of 8000" in str(error)


@pytest.mark.parametrize("headers_first", [False, True])
async def test_a_reset_is_a_connection_error(
    ask: Ask, litellm: ModuleType, headers_first: bool
) -> None:
    """E-08: a connection reset before or halfway through the answer is an error, then over."""
    async with ScriptedModel([reset(headers_first=headers_first), reply("Sunny.")]) as model:
        with pytest.raises((litellm.InternalServerError, litellm.APIConnectionError)):
            await ask(model)
        assert (await ask(model)).choices[0].message.content == "Sunny."
    assert len(model.requests) == 2


@pytest.mark.parametrize("headers_first", [False, True])
async def test_a_cancelled_call_is_seen_by_the_server(ask: Ask, headers_first: bool) -> None:
    """F-11: cancelling the call closes the HTTP request, with and without headers received."""
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
    """E-06: an endpoint that never answers ends in the client's timeout, and is told so."""
    async with ScriptedModel([hang()]) as model:
        with pytest.raises(litellm.Timeout):
            await ask(model, timeout=0.3)
        async with asyncio.timeout(5):
            await model.disconnected(1)


async def test_a_client_that_blocks_the_event_loop_is_answered() -> None:
    """The endpoint serves from a thread: a synchronous client in the test's loop is answered."""

    def ask_and_block(url: str) -> Any:
        body = json.dumps({"messages": [USER]}).encode()
        with urllib.request.urlopen(f"{url}/v1/chat/completions", body) as response:
            return json.load(response)

    async with ScriptedModel([reply("Sunny.")]) as model:
        answer = ask_and_block(model.base_url)
    assert answer["choices"][0]["message"]["content"] == "Sunny."


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    """A client that sends exactly what it is given."""
    async with aiohttp.ClientSession() as session:
        yield session


async def post(
    http: aiohttp.ClientSession, model: ScriptedModel, body: bytes | dict[str, Any]
) -> tuple[int, Any]:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    async with http.post(f"{model.base_url}/v1/chat/completions", data=raw) as response:
        return response.status, await response.json()


async def test_a_request_is_recorded_byte_for_byte(http: aiohttp.ClientSession) -> None:
    """What was received can be compared as bytes, and read as messages, tools and model."""
    raw = json.dumps({"model": "m", "messages": [USER], "tools": TOOLS}, indent=1).encode()
    async with ScriptedModel([reply("a"), reply("b")]) as model:
        await post(http, model, raw)
        await post(http, model, raw)
    first, second = model.requests
    assert first.raw == second.raw == raw
    assert (first.model, first.messages, first.tools) == ("m", [USER], TOOLS)
    assert (first.number, second.number) == (1, 2)
    assert first.at < second.at
    assert first.path == "/v1/chat/completions"


@pytest.mark.parametrize(
    ("asked", "sent"),
    [
        (Call("ping", '{"cut'), {"function": {"name": "ping", "arguments": '{"cut'}}),
        (Call("ping", "", id="x1"), {"id": "x1"}),
        ({"id": None, "function": {"name": None}}, {"id": None, "function": {"name": None}}),
    ],
)
async def test_odd_calls_are_sent_as_they_are(
    http: aiohttp.ClientSession, asked: Call | dict[str, object], sent: dict[str, object]
) -> None:
    """Broken arguments, ids of one's own, and calls of any shape reach the client unchanged."""
    async with ScriptedModel([reply(calls=[asked])]) as model:
        _, answer = await post(http, model, {"messages": [USER]})
    (received,) = answer["choices"][0]["message"]["tool_calls"]
    assert sent.items() <= received.items()
    assert isinstance(asked, Call) or received == asked


@pytest.mark.parametrize("raw", [{"choices": []}, {"choices": [{"message": None}]}, {}, []])
async def test_a_raw_body_is_sent_as_it_is(http: aiohttp.ClientSession, raw: object) -> None:
    """D-02: any body can be answered, also one that breaks the protocol."""
    async with ScriptedModel([reply(raw=raw)]) as model:
        assert await post(http, model, {"messages": [USER]}) == (200, raw)


async def test_content_may_be_none_or_parts(http: aiohttp.ClientSession) -> None:
    """D-01, D-09: the content of a reply is sent as it is given."""
    parts = [{"type": "text", "text": "A"}, {"type": "text", "text": "B"}]
    async with ScriptedModel([reply(None), reply(parts)]) as model:
        for content in (None, parts):
            _, answer = await post(http, model, {"messages": [USER]})
            assert answer["choices"][0]["message"]["content"] == content


async def test_a_function_sees_the_request_and_may_wait(http: aiohttp.ClientSession) -> None:
    """A script may be an async function in the test's own event loop."""
    go_on = asyncio.Event()

    async def script(request: Request) -> Reply:
        await go_on.wait()
        return reply(request.messages[-1]["content"].upper())

    async with ScriptedModel(script) as model:
        asking = asyncio.create_task(post(http, model, {"messages": [USER]}))
        await model.received(1)
        go_on.set()
        _, answer = await asking
    assert answer["choices"][0]["message"]["content"] == "WHAT IS THE WEATHER?"


async def test_what_a_function_raises_fails_the_test(http: aiohttp.ClientSession) -> None:
    """An assertion inside a script reaches the client as 400 and the test at the end."""

    def script(request: Request) -> Reply:
        assert request.model == "another", "wrong model"
        return reply("never")

    async def test() -> None:
        async with ScriptedModel(script) as model:
            assert (await post(http, model, {"model": "m", "messages": [USER]}))[0] == 400

    with pytest.raises(AssertionError, match="wrong model"):
        await test()


async def test_a_delay_holds_the_answer_back(http: aiohttp.ClientSession) -> None:
    """An answer with a delay does not come before it is over."""
    async with ScriptedModel([reply("late", delay=0.3)]) as model:
        started = asyncio.get_running_loop().time()
        await post(http, model, {"messages": [USER]})
        assert asyncio.get_running_loop().time() - started >= 0.3


async def test_replies_can_be_added_and_run_out(http: aiohttp.ClientSession) -> None:
    """A request beyond the script is answered with 400 that says so, and never hangs."""
    async with ScriptedModel() as model:
        model.add(reply("one"))
        assert (await post(http, model, {"messages": [USER]}))[0] == 200
        status, answer = await post(http, model, {"messages": [USER]})
    assert status == 400
    assert "no reply for request 2" in answer["error"]["message"]


async def test_a_refused_request_takes_no_reply(http: aiohttp.ClientSession) -> None:
    """By default a broken rule is answered with 400; the script goes on with the next one."""
    async with ScriptedModel([reply("one")], system_prompt="Be brief.") as model:
        status, answer = await post(http, model, {"messages": [USER]})
        assert status == 400
        assert "rule 1" in answer["error"]["message"]
        sound = [{"role": "system", "content": "Be brief."}, USER]
        assert (await post(http, model, {"messages": sound}))[0] == 200
    with pytest.raises(AssertionError, match=r"request 1 .*: rule 1"):
        model.assert_strict()


async def test_a_recorded_violation_is_answered_by_the_script(http: aiohttp.ClientSession) -> None:
    """With strict="record" the script answers, and assert_strict still raises."""
    async with ScriptedModel([reply("one")], strict="record") as model:
        assert (await post(http, model, {"messages": []}))[0] == 200
    with pytest.raises(AssertionError, match="rule 2"):
        model.assert_strict()


@pytest.mark.parametrize(
    "raw",
    [
        b'{"messages": [{"role": "user", "content": "hi"}], "temperature": NaN}',
        b'{"messages": [{"role": "user", "content": "\\ud83d"}]}',
        b'{"messages": [{"role": "user", "content": "\xff"}]}',
        b"not json",
    ],
)
async def test_a_body_that_is_no_standard_json_is_refused(
    http: aiohttp.ClientSession, raw: bytes
) -> None:
    """Rule 8 covers the whole body: NaN, a lone surrogate, bytes that are not UTF-8, no JSON."""
    async with ScriptedModel([reply("never")]) as model:
        status, answer = await post(http, model, raw)
    assert status == 400
    assert answer["error"]["message"].startswith("rule 8")


async def test_an_open_request_does_not_delay_the_end(http: aiohttp.ClientSession) -> None:
    """Leaving the context ends a hanging request at once, and does not blame the client."""
    async with asyncio.timeout(5):
        async with ScriptedModel([hang()]) as model:
            asking = asyncio.create_task(post(http, model, {"messages": [USER]}))
            request = await model.received(1)
        with pytest.raises(aiohttp.ClientError):
            await asking
    assert not request.disconnected


async def test_models_are_listed(http: aiohttp.ClientSession) -> None:
    """The listings that clients ask for are served in both protocols."""
    async with ScriptedModel() as model:
        async with http.get(f"{model.base_url}/v1/models") as response:
            assert (await response.json())["data"][0]["id"] == "scripted"
        async with http.get(f"{model.base_url}/api/tags") as response:
            assert (await response.json())["models"][0]["name"] == "scripted"
        async with http.post(f"{model.base_url}/api/show") as response:
            assert "tools" in (await response.json())["capabilities"]
