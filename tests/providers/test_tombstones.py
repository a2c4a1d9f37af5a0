"""Tombstones: what was forgotten or taken back, alike on every store."""

from datetime import UTC, datetime, timedelta

import pytest

from agentmem.facts import Evidence, Step, Tombstone, Trust, Write
from agentmem.records import DreamRecord
from agentmem.storage.protocol import TOMBSTONES
from agentmem.storage.sql.provider import SqlProvider

ASKED = datetime(2026, 3, 10, 12, tzinfo=UTC)


def by_key(stones: list[Tombstone]) -> dict[str, Tombstone]:
    """Return tombstones by key."""
    return {stone.key: stone for stone in stones}


async def dreamt(store: SqlProvider, *writes: Write) -> None:
    """Let a dream make these writes."""
    record = DreamRecord(id="d1", opened_at=ASKED)
    await store.open_dream("a", "s", record)
    steps = [Step(id=f"c{number}", writes=[write]) for number, write in enumerate(writes)]
    await store.commit("a", "s", record, steps)


async def test_a_live_forget_leaves_a_tombstone(store: SqlProvider) -> None:
    """By code or by a person, with what it said, whose word it was, and when it went."""
    before = datetime.now(UTC)
    await store.write("a", "s", [Write(key="phone", value={"n": 1}, trust=Trust.ASSISTANT)])
    await store.write("a", "s", [Write(key="city", value="Oslo")])
    await store.memorize("a", "s", "kept", 1)
    await store.forget("a", "s", "phone")
    await store.write("a", "s", [Write(op="remove", key="city", writer="person")])
    newest, oldest = await store.tombstones("a", "s")
    assert (newest.key, newest.value, newest.trust) == ("city", "Oslo", Trust.USER)
    assert (oldest.key, oldest.value, oldest.trust) == ("phone", {"n": 1}, Trust.ASSISTANT)
    assert before <= oldest.at <= newest.at <= datetime.now(UTC)
    assert await store.tombstones("a", "t") == await store.tombstones("b", "s") == []


async def test_a_wiped_scope_leaves_them_all(store: SqlProvider) -> None:
    """Forgetting a scope forgets each of its facts."""
    await store.write("a", "s", [Write(key="one", value=1), Write(key="two", value=2)])
    await store.forget("a", "s")
    found = by_key(await store.tombstones("a", "s"))
    assert {key: stone.value for key, stone in found.items()} == {"one": 1, "two": 2}


async def test_what_is_stored_again_has_none(store: SqlProvider) -> None:
    """Only a key's newest version counts, and its last value."""
    for value in ("first", "second"):
        await store.memorize("a", "s", "k", value)
    await store.forget("a", "s", "k")
    await store.forget("a", "s", "k")
    assert [stone.value for stone in await store.tombstones("a", "s")] == ["second"]
    await store.memorize("a", "s", "k", "third")
    assert await store.tombstones("a", "s") == []
    await store.forget("a", "s", "k")
    assert [stone.value for stone in await store.tombstones("a", "s")] == ["third"]


@pytest.mark.parametrize(
    ("reason", "left"),
    [
        *(("retracted", ["k"]), ("asked_to_forget", ["k"])),
        *((reason, []) for reason in ("duplicate", "condensed", "superseded", "expired")),
        *((reason, []) for reason in ("evicted", "correction", "")),
    ],
)
async def test_a_dreams_housekeeping_leaves_none(
    store: SqlProvider, reason: str, left: list[str]
) -> None:
    """A removal by a dream or an agent leaves a tombstone only if somebody asked for it."""
    await store.memorize("a", "s", "k", 1)
    await dreamt(store, Write(op="remove", key="k", reason=reason, writer="dream"))
    assert [stone.key for stone in await store.tombstones("a", "s")] == left
    await store.memorize("a", "s", "k", 1)
    await store.write("a", "s", [Write(op="remove", key="k", reason=reason, writer="agent")])
    assert [stone.key for stone in await store.tombstones("a", "s")] == left


async def test_what_lives_on_under_another_key_is_not_forgotten(store: SqlProvider) -> None:
    """A removal that names its survivor takes nothing back."""
    await store.write("a", "s", [Write(key="k", value=1), Write(key="heir", value=1)])
    await store.write("a", "s", [Write(op="remove", key="k", replaced_by="heir")])
    assert await store.tombstones("a", "s") == []


async def test_a_dream_forgets_as_of_the_words_that_it_obeys(store: SqlProvider) -> None:
    """Words said between the request and the dream are newer than the request."""
    await store.write("a", "s", [Write(key="k", value=1), Write(key="bare", value=1)])
    said = [
        Evidence(session="r", memory="wm0", message=f"m{day}", said_at=ASKED - timedelta(days=day))
        for day in (1, 0)
    ]
    gone = Write(op="remove", key="k", reason="retracted", writer="dream", evidence=said)
    await dreamt(store, gone, gone.replace(key="bare", evidence=[]))
    found = by_key(await store.tombstones("a", "s"))
    assert found["k"].at == ASKED
    assert abs(datetime.now(UTC) - found["bare"].at) < timedelta(minutes=5)


async def test_the_newest_thousand_are_told(store: SqlProvider) -> None:
    """However much was forgotten, the list is bounded, and the oldest are left out."""
    await store.memorize("a", "s", "old", 0)
    await store.forget("a", "s", "old")
    keys = [f"k{number:04}" for number in range(TOMBSTONES)]
    await store.write("a", "s", [Write(key=key, value=1) for key in keys])
    await store.forget("a", "s")
    assert [stone.key for stone in await store.tombstones("a", "s")] == keys
