"""The parts of a message that a dream may see later."""

from datetime import UTC, datetime

import pytest

from agentmem.memory.transcript import BATCH, BATCH_BYTES, next_batch, transcript_rows
from agentmem.messages import Message, Role, ToolCall

AT = datetime(2026, 3, 10, 9, 12, tzinfo=UTC)


def text_of(message: Message, forgotten: tuple[str, ...] = ()) -> str:
    """Return the text that is kept of one message."""
    rows = transcript_rows([message], session="s", memory="wm0", first=1, forgotten=forgotten)
    return rows[0].text


def test_what_was_said_is_kept_whole_and_numbered() -> None:
    """Users' and assistants' words are unshortened up to 32 KiB, numbers have no gaps."""
    said = [
        Message(id="m0", role=Role.USER, content="x" * 5_000, at=AT, turn=1),
        Message(id="m1", role=Role.ASSISTANT, content="fine", at=AT, turn=1),
    ]
    rows = transcript_rows(said, session="s", memory="wm0", first=7, forgotten=())
    assert [(row.seq, row.message, row.role, row.at) for row in rows] == [
        (7, "m0", "user", AT),
        (8, "m1", "assistant", AT),
    ]
    assert rows[0].text == "x" * 5_000


def test_tool_calls_and_results_are_shortened_with_their_size() -> None:
    """A call keeps 500 characters of arguments, a result its ends and its full size."""
    call = ToolCall(id="t1.s1.c0", name="search", arguments={"q": "y" * 2_000})
    kept = text_of(Message(id="m1", role=Role.ASSISTANT, calls=[call], at=AT))
    assert kept.startswith("search {")
    assert len(kept) < 520
    result = Message(id="m2", role=Role.TOOL_RESULT, content="a" * 900 + "b" * 900, at=AT)
    kept = text_of(result)
    assert "1800 characters" in kept
    assert kept.startswith("a" * 700)
    assert kept.endswith("b" * 300)


def test_reasoning_and_recalled_facts_are_left_out() -> None:
    """A result of memory is marked and has no text, so that it is not learned again."""
    thought = Message(
        id="m1", role=Role.ASSISTANT, content="hi", reasoning=[{"thinking": "secret"}], at=AT
    )
    assert text_of(thought) == "hi"
    recalled = Message(id="m2", role=Role.TOOL_RESULT, content="city", recalled=True, at=AT)
    (row,) = transcript_rows([recalled], session="s", memory="wm0", first=1, forgotten=())
    assert (row.recalled, row.text) == (True, "")


def test_secrets_and_forgotten_texts_are_not_kept() -> None:
    """A secret's shape is replaced before the write, a forgotten message has no text."""
    said = Message(id="m0", role=Role.USER, content="my password: hunter22 ok", at=AT)
    assert "hunter22" not in text_of(said)
    assert "ok" in text_of(said)
    assert text_of(said, forgotten=("m0",)) == ""


@pytest.mark.parametrize("role", [Role.USER, Role.ASSISTANT])
def test_what_no_model_can_read_is_clipped(role: Role) -> None:
    """A message of 1 MiB keeps 24 KiB, 8 KiB and its size, so that it cannot stop all dreams."""
    long = "é" * 20_000 + "m" * 1_000_000 + "ü" * 10_000
    kept = text_of(Message(id="m0", role=role, content=long, at=AT))
    assert kept.startswith("é" * 12_288 + " [... 1060000 bytes in full ...] ")
    assert kept.endswith(" " + "ü" * 4_096)
    assert len(kept.encode()) < 33 * 1024
    fits = "x" * 32 * 1024
    assert text_of(Message(id="m0", role=role, content=fits, at=AT)) == fits


def test_a_secret_at_the_cut_is_removed_whole() -> None:
    """Secrets go before the text is cut: half of one has no shape by which it could be found."""
    key = "sk-ant-" + "A1b2C3d4" * 6
    long = "x " * 12_280 + key + " y" * 20_000
    kept = text_of(Message(id="m0", role=Role.USER, content=long, at=AT))
    assert "sk-ant" not in kept
    assert "bytes in full" in kept


def test_a_control_character_in_a_tools_name_does_not_lose_the_message() -> None:
    """PostgreSQL's text holds no NUL, and a name may be a model's or a tool's own."""
    call = ToolCall(id="t1.s1.c0", name="look\x00up\x1b")
    wish = Message(id="m1", role=Role.ASSISTANT, calls=[call], at=AT)
    result = Message(id="m2", role=Role.TOOL_RESULT, content="no", name="look\x00up", at=AT)
    rows = transcript_rows([wish, result], session="s", memory="wm0", first=1, forgotten=())
    assert [row.name for row in rows] == ["look?up?", "look?up"]
    assert not any("\x00" in row.text for row in rows)


def test_an_append_takes_200_messages_or_2_mebibytes() -> None:
    """A large backlog goes in steps, each of one message at least."""
    small = {f"m{n}": Message(id=f"m{n}", role=Role.USER, content="hi") for n in range(250)}
    ids = list(small)
    assert next_batch(ids, small.__getitem__) == ids[:BATCH]
    assert next_batch(ids[BATCH:], small.__getitem__) == ids[BATCH:]
    large = {i: message.replace(content="x" * 900_000) for i, message in small.items()}
    assert next_batch(ids, large.__getitem__) == ids[:2]
    huge = {i: message.replace(content="x" * (BATCH_BYTES + 1)) for i, message in small.items()}
    assert next_batch(ids, huge.__getitem__) == ids[:1]
    assert next_batch([], huge.__getitem__) == []


def test_nul_characters_do_not_lose_the_message() -> None:
    """A NUL in what was said becomes a space; PostgreSQL's text holds none."""
    assert text_of(Message(id="m0", role=Role.USER, content="W\x00s", at=AT)) == "W s"
