"""Facts: the five methods, and the versions and evidence behind them, alike on every store."""

from datetime import UTC, datetime, timedelta, timezone
from time import perf_counter

import pytest

from agentmem.errors import InvalidFact
from agentmem.facts import Evidence, Trust, Write
from agentmem.storage.protocol import MemoryProvider, TransactionalProvider
from agentmem.storage.sql.provider import SqlProvider

NOW = datetime.now(UTC)


async def test_every_store_keeps_both_protocols(store: SqlProvider) -> None:
    """A shipped store is a `MemoryProvider` and a `TransactionalProvider`."""
    assert isinstance(store, MemoryProvider)
    assert isinstance(store, TransactionalProvider)


async def test_the_five_methods(store: SqlProvider) -> None:
    """Store, replace, list and remove, by key and by scope, sorted by key."""
    await store.memorize("a", "s", "two", 2)
    await store.memorize("a", "s", "one", 1)
    await store.memorize("a", "s", "one", {"n": 1})
    await store.memorize("a", "t", "other", "x")
    assert list((await store.recall("a", "s")).items()) == [("one", {"n": 1}), ("two", 2)]
    assert await store.keys("a", "s") == ["one", "two"]
    assert await store.scopes("a") == ["s", "t"]
    await store.forget("a", "s", "one")
    assert await store.recall("a", "s", "one") is None
    await store.forget("a", "s")
    assert await store.recall("a", "s") == {}
    assert await store.scopes("a") == ["t"]


async def test_what_is_missing_is_no_error(store: SqlProvider) -> None:
    """Reading and removing what is not there changes nothing, not even the list of scopes."""
    assert await store.recall("a", "s", "k") is None
    assert await store.recall("a", "s") == {}
    assert await store.keys("a", "s") == []
    await store.forget("a", "s", "k")
    await store.forget("a", "s")
    assert await store.entries("a", "s", ["k"]) == []
    assert await store.scopes("a") == []


async def test_a_stored_null_is_no_missing_key(store: SqlProvider) -> None:
    """`recall` says None for both, `keys` and `entries` tell them apart."""
    await store.memorize("a", "s", "null", None)
    assert await store.recall("a", "s", "null") is None
    assert await store.keys("a", "s") == ["null"]
    assert [fact.key for fact in await store.entries("a", "s", ["null", "gone"])] == ["null"]


async def test_versions_never_restart(store: SqlProvider) -> None:
    """A key's version grows over removals of the key and of the scope."""
    assert await store.write("a", "s", [Write(key="k", value=1)]) == [1]
    assert await store.write("a", "s", [Write(op="remove", key="k")]) == [2]
    assert await store.write("a", "s", [Write(key="k", value=2)]) == [3]
    await store.forget("a", "s")
    assert await store.write("a", "s", [Write(key="k", value=3)]) == [5]


async def test_writes_are_applied_in_order(store: SqlProvider) -> None:
    """Several writes of one key each leave a version, and the last one stands."""
    writes = [
        *(Write(key="k", value=1), Write(key="k", value=2), Write(op="remove", key="k")),
        *(Write(op="remove", key="k"), Write(key="k", value=3), Write(key="other", value=None)),
    ]
    assert await store.write("a", "s", writes) == [1, 2, 3, 0, 4, 1]
    assert await store.recall("a", "s") == {"k": 3, "other": None}
    assert [fact.value for fact in await store.facts_at("a", "s", {"k": 2})] == [2]
    assert await store.facts_at("a", "s", {"k": 3, "never": 1}) == []


async def test_a_repeated_call_changes_nothing(store: SqlProvider) -> None:
    """The same call again returns what it returned, whatever has happened since."""
    writes = [Write(key="k", value=1), Write(op="remove", key="gone")]
    assert await store.write("a", "s", writes, "run/activity-5") == [1, 0]
    await store.write("a", "s", [Write(key="k", value=2), Write(key="gone", value=3)])
    assert await store.write("a", "s", writes, "run/activity-5") == [1, 0]
    assert await store.recall("a", "s") == {"k": 2, "gone": 3}
    assert [fact.version for fact in await store.entries("a", "s")] == [1, 2]


async def test_a_scope_is_forgotten_once_by_the_calls_name(store: SqlProvider) -> None:
    """A `forget` of a whole scope, or of a key, whose answer was lost spares what came since.

    Also where there was nothing to forget; another call, or one without a name, forgets all.
    """
    await store.memorize("a", "s", "old", 1)
    await store.forget("a", "s", idempotency="run/1")
    await store.forget("a", "empty", idempotency="run/1")
    for scope in ("s", "empty"):
        await store.memorize("a", scope, "new", 2)
        await store.forget("a", scope, idempotency="run/1")
        assert await store.recall("a", scope) == {"new": 2}
    await store.forget("a", "s", "new", idempotency="run/2")
    await store.memorize("a", "s", "new", 3)
    await store.forget("a", "s", "new", idempotency="run/2")
    assert await store.recall("a", "s") == {"new": 3}
    await store.forget("a", "s", idempotency="run/3")
    await store.forget("a", "empty")
    assert await store.scopes("a") == []


async def test_a_call_is_named_within_its_scope(store: SqlProvider) -> None:
    """The same name in another scope is another call."""
    assert await store.write("a", "s", [Write(key="k", value=1)], "call") == [1]
    assert await store.write("a", "t", [Write(key="k", value=1)], "call") == [1]
    assert await store.scopes("a") == ["s", "t"]


async def test_facts_carry_what_was_said_of_them(store: SqlProvider) -> None:
    """Trust, kind, importance, times and writer come back with the fact."""
    write = Write(
        key="city",
        value="Rome",
        trust=Trust.ASSISTANT,
        importance=5,
        kind="profile",
        writer="agent",
        said_at=NOW,
        valid_from="2026-03",
        valid_to="2027",
        expires_at=NOW + timedelta(days=1),
    )
    await store.write("a", "s", [write])
    (fact,) = await store.entries("a", "s")
    for name in ("value", "trust", "importance", "kind", "writer", "said_at", "expires_at"):
        assert getattr(fact, name) == getattr(write, name)
    assert (fact.valid_from, fact.valid_to, fact.pinned) == ("2026-03", "2027", False)
    assert fact.recorded_at is not None
    assert abs(fact.recorded_at - datetime.now(UTC)) < timedelta(minutes=5)


async def test_evidence_stays_with_its_version(store: SqlProvider) -> None:
    """Each version keeps the messages that it rests on, in order, also once it is replaced."""
    first = [
        Evidence(session="r1", memory="wm0", message="m7", said_at=NOW, quote="in Rome\x00\ud800"),
        Evidence(session="r1", memory="wm0", message="m9", role="assistant"),
    ]
    await store.write("a", "s", [Write(key="city", value="Rome", evidence=first)])
    await store.write("a", "s", [Write(key="city", value="Oslo", evidence=first[1:])])
    (then,) = await store.facts_at("a", "s", {"city": 1})
    (now,) = await store.facts_at("a", "s", {"city": 2})
    assert then.value == "Rome"
    assert then.evidence == [first[0].replace(quote="in Rome\ufffd\ufffd"), first[1]]
    assert (now.value, now.evidence) == ("Oslo", first[1:])
    assert (await store.entries("a", "s"))[0].evidence == []


async def test_times_come_back_aware_and_equal(store: SqlProvider) -> None:
    """The same instant in UTC, whatever zone wrote it and the server runs in."""
    for time in (
        datetime(2026, 3, 10, 9, 12, 13, 123456, UTC),
        datetime(2026, 3, 10, 9, 12, tzinfo=timezone(timedelta(hours=5, minutes=30))),
        datetime(2026, 3, 29, 2, 30, tzinfo=timezone(timedelta(hours=-11))),
        datetime(1, 1, 2, tzinfo=UTC),
    ):
        await store.write("a", "s", [Write(key="k", value=1, said_at=time)])
        (fact,) = await store.entries("a", "s")
        assert fact.said_at is not None
        assert fact.said_at - time == timedelta(0)
        assert fact.said_at.utcoffset() == timedelta(0)


async def test_a_time_without_zone_is_refused(store: SqlProvider) -> None:
    """A naive time is nobody's instant."""
    naive = NOW.replace(tzinfo=None)
    with pytest.raises(InvalidFact, match="no time zone"):
        await store.write("a", "s", [Write(key="k", value=1, expires_at=naive)])
    assert await store.keys("a", "s") == []


async def test_an_expired_fact_is_not_recalled(store: SqlProvider) -> None:
    """An expired fact is no answer any more, but stands in `entries` until a dream removes it."""
    for key, seconds in (("past", -1), ("future", 3600)):
        expires = datetime.now(UTC) + timedelta(seconds=seconds)
        await store.write("a", key, [Write(key=key, value=1, expires_at=expires)])
    assert await store.recall("a", "past", "past") is None
    assert await store.recall("a", "past") == {}
    assert await store.keys("a", "past") == []
    assert await store.scopes("a") == ["future"]
    assert [fact.key for fact in await store.entries("a", "past")] == ["past"]


async def test_many_keys_in_one_call(store: SqlProvider) -> None:
    """Thousands of writes go in one transaction, and come back by name."""
    writes = [Write(key=f"k{number:05}", value=number) for number in range(1_500)]
    assert await store.write("a", "s", writes) == [1] * 1_500
    assert len(await store.entries("a", "s", [write.key for write in writes])) == 1_500
    assert len(await store.facts_at("a", "s", {write.key: 1 for write in writes})) == 1_500
    await store.forget("a", "s")
    assert await store.keys("a", "s") == []


async def test_a_thousand_writes_ask_no_model(store: SqlProvider) -> None:
    """Storing is a database's work; 95 of 100 writes take under a tenth of a second."""
    taken: list[float] = []
    for number in range(1_000):
        began = perf_counter()
        await store.memorize("a", "s", f"k{number % 100}", {"number": number})
        taken.append(perf_counter() - began)
    assert sorted(taken)[949] < 0.1
    assert (await store.entries("a", "s", ["k99"]))[0].version == 10
