"""History and undo: what was written, and taking it back where nothing has changed since."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agentmem.errors import ConfigurationError
from agentmem.facts import Evidence, Fact, Read, Step, Trust, Undone, Write
from agentmem.records import DreamRecord
from agentmem.storage.sql.provider import SqlProvider

SAID = datetime(2026, 3, 10, 9, 0, tzinfo=UTC)


def witness(number: int, quote: str = "I live in Oslo") -> Evidence:
    """A message of one session."""
    at = SAID + timedelta(days=number)
    return Evidence(session="r", memory="wm0", message=f"m{number}", said_at=at, quote=quote)


async def dream(store: SqlProvider, name: str, **changes: Sequence[Write]) -> DreamRecord:
    """Let a dream commit these changes, each resting on what stands."""
    record = await store.open_dream("a", "s", DreamRecord(id=name, opened_at=SAID))
    stand = {fact.key: fact.version for fact in await store.entries("a", "s")}
    steps = [
        Step(
            id=change,
            reads=[Read(key=one.key, version=stand.get(one.key, 0)) for one in writes],
            writes=[one.replace(writer="dream") for one in writes],
        )
        for change, writes in changes.items()
    ]
    done = await store.commit("a", "s", record, steps)
    assert not done.conflicts
    return done


async def scope(store: SqlProvider) -> dict[str, Any]:
    """All that is said of each fact, without what only counts and dates its version."""
    entries = await store.entries("a", "s")
    full = await store.facts_at("a", "s", {fact.key: fact.version for fact in entries})
    return {fact.key: _content(fact) for fact in full}


def _content(fact: Fact) -> dict[str, Any]:
    return fact.model_dump(exclude={"version", "recorded_at"})


async def planted(store: SqlProvider) -> dict[str, Any]:
    """Facts of all kinds, and what is said of them."""
    await store.write(
        "a",
        "s",
        [
            Write(key="city", value="Oslo", evidence=[witness(0)], said_at=SAID, kind="profile"),
            Write(key="home", value={"city": "Oslo"}, writer="agent", trust=Trust.ASSISTANT),
            Write(key="pet", value=None, importance=5, expires_at=SAID + timedelta(days=9_000)),
            Write(key="drink", value="tea", trust=Trust.TOOL, evidence=[witness(0, "tea")]),
        ],
    )
    await store.pin("a", "s", "pet")
    return await scope(store)


async def test_a_history_tells_who_wrote_what_and_why(store: SqlProvider) -> None:
    """Every version is there, oldest first, with its evidence and the name of its change."""
    await planted(store)
    update = Write(key="city", value="Rome", reason="correction", evidence=[witness(1, "Rome!")])
    await dream(store, "d1", c1=[update])
    await store.forget("a", "s", "city")
    first, second, third = await store.history("a", "s", "city")
    assert (first.op, first.value, first.writer, first.change) == ("set", "Oslo", "code", "city@1")
    assert first.evidence == [witness(0)]
    assert (second.value, second.reason, second.writer) == ("Rome", "correction", "dream")
    assert (second.dream, second.change) == ("d1", "d1/c1")
    assert [one.quote for one in second.evidence] == ["Rome!"]
    assert (third.op, third.value, third.version, third.change) == ("remove", None, 3, "city@3")
    assert await store.history("a", "s", "never") == []
    assert await store.history("a", "t", "city") == []


async def test_undoing_a_dream_restores_the_scope(store: SqlProvider) -> None:
    """Adds, updates, merges, removals and confirmations are all taken back, exactly."""
    before = await planted(store)
    await dream(
        store,
        "d1",
        c1=[Write(key="new", value=1)],
        c2=[
            Write(op="remove", key="home", reason="duplicate", replaced_by="city"),
            Write(key="city", value="Oslo, Norway", evidence=[witness(0), witness(1)]),
        ],
        c3=[
            Write(op="confirm", key="drink", trust=Trust.USER, said_at=SAID, evidence=[witness(2)])
        ],
    )
    assert await scope(store) != before
    done = await store.undo("a", "s", "d1")
    assert done == Undone(keys=["city", "drink", "home", "new"])
    assert await scope(store) == before
    assert [one.reason for one in await store.history("a", "s", "new")] == ["", "undone"]
    assert await store.undo("a", "s", "d1") == done.replace(keys=["city", "home", "new"])
    assert await scope(store) == before


async def test_what_changed_meanwhile_stays_and_is_a_conflict(store: SqlProvider) -> None:
    """A change goes back whole or not at all; the rest of the dream goes back."""
    await planted(store)
    merge = [Write(op="remove", key="home"), Write(key="city", value="Bergen")]
    await dream(store, "d1", c1=merge, c2=[Write(key="drink", value="coffee")])
    await store.memorize("a", "s", "city", "Trondheim")
    assert await store.undo("a", "s", "d1") == Undone(keys=["drink"], conflicts=["city", "home"])
    assert await store.recall("a", "s") == {"city": "Trondheim", "drink": "tea", "pet": None}


async def test_one_change_of_a_dream_is_undone_alone(store: SqlProvider) -> None:
    """`<dream>/<change>` names it, and so does a version that it wrote."""
    await planted(store)
    await dream(store, "d1", c1=[Write(key="city", value="Rome")], c2=[Write(key="x", value=1)])
    await dream(store, "d2", c1=[Write(key="drink", value="milk"), Write(key="y", value=2)])
    assert await store.undo("a", "s", "d1/c1") == Undone(keys=["city"])
    assert await store.undo("a", "s", "drink@2") == Undone(keys=["drink", "y"])
    found = await store.recall("a", "s")
    assert (found["city"], found["drink"], found["x"]) == ("Oslo", "tea", 1)
    assert "y" not in found


async def test_dreams_are_undone_the_newest_first(store: SqlProvider) -> None:
    """A restored version counts as the one that it restores, so that older undos go on."""
    before = await planted(store)
    await dream(store, "d1", c1=[Write(key="city", value="Rome"), Write(key="x", value=1)])
    between = await scope(store)
    await dream(store, "d2", c1=[Write(key="city", value="Paris"), Write(op="remove", key="x")])
    assert (await store.undo("a", "s", "d1")).conflicts == ["city", "x"]
    assert await store.undo("a", "s", "d2") == Undone(keys=["city", "x"])
    assert await scope(store) == between
    assert await store.undo("a", "s", "d1") == Undone(keys=["city", "x"])
    assert await scope(store) == before


async def test_an_undo_can_be_undone(store: SqlProvider) -> None:
    """The version that an undo wrote is a change like any other."""
    await planted(store)
    await store.memorize("a", "s", "city", "Rome")
    await store.undo("a", "s", "city@2")
    assert await store.recall("a", "s", "city") == "Oslo"
    assert await store.undo("a", "s", "city@3") == Undone(keys=["city"])
    assert await store.recall("a", "s", "city") == "Rome"
    await store.forget("a", "s", "city")
    await store.undo("a", "s", "city@5")
    assert await store.recall("a", "s", "city") == "Rome"


async def test_undone_facts_leave_tombstones(store: SqlProvider) -> None:
    """Older evidence cannot bring back what was undone, whether added or updated."""
    await planted(store)
    await dream(store, "d1", c1=[Write(key="new", value="x")], c2=[Write(key="city", value="Rome")])
    asked = datetime.now(UTC)
    await store.undo("a", "s", "d1")
    stones = {stone.key: stone for stone in await store.tombstones("a", "s")}
    assert {key: stone.value for key, stone in stones.items()} == {"new": "x", "city": "Rome"}
    assert all(stone.at >= asked for stone in stones.values())
    await store.memorize("a", "s", "city", "Rome after all")
    assert [stone.key for stone in await store.tombstones("a", "s")] == ["new"]


async def test_undoing_a_removal_leaves_none(store: SqlProvider) -> None:
    """A fact that stands again was not taken back."""
    await planted(store)
    await dream(store, "d1", c1=[Write(op="remove", key="city", reason="asked_to_forget")])
    assert [stone.key for stone in await store.tombstones("a", "s")] == ["city"]
    await store.undo("a", "s", "d1")
    assert await store.tombstones("a", "s") == []


async def test_a_confirmation_of_a_restored_fact_is_taken_back(store: SqlProvider) -> None:
    """A dream that confirms a fact and then replaces it leaves neither."""
    before = await planted(store)
    record = await store.open_dream("a", "s", DreamRecord(id="d1", opened_at=SAID))
    confirm = Write(op="confirm", key="drink", trust=Trust.USER, evidence=[witness(2)])
    steps = [
        Step(id="c1", reads=[Read(key="drink", version=1)], writes=[confirm]),
        Step(id="c2", reads=[], writes=[Write(key="drink", value="water", writer="dream")]),
    ]
    assert (await store.commit("a", "s", record, steps)).conflicts == []
    assert (await store.undo("a", "s", "d1")).conflicts == []
    assert await scope(store) == before


async def test_a_later_confirmation_keeps_an_earlier_one(store: SqlProvider) -> None:
    """Two dreams confirmed: the first alone cannot go, the second can, and then the first."""
    before = await planted(store)
    for number, name in ((2, "d1"), (3, "d2")):
        confirm = Write(op="confirm", key="drink", trust=Trust.USER, evidence=[witness(number)])
        await dream(store, name, c1=[confirm])
    assert await store.undo("a", "s", "d1") == Undone(conflicts=["drink"])
    assert await store.undo("a", "s", "d2") == Undone(keys=["drink"])
    assert await store.undo("a", "s", "d1") == Undone(keys=["drink"])
    assert await scope(store) == before


@pytest.mark.parametrize("name", ["d9", "d9/c1", "city@9", "city@1x", "nowhere@1", "city", "@", ""])
async def test_what_is_no_change_is_refused(store: SqlProvider, name: str) -> None:
    """A name that means nothing says where names are found, and changes nothing."""
    before = await planted(store)
    with pytest.raises(ConfigurationError, match="history of a key"):
        await store.undo("a", "s", name)
    assert await scope(store) == before


async def test_a_change_of_another_scope_is_none(store: SqlProvider) -> None:
    """Undo reaches no other scope."""
    await planted(store)
    await dream(store, "d1", c1=[Write(key="city", value="Rome")])
    with pytest.raises(ConfigurationError):
        await store.undo("a", "t", "d1")


async def test_keys_with_signs_in_them(store: SqlProvider) -> None:
    """A key may hold what the names of changes are made of."""
    for key in ("a@b", "d1/c1", "x@1"):
        await store.memorize("a", "s", key, 1)
        await store.memorize("a", "s", key, 2)
        assert await store.undo("a", "s", f"{key}@2") == Undone(keys=[key])
        assert await store.recall("a", "s", key) == 1


async def test_no_dream_changes_a_pinned_fact(store: SqlProvider) -> None:
    """A pin is a version that says so; a dream that began before it finds the fact moved."""
    before = await planted(store)
    record = await store.open_dream("a", "s", DreamRecord(id="d1", opened_at=SAID))
    assert await store.pin("a", "s", "city")
    steps = [
        Step(id=f"c{version}", reads=[Read(key="city", version=version)], writes=[write])
        for version, write in (
            (1, Write(key="city", value="Rome", writer="dream")),
            (2, Write(op="remove", key="city", writer="dream")),
        )
    ]
    done = await store.commit("a", "s", record, steps)
    assert (done.applied, done.conflicts) == ([], ["c1", "c2"])
    assert (await scope(store))["city"] == before["city"] | {"pinned": True}
    assert [one.reason for one in await store.history("a", "s", "city")] == ["", "pinned"]


async def test_pins_are_kept_and_taken_off(store: SqlProvider) -> None:
    """Pinning twice is one version; a person may still write; unpinning brings back what was."""
    before = await planted(store)
    assert await store.pin("a", "s", "city")
    assert await store.pin("a", "s", "city")
    await store.memorize("a", "s", "city", "Rome")
    (fact,) = await store.entries("a", "s", ["city"])
    assert (fact.value, fact.pinned, fact.version) == ("Rome", True, 3)
    await store.undo("a", "s", "city@3")
    assert await store.pin("a", "s", "city", False)
    assert await scope(store) == before
    assert not await store.pin("a", "s", "nowhere")
    assert await store.history("a", "s", "nowhere") == []


async def test_a_pin_is_no_obstacle_to_undo(store: SqlProvider) -> None:
    """Pinned and unpinned since, or pinned still: the value goes back, and the pin stays."""
    before = await planted(store)
    await dream(store, "d1", c1=[Write(key="city", value="Rome")], c2=[Write(key="new", value=1)])
    for pinned in (True, False, True):
        await store.pin("a", "s", "city", pinned)
    await store.pin("a", "s", "new")
    await store.pin("a", "s", "new", False)
    assert await store.undo("a", "s", "d1") == Undone(keys=["city", "new"])
    after = await scope(store)
    assert after.pop("city") == before.pop("city") | {"pinned": True}
    assert after == before
    assert await store.undo("a", "s", "d1") == Undone(keys=["city", "new"])
    assert [one.reason for one in await store.history("a", "s", "city")][-2:] == [
        "pinned",
        "undone",
    ]


async def test_a_pin_since_does_not_hide_a_later_value(store: SqlProvider) -> None:
    """A value that was written after the pin is still a conflict."""
    await planted(store)
    await dream(store, "d1", c1=[Write(key="city", value="Rome")])
    await store.pin("a", "s", "city")
    await store.memorize("a", "s", "city", "Paris")
    assert await store.undo("a", "s", "d1") == Undone(conflicts=["city"])


async def test_undo_brings_back_what_was_confirmed_while_pinned(store: SqlProvider) -> None:
    """A confirmation of the version that a pin wrote belongs to what stood before an update."""
    await planted(store)
    await store.pin("a", "s", "drink")
    await dream(store, "d1", c1=[Write(op="confirm", key="drink", evidence=[witness(2)])])
    await store.pin("a", "s", "drink", False)
    before = await scope(store)
    await dream(store, "d2", c1=[Write(key="drink", value="milk")])
    await store.undo("a", "s", "d2")
    assert await scope(store) == before
    assert await store.undo("a", "s", "d1") == Undone(keys=["drink"])
    assert (await scope(store))["drink"]["trust"] is Trust.TOOL


async def test_undoing_a_pin_takes_the_pin_off(store: SqlProvider) -> None:
    """A version that pins or unpins is undone alone, whatever was written since."""
    await planted(store)
    await store.pin("a", "s", "city")
    await store.memorize("a", "s", "city", "Rome")
    assert await store.undo("a", "s", "city@2") == Undone(keys=["city"])
    assert await store.undo("a", "s", "city@2") == Undone(keys=["city"])
    (fact,) = await store.entries("a", "s", ["city"])
    assert (fact.value, fact.pinned, fact.version) == ("Rome", False, 4)
    await store.undo("a", "s", "city@4")
    assert (await store.entries("a", "s", ["city"]))[0].pinned
    await store.forget("a", "s", "city")
    assert await store.undo("a", "s", "city@2") == Undone(conflicts=["city"])


async def test_who_undoes_and_pins_is_in_the_history(store: SqlProvider) -> None:
    """The version names the person; the fact keeps the writer that its value had."""
    before = await planted(store)
    await dream(store, "d1", c1=[Write(key="city", value="Rome")], c2=[Write(key="new", value=1)])
    await store.undo("a", "s", "d1", "Ada")
    await store.pin("a", "s", "home", True, "Bob")
    after = await scope(store)
    assert after.pop("home") == before.pop("home") | {"pinned": True}
    assert after == before
    for key, reason, author in (
        ("city", "undone", "Ada"),
        ("new", "undone", "Ada"),
        ("home", "pinned", "Bob"),
    ):
        last = (await store.history("a", "s", key))[-1]
        assert (last.reason, last.writer, last.author) == (reason, "person", author)
    entries = {fact.key: fact for fact in await store.entries("a", "s")}
    assert [(entries[key].writer, entries[key].author) for key in ("city", "home")] == [
        ("code", ""),
        ("agent", ""),
    ]
    await store.undo("a", "s", "home@2")
    await store.memorize("a", "s", "home", "Paris")
    await store.undo("a", "s", "home@4")
    assert (await scope(store))["home"]["writer"] == "agent"


async def test_a_pin_keeps_the_tombstone_of_what_was_undone(store: SqlProvider) -> None:
    """Pinning the value that stands again does not allow the other one back."""
    await planted(store)
    await dream(store, "d1", c1=[Write(key="city", value="Rome")])
    await store.undo("a", "s", "d1")
    await store.pin("a", "s", "city")
    assert [stone.value for stone in await store.tombstones("a", "s")] == ["Rome"]
