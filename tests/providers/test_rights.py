"""A scope as a whole: erased, taken along and put back; messages forgotten and let go in time."""

import json
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, select

from agentmem.errors import ConfigurationError, InvalidFact, ProviderError
from agentmem.facts import EarlierValue, Evidence, Step, Unconfirmed, Write
from agentmem.records import DreamRecord, MessageId, Range, ReplyRecord
from agentmem.storage.sql.provider import SqlProvider
from agentmem.storage.sql.schema import TABLES
from agentmem.wire import JSONObject, as_line

from .test_transcripts import START, rows

TODAY = date(2026, 3, 10)


async def lived_in(store: SqlProvider, scope: str = "s") -> None:
    """A scope with something in every table."""
    await store.memorize("a", scope, "odd", {"b": [1.5, 10**30, None], "a": "日本 😀 </notes>"})
    await store.memorize("a", scope, "null", None)
    await store.write("a", scope, [Write(key="city", value="Oslo")], "call-1")
    new, was = Unconfirmed(value=None), EarlierValue(value=None, replaced_at=START)
    told = {"state": "tentative", "unconfirmed": new, "was": was, "author": "Ada"}
    await store.write("a", scope, [Write.model_validate({"key": "job", "value": 1} | told)])
    await store.forget("a", scope, "null")
    await store.pin("a", scope, "city")
    await store.use("a", scope, ["city"], TODAY)
    await store.append("a", scope, rows(1, 3))
    read = [Range(session="r1", memory="wm0", first=1, last=2)]
    data: JSONObject = {"draft": {"text": "\x00\ud800"}}
    record = DreamRecord(id="d1", opened_at=START, ranges=read, data=data)
    await store.open_dream("a", scope, record)
    await store.save_reply("a", scope, "d1", ReplyRecord(phase="p", step=0, digest="x", reply={}))
    said = Evidence(session="r1", memory="wm0", message="m1", said_at=START, quote="hello")
    steps = [
        Step(id="c1", writes=[Write(key="new", value=1, writer="dream", evidence=[said])]),
        Step(id="c2", writes=[Write(op="confirm", key="city", writer="dream", evidence=[said])]),
    ]
    await store.commit("a", scope, record, steps)


async def everything(store: SqlProvider) -> dict[str, list[Any]]:
    """Every row of every table, as the database has it."""

    def read(connection: Connection) -> dict[str, list[Any]]:
        return {
            name: sorted(map(repr, connection.execute(select(table)).mappings()))
            for name, table in TABLES.items()
        }

    return await store.database.read(read)


async def test_an_export_comes_back_exactly(store: SqlProvider) -> None:
    """Out as lines of JSON, erased, in again: every row of every table is as it was."""
    await lived_in(store)
    before = await everything(store)
    assert all(before.values()), "something is in every table"
    lines = [as_line(row) for row in await store.export("a", "s")]
    assert all("\n" not in line and line.encode() for line in lines)
    await store.erase("a", "s")
    rows_in = [json.loads(line) for line in lines]
    assert await store.restore("a", "s", rows_in) == len(lines)
    assert await everything(store) == before
    assert await store.append("a", "s", rows(4, 4)) == 4
    assert (await store.undo("a", "s", "d1")).keys == ["city", "new"]


async def test_values_are_readable_in_an_export(store: SqlProvider) -> None:
    """Values stand there as JSON, times with their zone; a removal has none."""
    await lived_in(store)
    found = await store.export("a", "s")
    facts = {row["key"]: row for row in found if row["table"] == "facts"}
    assert facts["odd"]["value"] == {"b": [1.5, 10**30, None], "a": "日本 😀 </notes>"}
    assert facts["odd"]["recorded_at"].endswith("+00:00")
    assert "agent" not in facts["odd"]
    assert '"日本 😀 </notes>"' in as_line(facts["odd"])


async def test_an_export_may_go_elsewhere(store: SqlProvider) -> None:
    """Another agent and scope take it as theirs; the first keeps its own."""
    await lived_in(store)
    taken = await store.export("a", "s")
    await store.restore("b", "t", taken)
    assert await store.export("b", "t") == await store.export("a", "s") == taken
    assert [one.version for one in await store.history("b", "t", "city")] == [1, 2]


async def test_nothing_is_put_over_what_is_there(store: SqlProvider) -> None:
    """A scope that holds anything, a transcript too, is left as it is."""
    await store.memorize("a", "s", "k", 1)
    taken = await store.export("a", "s")
    await store.append("a", "t", rows(1, 1))
    for scope in ("s", "t"):
        with pytest.raises(ConfigurationError, match="not empty"):
            await store.restore("a", scope, taken)
    assert await store.keys("a", "t") == []


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"table": "users"}, "no table"),
        ({"table": None}, "no table"),
        ({"extra": 1}, "too much: extra"),
        ({"version": "1"}, "holds what it cannot"),
        ({"recorded_at": "yesterday"}, "holds what it cannot"),
        ({"key": ""}, "key is empty"),
        ({"value": "\x00"}, "NUL"),
        ({"recorded_at": "2026-03-10T09:00:00"}, "no time zone"),
    ],
)
async def test_a_row_that_is_none_is_refused(
    store: SqlProvider, change: JSONObject, error: str
) -> None:
    """A damaged file is refused as a whole: nothing of it is stored."""
    await store.memorize("a", "s", "k", 1)
    good, bad = await store.export("a", "s")
    with pytest.raises((ConfigurationError, InvalidFact), match=error):
        await store.restore("a", "new", [bad, good | change])
    assert await store.export("a", "new") == []


DAMAGE: list[tuple[str, JSONObject]] = [
    *(("facts", {"version": bad}) for bad in (2**70, -1, True, 9)),
    *(
        ("facts", {"trust": "king"}),
        ("facts", {"writer": "king"}),
        ("facts", {"importance": 2**40}),
    ),
    *(("fact_versions", {"op": "king"}), ("fact_versions", {"trust": "king"})),
    *(("fact_confirmations", {"places": bad}) for bad in (None, "0", ["x"])),
    *(("fact_confirmations", {"trust": "king"}), ("calls", {"versions": {}})),
    *(("transcript", {"at_offset": 2**30}), ("transcript", {"seq": -1})),
    *(("dreams", {name: None}) for name in ("ranges", "snapshot", "data", "applied")),
    *(("dream_steps", {"reply": None}), ("scope_state", {"failures": 2**70})),
]


async def test_an_import_never_makes_a_scope_unreadable(store: SqlProvider) -> None:
    """Data that no later read could make sense of are refused before anything is stored."""
    await lived_in(store)
    taken = await store.export("a", "s")
    for table, change in DAMAGE:
        place = next(number for number, row in enumerate(taken) if row["table"] == table)
        damaged = [*taken[:place], taken[place] | change, *taken[place + 1 :]]
        with pytest.raises(ConfigurationError):
            await store.restore("a", "new", damaged)
        assert await store.export("a", "new") == [], (table, change)


async def test_half_an_export_is_refused(store: SqlProvider) -> None:
    """A file that lost lines, or has some twice, is refused: versions would begin again."""
    await lived_in(store)
    taken = await store.export("a", "s")
    halves = [
        [row for row in taken if row["table"] != "fact_versions"],
        [row for row in taken if row["table"] != "facts"],
        [*taken, taken[0]],
    ]
    for half in halves:
        with pytest.raises(ConfigurationError, match=r"not whole|there twice"):
            await store.restore("a", "new", half)
    assert await store.export("a", "new") == []


async def test_erasing_leaves_nothing(store: SqlProvider) -> None:
    """Everything of the scope goes, from every table, and of other scopes nothing."""
    names = ("s", "s%", "S", "t")
    for name in names:
        await lived_in(store, name)
    gone = await store.erase("a", "s")
    assert set(gone) == set(TABLES)
    assert all(gone.values())
    assert await store.export("a", "s") == []
    assert await store.tombstones("a", "s") == []
    for name in names[1:]:
        assert await store.keys("a", name) == ["city", "job", "new", "odd"]
        assert len(await store.history("a", name, "city")) == 2
    assert sum((await store.erase("a", "s")).values()) == 0


async def test_a_forgotten_message_is_blank_everywhere(store: SqlProvider) -> None:
    """Read by a dream or not, its text goes from the transcript and from every quote."""
    await lived_in(store)
    for seq in (1, 3):
        message = MessageId(session="r1", message=f"m{seq}")
        assert await store.forget_message("a", "s", message) > 0
        assert await store.forget_message("a", "s", message) == 0
    everywhere = [Range(session="r1", memory="wm0", first=1, last=3)]
    found = await store.transcript("a", "s", everywhere)
    assert [(row.text, row.forgotten) for row in found] == [
        ("", True),
        ("hello", False),
        ("", True),
    ]
    for key in ("new", "city"):
        (quoted,) = (await store.history("a", "s", key))[-1].evidence
        assert (quoted.message, quoted.quote) == ("m1", "")
    assert await store.append("a", "s", rows(3, 4)) == 4
    assert [row.text for row in await store.unread("a", "s", 1_000)] == ["", "hello"]


async def test_a_draft_does_not_quote_what_was_forgotten(store: SqlProvider) -> None:
    """Text that a dream read before it was forgotten comes back by no commit, draft or reply."""
    await store.append("a", "s", rows(1, 2))
    read = [Range(session="r1", memory="wm0", first=1, last=2)]
    said = Evidence(session="r1", memory="wm0", message="m1", said_at=START, quote="hello")
    other = said.replace(message="m2")
    finding = {"id": "f1", "quote": "hell", "evidence": ["a1"]}
    data: JSONObject = {"findings": [finding], "witnesses": [said.full(), other.full()]}
    record = DreamRecord(id="d1", opened_at=START, ranges=read, data=data)
    await store.open_dream("a", "s", record)
    await store.save_reply("a", "s", "d1", ReplyRecord(phase="p", step=0, digest="x", reply={}))
    assert await store.forget_message("a", "s", MessageId(session="r1", message="m1")) == 2
    kept = await store.dream("a", "s", "d1")
    assert kept
    assert kept.data["findings"] == [finding | {"quote": ""}]
    assert [one["quote"] for one in kept.data["witnesses"]] == ["", "hello"]
    assert await store.replies("a", "s", "d1") == []
    writes = [Write(key="k", value=1, writer="dream", evidence=[said, other])]
    await store.commit("a", "s", kept, [Step(id="c1", writes=writes)])
    (version,) = await store.history("a", "s", "k")
    assert [(one.quote, one.forgotten) for one in version.evidence] == [
        ("", True),
        ("hello", False),
    ]


async def test_what_was_made_of_a_forgotten_message_is_not_saved(store: SqlProvider) -> None:
    """A phase or commit at work saves nothing of before; what is read anew goes on."""
    await store.append("a", "s", rows(1, 2))
    read = [Range(session="r1", memory="wm0", first=1, last=2)]
    old = DreamRecord(id="d1", opened_at=START, ranges=read)
    other = old.replace(id="d2", ranges=[])
    for record in (old, other):
        await store.open_dream("a", "s", record)
    reply = ReplyRecord(phase="p", step=0, digest="x", reply={"text": "hello"})
    assert await store.forget_message("a", "s", MessageId(session="r1", message="m1")) == 1
    with pytest.raises(ProviderError, match="d1 was reading was forgotten"):
        await store.save_dream("a", "s", old.replace(data={"text": "hello"}))
    with pytest.raises(ProviderError, match="d1 was reading was forgotten"):
        await store.save_reply("a", "s", "d1", reply)
    with pytest.raises(ProviderError, match="d1 was reading was forgotten"):
        await store.commit("a", "s", old, [])
    assert await store.replies("a", "s", "d1") == []
    await store.save_reply("a", "s", "d2", reply)
    await store.save_reply("a", "s", "d1", reply.replace(forgets=1))
    new = await store.dream("a", "s", "d1")
    assert new
    assert new.data == {"forgets": 1}
    assert (await store.commit("a", "s", new, [])).status == "completed"
    assert await store.forget_message("a", "s", MessageId(session="r1", message="m2")) == 1
    assert await store.dream("a", "s", "d1") == await store.commit("a", "s", new, [])


async def test_an_erased_scope_takes_no_reply(store: SqlProvider) -> None:
    """A reply that a dream's model gives after its scope was erased is not kept."""
    await lived_in(store)
    await store.erase("a", "s")
    reply = ReplyRecord(phase="p", step=0, digest="x", reply={})
    with pytest.raises(ProviderError, match="never opened"):
        await store.save_reply("a", "s", "d1", reply)
    assert await store.export("a", "s") == []


async def test_another_messages_text_stays(store: SqlProvider) -> None:
    """The same id in another session, memory or scope is another message."""
    await lived_in(store)
    await store.append("a", "s", rows(1, 1, session="r2"))
    for other in (
        MessageId(session="r3", message="m1"),
        MessageId(session="r1", memory="wm1", message="m1"),
        MessageId(session="r1", message="m"),
        MessageId(session="r1", message="m%"),
    ):
        assert await store.forget_message("a", "s", other) == 0
    assert await store.forget_message("a", "t", MessageId(session="r1", message="m1")) == 0
    assert await store.forget_message("a", "s", MessageId(session="r2", message="m1")) == 1
    assert [one.quote for one in (await store.history("a", "s", "new"))[0].evidence] == ["hello"]


async def test_what_dreams_have_read_goes_in_time(store: SqlProvider) -> None:
    """Rows that no dream has read stay, evidence keeps its quote, and numbers go on."""
    await lived_in(store)
    await lived_in(store, "t")
    assert await store.expire(datetime.now(UTC) - timedelta(days=1)) == 0
    assert await store.expire(datetime.now(UTC) + timedelta(seconds=5)) == 2 * (2 + 1)
    everywhere = [Range(session="r1", memory="wm0", first=1, last=3)]
    assert [row.seq for row in await store.transcript("a", "s", everywhere)] == [3]
    assert await store.replies("a", "s", "d1") == []
    assert [one.quote for one in (await store.history("a", "s", "new"))[0].evidence] == ["hello"]
    assert await store.append("a", "s", rows(1, 4)) == 4
    assert [row.seq for row in await store.unread("a", "s", 1_000)] == [3, 4]


async def test_a_running_dream_keeps_its_replies(store: SqlProvider) -> None:
    """The replies that a retried phase needs stay until their dream has ended."""
    await store.open_dream("a", "s", DreamRecord(id="d1", opened_at=START))
    await store.save_reply("a", "s", "d1", ReplyRecord(phase="p", step=0, digest="x", reply={}))
    assert await store.expire(datetime.now(UTC) + timedelta(days=1)) == 0
    assert len(await store.replies("a", "s", "d1")) == 1


async def test_the_last_day_of_use_is_kept(store: SqlProvider) -> None:
    """One row a key, moved forward only; neither versions nor facts are touched."""
    await store.memorize("a", "s", "k", 1)
    yesterday = TODAY - timedelta(days=1)
    await store.use("a", "s", ["k", "k", "other"], TODAY)
    await store.use("a", "s", ["k", "old"], yesterday)
    await store.use("a", "s", [], TODAY)
    assert await store.used("a", "s") == {"k": TODAY, "other": TODAY, "old": yesterday}
    assert await store.used("a", "t") == {}
    assert len(await store.history("a", "s", "k")) == 1
