"""From messages to a provider's request: STRICT by construction."""

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentmem.contracts import ModelCall, Prompt
from agentmem.errors import InvalidInput
from agentmem.llm.request import NO_RESULT, OPENED, SUMMARY, render, render_request, wire_id
from agentmem.messages import Message, Role, ToolCall
from agentmem.testing.strict import violations
from agentmem.wire import JSONObject, encoded_size

SYSTEM = Message(id="s0", role=Role.SYSTEM, content="Be brief.")


def user(number: int, content: str | list[JSONObject] = "hello") -> Message:
    return Message(id=f"m{number}", role=Role.USER, content=content)


def assistant(number: int, content: str = "", *calls: ToolCall) -> Message:
    return Message(id=f"m{number}", role=Role.ASSISTANT, content=content, calls=list(calls))


def result(number: int, call: str, content: str = "7") -> Message:
    return Message(id=f"m{number}", role=Role.TOOL_RESULT, call=call, name="ping", content=content)


def call(place: str, name: str = "ping", **arguments: object) -> ToolCall:
    return ToolCall(id=place, name=name, arguments=arguments)


def test_a_whole_conversation_is_sent_as_it_stands() -> None:
    """Nothing is removed or changed, and results keep their JSON text."""
    sent = render(
        [
            SYSTEM,
            user(0, "two cities please"),
            assistant(1, "", call("t1.s1.c0", city="Oslo"), call("t1.s1.c1", city="Cairo")),
            result(2, "t1.s1.c0", '{"temp": 3}'),
            result(3, "t1.s1.c1", '{"temp": 30}'),
            assistant(4, "done"),
        ],
        clipped={},
    )
    assert sent == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "two cities please"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "000101000",
                    "type": "function",
                    "function": {"name": "ping", "arguments": '{"city":"Oslo"}'},
                },
                {
                    "id": "000101001",
                    "type": "function",
                    "function": {"name": "ping", "arguments": '{"city":"Cairo"}'},
                },
            ],
        },
        {"role": "tool", "tool_call_id": "000101000", "content": '{"temp": 3}'},
        {"role": "tool", "tool_call_id": "000101001", "content": '{"temp": 30}'},
        {"role": "assistant", "content": "done"},
    ]
    assert violations(sent, "Be brief.") == []


def test_a_greeting_stands_behind_a_line_in_the_users_place() -> None:
    """The first message besides the system prompt is from the user, for every provider."""
    sent = render([SYSTEM, assistant(0, "How can I help?"), user(1, "hi")], clipped={})
    texts = [message["content"] for message in sent[1:]]
    assert texts == [OPENED, "How can I help?", "hi"]
    assert not violations(sent)


def test_a_message_that_is_shown_shortened_loses_what_signed_it() -> None:
    """Whoever asks for it: a signature never stands on a text that was cut."""
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    said = assistant(1, "w" * 1_000).replace(reasoning=[thought], fields={"signature": "s"})
    whole = render([user(0), said], clipped={})
    assert whole[1]["thinking_blocks"] == [thought]
    cut = render([user(0), said], clipped={"m1": 200})
    assert set(cut[1]) == {"role", "content"}


def test_a_note_stands_before_its_message() -> None:
    """A prompt says what is left out of it, in its place."""
    said = [user(0), assistant(1, "", call("t1.s1.c0")), result(2, "t1.s1.c0")]
    sent = render(said, clipped={}, notes={"m1": "[3 calls are not shown]"})
    assert [message["role"] for message in sent] == ["user", "user", "assistant", "tool"]
    assert sent[1]["content"] == "[3 calls are not shown]"
    assert not violations(sent)


def test_a_prompt_without_a_user_message_is_refused() -> None:
    """A system prompt alone is refused before any model call."""
    with pytest.raises(InvalidInput, match="no message of the user"):
        render([SYSTEM], clipped={})
    with pytest.raises(InvalidInput, match="no message of the user"):
        render([SYSTEM, user(0, "  \n")], clipped={})


def test_a_summary_opens_the_conversation_as_a_note_of_the_user() -> None:
    """A summary stands where it is, as a user message that says what it is."""
    summary = Message(id="m9", role=Role.SUMMARY, content="They spoke of Oslo.")
    sent = render([SYSTEM, summary, assistant(1, "Yes."), user(2, "go on")], clipped={})
    assert sent[1] == {"role": "user", "content": SUMMARY + "They spoke of Oslo."}
    assert violations(sent) == []


def test_open_calls_are_answered_by_a_note() -> None:
    """A call whose result is missing or came too late is answered once, in words."""
    sent = render(
        [
            user(0),
            assistant(1, "", call("t1.s1.c0"), call("t1.s1.c1")),
            result(2, "t1.s1.c1", "second"),
            user(3, "go on"),
            result(4, "t1.s1.c0", "late"),
            result(5, "t9.s9.c9", "of nobody"),
        ],
        clipped={},
    )
    assert [m["content"] for m in sent if m["role"] == "tool"] == [NO_RESULT, "second"]
    assert violations(sent) == []


def test_only_the_first_result_of_a_call_is_sent() -> None:
    """No provider takes two results for one call."""
    sent = render(
        [
            user(0),
            assistant(1, "", call("t1.s1.c0")),
            result(2, "t1.s1.c0", "first"),
            result(3, "t1.s1.c0", "second"),
        ],
        clipped={},
    )
    assert [m["content"] for m in sent if m["role"] == "tool"] == ["first"]


def test_blank_messages_are_left_out_and_blank_results_are_named() -> None:
    """No empty text is ever sent."""
    sent = render(
        [
            user(0),
            assistant(1, "  "),
            assistant(2, "\n", call("t1.s1.c0")),
            result(3, "t1.s1.c0", " "),
        ],
        clipped={},
    )
    assert [message["role"] for message in sent] == ["user", "assistant", "tool"]
    assert sent[2]["content"] == "(empty)"
    assert violations(sent) == []


@pytest.mark.parametrize("name", ["", "get weather!", "ü" * 70])
def test_names_that_a_model_made_up_are_made_valid(name: str) -> None:
    """Providers take letters, digits, `_` and `-`, one to 64 of them."""
    sent = render([user(0), assistant(1, "", call("t1.s1.c0", name))], clipped={})
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", sent[1]["tool_calls"][0]["function"]["name"])


def test_content_parts_of_the_user_are_kept_and_blank_ones_left_out() -> None:
    """Text and images go as they came; a part with text None would be refused."""
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    parts: list[JSONObject] = [{"type": "text", "text": None}, {"type": "text", "text": "A"}, image]
    [sent] = render([user(0, parts)], clipped={})
    assert sent["content"] == [{"type": "text", "text": "A"}, image]


def test_reasoning_stands_on_the_message_that_it_came_with() -> None:
    """Blocks, text and provider fields go back unchanged."""
    thinking = {"type": "thinking", "thinking": "...", "signature": "s1"}
    redacted = {"type": "redacted_thinking", "data": "d"}
    message = assistant(1, "", call("t1.s1.c0")).replace(
        reasoning=[thinking, redacted, {"type": "reasoning_content", "text": "hm"}],
        fields={"provider_specific_fields": {"thought_signature": "abc=="}},
    )
    sent = render([user(0), message, result(2, "t1.s1.c0"), assistant(3, "done")], clipped={})
    assert sent[1]["thinking_blocks"] == [thinking, redacted]
    assert sent[1]["reasoning_content"] == "hm"
    assert sent[1]["provider_specific_fields"] == {"thought_signature": "abc=="}
    assert sent[3] == {"role": "assistant", "content": "done"}


def test_clipped_messages_say_their_full_size() -> None:
    """A message that a view marks is cut to its bytes; images count nothing."""
    image = {"type": "image_url", "image_url": {"url": "u"}}
    parts: list[JSONObject] = [{"type": "text", "text": "y" * 900}, image]
    first, second = render([user(0, "x" * 1000), user(1, parts)], clipped={"m0": 200, "m1": 300})
    assert encoded_size(first["content"]) <= 200
    assert "1000 bytes in full" in first["content"]
    assert encoded_size(second["content"][0]["text"]) <= 300
    assert second["content"][1] == image


def test_half_surrogates_are_replaced() -> None:
    """STRICT 8: what no UTF-8 can hold becomes a question mark."""
    [sent] = render([user(0, "a\ud800b")], clipped={})
    assert sent["content"] == "a?b"


@pytest.mark.parametrize(
    ("position", "sent"),
    [
        ("t3.s1.c0", "000301000"),
        ("t0.s0.c0", "000000000"),
        ("t1679615.s1295.c46655", "zzzzzzzzz"),
    ],
)
def test_wire_ids_are_the_position_in_base_36(position: str, sent: str) -> None:
    """Ids come from the position, never from the model."""
    assert wire_id(position) == sent


@pytest.mark.parametrize("position", ["t0.s5000.c0", "t0.s5001.c0", "x", ""])
def test_what_fits_no_position_is_hashed(position: str) -> None:
    """Nine letters and digits whatever the id, and another one for each."""
    assert re.fullmatch("[0-9a-z]{9}", wire_id(position))
    assert wire_id(position) != wire_id(position + "1")


def test_calls_of_one_position_get_different_ids() -> None:
    """STRICT 5 holds even for messages that claim the same position."""
    sent = render(
        [user(0), assistant(1, "", call("t1.s1.c0")), assistant(2, "", call("t1.s1.c0"))],
        clipped={},
    )
    assert violations(sent) == []


def test_a_request_holds_what_was_asked_and_nothing_else() -> None:
    """Settings at their default are left to the provider."""
    plain = ModelCall(
        prompt=Prompt(memory="wm0", view=["m0"]), reply="m1", turn=1, step=1, model="x/y"
    )
    assert render_request(plain, [user(0)], []) == {
        "model": "x/y",
        "messages": [{"role": "user", "content": "hello"}],
        "max_tokens": 4096,
    }
    tool: JSONObject = {"type": "function", "function": {"name": "ping"}}
    full = plain.replace(
        tool_choice="none", reasoning_effort="low", response_format={"type": "object"}
    )
    request = render_request(full, [user(0)], [tool])
    assert request["tools"] == [tool]
    assert request["tool_choice"] == "none"
    assert request["reasoning_effort"] == "low"
    assert request["response_format"]["json_schema"]["schema"] == {"type": "object"}


TEXT = st.text(st.characters(), max_size=20)
JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)
CALLS = st.lists(
    st.builds(
        ToolCall,
        id=st.sampled_from(["t1.s1.c0", "t1.s1.c1", "t2.s1.c0", "odd", ""]),
        name=TEXT,
        arguments=st.dictionaries(TEXT, JSON_VALUES, max_size=3),
    ),
    max_size=3,
)
PARTS = st.lists(
    st.fixed_dictionaries({"type": st.just("text"), "text": st.none() | TEXT}), max_size=2
)


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    roles = draw(st.lists(st.sampled_from(list(Role)), max_size=12))
    made: list[Message] = []
    for number, role in enumerate(roles):
        content = draw(PARTS if role is Role.USER and draw(st.booleans()) else TEXT)
        made.append(
            Message(
                id=f"m{number}",
                role=role,
                content=content,
                calls=draw(CALLS) if role is Role.ASSISTANT else [],
                call=draw(st.sampled_from(["t1.s1.c0", "t1.s1.c1", "odd"])),
            )
        )
    return made


@settings(deadline=None)
@given(conversations(), st.dictionaries(st.sampled_from(["m0", "m1", "m2"]), st.integers(1, 99)))
def test_every_request_passes_the_strict_rules(
    conversation: list[Message], clipped: dict[str, int]
) -> None:
    """Whatever the messages are, what is sent is valid for the most demanding provider."""
    try:
        sent = render(conversation, clipped=clipped)
    except InvalidInput:
        assert not any(m.role in (Role.USER, Role.SUMMARY) and m.text.strip() for m in conversation)
        return
    assert violations(sent) == []


@settings(deadline=None)
@given(conversations())
def test_the_same_messages_give_the_same_bytes(conversation: list[Message]) -> None:
    """A retry on another worker, whose messages came by query, sends the same request."""
    try:
        wire = [message.model_dump_json() for message in conversation]
    except ValueError:  # half a surrogate: such a message cannot travel
        return
    travelled = [Message.model_validate_json(text) for text in wire]
    try:
        sent = json.dumps(render(conversation, clipped={}))
    except InvalidInput:
        return
    assert json.dumps(render(travelled, clipped={})) == sent
