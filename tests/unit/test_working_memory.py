"""Working memory as code sees it: what is kept, in view, forgotten, carried over."""

import contextlib
import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentmem.errors import ConfigurationError, InvalidInput
from agentmem.inputs import MESSAGE_BYTES
from agentmem.llm.request import OPENED, render
from agentmem.memory.carried_state import CarriedMemory
from agentmem.memory.conversation import Conversations
from agentmem.memory.entries import page
from agentmem.memory.working import WorkingMemory, working_memory
from agentmem.messages import IMAGE_TOKENS, Message, Role, ToolCall, estimate_tokens, from_ranges
from agentmem.testing.strict import violations
from agentmem.wire import JSONObject, unpack


async def conversation(memory: WorkingMemory, turns: int) -> None:
    """Hold a plain conversation."""
    for turn in range(turns):
        await memorize_turn(memory, turn)


async def memorize_turn(memory: WorkingMemory, turn: int) -> None:
    """Say one thing and answer it."""
    await memory.memorize("user", f"question {turn}")
    await memory.memorize("assistant", f"answer {turn}")


async def call_group(memory: WorkingMemory, *names: str) -> None:
    """Add an assistant message with calls and a result for each."""
    calls = [{"id": f"k{i}", "name": name} for i, name in enumerate(names)]
    await memory.memorize("tool_call", json.dumps({"calls": calls}))
    for i, name in enumerate(names):
        result = {"call_id": f"k{i}", "name": name, "output": f"result {i}"}
        await memory.memorize("tool_result", json.dumps(result))


async def test_messages_come_back_in_order_with_ids_that_count_up() -> None:
    """Messages that are memorized are recalled, oldest first, equal texts included."""
    memory = working_memory()
    assert await memory.memorize("user", "hi") == "m0"
    assert await memory.memorize("assistant", "hi") == "m1"
    assert memory.recall() == [
        {"id": "m0", "role": "user", "content": "hi"},
        {"id": "m1", "role": "assistant", "content": "hi"},
    ]
    assert memory.keys() == ["m0", "m1"]


async def test_tool_roles_survive_and_share_their_group() -> None:
    """A tool call and its results come back as JSON of the documented form."""
    memory = working_memory()
    await memory.memorize("user", "two cities please")
    await call_group(memory, "get_weather", "get_weather")
    entries = memory.recall()
    assert [entry["role"] for entry in entries] == [
        "user",
        "tool_call",
        "tool_result",
        "tool_result",
    ]
    calls = json.loads(entries[1]["content"])["calls"]
    assert [call["name"] for call in calls] == ["get_weather", "get_weather"]
    assert json.loads(entries[3]["content"]) == {
        "call_id": calls[1]["id"],
        "name": "get_weather",
        "output": "result 1",
    }


async def test_a_reply_with_reasoning_shows_as_three_entries_of_one_id() -> None:
    """Reasoning, text and calls of one reply share the message's id."""
    memory = working_memory()
    await memory.memorize("user", "think")
    memory.store(
        Message(
            id=memory.reserve(),
            role=Role.ASSISTANT,
            content="let me see",
            reasoning=[{"type": "thinking", "thinking": "hm", "signature": "s1"}],
            calls=[ToolCall(id="t0.s1.c0", name="ping")],
        )
    )
    shown = [(entry["id"], entry["role"]) for entry in memory.recall()]
    assert shown[1:] == [("m1", "reasoning"), ("m1", "assistant"), ("m1", "tool_call")]


async def test_a_window_keeps_the_newest_messages() -> None:
    """`window` counts messages and starts at a user's."""
    memory = working_memory(window=3)
    await conversation(memory, 3)
    assert memory.keys() == ["m4", "m5"], "m3 is an assistant's: a view never opens with one"


async def test_a_window_never_splits_a_group() -> None:
    """The calls and their results are in view together or not at all."""
    for window in range(1, 9):
        memory = working_memory(window=window)
        await memory.memorize("user", "two cities please")
        await call_group(memory, "get_weather", "get_weather")
        await memory.memorize("assistant", "done")
        await memory.memorize("user", "thanks")
        roles = [entry["role"] for entry in memory.recall()]
        assert roles[0] == "user"
        assert roles[-1] == "user"
        assert roles.count("tool_result") == 2 * roles.count("tool_call"), window


async def test_a_budget_drops_or_keeps_a_group_whole() -> None:
    """A budget that ends between two results drops the whole group."""
    for budget in range(1, 200, 5):
        memory = working_memory(max_tokens=budget)
        await memory.memorize("user", "x" * 40)
        await call_group(memory, "a", "b")
        await memory.memorize("assistant", "y" * 40)
        await memory.memorize("user", "z" * 40)
        roles = [entry["role"] for entry in memory.recall()]
        assert roles[0] == "user"
        assert roles[-1] == "user"
        assert roles.count("tool_result") == 2 * roles.count("tool_call"), budget


async def test_large_bounds_change_nothing() -> None:
    """A conversation within its bounds is recalled unchanged."""
    bounded = working_memory(window=50, max_tokens=100_000)
    free = working_memory()
    for memory in (bounded, free):
        await memory.memorize("user", "hi")
        await call_group(memory, "ping")
    assert bounded.recall() == free.recall()
    assert bounded.view().clipped == {}


async def test_a_turn_longer_than_the_window_keeps_question_and_newest_group() -> None:
    """The question stays in view through any number of tool rounds, bounded in size."""
    memory = working_memory(window=4)
    await memory.memorize("user", "what is it?")
    for _ in range(6):
        await call_group(memory, "look")
        roles = [entry["role"] for entry in memory.recall()]
        assert roles[:1] == ["user"]
        assert roles[-2:] == ["tool_call", "tool_result"]
        assert len(roles) <= 4


@pytest.mark.parametrize("opening", ["greeting", "two greetings", "calls"])
async def test_what_precedes_the_first_user_message_is_in_view(opening: str) -> None:
    """Code sees it, and a model is sent it behind a line in the user's place."""
    memory = working_memory()
    if opening == "calls":
        await call_group(memory, "get_weather", "get_weather")
    else:
        for _ in opening.split():
            await memory.memorize("assistant", "welcome")
    before = memory.keys()
    assert before == [message.id for message in memory.messages()]
    await memory.memorize("user", "hi")
    assert memory.keys() == [*before, f"m{len(before)}"]
    assert len(memory.recall()) == len(before) + 1
    sent = render(memory.view().messages, clipped={})
    assert sent[0] == {"role": "user", "content": OPENED}
    assert len(sent) == len(before) + 2
    assert not violations(sent)


async def test_a_window_hides_a_greeting_like_any_old_message() -> None:
    """A view that a bound cuts still begins with the user."""
    memory = working_memory(window=2)
    await memory.memorize("assistant", "welcome")
    await conversation(memory, 2)
    assert memory.keys() == ["m3", "m4"]


async def test_a_question_over_the_budget_is_shortened_never_dropped() -> None:
    """A newest message larger than the budget stays, marked to be shortened."""
    memory = working_memory(max_tokens=100)
    await memory.memorize("user", "x" * 10_000)
    view = memory.view()
    assert [message.id for message in view.messages] == ["m0"]
    assert view.clipped == {"m0": 400}


async def test_tool_results_over_the_budget_are_shortened() -> None:
    """Results that do not fit with the question share what is left."""
    memory = working_memory(max_tokens=1_000)
    await memory.memorize("user", "read it")
    calls = [{"id": "k", "name": "read"}]
    await memory.memorize("tool_call", json.dumps({"calls": calls}))
    result = {"call_id": "k", "name": "read", "output": "x" * 400_000}
    await memory.memorize("tool_result", json.dumps(result))
    view = memory.view()
    assert len(view.messages) == 3
    assert 200 <= view.clipped["m2"] <= 4_000


@pytest.mark.parametrize(
    ("field", "settings"),
    [
        ("window", {"window": 0}),
        ("window", {"window": -1}),
        ("max_tokens", {"max_tokens": 0}),
        ("max_tokens", {"max_tokens": -5}),
        ("compact_threshold", {"compact_threshold": 0.0}),
        ("compact_threshold", {"compact_threshold": 1.5}),
        ("compact_preserve", {"compact_preserve": -1}),
        ("compact_model", {"compact_model": "openai/small"}),
        ("window", {"window": "x"}),
        ("max_tokens", {"max_tokens": 1000.5}),
        ("compact_preserve", {"compact_preserve": None}),
    ],
)
def test_nonsense_is_refused_at_construction(field: str, settings: dict[str, Any]) -> None:
    """A setting that makes no sense is refused, with its name."""
    with pytest.raises(ConfigurationError, match=field):
        WorkingMemory(**settings)


async def test_a_window_of_one_sends_the_newest_question() -> None:
    """`window=1` shows the newest user message."""
    memory = working_memory(window=1)
    await conversation(memory, 2)
    await memory.memorize("user", "last")
    assert memory.keys() == ["m4"]


async def test_forgetting_takes_exactly_that_message() -> None:
    """A forgotten message is gone from view, its id is never given again, order is kept."""
    memory = working_memory()
    await conversation(memory, 2)
    await memory.forget("m1")
    assert memory.keys() == ["m0", "m2", "m3"]
    assert await memory.memorize("user", "more") == "m4"
    await memory.forget("m1")
    assert memory.log.get("m1") is not None, "a retry of an earlier call may still need it"


async def test_forgetting_a_call_takes_its_results_along() -> None:
    """An assistant message goes with the results of its calls."""
    memory = working_memory()
    await memory.memorize("user", "go")
    await call_group(memory, "a", "b")
    await memory.forget("m1")
    assert memory.keys() == ["m0"]


async def test_forgetting_a_result_leaves_its_call() -> None:
    """Only the text of the one result goes; the siblings stay."""
    memory = working_memory()
    await memory.memorize("user", "go")
    await call_group(memory, "a", "b")
    await memory.forget("m2")
    assert memory.keys() == ["m0", "m1", "m3"]


async def test_forgetting_what_never_was_is_an_error() -> None:
    """An unknown id is refused by name."""
    with pytest.raises(InvalidInput, match="m7"):
        await working_memory().forget("m7")


@pytest.mark.parametrize(
    ("role", "content"),
    [
        ("system", "be nice"),
        ("robot", "beep"),
        ("user", "  "),
        ("tool_call", "no json"),
        ("tool_call", '{"calls": [{"id": "k"}]}'),
        ("tool_result", '{"output": "x"}'),
        ("tool_result", '{"call_id": "k9", "output": "x"}'),
        ("user", None),
        ("user", {"text": "hi"}),
        ("tool_call", None),
        ("user", "half of a pair: \ud83d"),
        ("user", "x" * (MESSAGE_BYTES + 1)),
        ("assistant", "\x00" * (MESSAGE_BYTES // 6 + 1)),
    ],
)
async def test_what_no_model_takes_is_refused(role: str, content: Any) -> None:
    """Unknown roles, empty texts, broken JSON and orphan results are refused by name."""
    memory = working_memory()
    with pytest.raises(InvalidInput):
        await memory.memorize(role, content)
    assert memory.keys() == []


PART = '{"opaque": [{"type": %s}]}'
ONE_CALL = '{{"calls": [{{"id": "k", "name": "look", "arguments": {}}}]}}'


@pytest.mark.parametrize(
    ("role", "content", "says"),
    [
        ("tool_call", ONE_CALL.format('{"a": [1, NaN]}'), "calls[0].arguments.a[1] is no finite"),
        ("tool_call", ONE_CALL.format('{"a": 1e400}'), "calls[0].arguments.a is no finite"),
        ("tool_call", ONE_CALL.format('{"a": "\\ud83d"}'), "calls[0].arguments.a holds half"),
        ("tool_call", ONE_CALL.format('{"b": {"\\udc00": 1}}'), "calls[0].arguments.b has a key"),
        ("tool_call", ONE_CALL.format('{"a": ' + "[" * 99 + "]" * 99 + "}"), "nested more than"),
        ("tool_call", ONE_CALL.format("[" * 99_999), "not valid JSON"),
        ("tool_call", ONE_CALL.format('{"a": 1' + "0" * 5_000 + "}"), "not valid JSON"),
        ("tool_call", ONE_CALL.format('{"a": [' + "1e15," * 200_000 + "1]}"), "the limit is"),
        ("tool_call", ONE_CALL.format('"none"'), "calls[0].arguments: "),
        ("tool_call", '{"calls": []}', "calls is empty"),
        ("tool_call", '{"calls": [{"id": "' + "k" * 999 + '", "name": "a"}]}', "the limit is 200"),
        ("tool_call", '{"calls": [{"name": "look"}]}', "calls[0].id is missing"),
        (
            "tool_call",
            '{"calls": [{"id": "k", "name": "a"}, {"id": "k", "name": "b"}]}',
            "calls[1].id is 'k', which a call before it has",
        ),
        ("tool_result", '{"call_id": "open", "output": -Infinity}', "output is no finite"),
        ("tool_result", '{"call_id": "open", "output": ["\\ud800"]}', "output[0] holds half"),
        ("tool_result", '{"call_id": "done", "output": "x"}', "has a result already, m2"),
        ("tool_result", '{"call_id": "none", "output": "x"}', "memorize the tool_call before it"),
        ("reasoning", '{"opaque": [{"type": "content"}]}', "opaque[0].part is missing"),
        ("reasoning", '{"opaque": [{"thinking": "hm"}]}', "opaque[0].type is missing"),
        ("reasoning", '{"opaque": [{"type": "thinking", "thinking": NaN}]}', "opaque[0].thinking"),
        ("reasoning", PART % '"thinking"', "opaque[0].thinking is missing"),
        ("reasoning", PART % '"thinking", "thinking": 5', "opaque[0].thinking is missing"),
        ("reasoning", PART % '"thinking", "signature": {}', "opaque[0].signature is missing"),
        ("reasoning", PART % '"redacted_thinking"', "opaque[0].data is missing"),
        ("reasoning", PART % '"reasoning_content", "text": {}', "opaque[0].text is missing"),
        ("reasoning", PART % '"reasoning_items"', "opaque[0].value is missing"),
        ("reasoning", PART % '"reasoning_details", "value": "x"', "opaque[0].value is missing"),
        ("reasoning", PART % '"content", "part": {"type": "text"}', "opaque[0].part.type is"),
        ("reasoning", PART % '"content", "part": {}', "opaque[0].part.type is missing"),
        ("reasoning", '{"text": " "}', "neither text nor opaque"),
        ("reasoning", '"hm"', "the content: "),
        ("summary", " ", "has no text"),
    ],
)
async def test_what_later_use_would_stumble_over_is_refused_by_its_place(
    role: str, content: str, says: str
) -> None:
    """No history, store, query or provider takes these: they are refused before they are kept."""
    memory = working_memory()
    await memory.memorize("user", "look")
    calls = [{"id": "done", "name": "look"}, {"id": "open", "name": "look"}]
    await memory.memorize("tool_call", json.dumps({"calls": calls}))
    await memory.memorize("tool_result", '{"call_id": "done", "output": "x"}')
    before = memory.recall()
    with pytest.raises(InvalidInput) as caught:
        await memory.memorize(role, content)
    assert says in caught.value.message
    assert len(caught.value.message) < 700
    assert memory.recall() == before
    assert await memory.memorize("user", "next") == "m3"


async def test_one_id_may_name_a_call_again_in_a_later_message() -> None:
    """Providers number the calls of each reply anew; a result answers the newest."""
    memory = working_memory()
    await memory.memorize("user", "go")
    for _ in range(3):
        await call_group(memory, "a", "b")
    assert [entry["role"] for entry in memory.recall()].count("tool_result") == 6


@given(
    st.text(max_size=300),
    st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists),
)
async def test_whatever_is_memorized_can_be_sent_or_is_refused(text: str, value: object) -> None:
    """Nothing else is raised, and what is taken passes every encoder on its way to a model."""
    memory = working_memory()
    await memory.memorize("user", "look")
    said = [
        ("user", text),
        (
            "tool_call",
            json.dumps({"calls": [{"id": text, "name": text, "arguments": {"a": value}}]}),
        ),
        ("tool_result", json.dumps({"call_id": text, "output": value})),
        ("reasoning", json.dumps({"text": text, "opaque": value})),
        ("assistant", text),
        ("summary", text),
    ]
    for role, content in said:
        with contextlib.suppress(InvalidInput):
            await memory.memorize(role, content)
    assert not violations(render(memory.view().messages, clipped={}))
    assert unpack(CarriedMemory, memory.dump(), "it").messages == memory.messages()
    json.dumps(page(memory.messages(), [])).encode()


async def replied(memory: WorkingMemory) -> None:
    """Hold a conversation as the loop does: thinking, text and calls in one reply, a summary."""
    summary = Message(id=memory.reserve(), role=Role.SUMMARY, content="They met in Oslo.")
    memory.summarise([], summary)
    memory.begin_turn('look at "it"')
    thinking: JSONObject = {"type": "thinking", "thinking": "hm", "signature": "s1"}
    for step, text in enumerate(("let me see", "\n\n"), 1):
        calls = [ToolCall(id=f"t1.s{step}.c{i}", name="look", arguments={"n": i}) for i in (0, 1)]
        reply = Message(
            id=memory.reserve(),
            role=Role.ASSISTANT,
            turn=1,
            content=text,
            calls=calls,
            reasoning=[thinking],
        )
        memory.store(reply)
        for call in calls:
            output = '"quoted" \\ ' * 40_000
            memory.add(role=Role.TOOL_RESULT, content=output, call=call.id, name="look")
    memory.store(Message(id=memory.reserve(), role=Role.ASSISTANT, turn=1, content="done"))


async def test_what_is_recalled_can_be_memorized() -> None:
    """A conversation copied entry by entry says the same, thinking and summary included."""
    memory, other = working_memory(), working_memory()
    await replied(memory)
    ids = [await other.memorize(e["role"], e["content"]) for e in memory.recall()]
    assert [e["id"] for e in other.recall()] == ids

    def without_ids(entries: list[dict[str, str]]) -> list[tuple[str, str]]:
        return [(e["role"], re.sub(r"t\d\.s\d+\.c", "c", e["content"])) for e in entries]

    assert without_ids(other.recall()) == without_ids(memory.recall())
    third = working_memory()
    for entry in other.recall():
        await third.memorize(entry["role"], entry["content"])
    assert without_ids(third.recall()) == without_ids(memory.recall())
    sent = render(other.view().messages, clipped={})
    assert not violations(sent)
    thinking = [m["thinking_blocks"][0]["signature"] for m in sent if "thinking_blocks" in m]
    assert thinking == ["s1", "s1"]
    assert other.view().messages[0].role is Role.SUMMARY


async def test_reasoning_becomes_one_message_with_the_reply_that_follows() -> None:
    """Signed thinking stands and falls with its reply; alone it is kept, and sent to nobody."""
    memory = working_memory()
    await memory.memorize("user", "think")
    block = {"type": "thinking", "thinking": "hm", "signature": "s"}
    first = await memory.memorize("reasoning", json.dumps({"opaque": [block]}))
    assert memory.keys() == ["m0", first]
    assert await memory.memorize("assistant", "so") == first
    assert await memory.forget(first) == [first]
    assert memory.keys() == ["m0"]
    alone = await memory.memorize("reasoning", '{"text": "hm"}')
    await memory.memorize("user", "and?")
    assert memory.keys() == ["m0", alone, "m3"]
    assert [m["role"] for m in render(memory.view().messages, clipped={})] == ["user", "user"]
    gone = await memory.memorize("reasoning", '{"text": "hm"}')
    assert await memory.forget(gone) == [gone]
    await memory.memorize("assistant", "so")
    assert memory.recall()[-1] == {"id": "m5", "role": "assistant", "content": "so"}


async def test_what_is_refused_leaves_reasoning_to_its_reply() -> None:
    """Reasoning still waits for its reply after a result that answers no call."""
    memory = working_memory()
    await memory.memorize("user", "look")
    first = await memory.memorize("reasoning", '{"text": "hm"}')
    with pytest.raises(InvalidInput, match="that this result answers"):
        await memory.memorize("tool_result", '{"call_id": "none", "output": 1}')
    assert await memory.memorize("assistant", "well") == first


async def test_forgetting_returns_what_went() -> None:
    """Partners included, each once: also of what a summary stands for, and nothing twice."""
    memory = working_memory()
    await conversation(memory, 1)
    await call_group(memory, "a", "b")
    assert await memory.forget("m0") == ["m0"]
    assert await memory.forget("m3") == ["m3"]
    assert await memory.forget("m2") == ["m2", "m4"], "m3 went before"
    assert await memory.forget("m2") == []
    await call_group(memory, "a")
    summary = Message(id=memory.reserve(), role=Role.SUMMARY, content="They looked.")
    memory.summarise(["m1", "m5", "m6"], summary)
    assert await memory.forget("m5") == ["m5", "m6"]
    assert [m.id for m in memory.messages()] == ["m1", summary.id]


async def test_a_message_of_the_limit_is_taken() -> None:
    """1 MiB encoded is the most that a message may take."""
    assert await working_memory().memorize("user", "x" * MESSAGE_BYTES) == "m0"


def test_a_query_for_more_than_there_is_costs_nothing() -> None:
    """Ids are read one at a time, and the first that is missing ends the query."""
    memory = working_memory()
    memory.begin_turn("hi")
    held = Conversations()
    held.add(memory.log)
    with pytest.raises(InvalidInput, match="m1 of wm0"):
        held.page("wm0", ["m0-99999999999999"])
    with pytest.raises(InvalidInput, match="m0 of wm7"):
        held.page("wm7", ["m0-99999999999999"])


async def test_two_memories_are_independent() -> None:
    """Messages and ids of one memory never show in another."""
    first, second = working_memory(), working_memory()
    await first.memorize("user", "one")
    assert second.recall() == []
    assert await second.memorize("user", "two") == "m0"


async def test_a_prompt_carries_each_new_message_once() -> None:
    """A message that workflow code made travels with the first call after it, then by id alone."""
    memory = working_memory()
    system = memory.system_prompt("be brief")
    memory.begin_turn("hello")
    first = memory.prompt(system)
    assert first.view == ["s0", "m0"]
    assert [message.id for message in first.new] == ["s0", "m0"]
    memory.store(Message(id=memory.reserve(), role=Role.ASSISTANT, content="hi", attempt=2))
    memory.begin_turn("again")
    second = memory.prompt(memory.system_prompt("be brief"))
    assert list(from_ranges(second.view)) == ["s0", "m0", "m1", "m2"]
    assert [message.id for message in second.new] == ["m2"]
    assert second.retried == {"m1": 2}


async def test_new_messages_over_a_page_go_by_query() -> None:
    """A prompt carries at most a page of new messages; the worker asks for the rest."""
    memory = working_memory()
    for _ in range(3):
        memory.begin_turn("x" * 200_000)
    prompt = memory.prompt(memory.system_prompt("s"))
    assert len(prompt.new) < 4
    assert list(from_ranges(prompt.view)) == ["s0", "m0", "m1", "m2"]


async def test_a_dropped_turn_leaves_the_conversation_as_it_was() -> None:
    """A turn that failed before any tool ran is as if it had not been asked."""
    memory = working_memory()
    memory.begin_turn("first")
    memory.store(Message(id=memory.reserve(), role=Role.ASSISTANT, content="ok", turn=1))
    memory.begin_turn("second")
    memory.log.drop_turn(memory.turn)
    assert memory.keys() == ["m0", "m1"]
    assert memory.begin_turn("third").id == "m3"


def test_an_image_counts_the_same_whatever_its_bytes() -> None:
    """3 MB of data URI as an image part are a constant; the same as text are text."""
    uri = "data:image/png;base64," + "A" * 3_000_000
    parts: list[JSONObject] = [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": uri}},
    ]
    image = Message(id="m0", role=Role.USER, content=parts)
    small = image.replace(content=[parts[0], {"type": "image_url", "image_url": {"url": "u"}}])
    assert estimate_tokens(image) == estimate_tokens(small)
    assert IMAGE_TOKENS <= estimate_tokens(image) < IMAGE_TOKENS + 20
    assert estimate_tokens(image.replace(content=uri)) > 700_000
