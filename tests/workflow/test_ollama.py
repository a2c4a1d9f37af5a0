"""The context that Ollama is asked for, and prompts that a provider cuts without a word."""

import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client

from activities.llm import Models
from agentmem.llm.context_size import is_cut
from agentmem.testing import Reply, Request, ScriptedModel, call, reply
from agentmem.wire import JSONObject
from tests.stack import stack
from tests.tools import ping

pytestmark = pytest.mark.timeout(120)

OLLAMA = "ollama/llama3.2"
AGENTS = """
[agents.whole]
tools = ["ping"]
max_tokens = 256
[agents.streamed]
max_tokens = 256
stream = true
[agents.summed]
max_tokens = 256
working_memory = { max_tokens = 600, compact_model = "ollama/llama3.2:1b" }
[agents.asking_for_more]
max_tokens = 256
working_memory = { max_tokens = 1000000 }
"""
SAID = "The river runs past the old mill. " * 20
"""680 bytes, so 170 tokens by the estimate."""


def asked_for(request: Request) -> Any:
    """The context that a request asks for."""
    return request.body["options"].get("num_ctx")


async def talk(
    client: Client, path: Path, agent: str, turns: int, script: list[Reply]
) -> list[Request]:
    """Have a session with this agent; returns what its models were asked."""
    async with stack(client, path, script, agents=AGENTS, model_name=OLLAMA, extra=[ping]) as s:
        handle = await s.start(agent=agent, session=True)
        for number in range(turns):
            await handle.execute_update("send", f"{number}: {SAID}")
        await handle.execute_update("end")
        s.model.assert_strict()
        return s.model.requests


@pytest.mark.parametrize(
    ("agent", "turns", "script"),
    [
        ("whole", 2, [reply(calls=[call("ping")]), reply("a"), reply("b")]),
        ("streamed", 2, [reply("a"), reply("b")]),
        ("summed", 5, [reply("SUMMARY\n" + "answer " * 30)] * 20),
    ],
)
@pytest.mark.parametrize("context", ["", "4096"])
async def test_every_request_of_a_session_asks_for_the_same_context(
    client: Client,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    agent: str,
    turns: int,
    script: list[Reply],
    context: str,
) -> None:
    """Whole and streamed replies, steps with tools and summaries: one value, the setting's."""
    if context:
        monkeypatch.setenv("AGENTMEM_OLLAMA_CONTEXT", context)
    requests = await talk(client, tmp_path, agent, turns, script)
    assert {request.path for request in requests} == {"/api/chat"}
    assert [asked_for(request) for request in requests] == [int(context or 32_768)] * len(requests)
    assert len({request.model for request in requests}) == (2 if agent == "summed" else 1)


@pytest.mark.parametrize("agent", ["whole", "streamed", "asking_for_more"])
async def test_a_session_sends_what_fits(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, agent: str
) -> None:
    """Those of eight long messages that are in view fit beside tools, system prompt and reply."""
    monkeypatch.setenv("AGENTMEM_OLLAMA_CONTEXT", "1500")
    requests = await talk(client, tmp_path, agent, 8, [reply("ok")] * 8)
    assert all(len(request.raw) / 4 + 256 < 1500 for request in requests)
    assert len(requests[-1].messages) > 3


async def test_a_dream_is_told_of_the_same_context() -> None:
    """The amount that a dream puts before its model at once follows from it."""
    assert Models().context(OLLAMA) == 32_768
    assert Models(ollama_context=8_192).context("ollama_chat/llama3.2") == 8_192
    assert Models(ollama_context=0).context(OLLAMA) == 0
    assert Models().context("openai/gpt-4o") == 0  # litellm is not loaded yet


@pytest.fixture
async def models() -> AsyncIterator[Models]:
    """The models of a worker that leaves the size of contexts to Ollama."""
    made = Models(ollama_context=0)
    yield made
    await made.close()


async def asked(
    models: Models,
    monkeypatch: pytest.MonkeyPatch,
    answer: Reply,
    text: str = "hi",
    *,
    model: str = OLLAMA,
    stream: bool = False,
) -> Request:
    """Ask once, with this text in the conversation; returns the request."""
    async with ScriptedModel([answer]) as scripted:
        for name, value in scripted.env().items():
            monkeypatch.setenv(name, value)
        messages = [{"role": "user", "content": text}]
        await models.complete({"model": model, "messages": messages}, stream=stream)
    return scripted.requests[0]


async def test_zero_leaves_the_context_to_ollama(
    models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No value is sent then, and a dream's request has the worker's value like any other."""
    assert asked_for(await asked(models, monkeypatch, reply("ok"))) is None
    set_to = Models(ollama_context=2_000)
    async with ScriptedModel([reply("ok")]) as scripted:
        monkeypatch.setenv("OLLAMA_API_BASE", scripted.base_url)
        await set_to.ask({"model": OLLAMA, "messages": [{"role": "user", "content": "hi"}]})
    assert asked_for(scripted.requests[0]) == 2_000
    await set_to.close()


async def test_other_providers_are_asked_for_no_context(
    models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`num_ctx` is Ollama's word, and an error to others."""
    set_to = Models()
    request = await asked(set_to, monkeypatch, reply("ok"), model="openai/x")
    assert "num_ctx" not in str(request.body)
    await set_to.close()


LONG = "The river runs past the old mill, and nobody has mended the wheel since. " * 200
FEW = {"prompt_tokens": 900}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("model", "hint"),
    [(OLLAMA, "AGENTMEM_OLLAMA_CONTEXT (now 0)"), ("openai/x", "that the provider gives")],
)
async def test_a_silent_cut_is_told(
    models: Models,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    model: str,
    hint: str,
    stream: bool,
) -> None:
    """The log names the model, what it read, and what to change."""
    caplog.set_level(logging.WARNING)
    answer = reply("ok", usage=FEW)
    await asked(models, monkeypatch, answer, LONG, model=model, stream=stream)
    [told] = [r.getMessage() for r in caplog.records if r.name == "activities.llm"]
    assert f"the model {model} read 900 tokens only" in told
    assert hint in told
    caplog.clear()
    whole = reply("ok", usage={"prompt_tokens": 3_200})
    await asked(models, monkeypatch, whole, LONG, model=model, stream=stream)
    assert not [r for r in caplog.records if r.name == "activities.llm"]


def user(content: Any) -> list[JSONObject]:
    return [{"role": "user", "content": content}]


@pytest.mark.parametrize(
    ("messages", "usage", "cut"),
    [
        (user("河水流过老磨坊没有人修理过水轮。" * 600), {"prompt_tokens": 2_000}, True),
        (user("河水流过老磨坊没有人修理过水轮。" * 600), {"prompt_tokens": 5_200}, False),
        (user("नदी पुरानी चक्की के पास से बहती है। " * 300), {"prompt_tokens": 3_300}, False),
        (user("Река течёт мимо старой мельницы. " * 400), {"prompt_tokens": 3_000}, False),
        (user([{"type": "text", "text": LONG}]), FEW, True),
        (
            user([{"type": "image_url", "image_url": {"url": "data:," + "A" * 90_000}}]),
            FEW,
            False,
        ),
        (user(" " * 90_000 + "=" * 9_000), FEW, False),
        (user("abc def " * 5_000), {"prompt_tokens": 4_096}, True),
        (user("สวัสดีครับ ผมชื่อสมชาย " * 500), {"prompt_tokens": 4_500}, False),
        (user("        'key': 'value',\n" * 2_000), {"prompt_tokens": 14_000}, False),
        (user("short " * 100), {"prompt_tokens": 3}, False),
        (user(LONG), {}, False),
        (user(LONG) * 3, {"prompt_tokens": 2}, False),
        (user(LONG) * 3, {"prompt_tokens": 3}, True),
        (user(LONG), {"prompt_tokens": 100, "cache_read_input_tokens": 3_000}, False),
        (
            user(LONG),
            {"prompt_tokens": 90, "prompt_tokens_details": {"cached_tokens": 3_000}},
            False,
        ),
        (
            user(LONG),
            {"prompt_tokens": 900, "prompt_tokens_details": {"cached_tokens": 800}},
            True,
        ),
    ],
)
def test_what_counts_as_cut(messages: list[JSONObject], usage: JSONObject, cut: bool) -> None:
    """Any language, long runs, images, short prompts and cached tokens raise no false alarm."""
    assert is_cut(messages, usage) is cut
