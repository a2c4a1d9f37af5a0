"""A running turn never loses its own work: what a model is shown of it, whatever the bounds."""

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentmem.llm.request import SUMMARY, render
from agentmem.memory.selection import CLIPPED_BYTES, NOTE_BYTES, SHORTENED_BYTES
from agentmem.memory.working import WorkingMemory
from agentmem.messages import Message, Role, ToolCall, estimate_tokens, from_ranges
from agentmem.testing.strict import violations
from agentmem.wire import JSONObject, encoded_size

CUT = "[cut: "

Step = tuple[str, list[int]]
steps = st.lists(
    st.tuples(
        st.sampled_from(["calls", "calls", "user", "assistant", "own calls"]),
        st.lists(st.integers(1, 4_000), min_size=1, max_size=4),
    ),
    max_size=12,
)


class Turn:
    """A turn as the agent loop drives it: replies with signed thinking, parallel calls."""

    def __init__(self, memory: WorkingMemory, question: str) -> None:
        self.memory = memory
        self.question = memory.begin_turn(question)
        self.replies: list[Message] = []

    def step(self, *sizes: int, arguments: int = 0) -> None:
        """Store a reply that calls a tool for each size, and the results."""
        number = len(self.replies) + 1
        calls = [
            ToolCall(
                id=f"t{self.memory.turn}.s{number}.c{place}",
                name="read_file",
                arguments={"path": "p" * arguments},
            )
            for place in range(len(sizes))
        ]
        thinking: JSONObject = {"type": "thinking", "thinking": "hm", "signature": f"s{number}"}
        reply = Message(
            id=self.memory.reserve(),
            role=Role.ASSISTANT,
            turn=self.memory.turn,
            calls=calls,
            reasoning=[thinking],
        )
        self.replies.append(self.memory.store(reply))
        for call, size in zip(calls, sizes, strict=True):
            self.memory.add(
                role=Role.TOOL_RESULT, content=f"{call.id} ".ljust(size, "r"), call=call.id
            )

    async def play(self, step: Step) -> None:
        """Do one step of a script; `memorize` by code stands for all that is no reply."""
        kind, sizes = step
        if kind == "calls":
            self.step(*sizes)
        elif kind == "own calls":
            calls = [{"id": "k", "name": "own"}]
            await self.memory.memorize("tool_call", json.dumps({"calls": calls}))
            result = {"call_id": "k", "output": "o" * sizes[0]}
            await self.memory.memorize("tool_result", json.dumps(result))
        else:
            await self.memory.memorize(kind, kind.ljust(sizes[0], "."))

    def sent(self) -> list[JSONObject]:
        """Return the messages of the next request."""
        prompt = self.memory.prompt(self.memory.system_prompt("Be brief."))
        shown = [self.memory.log[message_id] for message_id in from_ranges(prompt.view)]
        return render(shown, clipped=prompt.clipped, notes=prompt.notes)


def noted(sent: list[JSONObject]) -> int:
    """Return how many calls the request's notes count."""
    texts = [str(message["content"]) for message in sent if message["role"] == "user"]
    found = [re.match(r"\[Not shown here.*?: (\d+) tool calls", text) for text in texts]
    return sum(int(match[1]) for match in found if match)


def calls_in(sent: list[JSONObject]) -> int:
    """Return how many calls a request holds."""
    return sum(len(message.get("tool_calls", ())) for message in sent)


@settings(max_examples=200, deadline=None)
@given(
    before=st.lists(st.integers(1, 2_000), max_size=4),
    script=steps,
    question=st.integers(1, 3_000),
    window=st.none() | st.integers(1, 30),
    max_tokens=st.none() | st.integers(1, 6_000),
)
async def test_a_running_turn_is_always_in_view_or_accounted_for(
    before: list[int], script: list[Step], question: int, window: int | None, max_tokens: int | None
) -> None:
    """Each call of the turn is shown with its result, whole or cut with a note, or is counted."""
    memory = WorkingMemory(window, max_tokens)
    for size in before:
        await memory.memorize("user", "x" * size)
        await memory.memorize("assistant", "y" * size)
    turn = Turn(memory, "q" * question)
    for step in script:
        await turn.play(step)
        sent = turn.sent()
        assert not violations(sent)
        own = memory.turn_messages()
        made = [call for message in own for call in message.calls]
        in_turn = sent[sent.index(asked(sent)) :]
        assert calls_in(in_turn) + noted(sent) == len(made), "no call is gone without a word"
        for message in (m for m in in_turn if m["role"] == "tool"):
            text = str(message["content"])
            assert CUT in text or text in {m.text for m in own}
        if turn.replies:
            latest = sent_for(turn.replies[-1], sent)
            is_last = memory.log.groups[-1][0] is turn.replies[-1]
            assert latest or not is_last
        if max_tokens is None:
            assert noted(sent) == 0
            assert CUT not in json.dumps(in_turn)
        elif max_tokens > 5_500:
            # What cannot be cut, and the least of all that can, fits here with room to spare.
            assert sum(encoded_size(json.dumps(m)) for m in sent[1:]) <= 4 * max_tokens + 4_000


def asked(sent: list[JSONObject]) -> JSONObject:
    """Return the question as it was sent."""
    return next(m for m in reversed(sent) if str(m["content"]).startswith("q"))


def sent_for(reply: Message, sent: list[JSONObject]) -> bool:
    """Tell whether a reply is in a request with its thinking as it came."""
    return any(m.get("thinking_blocks") == reply.reasoning for m in sent)


@pytest.mark.parametrize("window", [1, 2, 4, 7])
@pytest.mark.parametrize("calls", [1, 3])
async def test_a_window_never_cuts_the_running_turn(window: int, calls: int) -> None:
    """Six rounds of tools, one by one or side by side: all are there at each call."""
    memory = WorkingMemory(window=window)
    await memory.memorize("user", "earlier")
    turn = Turn(memory, "q: what is it?")
    for number in range(1, 7):
        turn.step(*[100] * calls)
        assert calls_in(turn.sent()) == number * calls
    memory.end_turn()
    memory.begin_turn("next")
    assert len(memory.keys()) <= max(2, window), "once it is over, the window counts its messages"


async def test_four_files_and_a_budget_for_three() -> None:
    """The first result stands shortened with its size, the latest are whole."""
    memory = WorkingMemory(max_tokens=50_000)
    turn = Turn(memory, "q: compare the four files")
    for _ in range(4):
        turn.step(59_000)
    results = [str(m["content"]) for m in turn.sent() if m["role"] == "tool"]
    assert [len(text) for text in results] == [SHORTENED_BYTES, 59_000, 59_000, 59_000]
    assert results[0].startswith("t1.s1.c0 ")
    assert results[0].endswith("[cut: 59000 bytes in full]")


async def test_four_files_at_once_share_the_budget() -> None:
    """Side by side, none is gone, and what is small takes nothing from the others."""
    memory = WorkingMemory(max_tokens=50_000)
    turn = Turn(memory, "q: compare the files")
    turn.step(59_000, 59_000, 300, 59_000, 59_000)
    results = [str(m["content"]) for m in turn.sent() if m["role"] == "tool"]
    assert len(results[2]) == 300
    assert all(49_000 < len(text) < 51_000 for text in (*results[:2], *results[3:]))


async def test_what_does_not_fit_even_shortened_is_counted_in_one_note() -> None:
    """Fifty calls with long arguments: the latest whole, one note for those that have no room."""
    memory = WorkingMemory(max_tokens=3_000)
    turn = Turn(memory, "q: write them all")
    for _ in range(50):
        turn.step(600, arguments=2_000)
    sent = turn.sent()
    [note] = [m["content"] for m in sent if str(m["content"]).startswith("[Not shown")]
    assert noted(sent) + calls_in(sent) == 50
    assert 1 < calls_in(sent) < 10
    assert f"(read_file: {noted(sent)})" in note
    assert encoded_size(note) <= NOTE_BYTES
    assert sent[1]["content"] == "q: write them all"
    assert sent[2]["content"] == note
    assert sum(encoded_size(json.dumps(m)) for m in sent) < 4 * 3_000 * 1.2


async def test_a_latest_result_over_the_budget_leaves_earlier_work_its_part() -> None:
    """Earlier results are not given up because the newest page is too long for all."""
    memory = WorkingMemory(max_tokens=4_000)
    turn = Turn(memory, "q: read")
    for _ in range(3):
        turn.step(3_000)
    turn.step(400_000)
    results = [str(m["content"]) for m in turn.sent() if m["role"] == "tool"]
    assert [len(text) for text in results[:3]] == [SHORTENED_BYTES] * 3
    assert 8_000 < len(results[3]) < 16_000
    assert CUT in results[3]


@pytest.mark.parametrize(
    ("role", "content"),
    [
        ("user", "x" * 100_000),
        ("assistant", "x" * 100_000),
        (
            "tool_call",
            json.dumps({"calls": [{"id": "k", "name": "n", "arguments": {"a": "x" * 99_000}}]}),
        ),
    ],
)
async def test_memorize_in_the_middle_of_a_turn_pushes_nothing_out(role: str, content: str) -> None:
    """A message that code adds takes the room that is there; the turn's calls and question stay."""
    memory = WorkingMemory(window=2, max_tokens=2_000)
    turn = Turn(memory, "q: read")
    turn.step(400, 400)
    await memory.memorize(role, content)
    turn.step(400)
    await memory.memorize(role, content)
    sent = turn.sent()
    assert asked(sent)["content"] == "q: read"
    shown = [str(m["content"]).split()[0] for m in sent if m["role"] == "tool"]
    assert {"t1.s1.c0", "t1.s1.c1", "t1.s2.c0"} <= set(shown) or noted(sent)
    assert sent_for(turn.replies[-1], sent), "code's own calls are not the latest of the model"


@pytest.mark.parametrize("max_tokens", [100, 1_000, 4_000])
@pytest.mark.parametrize("is_first", [True, False])
async def test_a_summary_that_code_memorized_leaves_room_for_the_turn(
    max_tokens: int, is_first: bool
) -> None:
    """One over half of the budget is shown shortened, with a note; the question stays whole."""
    memory = WorkingMemory(max_tokens=max_tokens)
    if is_first:
        await memory.memorize("summary", "s" * 60_000)
    turn = Turn(memory, "q: read the file that I named")
    turn.step(100)
    if not is_first:
        await memory.memorize("summary", "s" * 60_000)
    sent = turn.sent()
    assert asked(sent)["content"] == "q: read the file that I named"
    [told] = [str(m["content"]) for m in sent if str(m["content"]).startswith(SUMMARY)]
    assert "bytes in full]" in told
    assert len(told) < 4 * max_tokens + len(SUMMARY)
    assert calls_in(sent) == 1


async def test_a_turn_whose_question_was_forgotten_is_still_asked() -> None:
    """Code may forget anything: the newest message of the user before the turn is sent instead."""
    memory = WorkingMemory(window=2, max_tokens=2_000)
    await memory.memorize("user", "before")
    turn = Turn(memory, "q")
    turn.step(100)
    assert await memory.forget(turn.question.id) == [turn.question.id]
    turn.step(9_000)
    sent = turn.sent()
    assert sent[1]["content"] == "before"
    assert calls_in(sent) == 2
    assert not violations(sent)


async def test_a_message_with_signed_thinking_is_shown_whole_or_not_at_all() -> None:
    """A reply that code took over with its signature is never shortened under it."""
    memory = WorkingMemory(max_tokens=500)
    turn = Turn(memory, "q")
    said = Message(
        id=memory.reserve(),
        role=Role.ASSISTANT,
        turn=1,
        content="w" * 8_000,
        reasoning=[{"type": "thinking", "thinking": "hm", "signature": "s"}],
    )
    memory.store(said)
    turn.step(100)
    turn.step(100)
    sent = turn.sent()
    texts = [str(m["content"]) for m in sent if m["role"] == "assistant"]
    assert not any(text.startswith("w") for text in texts)
    assert any("in this turn: 1 other messages" in str(m["content"]) for m in sent)
    assert estimate_tokens(said) > 500
    assert CLIPPED_BYTES < SHORTENED_BYTES
