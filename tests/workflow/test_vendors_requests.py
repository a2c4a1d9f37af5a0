"""The data sent, by vendor and model: response formats beside tools, marks for Claude's cache."""

import importlib
import json
import warnings
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client

from activities.llm_request import prepared
from agentmem.llm.request import marked
from agentmem.llm.structured_output import request_format
from agentmem.wire import JSONObject
from tests.anthropic import anthropic, text, use
from tests.stack import stack, task_failures
from tests.tools import ping, runs

pytestmark = pytest.mark.timeout(180)

CITY: JSONObject = {
    "type": "object",
    "properties": {"name": {"type": "string"}},
    "required": ["name"],
    "additionalProperties": False,
}
OPEN: JSONObject = {"type": "object", "properties": {"name": {"type": "string", "minLength": 2}}}
FREE: JSONObject = {"type": "object", "additionalProperties": {"type": "integer"}}
PING: JSONObject = {
    "type": "function",
    "function": {"name": "ping", "parameters": {"type": "object", "properties": {}}},
}


@pytest.fixture(scope="module")
def litellm() -> Any:
    """The library, as a worker has it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module("litellm")


def sent(litellm: Any, model: str, schema: JSONObject, *, tools: bool) -> JSONObject:
    """Return a request for an answer in a form, as litellm is called with it."""
    request: JSONObject = {
        "model": model,
        "messages": [{"role": "user", "content": "which?"}],
        "max_tokens": 100,
        "response_format": request_format(schema),
        **({"tools": [PING]} if tools else {}),
    }
    return prepared(litellm, request)


@pytest.mark.parametrize(
    ("model", "schema", "tools", "form"),
    [
        ("anthropic/claude-sonnet-4-5", CITY, True, "field"),
        ("anthropic/claude-sonnet-4-5", CITY, False, "field"),
        ("anthropic/claude-sonnet-4-5", OPEN, True, "field"),
        ("anthropic/claude-sonnet-4-5", FREE, True, "words"),
        ("anthropic/claude-sonnet-4-5", {**CITY, "properties": {"name": FREE}}, True, "words"),
        ("bedrock/anthropic.claude-sonnet-4-5-20250929-v1:0", FREE, False, "words"),
        ("anthropic/claude-opus-4-1", CITY, True, "words"),
        ("anthropic/claude-3-haiku-20240307", CITY, True, "words"),
        ("anthropic/claude-sonnet-4-20250514", CITY, False, "words"),
        ("anthropic/claude-of-tomorrow", CITY, True, "words"),
        ("bedrock/anthropic.claude-3-5-sonnet-20241022-v2:0", CITY, True, "words"),
        ("vertex_ai/claude-3-5-sonnet@20240620", CITY, True, "words"),
        ("databricks/databricks-claude-3-7-sonnet", CITY, True, "words"),
        ("groq/llama-3.3-70b-versatile", CITY, True, "words"),
        ("openai/gpt-4o", CITY, True, "strict"),
        ("gpt-4o", CITY, True, "strict"),
        ("openai/gpt-4o", OPEN, True, "field"),
        ("openai/gpt-4", CITY, False, "words"),
        ("openai/gpt-4o", {"type": "array", "items": {"type": "string"}}, False, "words"),
        ("openai/served-by-vllm", CITY, True, "words"),
        ("openai/served-by-vllm", CITY, False, "strict"),
        ("azure/a-deployment", CITY, True, "strict"),
        ("mistral/mistral-large-latest", CITY, False, "field"),
        ("gemini/gemini-2.5-flash", CITY, True, "words"),
        ("gemini/gemini-2.5-flash", CITY, False, "field"),
        ("cohere_chat/command-r-plus", CITY, False, "words"),
        ("ollama/llama3.2", CITY, True, "words"),
        ("ollama/llama3.2", CITY, False, "field"),
    ],
)
def test_the_form_is_sent_as_the_model_takes_it(
    litellm: Any, model: str, schema: JSONObject, tools: bool, form: str
) -> None:
    """As a field, strict or not, or in words; the agent's tools stay as they are."""
    request = sent(litellm, model, schema, tools=tools)
    field = request.get("response_format")
    in_words = "must be JSON alone" in str(request["messages"][0]["content"])
    strict = bool(field) and field["json_schema"].get("strict", False)
    found = "words" if in_words else "strict" if strict else "field"
    assert (found, bool(field)) == (form, form != "words")
    assert request.get("tools") == ([PING] if tools else None)


FORM = (
    'response_format = { type = "object", required = ["name"], additionalProperties = false, '
    'properties = { name = { type = "string" } } }'
)
AGENTS = f"""
[agents.whole]
system_prompt = "Name a city."
tools = ["ping"]
{FORM}
[agents.streamed]
system_prompt = "Name a city."
tools = ["ping"]
stream = true
{FORM}
[agents.talking]
system_prompt = "Be brief. {"This rule is long. " * 60}"
tools = ["ping"]
[agents.talking_in_pieces]
system_prompt = "Be brief. {"This rule is long. " * 60}"
tools = ["ping"]
stream = true
"""


@pytest.mark.parametrize("agent", ["whole", "streamed"])
@pytest.mark.parametrize("model", ["claude-opus-4-1", "claude-of-tomorrow", "claude-sonnet-4-5"])
async def test_claude_calls_tools_before_it_answers_in_a_form(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, agent: str, model: str
) -> None:
    """No model is made to answer at once with values that it has not looked up."""
    runs.clear()
    replies = [use("ping")], [text('{"name": "Oslo"}')]
    async with anthropic(*replies) as claude:
        monkeypatch.setenv("ANTHROPIC_API_BASE", claude.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "none")
        options: dict[str, Any] = {"agents": AGENTS, "extra": [ping]}
        async with stack(client, tmp_path, model_name=f"anthropic/{model}", **options) as s:
            handle = await s.start(agent=agent, message="which?")
            assert json.loads(await handle.result()) == {"name": "Oslo"}
    assert runs == ["ping"]
    for request in claude.requests:
        assert [tool["name"] for tool in request["tools"]] == ["ping"]
        assert request.get("tool_choice", {}).get("type") != "tool"
    assert await task_failures(handle) == []


@pytest.mark.parametrize("agent", ["talking", "talking_in_pieces"])
async def test_claude_reads_a_conversation_from_its_cache(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, agent: str
) -> None:
    """Each request after the first reads from the cache all that the one before had sent."""
    calls = [use("ping") | {"id": f"toolu_{number}"} for number in range(3)]
    replies = [[text("one")], calls, [text("two")], [text("three")]]
    async with anthropic(*replies) as claude:
        monkeypatch.setenv("ANTHROPIC_API_BASE", claude.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "none")
        options: dict[str, Any] = {"agents": AGENTS, "extra": [ping]}
        name = "anthropic/claude-sonnet-4-5"
        async with stack(client, tmp_path, model_name=name, **options) as s:
            handle = await s.start(agent=agent, session=True)
            answers = [await handle.execute_update("ask", said) for said in ("a", "b", "c")]
            await handle.execute_update("end")
    first, second, third = (answer["usage"] for answer in answers)
    assert first["cached"] == 0
    assert first["prompt"] > 300
    assert second["cached"] > 2 * 0.8 * first["prompt"]  # two requests
    assert third["cached"] > 0.8 * third["prompt"]
    assert await task_failures(handle) == []


async def test_only_models_that_cache_by_marks_get_some(litellm: Any) -> None:
    """A mark is something else to Gemini, and nothing to others; without a talk there is none."""
    messages = [{"role": "user", "content": "hi"}]
    for model, has_marks in [
        ("anthropic/claude-sonnet-4-5", True),
        ("openrouter/anthropic/claude-sonnet-4.5", True),
        ("bedrock/anthropic.claude-3-5-sonnet-20240620-v1:0", False),
        ("gemini/gemini-2.5-pro", False),
        ("openai/gpt-4o", False),
    ]:
        request: JSONObject = {"model": model, "messages": messages}
        assert ("cache_control" in str(prepared(litellm, request, continues=True))) == has_marks
        assert "cache_control" not in str(prepared(litellm, request))


SYSTEM: JSONObject = {"role": "system", "content": "s"}
USER: JSONObject = {"role": "user", "content": "u"}
PARTS: JSONObject = {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text"}]}
ANSWER: JSONObject = {"role": "assistant", "content": "a"}
RESULT: JSONObject = {"role": "tool", "tool_call_id": "x", "content": "r"}


@pytest.mark.parametrize(
    ("messages", "places"),
    [
        ([SYSTEM, USER], [0, 1]),
        ([USER], [0]),
        ([SYSTEM, USER, ANSWER, USER], [0, 1, 3]),
        ([SYSTEM, USER, ANSWER, RESULT, RESULT], [0, 1, 4]),
        ([SYSTEM, USER, ANSWER, RESULT, RESULT, ANSWER, USER], [0, 4, 6]),
        ([SYSTEM, USER, ANSWER, ANSWER, PARTS], [0, 1, 4]),
    ],
)
def test_marks_are_where_requests_end(messages: list[JSONObject], places: list[int]) -> None:
    """Behind the system prompt, where the last request ended, and where this one ends."""
    found = marked(messages)
    assert [at for at, one in enumerate(found) if "cache_control" in str(one)] == places
    assert "cache_control" not in str(messages)
    if messages[-1] is PARTS:
        assert "cache_control" in found[-1]["content"][-1]
