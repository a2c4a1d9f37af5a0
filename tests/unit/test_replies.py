"""From a provider's reply to the message that the workflow stores."""

import json

import pytest

from agentmem.contracts import ModelCall, ModelReply, Prompt, Usage
from agentmem.errors import ModelCallError
from agentmem.llm.reasoning import content_parts, written
from agentmem.llm.response import REPLY_BYTES, read_reply
from agentmem.messages import Message, Role, ToolCall
from agentmem.wire import JSONObject, plain

CALL = ModelCall(
    prompt=Prompt(memory="wm0", view=["m0"]),
    reply="m1",
    turn=3,
    step=2,
    model="openai/x",
    tools=["ping", "get_time"],
)


def body(
    content: object = None,
    *,
    calls: list[object] | None = None,
    finish: str | None = "stop",
    usage: object = None,
    **extra: object,
) -> JSONObject:
    message = {"role": "assistant", "content": content, "tool_calls": calls, **extra}
    return {"choices": [{"message": message, "finish_reason": finish}], "usage": usage}


def raw_call(arguments: object, name: object = "ping", **extra: object) -> JSONObject:
    return {
        "id": "x1",
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    } | extra


def read(reply: JSONObject, **changes: object) -> ModelReply:
    return read_reply(plain(reply), CALL.replace(**changes), attempt=1)


def only_call(arguments: object, **more: object) -> ToolCall:
    [found] = read(body(calls=[raw_call(arguments, **more)])).message.calls
    return found


def test_a_reply_becomes_the_message_under_the_reserved_id() -> None:
    """The id, the turn and the attempt are those of the call; usage is what the provider said."""
    usage = {
        "prompt_tokens": 12,
        "completion_tokens": 3,
        "prompt_tokens_details": {"cached_tokens": 8},
        "cost": 0.5,
    }
    reply = read_reply(body("hello", usage=usage), CALL, attempt=2)
    assert reply == ModelReply(
        message=Message(id="m1", role=Role.ASSISTANT, content="hello", turn=3, attempt=2),
        usage=Usage(prompt=12, completion=3, cached=8, cost=0.5, requests=1),
    )


@pytest.mark.parametrize("arguments", ["", "  \n", "null", None, {}])
def test_missing_arguments_are_an_empty_object(arguments: object) -> None:
    """A tool without parameters runs however a model writes that."""
    assert only_call(arguments) == ToolCall(id="t3.s2.c0", name="ping")


def test_an_absent_arguments_field_is_an_empty_object() -> None:
    """The field may be missing altogether."""
    [found] = read(body(calls=[{"function": {"name": "ping"}}])).message.calls
    assert found == ToolCall(id="t3.s2.c0", name="ping")


def test_arguments_that_do_not_parse_are_named_as_the_problem() -> None:
    """The call keeps its place with valid arguments, and the reason is in words."""
    found = only_call('{"city": "Osl')
    assert found.arguments == {}
    assert "not valid JSON" in found.problem
    assert "Unterminated string" in found.problem


@pytest.mark.parametrize("arguments", ["[1,2]", '"text"', "7", "true", [1]])
def test_arguments_that_are_no_object_are_a_problem(arguments: object) -> None:
    """Only an object can be given to a tool."""
    found = only_call(arguments)
    assert found.arguments == {}
    assert "JSON object is expected" in found.problem


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ('{"a": NaN}', "NaN is not JSON"),
        ('{"a":' * 100 + "1" + "}" * 100, "nested more than 64 deep"),
        ("[" * 100_000, "nested too deeply"),
        (json.dumps({"a": "x" * 300_000}), "larger than"),
    ],
)
def test_arguments_that_could_not_travel_are_a_problem(arguments: str, problem: str) -> None:
    """No reply can make a result that Temporal or a tool cannot take."""
    found = only_call(arguments)
    assert found.arguments == {}
    assert problem in found.problem


def test_sound_arguments_are_kept_beside_broken_ones() -> None:
    """The siblings of a broken call run."""
    calls = read(body(calls=[raw_call("7"), raw_call('{"a": 1}')])).message.calls
    assert [bool(found.problem) for found in calls] == [True, False]
    assert calls[1].arguments == {"a": 1}


def test_ids_are_positions_whatever_the_model_sends() -> None:
    """Doubled, empty, null and missing ids make no difference."""
    calls: list[object] = [
        raw_call("{}") | {"id": "x1"},
        raw_call("{}") | {"id": "x1"},
        raw_call("{}") | {"id": None},
        {"function": {"name": "ping", "arguments": "{}"}},
    ]
    found = read(body(calls=calls, finish="tool_calls")).message.calls
    assert [item.id for item in found] == [f"t3.s2.c{place}" for place in range(4)]


@pytest.mark.parametrize(("name", "kept"), [("get_wether", "get_wether"), ("", ""), (None, "")])
def test_unknown_names_are_kept_for_the_loop_to_answer(name: object, kept: str) -> None:
    """A wrong name is the loop's to answer, with the list of tools."""
    assert only_call("{}", name=name).name == kept


@pytest.mark.parametrize("content", [None, "", "  "])
def test_an_empty_reply_has_no_text(content: object) -> None:
    """Blanks are not stored as an answer."""
    reply = read(body(content))
    assert (reply.message.text.strip(), reply.message.calls, reply.finish) == ("", [], "stop")


@pytest.mark.parametrize(
    "reply",
    [
        {},
        {"choices": []},
        {"choices": None},
        {"choices": [None]},
        {"choices": [{"message": None, "finish_reason": "error"}], "usage": {"prompt_tokens": 5}},
    ],
)
def test_a_reply_without_a_message_is_a_typed_error(reply: JSONObject) -> None:
    """It says what is known, may be retried, and is no IndexError."""
    with pytest.raises(ModelCallError, match="openai/x sent a reply without a message") as caught:
        read(reply)
    assert not caught.value.non_retryable
    if "usage" in reply:
        assert "finish reason error, 5 tokens read" in caught.value.message


def test_a_missing_finish_reason_follows_from_the_message() -> None:
    """With calls it is tool_calls, without any it is stop."""
    assert read(body("hi", finish=None)).finish == "stop"
    assert read(body(calls=[raw_call("{}")], finish=None)).finish == "tool_calls"


def test_control_characters_in_a_calls_name_are_replaced() -> None:
    """A name goes to stores and back to providers, which take neither NUL nor half a pair."""
    call = {"function": {"name": "look\x00up\ud800", "arguments": "{}"}}
    [found] = read(body(calls=[call])).message.calls
    assert found.name == "look?up?"


def test_calls_of_a_reply_that_was_cut_off_do_not_run() -> None:
    """Arguments that parse may be half of what was meant."""
    arguments = '{"path":"a.txt","text":"first half"}'
    reply = read(body("so", calls=[raw_call(arguments)], finish="length"))
    [found] = reply.message.calls
    assert reply.finish == "length"
    assert found.arguments == {}
    assert "cut off" in found.problem
    assert "4096 tokens" in found.problem


def test_a_text_that_was_cut_off_is_marked() -> None:
    """A text-only reply keeps its text, and its finish says so."""
    reply = read(body("half of", finish="length"))
    assert (reply.message.text, reply.finish) == ("half of", "length")


def test_a_cut_that_the_provider_does_not_name_is_seen_by_the_tokens() -> None:
    """Broken arguments in a reply of the full length were cut off; sound ones were not."""
    calls: list[object] = [raw_call('{"a": "Osl'), raw_call('{"a": 1}')]
    usage = {"prompt_tokens": 1, "completion_tokens": 4096}
    found = read(body(calls=calls, finish="tool_calls", usage=usage)).message.calls
    assert "cut off" in found[0].problem
    assert (found[1].problem, found[1].arguments) == ("", {"a": 1})


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        (body(None, finish="content_filter"), ""),
        (body("partial", finish="content_filter"), "partial"),
        (body(None, refusal="I will not."), "I will not."),
        (body(None, provider_specific_fields={"refusal": "I will not."}), "I will not."),
        (body("I cannot.", finish="refusal"), "I cannot."),
        (body("half", calls=[raw_call("{}")], finish="content_filter"), "half"),
    ],
)
def test_every_kind_of_refusal_is_told_in_the_same_way(reply: JSONObject, text: str) -> None:
    """The finish is content_filter, the text is kept, and nothing runs."""
    found = read(reply)
    assert (found.finish, found.message.text, found.message.calls) == ("content_filter", text, [])


@pytest.mark.parametrize("reason", ["error", "network_error", "insufficient_system_resource"])
def test_a_reply_that_the_provider_broke_off_is_no_answer(reason: str) -> None:
    """Litellm says `stop` for words that it does not know; the half is asked for again."""
    half = {"role": "assistant", "content": "The answer is"}
    own = {"provider_specific_fields": {"native_finish_reason": reason}}
    for choice in ({"finish_reason": "stop", **own}, {"finish_reason": reason}):
        with pytest.raises(ModelCallError, match=f"broke its reply off .finish reason {reason}"):
            read({"choices": [{"message": half, **choice}]})
    cut = {"finish_reason": "stop", "provider_specific_fields": {"native_finish_reason": "X"}}
    assert read({"choices": [{"message": half, **cut}]}).finish == "stop"
    cut = {"provider_specific_fields": {"native_finish_reason": "model_length"}}
    assert read({"choices": [{"message": half, "finish_reason": "stop", **cut}]}).finish == "length"


def test_thinking_blocks_and_signatures_are_kept_in_order() -> None:
    """Blocks are stored as they came, and written back so."""
    blocks = [
        {"type": "thinking", "thinking": "...", "signature": "s1"},
        {"type": "redacted_thinking", "data": "d"},
    ]
    fields = {"thinking_blocks": blocks, "citations": None}  # litellm repeats them there
    reply = body(
        calls=[raw_call("{}")],
        thinking_blocks=blocks,
        reasoning_content="...",
        provider_specific_fields=fields,
    )
    message = read(reply).message
    assert message.reasoning == [*blocks, {"type": "reasoning_content"}]
    assert written(message) == {"thinking_blocks": blocks, "reasoning_content": "..."}


THINKING = [{"type": "thinking", "thinking": "...", "signature": "s1"}]
SIGNED: list[JSONObject] = [
    {"thinking_blocks": THINKING},
    {"reasoning_items": [{"id": "rs_1", "encrypted_content": "x"}]},
    {"provider_specific_fields": {"thought_signature": "s1"}},
]


@pytest.mark.parametrize("signed", SIGNED, ids=["blocks", "items", "fields"])
@pytest.mark.parametrize(
    ("finish", "tool_choice"), [("tool_calls", "none"), ("content_filter", "auto")]
)
def test_signed_reasoning_goes_with_the_calls_of_its_reply(
    signed: JSONObject, finish: str, tool_choice: str
) -> None:
    """A reply whose calls are left out is not what was signed: providers refuse it as such."""
    made = read(
        body("so", finish=finish, calls=[raw_call("{}")], **signed), tool_choice=tool_choice
    )
    assert made.message.text == "so"
    assert made.message.calls == []
    assert written(made.message) == {}
    whole = read(body("so", **signed), tool_choice=tool_choice).message
    assert written(whole) == signed


def test_a_call_that_was_cut_off_loses_what_signed_it() -> None:
    """Its arguments are gone; the thinking before it is whole, and stays with its calls."""
    call = raw_call('{"a": "b', provider_specific_fields={"thought_signature": "s"})
    message = read(body(calls=[call], finish="length", thinking_blocks=THINKING)).message
    assert message.calls[0].fields == {}
    assert written(message) == {"thinking_blocks": THINKING}


def test_reasoning_is_kept_apart_from_the_answer() -> None:
    """It is stored with its message, and is not its text."""
    message = read(body("answer", reasoning_content="hm")).message
    assert message.text == "answer"
    assert written(message) == {"reasoning_content": "hm"}


def test_reasoning_among_the_content_parts_is_kept_there() -> None:
    """Such parts go back into the content, and are not shown."""
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "q"}]}
    message = read(body([thought, {"type": "text", "text": "A"}])).message
    assert message.text == "A"
    assert content_parts(message) == [thought]


@pytest.mark.parametrize("name", ["reasoning_details", "reasoning_items"])
def test_reasoning_that_litellm_moved_stands_on_the_message_again(name: str) -> None:
    """OpenRouter and OpenAI read it there, not among the provider fields."""
    parts = [{"type": "reasoning.text", "text": "w"}]
    message = read(body("a", provider_specific_fields={name: parts})).message
    assert written(message) == {name: parts}


def test_signatures_on_calls_and_messages_are_kept() -> None:
    """A thought signature comes back where it was."""
    signed: JSONObject = {"provider_specific_fields": {"thought_signature": "abc=="}}
    inside: JSONObject = {"function": {"name": "ping", "arguments": "{}", **signed}}
    reply = body(calls=[raw_call("{}", **signed), inside], **signed)
    message = read(reply).message
    assert [found.fields for found in message.calls] == [signed, signed]
    assert message.fields == signed


def test_text_parts_are_joined() -> None:
    """No Python repr, and parts without text are left out."""
    parts = [{"type": "text", "text": "A"}, {"type": "text", "text": None}, None, {"text": "B"}]
    assert read(body(parts)).message.content == "AB"


@pytest.mark.parametrize("arguments", [{}, {"zone": "UTC"}, "{}"])
@pytest.mark.parametrize("field", ["arguments", "parameters"])
def test_a_text_that_is_nothing_but_a_call_is_one(arguments: object, field: str) -> None:
    """The whole content is the JSON of a known tool."""
    reply = read(body(json.dumps({"name": "get_time", field: arguments})))
    [found] = reply.message.calls
    assert (reply.message.text, reply.finish, found.name) == ("", "tool_calls", "get_time")
    assert found.arguments == (arguments if isinstance(arguments, dict) else {})


@pytest.mark.parametrize(
    "text",
    [
        'I call {"name":"get_time","arguments":{}} now',
        '{"name":"launch","arguments":{}}',
        '{"name":"get_time"}',
        '{"name":"get_time","arguments":{},"note":1}',
        '{"name":["get_time"],"arguments":{}}',
        "{not json}",
    ],
)
def test_other_text_that_looks_like_a_call_is_text(text: str) -> None:
    """In a sentence, of an unknown tool, or with more in it, nothing runs."""
    reply = read(body(text))
    assert (reply.message.text, reply.message.calls) == (text, [])


def test_json_that_was_asked_for_is_text() -> None:
    """An agent with a response format answers in JSON."""
    text = '{"name":"get_time","arguments":{}}'
    assert read(body(text), response_format={"type": "object"}).message.text == text


def test_calls_that_were_not_allowed_are_left_out() -> None:
    """The worker keeps what the workflow stores: a turn at its limit takes no calls."""
    reply = read(body("the answer", calls=[raw_call("{}")]), tool_choice="none")
    assert (reply.message.calls, reply.message.text) == ([], "the answer")
    assert reply.finish == "tool_limit"


@pytest.mark.parametrize(
    "usage",
    [None, {}, {"prompt_tokens": None, "completion_tokens": None, "prompt_tokens_details": None}],
)
def test_missing_usage_counts_as_zero(usage: object) -> None:
    """Sums stay numbers."""
    assert read(body("x", usage=usage)).usage == Usage(requests=1)


@pytest.mark.parametrize("character", ["x", '"', "\x00", "😀"])
def test_a_long_reply_is_clipped_to_its_encoded_limit(character: str) -> None:
    """A stored text stays far below Temporal's limit, and says its full size."""
    message = read(body(character * 3_000_000)).message
    size = len(message.model_dump_json().encode())
    assert size <= REPLY_BYTES
    assert "bytes in full" in message.text[-60:]


def test_a_reply_of_nothing_but_calls_stays_within_its_limit() -> None:
    """Arguments that are too large together do not run, and the calls keep their place."""
    calls: list[object] = [raw_call(json.dumps({"a": "x" * 200_000})) for _ in range(20)]
    message = read(body("y" * 2_000_000, calls=calls, reasoning_content="z" * 900_000)).message
    size = len(message.model_dump_json().encode())
    assert size <= REPLY_BYTES
    assert len(message.calls) == 20
    assert all("too large" in found.problem for found in message.calls)


def test_half_surrogates_and_nan_become_what_can_travel() -> None:
    """STRICT 8: the stored message encodes, whatever the provider sent."""
    message = read(
        body("a\ud800", calls=[raw_call('{"k":"\\ud800","n":1e999}')], reasoning_content="\udfff")
    ).message
    assert Message.model_validate_json(message.model_dump_json()) == message
    assert message.text == "a?"
    assert message.calls[0].arguments == {"k": "?", "n": "Infinity"}


def test_the_form_before_tools_is_read() -> None:
    """Some servers still answer with `function_call`."""
    reply = read(body("text", function_call={"name": "ping", "arguments": '{"a":1}'}))
    assert [found.arguments for found in reply.message.calls] == [{"a": 1}]
    assert (reply.message.text, reply.finish) == ("text", "tool_calls")
