"""The strict rules, each broken alone; a request that keeps them all breaks none."""

import json
from typing import Any

import pytest

from agentmem.testing import ollama, strict

Messages = list[dict[str, Any]]


def tool_call(call_id: Any, arguments: Any = "{}") -> dict[str, Any]:
    function = {"name": "look", "arguments": arguments}
    return {"id": call_id, "type": "function", "function": function}


def result(call_id: Any, content: Any = "seen") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


SYSTEM = {"role": "system", "content": "Be brief. Today is Monday."}
USER = {"role": "user", "content": "two cities please"}
CALLS = {"role": "assistant", "content": None, "tool_calls": [tool_call("k1"), tool_call("k2")]}
ANSWER = {"role": "assistant", "content": "done"}
CLEAN: Messages = [SYSTEM, USER, CALLS, result("k1"), result("k2"), ANSWER, USER]


def rules(
    messages: Messages, prompt: str | None = None, given: Messages | None = None
) -> list[str]:
    """Return the names of the broken rules."""
    found = strict.violations(messages, prompt, given=given or [])
    return [line.split(":")[0] for line in found]


def test_a_sound_conversation_breaks_no_rule() -> None:
    """Parallel calls answered in order, with the prompt and an addition to it, pass."""
    assert strict.violations(CLEAN, "Be brief.") == []


def test_results_of_parallel_calls_may_come_in_any_order() -> None:
    """Every result must come before the next message, in no order among them."""
    assert rules([USER, CALLS, result("k2"), result("k1"), ANSWER]) == []


@pytest.mark.parametrize(
    "messages",
    [
        [SYSTEM, SYSTEM, USER],
        [USER, SYSTEM],
        [{"role": "system", "content": "Be chatty."}, USER],
        [USER],
    ],
    ids=["two", "not first", "another prompt", "prompt missing"],
)
def test_there_is_one_system_message_which_is_first_and_has_the_prompt(messages: Messages) -> None:
    """A second, a late, a different and a missing system message are each refused."""
    assert rules(messages, "Be brief.") == ["system message"]


def test_without_a_configured_prompt_any_system_message_or_none_will_do() -> None:
    """Texts are compared only if the check is told the prompt."""
    assert rules([USER]) == rules([SYSTEM, USER]) == []


@pytest.mark.parametrize("messages", [[SYSTEM, ANSWER, USER], [SYSTEM], []])
def test_the_user_speaks_first(messages: Messages) -> None:
    """A greeting first, a system prompt alone and an empty list are refused."""
    assert rules(messages) == ["first message"]


@pytest.mark.parametrize(
    "messages",
    [
        [USER, result("k1")],
        [USER, CALLS, result("k1"), result("k2"), ANSWER, result("k1")],
        [USER, CALLS, result("k1"), result("k2"), result("k3")],
    ],
    ids=["no call at all", "not the nearest assistant message", "unknown id"],
)
def test_every_result_has_its_call(messages: Messages) -> None:
    """A result that answers no call of the nearest assistant message is refused."""
    assert rules(messages) == ["results"]


@pytest.mark.parametrize(
    "messages",
    [
        [USER, CALLS, result("k1"), USER],
        [USER, CALLS, result("k1")],
        [USER, CALLS, result("k1"), result("k2"), result("k2")],
    ],
    ids=["before the next message", "at the end", "twice"],
)
def test_every_call_is_answered_once(messages: Messages) -> None:
    """An open call, and a call answered twice, are refused."""
    assert rules(messages) == ["open calls"]


@pytest.mark.parametrize("call_id", [None, "", "  ", 7])
def test_ids_of_calls_are_text(call_id: Any) -> None:
    """A missing, an empty and a blank id and a number are refused."""
    call = {"role": "assistant", "content": None, "tool_calls": [tool_call(call_id)]}
    assert rules([USER, call, result(call_id)]) == ["call ids"]


def test_ids_of_calls_are_unique_in_the_whole_request() -> None:
    """One id in two turns is refused, although each turn is paired."""
    call = {"role": "assistant", "content": None, "tool_calls": [tool_call("x1")]}
    assert rules([USER, call, result("x1"), USER, call, result("x1")]) == ["call ids"]


@pytest.mark.parametrize(
    "arguments", ["", '{"city": "Osl', "[1,2]", "7", "null", None, {"city": "Oslo"}, '{"a": NaN}']
)
def test_arguments_are_a_json_object_as_text(arguments: Any) -> None:
    """Text that is no JSON object, and an object that is no text, are refused."""
    call = {"role": "assistant", "content": None, "tool_calls": [tool_call("k1", arguments)]}
    assert rules([USER, call, result("k1")]) == ["arguments"]


@pytest.mark.parametrize("content", [None, "", " \n", [], [{"type": "text", "text": None}]])
@pytest.mark.parametrize("role", ["user", "assistant", "tool"])
def test_every_message_has_text_or_calls(role: str, content: Any) -> None:
    """Blank content is refused in every role."""
    messages = [dict(message) for message in CLEAN]
    message = next(m for m in reversed(messages) if m["role"] == role)
    message["content"] = content
    assert rules(messages) == ["blank messages"]


def test_an_image_alone_is_not_blank() -> None:
    """A message needs text only if it has no other part."""
    image = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    assert rules([{"role": "user", "content": [image]}]) == []


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "half \ud83d of an emoji"])
def test_a_request_is_standard_json_in_utf_8(value: Any) -> None:
    """NaN, an infinity and a lone surrogate anywhere in a message are refused."""
    assert rules([{**USER, "extra": {"mean": value}}]) == ["JSON"]


THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "s1"}
REDACTED = {"type": "redacted_thinking", "data": "d"}
REASONED = [
    {"reasoning_content": "hm"},
    {"thinking_blocks": [THOUGHT, REDACTED]},
    {"content": [THOUGHT, {"type": "text", "text": "done"}]},
    {"provider_specific_fields": {"thought_signature": "abc=="}},
]


@pytest.mark.parametrize("fields", REASONED)
def test_reasoning_parts_come_back_unchanged(fields: dict[str, Any]) -> None:
    """Parts sent back pass; parts dropped, changed or invented are refused."""
    given = {**ANSWER, **fields}
    changed = json.loads(json.dumps(given).replace("hm", "oh").replace("abc", "xyz"))
    assert rules([USER, given, USER], given=[given]) == []
    assert rules([USER, ANSWER, USER], given=[given]) == ["reasoning"]
    assert rules([USER, changed, USER], given=[given]) == ["reasoning"]
    assert rules([USER, given, USER], given=[ANSWER]) == ["reasoning"]


def test_thinking_blocks_come_back_in_their_order() -> None:
    """The same blocks the other way round are refused."""
    given = {**ANSWER, "thinking_blocks": [THOUGHT, REDACTED]}
    turned = {**ANSWER, "thinking_blocks": [REDACTED, THOUGHT]}
    assert rules([USER, turned, USER], given=[given]) == ["reasoning"]


def test_the_signature_of_a_call_comes_back() -> None:
    """A thought signature dropped from a call is refused."""
    signed = {**tool_call("k1"), "provider_specific_fields": {"thought_signature": "abc=="}}
    given = {"role": "assistant", "content": None, "tool_calls": [signed]}
    plain = {**given, "tool_calls": [tool_call("k1")]}
    assert rules([USER, given, result("k1")], given=[given]) == []
    assert rules([USER, plain, result("k1")], given=[given]) == ["reasoning"]


def test_a_client_may_give_calls_other_ids_and_other_spelling() -> None:
    """The message of a reply is found by its text, tools and parsed arguments, not by ids."""
    given = {**ANSWER, "tool_calls": [tool_call("", '{"a":  1}')], "reasoning_content": "hm"}
    sent = {**given, "tool_calls": [tool_call("k9", '{"a":1}')]}
    assert rules([USER, sent, result("k9")], given=[given]) == []


def test_reasoning_parts_on_a_user_message_are_refused() -> None:
    """Reasoning parts belong to the assistant, whether or not the replies are known."""
    assert rules([{**USER, "reasoning_content": "hm"}]) == ["reasoning"]


def test_every_rule_is_reported_at_once() -> None:
    """A request that breaks several rules gets a line for each."""
    call = {"role": "assistant", "content": None, "tool_calls": [tool_call("", "[]")]}
    assert rules([call, SYSTEM]) == [
        "system message",
        "first message",
        "open calls",
        "call ids",
        "arguments",
    ]


def test_ollama_messages_are_read_in_the_openai_shape() -> None:
    """Arguments that are an object become text, and thinking becomes reasoning content."""
    function = {"name": "look", "arguments": {"city": "Oslo"}}
    call = {"role": "assistant", "content": "", "thinking": "hm"}
    messages = [USER, {**call, "tool_calls": [{"id": "a", "function": function}]}, result("a")]
    read = ollama.as_openai(messages)
    assert read[1]["reasoning_content"] == "hm"
    assert read[1]["tool_calls"] == [tool_call("a", '{"city": "Oslo"}')]
    assert rules(read) == []


@pytest.mark.parametrize(
    "part",
    [
        {},
        {"type": ["string", "null"]},
        {"type": "array"},
        {"type": "array", "items": {}},
        {"type": "array", "prefixItems": [{"type": "string"}], "items": {"type": "string"}},
        {"oneOf": [{"type": "string"}]},
        {"anyOf": [{"type": "string"}, {"const": 1}]},
        {"type": "object", "properties": {"deep": {}}},
        {"type": "object", "additionalProperties": {"type": "string", "uniqueItems": True}},
    ],
)
def test_a_tools_parameters_hold_what_every_provider_takes(part: dict[str, Any]) -> None:
    """Each of these is refused by some provider, at any depth."""

    def offered(parameters: dict[str, Any]) -> list[str]:
        function = {"name": "look", "parameters": parameters}
        return strict.tool_violations([{"type": "function", "function": function}])

    assert offered({"type": "object", "properties": {"a": {"type": "string"}}}) == []
    broken = offered({"type": "object", "properties": {"a": part}})
    assert broken
    assert all(line.startswith("tool schemas: look.a") for line in broken)
    assert offered({"type": "string"}) == ["tool schemas: the parameters of look are no object"]
