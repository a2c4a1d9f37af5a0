"""Asking for a summary: a conversation as text, in parts, and what counts as one."""

import pytest

from agentmem.contracts import Compact, Prompt
from agentmem.errors import ModelCallError
from agentmem.messages import Message, Role, ToolCall
from agentmem.models.summaries import (
    PART_BYTES,
    TEXT_BYTES,
    TOOL_BYTES,
    parts,
    read_summary,
    request,
)
from agentmem.testing.strict import violations
from agentmem.values import JSONObject, encoded_size

ASKED = Compact(
    prompt=Prompt(memory="wm0", view=["m0-1"]), reply="m9", model="openai/small", words=200
)


def user(number: int, content: str) -> Message:
    return Message(id=f"m{number}", role=Role.USER, content=content)


def tool_round() -> list[Message]:
    call = ToolCall(id="t1.s1.c0", name="look", arguments={"city": "Oslo"})
    return [
        Message(id="m1", role=Role.ASSISTANT, content="Let me see.", calls=[call]),
        Message(id="m2", role=Role.TOOL_RESULT, call=call.id, name="look", content="r" * 9_000),
        Message(
            id="m3", role=Role.TOOL_RESULT, call=call.id, name="look", content="down", failed=True
        ),
    ]


def answer(content: str | None, finish: str = "stop", **fields: object) -> JSONObject:
    message = {"role": "assistant", "content": content, **fields}
    usage = {"prompt_tokens": 7, "completion_tokens": 3}
    return {"choices": [{"message": message, "finish_reason": finish}], "usage": usage}


def test_roles_are_words_and_tool_results_are_short() -> None:
    """B-07: no tool message and no tools, whatever the conversation holds."""
    before, texts = parts([user(0, "weather?"), *tool_round()])
    assert before == ""
    [text] = texts
    assert text.startswith("User: weather?\n\nAssistant: Let me see.\nAssistant called the tool ")
    assert 'look: {"city":"Oslo"}' in text
    assert "Error of look: down" in text
    assert encoded_size(text) < TOOL_BYTES + 300
    made = request(ASKED, before, text)
    assert set(made) == {"model", "messages", "max_tokens"}
    assert [message["role"] for message in made["messages"]] == ["system", "user"]
    assert "at most 200 words" in made["messages"][0]["content"]
    assert not violations(made["messages"])


def test_a_part_without_a_user_message_is_summarised_too() -> None:
    """B-03: results alone are text like any other."""
    assert len(parts(tool_round())[1]) == 1


def test_a_long_conversation_goes_in_parts_below_the_limit() -> None:
    """B-08: nothing is left out, each part fits, also with a message of a megabyte."""
    said = [user(i, f"<{i}>" + "x" * 5_000) for i in range(40)] + [user(40, "y" * 1_000_000)]
    _, texts = parts(said)
    assert len(texts) > 4
    assert all(encoded_size(text) <= PART_BYTES for text in texts)
    assert all(any(f"<{i}>" in text for text in texts) for i in range(40))
    assert max(len(line) for line in texts[-1].split("\n\n")) <= TEXT_BYTES


def test_the_summary_before_is_part_of_what_is_asked() -> None:
    """B-05: a summary is never summarised away."""
    summary = Message(id="m4", role=Role.SUMMARY, content="door code is 4821")
    before, [text] = parts([summary, user(5, "hello"), user(6, "  ")])
    assert before == "door code is 4821"
    content = request(ASKED, before, text)["messages"][1]["content"]
    assert content.startswith("Summary so far:\ndoor code is 4821\n\n")
    assert content.endswith("\n\nUser: hello")


def test_half_of_a_surrogate_pair_does_not_stop_it() -> None:
    """What no UTF-8 can hold is replaced in the request."""
    made = request(ASKED, "", parts([user(0, "broken \ud83d here")])[1][0])
    assert not violations(made["messages"])


def test_a_summary_is_read_with_what_it_took() -> None:
    """Calls beside a text are ignored: none were offered."""
    calls = [{"id": "c", "type": "function", "function": {"name": "x", "arguments": "{}"}}]
    text, usage = read_summary(answer(" so far \n", tool_calls=calls), ASKED, "", "x" * 50)
    assert text == "so far"
    assert (usage.prompt, usage.completion, usage.requests) == (7, 3, 1)


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (answer(""), "nothing"),
        (answer(" \n"), "nothing"),
        (answer(None), "nothing"),
        (answer(None, refusal="I cannot help with that."), "a refusal"),
        (answer("I cannot help with that.", "content_filter"), "a refusal"),
        (answer("so f", "length"), "cut off"),
        (answer("x" * 50), "no shorter"),
        (answer("x" * 90), "no shorter"),
    ],
)
def test_what_is_no_summary_is_refused(reply: JSONObject, words: str) -> None:
    """M-35, B-02, B-03: empty, refused, cut off, echoed or longer: never asked for again."""
    with pytest.raises(ModelCallError, match=words) as caught:
        read_summary(reply, ASKED, "", "x" * 50)
    assert caught.value.non_retryable
