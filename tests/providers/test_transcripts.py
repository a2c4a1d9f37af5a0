"""Transcripts: gapless, idempotent, read oldest session first, alike on every store."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from agentmem.errors import ConfigurationError, InvalidFact, ProviderError
from agentmem.facts import Evidence, Write
from agentmem.records import DreamRecord, Range, TranscriptRow
from agentmem.storage.sql.provider import SqlProvider

START = datetime(2026, 3, 10, 9, 0, tzinfo=UTC)


def rows(
    first: int, last: int, *, session: str = "r1", minute: int = 0, text: str = "hello"
) -> list[TranscriptRow]:
    """Rows `first` to `last` of a session, a second apart."""
    return [
        TranscriptRow(
            session=session,
            memory="wm0",
            seq=seq,
            message=f"m{seq}",
            role="user" if seq % 2 else "assistant",
            text=text,
            at=START + timedelta(minutes=minute, seconds=seq),
            turn=(seq + 1) // 2,
        )
        for seq in range(first, last + 1)
    ]


async def consume(store: SqlProvider, scope: str, *ranges: Range) -> None:
    """Let a dream read ranges."""
    name = f"dream-{'-'.join(f'{one.session}.{one.last}' for one in ranges)}"
    record = DreamRecord(id=name, opened_at=START, ranges=list(ranges))
    await store.open_dream("a", scope, record)
    await store.commit("a", scope, record, [])


async def test_rows_come_back_as_they_were(store: SqlProvider) -> None:
    """Every field comes back, the time in the zone that it was said in."""
    tokyo = timezone(timedelta(hours=9))
    row = TranscriptRow(
        session="r1",
        memory="wm1",
        seq=1,
        message="m7",
        role="tool_result",
        text="日本 😀 \n\t'\"",
        at=datetime(2026, 3, 10, 18, 12, 13, 456, tzinfo=tokyo),
        turn=4,
        name="get_weather",
        recalled=True,
        forgotten=True,
    )
    await store.append("a", "s", [row])
    (found,) = await store.unread("a", "s", 1_000)
    assert found == row
    assert found.at.utcoffset() == timedelta(hours=9)


async def test_appending_again_changes_nothing(store: SqlProvider) -> None:
    """An append whose answer was lost is repeated, also with more rows; the first stay."""
    assert await store.append("a", "s", rows(1, 3)) == 3
    assert await store.append("a", "s", rows(1, 3, text="other")) == 3
    assert await store.append("a", "s", rows(2, 5, text="more")) == 5
    texts = [row.text for row in await store.unread("a", "s", 1_000)]
    assert texts == ["hello"] * 3 + ["more"] * 2


async def test_a_gap_is_refused(store: SqlProvider) -> None:
    """Rows that would leave a gap are refused, and none of them is stored."""
    await store.append("a", "s", rows(1, 2))
    with pytest.raises(ProviderError, match="needs 3 first"):
        await store.append("a", "s", rows(4, 5))
    with pytest.raises(ProviderError, match="needs 5 first"):
        await store.append("a", "s", [*rows(3, 4), *rows(6, 6)])
    assert len(await store.unread("a", "s", 1_000)) == 2


async def test_a_session_goes_on_after_its_scope_was_erased(store: SqlProvider) -> None:
    """The session's messages from then on are kept, read and consumed; gaps are still refused."""
    await store.append("a", "s", rows(1, 5))
    await store.erase("a", "s")
    assert await store.append("a", "s", rows(6, 7)) == 7
    assert await store.append("a", "s", rows(1, 8)) == 8
    with pytest.raises(ProviderError, match="needs 9 first"):
        await store.append("a", "s", rows(10, 10))
    assert [row.seq for row in await store.unread("a", "s", 1_000)] == [6, 7, 8]
    read = [Range(session="r1", memory="wm0", first=6, last=8)]
    record = await store.open_dream("a", "s", DreamRecord(id="d", opened_at=START, ranges=read))
    assert (await store.commit("a", "s", record, [])).status == "completed"
    assert await store.unread("a", "s", 1_000) == []
    taken = await store.export("a", "s")
    await store.restore("a", "new", taken)
    assert await store.append("a", "new", rows(9, 9)) == 9


async def test_what_append_takes(store: SqlProvider) -> None:
    """No rows are no error; rows of two sessions, or a time without zone, are."""
    assert await store.append("a", "s", []) == 0
    with pytest.raises(ConfigurationError, match="one session"):
        await store.append("a", "s", [*rows(1, 1), *rows(1, 1, session="r2")])
    naive = rows(1, 1)[0].replace(at=START.replace(tzinfo=None))
    with pytest.raises(InvalidFact, match="no time zone"):
        await store.append("a", "s", [naive])


async def test_a_message_with_nul_is_kept(store: SqlProvider) -> None:
    """In a conversation NUL and lone surrogates are replaced, the message stays."""
    await store.append("a", "s", rows(1, 1, text="W\x00s \ud83d literal \\u0000"))
    (row,) = await store.unread("a", "s", 1_000)
    assert row.text == "W\ufffds \ufffd literal \\u0000"


async def test_sessions_without_long_term_memory_have_no_scope(store: SqlProvider) -> None:
    """A transcript may lie under an empty scope; facts may not."""
    assert await store.append("a", "", rows(1, 1)) == 1
    assert len(await store.unread("a", "", 1_000)) == 1
    assert await store.unread("a", "s", 1_000) == []


async def test_the_oldest_session_comes_first(store: SqlProvider) -> None:
    """Sessions are read whole, in the order of their oldest unread message."""
    await store.append("a", "s", rows(1, 2, session="late", minute=5))
    await store.append("a", "s", rows(1, 2, session="early", minute=1))
    await store.append("a", "other", rows(1, 2, session="early"))
    found = [(row.session, row.seq) for row in await store.unread("a", "s", 1_000)]
    assert found == [("early", 1), ("early", 2), ("late", 1), ("late", 2)]


async def test_unread_stops_before_the_bytes_are_passed(store: SqlProvider) -> None:
    """Bytes of UTF-8 count; the first row comes however long it is."""
    await store.append("a", "s", rows(1, 3, text="ü" * 50))
    assert len(await store.unread("a", "s", 300)) == 3
    assert len(await store.unread("a", "s", 299)) == 2
    assert len(await store.unread("a", "s", 1)) == 1


async def test_what_a_dream_has_read_is_not_unread(store: SqlProvider) -> None:
    """Each session has its cursor; what comes after it is unread."""
    await store.append("a", "s", rows(1, 4))
    await store.append("a", "s", rows(1, 2, session="r2", minute=9))
    await consume(store, "s", Range(session="r1", memory="wm0", first=1, last=3))
    found = [(row.session, row.seq) for row in await store.unread("a", "s", 1_000)]
    assert found == [("r1", 4), ("r2", 1), ("r2", 2)]
    await store.append("a", "s", rows(5, 5))
    assert len(await store.unread("a", "s", 1_000)) == 4


async def test_ranges_come_in_their_order(store: SqlProvider) -> None:
    """Ranges are read back as asked, also what dreams have read."""
    await store.append("a", "s", rows(1, 4))
    await store.append("a", "s", rows(1, 2, session="r2"))
    await consume(store, "s", Range(session="r1", memory="wm0", first=1, last=4))
    ranges = [
        Range(session="r2", memory="wm0", first=2, last=2),
        Range(session="r1", memory="wm0", first=2, last=3),
        Range(session="gone", memory="wm0", first=1, last=9),
    ]
    found = [(row.session, row.seq) for row in await store.transcript("a", "s", ranges)]
    assert found == [("r2", 2), ("r1", 2), ("r1", 3)]


async def test_two_memories_of_a_session_are_apart(store: SqlProvider) -> None:
    """Two working memories of one workflow number their rows each for itself."""
    await store.append("a", "s", rows(1, 2))
    second = [row.replace(memory="wm1") for row in rows(1, 1)]
    assert await store.append("a", "s", second) == 1
    assert len(await store.unread("a", "s", 1_000)) == 3


async def fact(store: SqlProvider, key: str, *messages: int, session: str = "r1") -> None:
    """Store a fact that rests on messages."""
    evidence = [
        Evidence(session=session, memory="wm0", message=f"m{number}", said_at=START)
        for number in messages
    ]
    await store.write("a", "s", [Write(key=key, value=1, evidence=evidence)])


async def rests_on(store: SqlProvider, key: str) -> list[tuple[str, str]]:
    """The sessions and messages of a fact's evidence."""
    (entry,) = await store.entries("a", "s", [key])
    (found,) = await store.facts_at("a", "s", {key: entry.version})
    return [(item.session, item.message) for item in found.evidence]


async def test_a_reset_session_leaves_its_old_words(
    store: SqlProvider, caplog: pytest.LogCaptureFixture
) -> None:
    """The messages after the reset point leave the session, with the evidence that cites them.

    Numbers and ids repeat; the first of the appended messages is one from before the reset.
    """
    await store.append("a", "s", rows(1, 10))
    await store.append("a", "s", rows(1, 3, session="other"))
    await consume(store, "s", Range(session="r1", memory="wm0", first=1, last=8))
    await fact(store, "kept", 3, 4)
    await fact(store, "old", 4, 5, 9)
    await fact(store, "others", 5, session="other")
    again = [*rows(4, 4), *rows(5, 6, minute=60, text="new")]
    for _ in range(2):
        assert await store.append("a", "s", again) == 6
    left = [row for row in await store.unread("a", "s", 10_000) if row.session == "r1"]
    assert left == again[1:]
    old = await store.transcript("a", "s", [Range(session="r1~1", memory="wm0", first=1, last=99)])
    assert [(row.seq, row.text) for row in old] == [(seq, "hello") for seq in range(5, 11)]
    assert await rests_on(store, "kept") == [("r1", "m3"), ("r1", "m4")]
    assert await rests_on(store, "old") == [("r1", "m4"), ("r1~1", "m5"), ("r1~1", "m9")]
    assert await rests_on(store, "others") == [("other", "m5")]
    assert "6 messages of its transcript (wm0, from m5 on)" in caplog.text
    assert "facts that rest on them: 1 (`agentmem memory resets -a a -s s`" in caplog.text
    await store.append("a", "s", rows(5, 6))  # what was on its way before the reset
    assert await store.append("a", "s", rows(7, 9, minute=60, text="new")) == 9
    assert await of_session(store, "r1~2") == []
    await consume(store, "s", Range(session="r1", memory="wm0", first=5, last=9))
    assert len(await store.unread("a", "s", 10_000)) == 3


async def test_a_session_may_be_reset_again(store: SqlProvider) -> None:
    """Each reset has a branch of its own, also one that goes back to before the first."""
    for minute, first in ((0, 1), (60, 3), (120, 2)):
        await store.append("a", "s", rows(first, 5, minute=minute))
    found = {name: len(await of_session(store, name)) for name in ("r1", "r1~1", "r1~2")}
    assert found == {"r1": 5, "r1~1": 3, "r1~2": 4}
    assert [row.session for row in await store.unread("a", "s", 10_000)] == ["r1"] * 5


async def test_a_reset_to_before_what_was_deleted(store: SqlProvider) -> None:
    """Rows that dreams have read are deleted in time; new words under their numbers are new."""
    await store.append("a", "s", rows(1, 6))
    await consume(store, "s", Range(session="r1", memory="wm0", first=1, last=6))
    await fact(store, "old", 5)
    await store.expire(datetime.now(UTC) + timedelta(days=1))
    later = round((datetime.now(UTC) + timedelta(minutes=1) - START).total_seconds() / 60)
    assert await store.append("a", "s", rows(3, 4)) == 6, "a repeat of what was read"
    assert await store.append("a", "s", rows(5, 5, minute=later)) == 5
    assert [row.seq for row in await store.unread("a", "s", 10_000)] == [5]
    assert await rests_on(store, "old") == [("r1~1", "m5")]


async def test_a_dream_cannot_commit_what_a_reset_took_away(store: SqlProvider) -> None:
    """A dream that was reading the old words fails; the next one reads the new ones."""
    await store.append("a", "s", rows(1, 6))
    record = DreamRecord(
        id="d",
        opened_at=START,
        ranges=[Range(session="r1", memory="wm0", first=1, last=6)],
        data={"draft": {"session": "r1", "memory": "wm0", "message": "m6"}},
    )
    await store.open_dream("a", "s", record)
    await store.append("a", "s", rows(5, 5, minute=60))
    for work in (store.save_dream("a", "s", record), store.commit("a", "s", record, [])):
        with pytest.raises(ProviderError):
            await work
    kept = await store.dream("a", "s", "d")
    assert kept is not None
    assert kept.data["draft"]["session"] == "r1~1"
    assert len(await store.unread("a", "s", 10_000)) == 5


async def of_session(store: SqlProvider, name: str) -> list[TranscriptRow]:
    """All rows of a session."""
    return await store.transcript("a", "s", [Range(session=name, memory="wm0", first=1, last=99)])
