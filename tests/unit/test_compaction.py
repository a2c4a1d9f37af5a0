"""The changes that compaction may make to a conversation, and when it may make them."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentmem.llm.request import render
from agentmem.memory.compaction import Plan, fits, plan, tokens
from agentmem.memory.selection import SHORTENED_BYTES
from agentmem.memory.transcript import belongs_to_transcript
from agentmem.memory.working import WorkingMemory
from agentmem.messages import Message, Role, estimate_tokens, from_ranges, groups
from agentmem.testing.strict import violations
from agentmem.wire import encoded_size
from tests.unit.test_running_turn import Turn
from tests.unit.test_view_properties import Action, actions, play


def compacting(
    max_tokens: int = 100, preserve: int = 4, window: int | None = None
) -> WorkingMemory:
    """A working memory that compacts at half of its budget."""
    return WorkingMemory(window, max_tokens, "openai/small", 0.5, preserve)


def due(memory: WorkingMemory, *, prompt_tokens: int = 0, overflow: bool = False) -> Plan | None:
    """Return the plan that compaction would carry out now."""
    return plan(memory.log.groups, memory.settings, prompt_tokens=prompt_tokens, overflow=overflow)


def due_in_turn(memory: WorkingMemory, *, prompt_tokens: int = 0, overhead: int = 0) -> Plan | None:
    """Return the plan of a compaction now, before the next model call of the running turn."""
    return plan(
        memory.log.groups,
        memory.settings,
        prompt_tokens=prompt_tokens,
        turn=memory.turn,
        overhead=overhead,
        size=memory.sizes,
    )


def current(memory: WorkingMemory) -> list[Message]:
    """Return the messages that a model may be shown: without those that a summary stands for."""
    return [message for group in memory.log.groups for message in group]


def summarise(memory: WorkingMemory, ids: list[str], text: str = "so far") -> Message:
    """Put a summary in place of messages."""
    summary = Message(id=memory.reserve(), role=Role.SUMMARY, content=text)
    memory.summarise(ids, summary)
    return summary


async def tool_turn(memory: WorkingMemory, *outputs: str) -> None:
    """A question, calls side by side with their results, and an answer."""
    await memory.memorize("user", "look")
    calls = [{"id": f"k{i}", "name": "look"} for i in range(len(outputs))]
    await memory.memorize("tool_call", json.dumps({"calls": calls}))
    for i, output in enumerate(outputs):
        result = {"call_id": f"k{i}", "name": "look", "output": output}
        await memory.memorize("tool_result", json.dumps(result))
    await memory.memorize("assistant", "done")


@settings(max_examples=100, deadline=None)
@given(
    before=actions,
    after=actions,
    again=actions,
    window=st.none() | st.integers(1, 20),
    max_tokens=st.integers(20, 300),
    preserve=st.integers(0, 8),
)
async def test_after_any_compaction_what_is_sent_is_valid(
    before: list[Action],
    after: list[Action],
    again: list[Action],
    window: int | None,
    max_tokens: int,
    preserve: int,
) -> None:
    """Groups whole, in order, one summary and first, newest question in."""
    memory = compacting(max_tokens, preserve, window)
    for script in (before, after, again):
        await play(memory, script)
        said = current(memory)
        todo = due(memory, overflow=True)
        assert todo is not None
        memory.log.shorten(todo.shorten)
        if todo.replace:
            newest = [m.id for m in said if m.role is Role.USER][-1]
            rest = [message.id for message in said][len(todo.replace) :]
            assert todo.replace == [message.id for message in said][: len(todo.replace)]
            assert newest in rest
            assert len(rest) >= min(preserve, len(said) - 1)
            summary = summarise(memory, todo.replace)
            assert [message.id for message in current(memory)] == [summary.id, *rest]
        view = memory.view()
        if not any(m.role in (Role.USER, Role.SUMMARY) for m in view.messages):
            continue
        summaries = [m.id for m in current(memory) if m.role is Role.SUMMARY]
        assert len(summaries) <= 1
        assert [m.id for m in view.messages if m.role is Role.SUMMARY] == summaries
        whole = [{m.id for m in group} for group in groups(current(memory))]
        shown = {message.id for message in view.messages}
        assert all(group <= shown or not group & shown for group in whole)
        prompt = memory.prompt(memory.system_prompt("Be brief."))
        sent = [memory.log.get(i) for i in from_ranges(prompt.view)]
        assert not violations(render([m for m in sent if m], clipped=prompt.clipped))


async def test_it_is_due_over_the_threshold_only() -> None:
    """Just at the threshold nothing happens; over it, by estimate or by the real count, it does."""
    memory = compacting(max_tokens=100, preserve=0)
    await memory.memorize("user", "x" * 100)
    await memory.memorize("user", "x" * 100)
    assert due(memory) is None
    assert due(memory, prompt_tokens=51) == Plan(shorten=[], replace=["m0"])
    await memory.memorize("user", "x" * 4)
    assert due(memory) == Plan(shorten=[], replace=["m0", "m1"])


async def test_without_a_model_it_is_never_due() -> None:
    """An agent without `compact_model` is left alone, also after an overflow."""
    memory = WorkingMemory(max_tokens=10)
    await memory.memorize("user", "x" * 1_000)
    assert due(memory, prompt_tokens=1_000, overflow=True) is None


@pytest.mark.parametrize("preserve", range(1, 6))
async def test_the_cut_never_splits_a_group(preserve: int) -> None:
    """At every `compact_preserve` a call and its two results stay together."""
    memory = compacting(preserve=preserve)
    await tool_turn(memory, "a", "b")
    await memory.memorize("user", "next")
    todo = due(memory, overflow=True)
    assert todo is not None
    assert (
        todo.replace
        == {
            1: ["m0", "m1", "m2", "m3", "m4"],
            2: ["m0", "m1", "m2", "m3"],
            3: ["m0"],
            4: ["m0"],
            5: ["m0"],
        }[preserve]
    )


async def test_the_newest_question_and_its_tool_rounds_stay() -> None:
    """Also with nothing preserved, a turn that is under way is not summarised."""
    memory = compacting(preserve=0)
    await memory.memorize("user", "old")
    await tool_turn(memory, "y" * 900)
    todo = due(memory, overflow=True)
    assert todo == Plan(shorten=[], replace=["m0"])


async def test_a_call_that_was_never_answered_holds_nothing_up() -> None:
    """A call without a result at the head goes like any other message."""
    memory = compacting(preserve=2)
    await memory.memorize("user", "start")
    await memory.memorize("tool_call", '{"calls": [{"id": "k", "name": "look"}]}')
    for turn in range(30):
        await memory.memorize("user", f"question {turn}")
    todo = due(memory)
    assert todo is not None
    assert todo.replace == [f"m{number}" for number in range(30)]


async def test_old_results_are_shortened_once_and_that_may_be_enough() -> None:
    """Shortened results stay as they are; their full text stays in the conversation."""
    memory = compacting(max_tokens=1_000, preserve=2)
    await tool_turn(memory, "y" * 4_000)
    await memory.memorize("user", "next")
    todo = due(memory)
    assert todo is not None
    assert todo == Plan(shorten=["m2"], replace=[])
    memory.log.shorten(todo.shorten)
    prompt = memory.prompt(memory.system_prompt("Be brief."))
    assert prompt.clipped == {"m2": SHORTENED_BYTES}
    shown = [entry["content"] for entry in memory.recall() if entry["role"] == "tool_result"]
    assert "[cut: 4000 bytes in full]" in shown[0]
    assert due(memory, overflow=True) == Plan(shorten=[], replace=["m0", "m1", "m2"])
    assert [m.text for m in memory.messages() if m.id == "m2"] == ["y" * 4_000]


async def test_what_the_window_hides_is_summarised_and_the_summary_is_in_view() -> None:
    """Nothing is lost in silence, and nothing hidden comes back."""
    memory = compacting(max_tokens=100, preserve=2, window=3)
    for turn in range(6):
        await memory.memorize("user", f"{turn}" * 60)
    todo = due(memory)
    assert todo is not None
    assert todo == Plan(shorten=[], replace=["m0", "m1", "m2", "m3"])
    summary = summarise(memory, todo.replace)
    assert memory.keys() == [summary.id, "m4", "m5"]
    assert memory.recall()[0] == {"id": summary.id, "role": "summary", "content": "so far"}


async def test_forgotten_messages_are_not_summarised() -> None:
    """A message forgotten before is no part of it; a summarised one can still be forgotten."""
    memory = compacting(preserve=0)
    for turn in range(4):
        await memory.memorize("user", f"{turn}" * 80)
    await memory.forget("m1")
    todo = due(memory)
    assert todo is not None
    assert todo == Plan(shorten=[], replace=["m0", "m2"])
    summary = summarise(memory, todo.replace)
    await memory.forget("m0")
    await memory.forget(summary.id)
    assert memory.keys() == ["m3"]


async def test_what_is_said_while_a_summary_is_made_stands_behind_it() -> None:
    """Between plan and summary one message comes and one goes; nothing raises or is lost."""
    memory = compacting(preserve=0)
    for text in ("x" * 400, "y" * 400, "the question"):
        await memory.memorize("user", text)
    todo = due(memory)
    assert todo is not None
    assert todo.replace == ["m0", "m1"]
    await memory.memorize("user", "meanwhile")
    await memory.forget("m1")
    summary = summarise(memory, todo.replace)
    await memory.memorize("user", "afterwards")
    said = [message.text for message in current(memory)]
    assert said == [summary.text, "the question", "meanwhile", "afterwards"]


async def test_too_little_is_not_worth_a_summary() -> None:
    """Where the preserved messages alone are over the threshold, not each turn pays for one."""
    memory = compacting(max_tokens=1_000, preserve=1)
    await memory.memorize("user", "hi")
    await memory.memorize("user", "x" * 4_000)
    assert due(memory) == Plan(shorten=[], replace=[])
    assert due(memory, overflow=True) == Plan(shorten=[], replace=["m0"])


async def test_one_compaction_takes_in_no_more_than_its_bound() -> None:
    """The messages over the bound wait for the next turn."""
    memory = compacting(max_tokens=100_000, preserve=0)
    for _ in range(5):
        await memory.memorize("user", "x" * 80_000)
    todo = due(memory)
    assert todo == Plan(shorten=[], replace=["m0", "m1"])


async def test_a_turn_that_fails_after_a_compaction_leaves_the_summary() -> None:
    """The dropped turn is the question alone."""
    memory = compacting(preserve=0)
    memory.begin_turn("x" * 400)
    memory.begin_turn("again")
    summary = summarise(memory, ["m0"])
    memory.log.drop_turn(memory.turn)
    assert memory.keys() == [summary.id]


def test_only_a_smaller_summary_with_room_beside_it_fits() -> None:
    """Empty, equal and larger ones do not, nor one that fills the budget."""
    limits = compacting(max_tokens=100).settings
    replaced = [Message(id="m0", role=Role.USER, content="x" * 400)]

    def summary(size: int) -> Message:
        return Message(id="m1", role=Role.SUMMARY, content="s" * size)

    assert fits(summary(40), replaced, limits)
    assert fits(summary(200), replaced, limits)
    assert not fits(summary(0), replaced, limits)
    assert not fits(summary(208), replaced, limits)
    assert not fits(summary(400), replaced, compacting(max_tokens=10_000).settings)


async def test_halving_shows_at_most_half_of_what_was_sent() -> None:
    """After an overflow the view is half as large, and never next to nothing; it grows back."""
    memory = WorkingMemory()
    for _ in range(8):
        await memory.memorize("user", "x" * 400)
    before = tokens([memory.view().messages])
    assert memory.halve()
    assert tokens([memory.view().messages]) == before // 2
    assert memory.halve()
    assert memory.keys() == ["m6", "m7"]
    for _ in range(3):
        memory.halve()
    assert memory.keys() == ["m7"]
    sizes: list[int] = []
    for _ in range(5):
        memory.begin_turn("x" * 400)
        sizes.append(len(memory.keys()))
    assert sizes == [2, 3, 5, 8, 13]
    memory.begin_turn("x" * 400)
    assert len(memory.keys()) == 14
    assert memory.bound is None


async def test_halving_is_relative_to_what_was_shown_of_a_large_message() -> None:
    """A message that is shown cut counts as it is shown."""
    memory = WorkingMemory()
    memory.begin_turn("x" * 80_000)
    for tokens_shown in (10_000, 5_000, 2_500):
        assert memory.halve()
        assert memory.view().clipped == {"m0": tokens_shown * 4}
    memory.restore_bound(None)
    assert memory.view().clipped == {}


async def test_a_question_over_the_budget_leaves_room_for_the_summary() -> None:
    """The summary is sent whole, and the question is shortened to what is left."""
    memory = compacting(max_tokens=1_000, preserve=0)
    await memory.memorize("user", "x" * 400)
    await memory.memorize("user", "y" * 8_000)
    summary = summarise(memory, ["m0"], "s" * 800)
    view = memory.view()
    assert [m.id for m in view.messages] == [summary.id, "m1"]
    assert view.clipped == {"m1": 3_200}
    sent = render(view.messages, clipped=view.clipped)
    assert encoded_size(str(sent[1]["content"])) <= 3_200


async def test_of_a_running_turn_the_question_and_the_latest_calls_stay() -> None:
    """Four long files, one by one: each time the earlier ones go, the summary before included."""
    memory = WorkingMemory(None, 50_000, "openai/small", 0.7, 4)
    await memory.memorize("user", "earlier")
    turn = Turn(memory, "q: compare the files")
    taken: list[Message] = []
    for number in range(1, 6):
        turn.step(59_000)
        todo = due_in_turn(memory)
        if number < 3:
            assert todo is None
            continue
        assert todo is not None
        assert todo.shorten == []
        assert turn.question.id not in todo.replace
        kept = [m.id for m in current(memory) if m.id not in todo.replace]
        assert kept[0] == turn.question.id
        assert kept[-2] == turn.replies[-1].id
        assert len(kept) == 5, "as many as are preserved, and the question"
        taken.append(summarise(memory, todo.replace))
        assert due_in_turn(memory) is None, "the next one needs new material"
        assert [m.role for m in memory.view().messages][:2] == [Role.SUMMARY, Role.USER]
        assert [m.id for m in current(memory) if m.role is Role.SUMMARY] == [taken[-1].id]


@pytest.mark.parametrize(("files", "max_tokens"), [(1, 20_000), (3, 60_000), (8, 120_000)])
async def test_what_is_preserved_yields_where_the_threshold_has_no_room(
    files: int, max_tokens: int
) -> None:
    """Side by side: the newest reply's results stay, those of the reply before it go."""
    memory = WorkingMemory(None, max_tokens, "openai/small", 0.7, 20)
    turn = Turn(memory, "q: compare the files")
    turn.step(*[50_000] * files)
    assert due_in_turn(memory) in (None, Plan(shorten=[], replace=[]))
    turn.step(*[50_000] * files)
    todo = due_in_turn(memory)
    assert todo is not None
    assert todo.replace == [m.id for m in memory.log.groups[1]]


async def test_results_from_before_the_turn_are_shortened_first() -> None:
    """The results that the turn has read are worth more than those that were read long ago."""
    memory = compacting(max_tokens=10_000, preserve=2)
    await tool_turn(memory, "y" * 12_000)
    turn = Turn(memory, "q: and now?")
    turn.step(6_000)
    turn.step(6_000)
    assert due_in_turn(memory) == Plan(shorten=["m2"], replace=[])
    memory.log.shorten(["m2"])
    for _ in range(2):
        turn.step(8_000)
    todo = due_in_turn(memory)
    assert todo is not None
    assert todo.replace[:4] == ["m0", "m1", "m2", "m3"]
    assert turn.question.id not in todo.replace
    assert turn.replies[0].id in todo.replace


@pytest.mark.parametrize("overhead", [400, 4_000, 40_000])
async def test_a_requests_fixed_part_makes_no_compaction_due(overhead: int) -> None:
    """Whatever the provider counts of system prompt and tools, no summary can shrink it."""
    memory = compacting(max_tokens=1_000, preserve=0)
    for _ in range(6):
        await memory.memorize("user", "x" * 200)
    memory.begin_turn("q")
    said = tokens(memory.log.groups)
    assert said < 500
    assert due_in_turn(memory, prompt_tokens=said + overhead, overhead=overhead) is None
    assert due_in_turn(memory, prompt_tokens=said + overhead, overhead=0) is not None
    twice = 2 * (said + overhead)  # a tokenizer that counts twice what the estimate says
    assert due_in_turn(memory, prompt_tokens=twice, overhead=overhead) is not None


async def test_summaries_are_no_part_of_the_transcript() -> None:
    """The messages that were said are carried over, the replaced ones included."""
    memory = compacting(preserve=0)
    await memory.memorize("user", "x" * 400)
    await memory.memorize("user", "y")
    summary = summarise(memory, ["m0"])
    assert not belongs_to_transcript(summary)
    replaced = memory.log.get("m0")
    assert replaced is not None
    assert replaced.text == "x" * 400


async def test_a_long_conversation_is_looked_at_a_few_times_not_once_for_each_message() -> None:
    """With 2,000 messages to be summarised, the plan is linear in them."""
    memory = compacting(max_tokens=100_000, preserve=4)
    for _ in range(2_000):
        await memory.memorize("user", "x" * 400)
    counted: list[str] = []

    def counting(message: Message) -> int:
        counted.append(message.id)
        return estimate_tokens(message)

    todo = plan(memory.log.groups, memory.settings, prompt_tokens=0, size=counting)
    assert todo is not None
    assert len(todo.replace) == 500
    assert 2_000 <= len(counted) < 4 * 2_000
