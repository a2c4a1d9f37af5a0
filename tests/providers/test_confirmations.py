"""Confirmations: more evidence for what stands there, alike on every store."""

from datetime import UTC, datetime, timedelta

from sqlalchemy import Connection, update

from agentmem.facts import Evidence, Fact, Read, Step, Trust, Write
from agentmem.records import DreamRecord
from agentmem.storage.sql.provider import SqlProvider
from agentmem.storage.sql.schema import facts

SAID = datetime(2026, 3, 10, 12, tzinfo=UTC)


def message(number: int) -> Evidence:
    """A message, said on a day of its own."""
    at = SAID + timedelta(days=number)
    return Evidence(session="r1", memory="wm0", message=f"m{number}", said_at=at, quote="in Rome")


def confirm(key: str, *numbers: int, trust: Trust = Trust.USER) -> Write:
    """A confirmation by these messages."""
    evidence = [message(number) for number in numbers]
    said_at = max((item.said_at for item in evidence if item.said_at), default=None)
    return Write(op="confirm", key=key, trust=trust, said_at=said_at, evidence=evidence)


async def stored(store: SqlProvider, key: str = "city") -> Fact:
    """Return a fact as `entries` and `facts_at` agree on it, with its evidence."""
    (now,) = await store.entries("a", "s", [key])
    (then,) = await store.facts_at("a", "s", {key: now.version})
    assert then.replace(evidence=[], pinned=now.pinned) == now
    return then


async def test_a_confirmation_adds_evidence_and_no_version(store: SqlProvider) -> None:
    """The value, the version and the time of writing stay; new messages follow the known ones."""
    await store.write("a", "s", [Write(key="city", value="Rome", evidence=[message(1)])])
    before = await stored(store)
    assert await store.write("a", "s", [confirm("city", 1, 3), confirm("city", 3, 2)]) == [1, 1]
    after = await stored(store)
    assert after == before.replace(
        evidence=[message(1), message(3), message(2)], said_at=message(3).said_at
    )


async def test_a_confirmation_made_twice_is_one(store: SqlProvider) -> None:
    """The same messages again change nothing at all, also under no call's name."""
    await store.write("a", "s", [Write(key="city", value="Rome")])
    await store.write("a", "s", [confirm("city", 1)], "call")
    once = await stored(store)
    assert await store.write("a", "s", [confirm("city", 1)], "call") == [1]
    assert await store.write("a", "s", [confirm("city", 1)]) == [1]
    assert await stored(store) == once
    assert len(once.evidence) == 1


async def test_trust_rises_and_never_falls(store: SqlProvider) -> None:
    """A stronger witness lifts the fact; a weaker one is evidence, and no later word."""
    await store.write("a", "s", [Write(key="city", value="Rome", trust=Trust.TOOL, said_at=SAID)])
    for number, given, left in (
        (1, Trust.ASSISTANT, Trust.ASSISTANT),
        (2, Trust.USER, Trust.USER),
        (3, Trust.TOOL, Trust.USER),
    ):
        await store.write("a", "s", [confirm("city", number, trust=given)])
        assert (await stored(store)).trust == left
    fact = await stored(store)
    assert fact.said_at == message(2).said_at
    assert fact.evidence == [message(1), message(2), message(3)]


async def test_a_missing_key_is_confirmed_by_nothing(store: SqlProvider) -> None:
    """A key that does not exist, or no longer exists, stays missing."""
    await store.memorize("a", "s", "gone", 1)
    await store.forget("a", "s", "gone")
    assert await store.write("a", "s", [confirm("gone", 1), confirm("never", 1)]) == [0, 0]
    assert await store.keys("a", "s") == []
    assert (await store.facts_at("a", "s", {"gone": 1}))[0].evidence == []


async def test_confirmations_go_to_the_version_of_their_turn(store: SqlProvider) -> None:
    """In one call each confirms what stands when its turn comes."""
    await store.memorize("a", "s", "city", "Oslo")
    writes = [
        confirm("city", 1),
        Write(key="city", value="Rome", trust=Trust.TOOL, evidence=[message(2)]),
        confirm("city", 2, 3),
        Write(key="pet", value="cat"),
        Write(op="remove", key="pet"),
        confirm("pet", 4),
    ]
    assert await store.write("a", "s", writes) == [1, 2, 2, 1, 2, 0]
    (then,) = await store.facts_at("a", "s", {"city": 1})
    assert (then.value, then.evidence) == ("Oslo", [message(1)])
    now = await stored(store)
    assert (now.value, now.trust) == ("Rome", Trust.USER)
    assert now.evidence == [message(2), message(3)]
    assert await store.keys("a", "s") == ["city"]


async def test_a_dream_confirms_what_has_not_moved(store: SqlProvider) -> None:
    """A pinned fact too; what the live agent changed meanwhile is left alone."""
    for key in ("city", "moved", "pinned"):
        await store.memorize("a", "s", key, "old")

    def pin(connection: Connection) -> None:
        connection.execute(update(facts).where(facts.c.key == "pinned").values(pinned=True))

    await store.database.write(pin)
    record = await store.open_dream("a", "s", DreamRecord(id="d1", opened_at=SAID))
    await store.memorize("a", "s", "moved", "live")
    steps = [
        Step(id=key, reads=[Read(key=key, version=1)], writes=[confirm(key, 1)])
        for key in ("city", "moved", "pinned")
    ]
    add = Write(key="new", value=1, writer="dream")
    steps.append(Step(id="add", reads=[Read(key="new")], writes=[add]))
    steps.append(Step(id="again", reads=[Read(key="new")], writes=[confirm("new", 1)]))
    done = await store.commit("a", "s", record, steps)
    assert (done.applied, done.conflicts) == (["city", "pinned", "add", "again"], ["moved"])
    assert await store.commit("a", "s", record, steps) == done
    for key in ("city", "pinned", "new"):
        assert (await stored(store, key)).evidence == [message(1)]
    moved = await stored(store, "moved")
    assert (moved.value, moved.version, moved.evidence) == ("live", 2, [])
