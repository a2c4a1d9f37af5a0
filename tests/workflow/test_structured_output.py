"""Answers in a form: asked for, checked, repaired within bounds, typed in code, JSON outside."""

import json
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client, WorkflowFailureError, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError

from agentmem.offline.model import STAND_IN
from agentmem.testing import Request, call, reply
from tests.stack import stack
from tests.tools import ping, runs
from tests.typed_workflows import TypedAnswers, WrongFormats

AGENTS = """
[agents.city]
system_prompt = "Name a city."
tools = ["ping"]
[agents.city.response_format]
type = "object"
required = ["name"]
additionalProperties = false
[agents.city.response_format.properties.name]
type = "string"
"""
OSLO = '{"name": "Oslo"}'


def error_of(failure: WorkflowFailureError | WorkflowUpdateFailedError) -> ApplicationError:
    """Return the application error behind a failed workflow or update."""
    assert isinstance(failure.cause, ApplicationError)
    return failure.cause


async def test_the_answer_is_json_for_people_and_data_for_programs(
    client: Client, tmp_path: Path
) -> None:
    """`send` gives JSON text, `ask` its data; the schema is enforced beside the tools."""
    runs.clear()
    script = [reply(calls=[call("ping")]), reply(f"Here:\n```json\n{OSLO}\n```"), reply(OSLO)]
    options: dict[str, Any] = {"agents": AGENTS, "extra": [ping], "model_name": "openai/gpt-4o"}
    async with stack(client, tmp_path, script, **options) as s:
        handle = await s.start(agent="city", session=True)
        assert await handle.execute_update("send", "which?") == OSLO
        answer = await handle.execute_update("ask", "and now?")
        assert (answer["data"], answer["text"], answer["finish"]) == (
            {"name": "Oslo"},
            OSLO,
            "stop",
        )
        await handle.execute_update("end")
        asked = [request.body["response_format"] for request in s.model.requests]
        assert {form["type"] for form in asked} == {"json_schema"}
        assert asked[0]["json_schema"]["strict"] is True
        assert asked[0]["json_schema"]["schema"]["required"] == ["name"]
        assert runs == ["ping"]
        s.model.assert_strict()


async def test_a_wrong_answer_is_asked_for_again_and_never_part_of_the_talk(
    client: Client, tmp_path: Path
) -> None:
    """The model sees its answer and what is wrong with it; the conversation keeps the good one."""
    script = [reply("Oslo, of course."), reply('{"name": 5}'), reply(OSLO), reply(OSLO)]
    async with stack(client, tmp_path, script, agents=AGENTS, extra=[ping]) as s:
        handle = await s.start(agent="city", session=True)
        assert await handle.execute_update("send", "which?") == OSLO
        first, second = s.model.requests[1].messages, s.model.requests[2].messages
        assert [m["content"] for m in first[1:3]] == ["which?", "Oslo, of course."]
        assert "not valid JSON" in first[3]["content"]
        assert '"required":["name"]' in first[3]["content"]
        assert second[2]["content"] == '{"name": 5}'
        assert "name: 5 is not of type 'string'" in second[3]["content"]
        assert len(second) == 4
        assert {r.body.get("tool_choice") for r in s.model.requests[1:3]} == {"none"}
        page = await handle.query("messages")
        assert [entry["content"] for entry in page["messages"]] == ["which?", OSLO]
        await handle.execute_update("send", "again?")
        assert [m["content"] for m in s.model.requests[3].messages[1:]] == [
            "which?",
            OSLO,
            "again?",
        ]
        assert (await handle.query("usage"))["requests"] == 4
        await handle.execute_update("end")
        s.model.assert_strict()


async def test_repairs_are_bounded_and_the_session_goes_on(client: Client, tmp_path: Path) -> None:
    """Two repairs, then the turn fails with what was wrong; the next one works."""
    script = [*[reply("no idea")] * 3, reply(OSLO)]
    async with stack(client, tmp_path, script, agents=AGENTS, extra=[ping]) as s:
        handle = await s.start(agent="city", session=True)
        with pytest.raises(WorkflowUpdateFailedError) as caught:
            await handle.execute_update("send", "which?")
        error = error_of(caught.value)
        assert error.type == "TurnFailed"
        assert "2 repairs: it is not valid JSON" in error.message
        assert len(s.model.requests) == 3
        assert await handle.execute_update("send", "which?") == OSLO
        assert len(s.model.requests[3].messages) == 2
        await handle.execute_update("end")
        s.model.assert_strict()


async def test_cut_off_json_is_asked_for_shorter_and_a_refusal_is_no_answer(
    client: Client, tmp_path: Path
) -> None:
    """Half an object never passes; a refusal is told as one, and not repaired."""
    refusal = reply(None, extra={"refusal": "I will not."})
    script = [reply('{"name": "Os', finish="length"), reply(OSLO), refusal]
    async with stack(client, tmp_path, script, agents=AGENTS, extra=[ping]) as s:
        handle = await s.start(agent="city", session=True)
        assert await handle.execute_update("send", "which?") == OSLO
        assert "be shorter" in s.model.requests[1].messages[-1]["content"]
        answer = await handle.execute_update("ask", "a bad one?")
        assert (answer["finish"], answer["data"]) == ("content_filter", None)
        assert len(s.model.requests) == 3
        await handle.execute_update("end")


async def test_code_gets_an_instance_checked_by_its_own_validators(
    client: Client, tmp_path: Path
) -> None:
    """`await assistant(...)` is the pydantic model; a rule of its own is repaired too."""

    def script(request: Request) -> Any:
        if len(request.messages) == 2:
            return reply('{"name": "oslo"}')
        return reply('{"name": "Oslo", "people": 700000}')

    options: dict[str, Any] = {"extra": [TypedAnswers, ping], "model_name": "openai/gpt-4o"}
    async with stack(client, tmp_path, script, **options) as s:
        answers, seen, talk = await s.run("TypedAnswers", ["which?"])
        assert answers == [{"name": "Oslo", "people": 700000}]
        assert seen == ["City"]
        assert [entry["role"] for entry in talk] == ["user", "assistant"]
        assert "begins with a capital" in s.model.requests[1].messages[-1]["content"]
        form = s.model.requests[0].body["response_format"]["json_schema"]
        assert "strict" not in form  # `people` may be left out, which OpenAI's strict mode forbids
        s.model.assert_strict()


async def test_a_refusal_fails_typed_code(client: Client, tmp_path: Path) -> None:
    """Code that waits for an instance gets an error, not a wrong type."""
    script = [reply("I will not.", finish="content_filter")]
    async with stack(client, tmp_path, script, extra=[TypedAnswers, ping]) as s:
        with pytest.raises(WorkflowFailureError) as caught:
            await s.run("TypedAnswers", ["which?"])
        assert error_of(caught.value).type == "TurnFailed"
        assert "I will not." in error_of(caught.value).message


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"type": "objekt"}, "no JSON schema"),
        ("City", "a pydantic model or a JSON schema"),
        ({"description": "x" * 70_000}, "the limit is 65536"),
    ],
)
async def test_a_wrong_format_fails_before_any_model_is_asked(
    client: Client, tmp_path: Path, given: Any, words: str
) -> None:
    """The error names the argument and what is wrong."""
    async with stack(client, tmp_path, extra=[WrongFormats]) as s:
        with pytest.raises(WorkflowFailureError) as caught:
            await s.run("WrongFormats", given)
        assert error_of(caught.value).type == "ConfigurationError"
        assert "response_format" in error_of(caught.value).message
        assert words in error_of(caught.value).message
        assert s.model.requests == []


@pytest.mark.parametrize("tools", ['["ping"]', "[]"])
async def test_a_local_model_is_enforced_where_it_may_still_call_tools(
    client: Client, tmp_path: Path, tools: str
) -> None:
    """A grammar leaves Ollama's models no way to call: with tools it is asked for in words."""
    agents = AGENTS.replace('["ping"]', tools)
    options: dict[str, Any] = {"agents": agents, "extra": [ping], "model_name": "ollama/test"}
    async with stack(client, tmp_path, [reply(OSLO)], **options) as s:
        handle = await s.start(agent="city", message="which?")
        assert json.loads(await handle.result()) == {"name": "Oslo"}
        body = s.model.requests[0].body
        in_words = "Your answer must be JSON alone" in body["messages"][0]["content"]
        assert ("format" in body, in_words) == ((False, True) if "ping" in tools else (True, False))


async def test_the_offline_model_keeps_a_form(client: Client, tmp_path: Path) -> None:
    """For trying it without a model: valid, and stated to be no answer."""
    offline: dict[str, Any] = {"extra": [ping], "model_name": "agentmem/offline"}
    async with stack(client, tmp_path, agents=AGENTS, **offline) as s:
        handle = await s.start(agent="city", message="which?")
        assert json.loads(await handle.result()) == {"name": STAND_IN}
