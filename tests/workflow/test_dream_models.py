"""Dreams and what their models really send: Ollama's protocol, and replies that are refused."""

import json
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client

from agentmem.contracts import DreamReport, ScopeRef
from agentmem.dreaming.hook import dream_id
from agentmem.dreaming.prompts import SYSTEM
from agentmem.dreaming.verification import VERIFY
from agentmem.testing import Call, Reply, Request, call, fail, reply
from agentmem.wire import JSONObject
from tests.dreams import Script, changes, findings, served
from tests.stack import Stack, stack

pytestmark = pytest.mark.timeout(180)

AGENTS = """\
[agents.whole]
max_tokens = 256
[agents.whole.long_term_memory]
[agents.whole.dream]
[agents.pieces]
max_tokens = 256
stream = true
[agents.pieces.long_term_memory]
[agents.pieces.dream]
"""
FOUND = {"statement": "Cat is named Momo", "evidence": ["a1"]}
ADD = {"op": "add", "key": "pet", "value": "Cat is named Momo", "findings": ["f1"]}
PAID = {"prompt_tokens": 100_000, "completion_tokens": 1_000}

Form = Callable[[str, JSONObject], Reply]


def learned() -> Script:
    """Script a dream that learns of a cat."""
    return Script(gather_signal=findings(FOUND), consolidate=changes(ADD))


async def dreamed(s: Stack, agent: str, *said: str) -> tuple[DreamReport, Any]:
    """Have a session that says this; returns the report of its dream, and what is known then."""
    scope = f"u-{uuid.uuid4()}"
    handle = await s.start(agent=agent, scope=scope, session=True)
    for text in said:
        assert await handle.execute_update("send", text) == "Lovely."
    await handle.execute_update("end")
    await handle.result()
    name = dream_id(ScopeRef(provider="sqlite:memory.db", agent=agent, scope=scope))
    report = await s.client.get_workflow_handle(name).result()
    provider = await s.configuration.providers.get("sqlite:memory.db")
    return DreamReport.model_validate(report), await provider.recall(agent, scope)


def older(name: str, arguments: JSONObject) -> Reply:
    """Call as an Ollama does that knows no ids."""
    return reply("", calls=[{"function": {"name": name, "arguments": arguments}}])


def newer(name: str, arguments: JSONObject) -> Reply:
    """Call as a later one does, with its thought in a field of its own."""
    function = {"index": 0, "name": name, "arguments": arguments}
    calls = [{"id": f"call_{name[:4]}x1", "function": function}]
    return reply("", calls=calls, extra={"thinking": "secret musing"})


def musing(name: str, arguments: JSONObject) -> Reply:
    """Call with the thought in the text, as a model does whose template Ollama does not know."""
    made = {"function": {"name": name, "arguments": arguments}}
    return reply("<think>\nsecret musing\n</think>\n\n", calls=[made])


def in_text(name: str, arguments: JSONObject) -> Reply:
    """Call in the text, as small models do."""
    return reply(json.dumps({"name": name, "parameters": arguments}))


@pytest.mark.parametrize(("agent", "context"), [("whole", ""), ("pieces", "4096")])
@pytest.mark.parametrize("form", [older, newer, musing, in_text])
async def test_a_session_and_its_dream_with_ollama(
    client: Client,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    agent: str,
    context: str,
    form: Form,
) -> None:
    """One context for the calls of turns and dreams, of which every one fits it; a fact learned."""
    if context:
        monkeypatch.setenv("AGENTMEM_OLLAMA_CONTEXT", context)
    script = learned()

    async def answer(request: Request) -> Reply:
        if request.messages[0]["content"] in (SYSTEM, VERIFY):
            data = await script(request.body)
            (made,) = data["message"]["tool_calls"]
            return form(made["function"]["name"], json.loads(made["function"]["arguments"]))
        if len([m for m in request.messages if m["role"] == "tool"]) == 0:
            return form("recall_memory", {"keys": ["pet"]})
        return reply("Lovely.")

    async with stack(client, tmp_path, answer, agents=AGENTS, model_name="ollama/llama3.2") as s:
        report, known = await dreamed(s, agent, "My cat is named Momo.", "Good night.")
        assert (report.status, known) == ("completed", {"pet": "Cat is named Momo"})
        s.model.assert_strict()
        requests = s.model.requests
    assert {request.path for request in requests} == {"/api/chat"}
    size = int(context or 32_768)
    options = [request.body["options"] for request in requests]
    assert [one["num_ctx"] for one in options] == [size] * len(requests)
    assert {request.model for request in requests} == {"llama3.2"}
    assert all(
        len(request.raw) // 4 + one["num_predict"] <= size
        for request, one in zip(requests, options, strict=True)
    )
    asked = [request for request in requests if request.messages[0]["content"] in (SYSTEM, VERIFY)]
    assert len(asked) == report.usage.requests == 3
    assert not any(b"musing" in request.raw for request in asked)


BROKEN = reply("half", finish="error", usage=PAID)
NOTHING = reply(raw={"id": "x", "object": "chat.completion", "choices": [], "usage": PAID})
NO_CHAT = reply(raw={"object": "chat.completion", "choices": "none", "usage": PAID})
BLANK = reply("", usage=PAID)
HALF_CALL = reply(calls=[Call("submit_findings", '{"findings": [')], usage=PAID)
NOT_ALLOWED = reply(calls=[call("store_memory", key="pet", value="Momo")], usage=PAID)
UNUSABLE = reply(calls=[call("submit_findings", facts=["a cat"])], usage=PAID)


@pytest.mark.parametrize(
    "refused",
    [
        [BROKEN],
        [NOTHING],
        [NO_CHAT],
        [BROKEN, NOTHING],
        [BLANK],
        [HALF_CALL],
        [NOT_ALLOWED],
        [UNUSABLE],
        [BROKEN, BLANK],
    ],
)
async def test_replies_that_a_dream_refuses_are_in_its_usage(
    client: Client, tmp_path: Path, refused: list[Reply]
) -> None:
    """Once each, whether the phase is tried again, or its model told in the same attempt."""
    script = learned()
    script.before("gather_signal", *refused)
    # The phase after it is tried again for what cost nothing.
    script.before("consolidate", fail(500, "busy"), fail(503, "overloaded"))
    async with stack(client, tmp_path, served(script, "Lovely."), agents=AGENTS) as s:
        report, known = await dreamed(s, "whole", "My cat is named Momo.")
    assert known == {"pet": "Cat is named Momo"}
    assert report.usage.requests == len(script.requests) - 2
    assert report.usage.prompt // 100_000 == len(refused)
    assert report.usage.completion // 1_000 == len(refused)
