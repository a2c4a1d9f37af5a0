"""The state that a conversation hands on to a new run: nothing needed is lost; it stays small."""

import bz2
import random
import zlib
from typing import Any

import pytest
from hypothesis import example, given

from agentmem.errors import InvalidInput
from agentmem.memory.carried_state import LEFT, CarriedMemory, pack_within
from agentmem.memory.working import WorkingMemory, working_memory
from agentmem.messages import Message, Role
from agentmem.wire import PACKED_BYTES, dump_json, pack, unpack
from tests.unit.test_view_properties import Action, actions, bounds, play


@given(script=actions, more=actions, window=bounds, max_tokens=bounds)
@example(
    script=[("user", 0), ("calls", 0), ("assistant", 0)],
    more=[("user", 0)],
    window=None,
    max_tokens=3,
)
@example(script=[("calls", 0), ("assistant", 0)], more=[("user", 0)], window=None, max_tokens=2)
async def test_a_conversation_goes_on_as_if_there_had_been_no_change(
    script: list[Action], more: list[Action], window: int | None, max_tokens: int | None
) -> None:
    """Same view, same ids, same prompts, before and after more was said."""
    memory = WorkingMemory(window=window, max_tokens=max_tokens)
    await play(memory, script)
    other = WorkingMemory(window=window, max_tokens=max_tokens, restore=memory.dump())
    assert other.recall() == memory.recall()
    before, after = (m.prompt(m.system_prompt("Be brief.")) for m in (memory, other))
    assert (after.view, after.clipped) == (before.view, before.clipped)
    assert not after.new[1:], "only the system prompt: workers ask for the rest"
    said = [(kind, number) for kind, number in more if kind != "forget"]
    await play(memory, said)
    await play(other, said)
    assert other.recall() == memory.recall()
    assert other.log.next == memory.log.next


def conversation(*sizes: int, seed: int = 1) -> WorkingMemory:
    """Return a memory with a message of each of these sizes, of text that packs badly."""
    made = random.Random(seed)
    memory = working_memory()
    for size in sizes:
        text = "".join(made.choices("abcdefghijklmnopqrstuvwxyz0123456789 ", k=size))
        memory.begin_turn(text)
    return memory


def test_the_oldest_leave_where_all_is_too_much() -> None:
    """500 questions of 20 kB, unbounded: at most 1 MiB, the newest whole, a line for the rest."""
    memory = conversation(*[20_000] * 500)
    packed = memory.dump()
    assert PACKED_BYTES * 0.8 < len(packed) <= PACKED_BYTES
    other = working_memory(restore=packed)
    marker, *kept = other.recall()
    assert marker["content"] == LEFT
    assert kept == memory.recall()[-len(kept) :]
    again = working_memory(restore=other.dump())
    assert again.recall() == other.recall(), "one marker, however often"
    assert again.begin_turn("next").id == f"m{again.log.next - 1}"


def test_a_summary_stays_where_others_leave() -> None:
    """One summary, first; what could not go on is none of its business."""
    memory = conversation(*[300_000] * 8)
    summary = Message(id=memory.reserve(), role=Role.SUMMARY, content="They met in Oslo.")
    memory.summarise(["m0"], summary)
    other = working_memory(restore=memory.dump())
    roles = [message.role for message in other.messages()]
    assert roles[0] is Role.SUMMARY
    assert roles.count(Role.SUMMARY) == 1
    assert other.messages()[0].text == "They met in Oslo."
    assert 1 < len(roles) < 8


def test_one_message_too_large_for_all_leaves_too() -> None:
    """Nothing is left but the line that says so; the next question is answered."""
    memory = conversation(40_000, 2_000_000)
    other = working_memory(restore=memory.dump())
    assert [entry["content"] for entry in other.recall()] == [LEFT]


def test_what_must_go_along_and_does_not_fit_is_said() -> None:
    """Where what no store has is too much by itself, nothing is handed on: the change waits."""
    marker = Message(id="m0", role=Role.SUMMARY, content=LEFT)
    assert pack_within([[marker]], lambda _: b"x" * 11, marker, limit=10) is None
    assert pack_within([[marker]], lambda _: b"x" * 10, marker, limit=10) == b"x" * 10


def test_what_is_no_dump_is_refused() -> None:
    """A wrong `restore` is a clear error, a bomb of zeros too."""
    bomb = b'{"next": ' + b"0" * 100_000_000
    made = [compress(text) for compress in (bz2.compress, zlib.compress) for text in (bomb, b"[]")]
    packed = pack(CarriedMemory())
    dumps = [b"", b"x", b"BZh", b"BZh9 none", packed[:-3], packed[1:], *made]
    wrong: list[Any] = [*dumps, "text", "", 0, [1], {"messages": []}]
    for one in wrong:
        with pytest.raises(InvalidInput, match="restore"):
            working_memory(restore=one)


def test_the_last_format_is_written_and_the_next_one_read() -> None:
    """Workers of the last release read what this one writes, and this one reads what comes next."""
    memory = conversation(10, 20, 30)
    text = zlib.decompress(memory.dump())
    assert working_memory(restore=bz2.compress(text)).messages() == memory.messages()


def test_a_field_that_is_not_known_is_not_dropped() -> None:
    """A field that a newer version counts on must not get lost on the way through an older one."""
    newer = zlib.compress(b'{"next": 5, "from_the_future": 1}')
    with pytest.raises(InvalidInput, match="restore"):
        working_memory(restore=newer)


def test_packing_changes_nothing_of_the_run() -> None:
    """However often it is packed, and however well: ids are given one by one, none twice."""
    memory = conversation(*[400_000] * 12)
    first = memory.dump()
    assert memory.dump() == first
    assert memory.reserve() == "m12"
    other = working_memory(restore=first)
    assert other.messages()[0].text == LEFT
    assert other.messages()[0].id == "m12"
    assert other.reserve() == "m13"


async def test_names_of_calls_leave_with_their_calls() -> None:
    """The ids that code gave its calls are handed on only with these calls: they do not pile up."""
    memory = working_memory(window=2)
    for number in range(50):
        await memory.memorize("user", f"question {number}")
        calls = [{"id": f"provider-{number}", "name": "ping"}]
        await memory.memorize("tool_call", dump_json({"calls": calls}))
    carried = unpack(CarriedMemory, memory.dump(), "it")
    assert list(carried.given) == ["provider-49"]
    other = working_memory(window=2, restore=memory.dump())
    await other.memorize("tool_result", dump_json({"call_id": "provider-49", "output": "pong"}))


def test_packing_round_trips() -> None:
    """Every field of every message survives."""
    message = Message(
        id="m7",
        role=Role.ASSISTANT,
        content=[{"type": "text", "text": 'a\x00"é😀'}],
        reasoning=[{"type": "thinking", "thinking": "hm", "signature": "s"}],
        fields={"x": {"y": [1, None]}},
        attempt=3,
    )
    state = CarriedMemory(messages=[message], given={"k": "t0.s1.c0"}, cap=5)
    assert unpack(CarriedMemory, pack(state), "it") == state
