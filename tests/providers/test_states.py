"""States of facts: what is not confirmed, what was before, who wrote it; alike on every store."""

import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, MetaData

from agentmem.dreaming.review import apply, undecided
from agentmem.errors import InvalidFact
from agentmem.facts import EarlierValue, Evidence, Read, Step, Trust, Unconfirmed, Write
from agentmem.records import DreamRecord, MessageId, Range, TranscriptRow
from agentmem.storage.migrate import VERSION_TABLE, upgrade
from agentmem.storage.sql.provider import SqlProvider
from agentmem.storage.sql.rows import dump
from tests.postgres import PostgresServer

from .conftest import on_postgresql
from .test_migrations import empty

SAID = datetime(2026, 3, 10, 9, 0, tzinfo=UTC)
QUOTED = Evidence(
    session="r1", memory="wm0", message="m3", said_at=SAID, quote="I think I live in Rome now"
)
NEW = Unconfirmed(value={"city": "Rome"}, said_at=SAID, evidence=[QUOTED])
WAS = EarlierValue(value="Bergen", replaced_at=SAID - timedelta(days=2))
OLD = Path(__file__).parent.parent / "data" / "schema-0003.jsonl"


def told(**fields: Any) -> Write:
    """A write that says all there is to say of a state."""
    write = Write(
        key="city",
        value="Oslo",
        state="tentative",
        unconfirmed=NEW,
        was=WAS,
        writer="person",
        author="Ada Lovelace",
    )
    return write.replace(**fields)


@pytest.mark.parametrize("evidence", [[], [QUOTED]])
async def test_a_state_is_kept_as_it_was_written(
    store: SqlProvider, evidence: list[Evidence]
) -> None:
    """Current facts, earlier versions and the history carry it, on the short way to write too."""
    await store.write("a", "s", [told(evidence=evidence)])
    await store.memorize("a", "s", "city", "Trondheim")
    (now,) = await store.entries("a", "s")
    (then,) = await store.facts_at("a", "s", {"city": 1})
    versions = await store.history("a", "s", "city")
    for fact in (then, versions[0]):
        assert (fact.state, fact.unconfirmed, fact.was) == ("tentative", NEW, WAS)
        assert (fact.writer, fact.author) == ("person", "Ada Lovelace")
    for fact in (now, versions[1]):
        assert (fact.state, fact.unconfirmed, fact.was) == ("settled", None, None)
        assert (fact.writer, fact.author) == ("code", "")
    await store.write("a", "s", [told(evidence=evidence)])
    assert (await store.entries("a", "s"))[0].unconfirmed == NEW


async def test_a_commit_keeps_states_and_undo_brings_them_back(store: SqlProvider) -> None:
    """An update settles a fact; undone, it is as unconfirmed as before."""
    await store.write("a", "s", [told(writer="dream", author="")])
    (before,) = await store.facts_at("a", "s", {"city": 1})
    record = await store.open_dream("a", "s", DreamRecord(id="d1", opened_at=SAID))
    settled = Write(
        key="city",
        value={"city": "Rome"},
        reason="confirmed",
        writer="dream",
        was=EarlierValue(value="Oslo", replaced_at=SAID),
    )
    step = Step(id="c1", reads=[Read(key="city", version=1)], writes=[settled])
    await store.commit("a", "s", record, [step])
    (fact,) = await store.entries("a", "s")
    assert (fact.state, fact.unconfirmed, fact.was) == ("settled", None, settled.was)
    await store.undo("a", "s", "d1")
    (fact,) = await store.facts_at("a", "s", {"city": 3})
    assert fact.replace(version=1, recorded_at=before.recorded_at) == before


async def test_a_confirmation_changes_no_state(store: SqlProvider) -> None:
    """More evidence is not yet a decision that a fact is settled."""
    await store.write("a", "s", [told()])
    await store.write("a", "s", [Write(op="confirm", key="city", evidence=[QUOTED])])
    (fact,) = await store.entries("a", "s")
    assert (fact.version, fact.state, fact.unconfirmed, fact.was) == (1, "tentative", NEW, WAS)


async def test_what_a_state_cannot_hold_is_refused(store: SqlProvider) -> None:
    """Values and times in it are checked like those of the fact."""
    naive = datetime(2026, 3, 10)  # noqa: DTZ001 - what is refused
    for wrong in (
        told(unconfirmed=Unconfirmed.model_construct(value="\x00", evidence=[])),
        told(unconfirmed=Unconfirmed(value=1, said_at=naive)),
        told(was=EarlierValue(value=1, replaced_at=naive)),
    ):
        with pytest.raises(InvalidFact):
            await store.write("a", "s", [wrong])
    assert await store.entries("a", "s") == []


async def test_a_forgotten_message_is_quoted_by_no_unconfirmed_value(store: SqlProvider) -> None:
    """The quote goes from the fact and its versions; and no dream puts it back."""
    await store.write("a", "s", [told(), told(key="home")])
    record = await store.open_dream("a", "s", DreamRecord(id="d1", opened_at=SAID))
    which = MessageId(session="r1", memory="wm0", message="m3")
    assert await store.forget_message("a", "s", which) == 4
    assert await store.forget_message("a", "s", which) == 0
    gone = NEW.replace(evidence=[QUOTED.replace(quote="", forgotten=True)])
    assert [fact.unconfirmed for fact in await store.entries("a", "s")] == [gone, gone]
    assert (await store.history("a", "s", "city"))[0].unconfirmed == gone
    await store.write("a", "s", [Write(key="pet", value="Momo", evidence=[QUOTED])])
    await store.forget_message("a", "s", which)
    step = Step(id="c1", reads=[], writes=[told(key="new", writer="dream")])
    assert (await store.commit("a", "s", record, [step])).conflicts == []
    assert (await store.entries("a", "s", ["new"]))[0].unconfirmed == gone


async def test_a_forgotten_message_is_quoted_by_no_held_change(store: SqlProvider) -> None:
    """The words of a change that waits go too, whether they are exact or nearly so."""
    text = "My number is 555 0199, by the way"
    row = TranscriptRow(
        session="r1", memory="wm0", seq=1, message="m3", role="user", text=text, at=SAID
    )
    await store.append("a", "s", [row])
    read = [Range(session="r1", memory="wm0", first=1, last=1)]
    changes = [
        {"key": "a", "quote": "My number is 555 0199", "message": "held, since ..."},
        {"key": "b", "quote": "my number is 555-0199"},
        {"key": "c", "quote": "my number is 555-0198"},
    ]
    data = {"draft": {"changes": changes}}
    record = DreamRecord(id="d1", opened_at=SAID, ranges=read, data=data)
    await store.open_dream("a", "s", record)
    which = MessageId(session="r1", memory="wm0", message="m3")
    assert await store.forget_message("a", "s", which) > 0
    kept = await store.dream("a", "s", "d1")
    assert kept
    quotes = [change["quote"] for change in kept.data["draft"]["changes"]]
    assert quotes == ["", "", "my number is 555-0198"]


async def test_a_store_of_the_schema_before_goes_on(
    request: pytest.FixtureRequest, unopened: SqlProvider
) -> None:
    """Facts are settled with the trust that they have; drafts, proposals and undo still work."""
    store = unopened
    if "PostgreSQL" in unopened.database.name:  # the fixture's database is up to date already
        server: PostgresServer = request.getfixturevalue("postgres_server")
        store = on_postgresql(server.url(await server.new()))
    else:
        await store.open()
        await store.database.write(empty)
    await store.database.write(_as_before)
    await store.open()
    agent, scope = "assistant", "user-1"
    facts = {fact.key: fact for fact in await store.entries(agent, scope)}
    rows = {row["key"]: row for row in _rows() if row["table"] == "facts"}
    assert facts.keys() == rows.keys()
    for key, fact in facts.items():
        assert (fact.value, fact.version) == (rows[key]["value"], rows[key]["version"])
        assert (fact.state, fact.trust) == ("settled", Trust(rows[key]["trust"]))
        assert (fact.unconfirmed, fact.was, fact.author) == (None, None, "")
    waiting = [one for one in await undecided(store, agent, scope) if one.dream == "dream-2"]
    assert [(one.change, one.line) for one in waiting] == [
        ("c1", "update drink"),
        ("c2", "add bike"),
        ("c3", "remove job"),
    ]
    done = await apply(store, agent, scope, "dream-2", now=SAID)
    assert (done.applied, done.conflicts) == (["update drink", "add bike"], [])
    assert (await store.undo(agent, scope, "dream-1")).keys == ["city", "pet"]
    assert (await store.undo(agent, scope, "tram@4")).keys == ["tram"]
    assert (await store.undo(agent, scope, "tram@3")).keys == ["tram"]
    assert await store.recall(agent, scope) == {
        "bike": "Bike is red",
        "city": "Lives in Oslo",
        "drink": "Likes coffee",
        "job": "Works as a baker",
        "tram": "Takes tram 17",
    }
    assert len(await store.unread(agent, scope, 9_999)) == 1
    exported = await store.export(agent, scope)
    await store.restore(agent, "copy", exported)
    assert await store.export(agent, "copy") == exported
    await store.close()


async def test_an_export_of_the_schema_before_comes_back(store: SqlProvider) -> None:
    """Its facts are settled, as after an upgrade."""
    await store.restore("a", "s", _rows())
    assert {fact.state for fact in await store.entries("a", "s")} == {"settled"}


def _rows() -> list[dict[str, Any]]:
    return [json.loads(line) for line in OLD.read_text().splitlines()]


def _as_before(connection: Connection) -> None:
    """Make the schema before states, with what the version of that schema left in it."""
    upgrade(connection, "0003")
    there = MetaData()
    there.reflect(connection, only=lambda name, _: name != VERSION_TABLE)
    for row in _rows():
        table = there.tables[f"agentmem_{row.pop('table')}"]
        row |= {"agent": "assistant", "scope": "user-1"}
        connection.execute(table.insert(), {name: _typed(table, name, row) for name in row})


def _typed(table: Any, name: str, row: dict[str, Any]) -> Any:
    kind: type = table.c[name].type.python_type
    value: Any = row[name]
    if value is None and (name != "value" or row.get("op") == "remove"):
        return None
    if issubclass(kind, datetime):
        return datetime.fromisoformat(str(value))
    if issubclass(kind, date):
        return date.fromisoformat(str(value))
    return dump(value) if name == "value" or not isinstance(value, kind) else value
