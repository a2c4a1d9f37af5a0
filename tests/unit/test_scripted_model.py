"""The scripted model over real HTTP, seen by a plain client."""

import asyncio
import json
import re
import urllib.request
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from agentmem import testing
from agentmem.testing import Call, Reply, Request, ScriptedModel, fail, hang, reply

USER = {"role": "user", "content": "What is the weather?"}
TOOLS: list[dict[str, Any]] = [
    {"type": "function", "function": {"name": "get_weather", "parameters": {}}}
]


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
    """A received request can be compared as bytes, and read as messages, tools and model."""
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
    """Any body can be answered, also one that breaks the protocol."""
    async with ScriptedModel([reply(raw=raw)]) as model:
        assert await post(http, model, {"messages": [USER]}) == (200, raw)


async def test_raw_bytes_need_not_be_json(http: aiohttp.ClientSession) -> None:
    """A proxy's error page can be answered, with its content type."""
    page = fail(502, b"<html>bad gateway</html>", headers={"Content-Type": "text/html"})
    async with (
        ScriptedModel([page]) as model,
        http.post(f"{model.base_url}/api/chat", json={"messages": [USER]}) as response,
    ):
        assert response.status == 502
        assert response.content_type == "text/html"
        assert await response.read() == b"<html>bad gateway</html>"


async def test_usage_may_be_null(http: aiohttp.ClientSession) -> None:
    """A token count that is null is sent as null."""
    async with ScriptedModel([reply("x", usage={"prompt_tokens": None})]) as model:
        _, answer = await post(http, model, {"messages": [USER]})
    assert answer["usage"]["prompt_tokens"] is None


async def test_content_may_be_none_or_parts(http: aiohttp.ClientSession) -> None:
    """The content of a reply is sent as it is given."""
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


def never(request: Request) -> Reply:
    pytest.fail("no request was expected")


def not_json(request: Request) -> Reply:
    return reply(extra={"at": object()})


def wrong(request: Request) -> Reply:
    assert request.model == "another", "the model is wrong"
    return reply("never")


@pytest.mark.parametrize(
    ("script", "message"),
    [(never, "was expected"), (not_json, "not JSON serializable"), (wrong, "model is wrong")],
)
async def test_what_a_script_raises_fails_the_test(
    http: aiohttp.ClientSession, script: Callable[[Request], Reply], message: str
) -> None:
    """A failure inside a script function reaches the client as 400, and the test at the end."""

    async def test() -> None:
        async with ScriptedModel(script) as model:
            status, answer = await post(http, model, {"model": "m", "messages": [USER]})
            assert status == 400
            assert message in answer["error"]["message"]

    with pytest.raises(BaseException, match=message):
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
        assert "system message: " in answer["error"]["message"]
        sound = [{"role": "system", "content": "Be brief."}, USER]
        assert (await post(http, model, {"messages": sound}))[0] == 200
    with pytest.raises(AssertionError, match=r"request 1 .*: system message: "):
        model.assert_strict()


async def test_a_recorded_violation_is_answered_by_the_script(http: aiohttp.ClientSession) -> None:
    """With strict="record" the script answers, and assert_strict still raises."""
    async with ScriptedModel([reply("one")], strict="record") as model:
        assert (await post(http, model, {"messages": []}))[0] == 200
    with pytest.raises(AssertionError, match="first message: "):
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
    """The whole body is standard JSON: no NaN, no lone surrogate, nothing but UTF-8."""
    async with ScriptedModel([reply("never")]) as model:
        status, answer = await post(http, model, raw)
    assert status == 400
    assert answer["error"]["message"].startswith("JSON: ")


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


def test_the_page_on_testing_names_everything_and_its_code_compiles() -> None:
    """docs/testing.md shows each public name of agentmem.testing, in code that is valid."""
    page = (Path(__file__).parents[2] / "docs" / "testing.md").read_text()
    examples = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert examples
    for example in examples:
        compile(example, "docs/testing.md", "exec")
    missing = [name for name in testing.__all__ if not re.search(rf"`{name}\b|\b{name}\(", page)]
    assert missing == []
