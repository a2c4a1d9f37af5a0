"""A user's five methods made a whole store, with the losses that its docstring names."""

import asyncio
import logging
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from agentmem.errors import ConfigurationError, InvalidFact, ProviderError
from agentmem.facts import EarlierValue, Evidence, Read, Step, Trust, Unconfirmed, Write
from agentmem.records import DreamRecord, MessageId, Range, ReplyRecord, ScopeState
from agentmem.storage import in_memory
from agentmem.storage.plain import PlainProvider
from agentmem.storage.protocol import TransactionalProvider
from agentmem.storage.sql.provider import SqlProvider

from .five_methods import FiveMethods
from .test_dreams import change
from .test_transcripts import START, rows

QUOTED = Evidence(session="r1", memory="wm0", message="m1", said_at=START, quote="I drink tea")


@pytest.fixture
async def own(tmp_path: Path) -> SqlProvider:
    """The worker's own store."""
    store = in_memory.store(tmp_path.name + str(id(tmp_path)))
    await store.open()
    return store


@pytest.fixture
def theirs() -> FiveMethods:
    """The user's store."""
    return FiveMethods()


@pytest.fixture
def plain(theirs: FiveMethods, own: SqlProvider) -> PlainProvider:
    """The two of them as one."""
    return PlainProvider(theirs, own, "redis")


async def opened(plain: PlainProvider, **fields: Any) -> DreamRecord:
    """Open a dream on what is there now."""
    facts = await plain.entries("a", "s")
    snapshot = {fact.key: fact.version for fact in facts}
    record = DreamRecord(id="d1", opened_at=START, snapshot=snapshot, **fields)
    return await plain.open_dream("a", "s", record)


def test_it_is_a_whole_store(plain: PlainProvider) -> None:
    """The rest of agentmem sees a `TransactionalProvider`."""
    assert isinstance(plain, TransactionalProvider)


def test_what_is_lost_is_said_once(
    theirs: FiveMethods, own: SqlProvider, caplog: pytest.LogCaptureFixture
) -> None:
    """One warning line names the store and what dreams on it lack."""
    with caplog.at_level(logging.WARNING):
        PlainProvider(theirs, own, "redis")
    (line,) = caplog.messages
    for word in ("'redis'", "versions", "evidence", "undo"):
        assert word in line


async def test_facts_are_in_the_users_store(
    plain: PlainProvider, theirs: FiveMethods, own: SqlProvider
) -> None:
    """The five methods go to theirs, checked and sorted; nothing of it lies in the own store."""
    await plain.memorize("a", "s", "z", {"b": 1, "a": 2})
    await plain.memorize("a", "s", "e\u0301", None)
    assert theirs.facts == {("a", "s"): {"z": {"b": 1, "a": 2}, "\u00e9": None}}
    assert list(await plain.recall("a", "s")) == await plain.keys("a", "s") == ["z", "\u00e9"]
    assert await plain.recall("a", "s", "z") == {"b": 1, "a": 2}
    assert [fact.key for fact in await plain.entries("a", "s")] == ["z", "\u00e9"]
    await plain.forget("a", "s", "z")
    assert await plain.scopes("a") == ["s"]
    await plain.forget("a", "s")
    assert await plain.recall("a", "s") == {}
    assert await own.scopes("a") == []


async def test_what_cannot_be_stored_never_reaches_the_user(
    plain: PlainProvider, theirs: FiveMethods
) -> None:
    """The same checks as on the shipped stores, before their code is called."""
    refused: list[Any] = [float("nan"), "\x00", b"x", "x" * 70_000]
    for value in refused:
        with pytest.raises(InvalidFact):
            await plain.memorize("a", "s", "k", value)
    with pytest.raises(InvalidFact):
        await plain.write("a", "s", [Write(key="good", value=1), Write(key=" ", value=1)])
    assert theirs.writes == 0


async def test_a_version_is_the_values_digest(plain: PlainProvider) -> None:
    """Equal values have equal versions, others do not, and removals say whether they removed."""
    first = await plain.write("a", "s", [Write(key="k", value={"x": 1})])
    second = await plain.write("a", "s", [Write(key="k", value={"x": 2})])
    third = await plain.write("a", "s", [Write(key="k", value={"x": 1})])
    assert first == third != second
    removed = [Write(op="remove", key="k"), Write(op="remove", key="k")]
    assert await plain.write("a", "s", removed) == [1, 0]


async def test_the_users_errors_are_wrapped(plain: PlainProvider, theirs: FiveMethods) -> None:
    """An error that their code raises comes out as `ProviderError`, its text only in the cause."""
    theirs.fail = ConnectionError("redis://:pa55word@host")
    with pytest.raises(ProviderError, match=r"'redis' failed: ConnectionError$") as failed:
        await plain.recall("a", "s")
    assert failed.value.__cause__ is theirs.fail


async def test_a_dream_commits_in_order(plain: PlainProvider, theirs: FiveMethods) -> None:
    """Facts go to theirs; cursors, gate and record move in the own store."""
    await plain.memorize("a", "s", "city", "Oslo")
    await plain.append("a", "s", rows(1, 3))
    record = await opened(plain, ranges=[Range(session="r1", memory="wm0", first=1, last=2)])
    assert (await plain.scope_state("a", "s")).failures == 1
    steps = [
        change("c1", "city", "Rome", city=record.snapshot["city"]),
        change("c2", "new", 1, new=0),
    ]
    done = await plain.commit("a", "s", record, steps)
    assert (done.status, done.applied, done.conflicts) == ("completed", ["c1", "c2"], [])
    assert theirs.facts["a", "s"] == {"city": "Rome", "new": 1}
    assert [row.seq for row in await plain.unread("a", "s", 1_000)] == [3]
    assert (await plain.scope_state("a", "s")).failures == 0
    assert await plain.dream("a", "s", "d1") == done


async def test_the_live_agent_wins(plain: PlainProvider, theirs: FiveMethods) -> None:
    """Values are compared, and what rests on a moved one is dropped and reported."""
    await plain.memorize("a", "s", "a", 1)
    await plain.memorize("a", "s", "b", 1)
    record = await opened(plain)
    theirs.facts["a", "s"]["a"] = "live"
    steps = [
        change("c1", "a", 2, a=record.snapshot["a"]),
        change("c2", "b", 2, b=record.snapshot["b"]),
        change("c3", "c", 3, a=record.snapshot["a"]),
    ]
    done = await plain.commit("a", "s", record, steps)
    assert (done.applied, done.conflicts) == (["c2"], ["c1", "c3"])
    assert theirs.facts["a", "s"] == {"a": "live", "b": 2}


async def test_a_commit_that_crashed_is_finished_by_its_retry(
    plain: PlainProvider, theirs: FiveMethods
) -> None:
    """A crash between two writes leaves some; the retry takes them for its own."""
    for key in ("a", "b"):
        await plain.memorize("a", "s", key, key)
    record = await opened(plain)
    merge = Step(
        id="merge",
        reads=[
            *(Read(key=key, version=record.snapshot[key]) for key in ("a", "b")),
            Read(key="c", version=0),
        ],
        writes=[
            Write(key="c", value="a and b"),
            Write(op="remove", key="a"),
            Write(op="remove", key="b"),
        ],
    )
    theirs.facts["a", "s"]["c"] = "a and b"
    del theirs.facts["a", "s"]["a"]
    done = await plain.commit("a", "s", record, [merge])
    assert (done.applied, theirs.facts["a", "s"]) == (["merge"], {"c": "a and b"})
    writes = theirs.writes
    assert await plain.commit("a", "s", record, [merge]) == done
    assert theirs.writes == writes


async def test_a_dream_sees_facts_as_they_are_now(
    plain: PlainProvider, theirs: FiveMethods
) -> None:
    """Without a history the snapshot's versions stand beside today's values."""
    await plain.memorize("a", "s", "k", "then")
    await plain.memorize("a", "s", "gone", 1)
    record = await opened(plain)
    theirs.facts["a", "s"] = {"k": "now"}
    (fact,) = await plain.facts_at("a", "s", record.snapshot)
    assert (fact.value, fact.version) == ("now", record.snapshot["k"])


async def test_records_lie_where_no_users_agent_can(plain: PlainProvider, own: SqlProvider) -> None:
    """Transcripts, dreams and replies never mix with those of an agent of the own store."""
    await plain.append("a", "s", rows(1, 2))
    record = await opened(plain)
    await plain.save_reply("a", "s", "d1", ReplyRecord(phase="p", step=0, digest="x", reply={}))
    await plain.save_dream("a", "s", record.replace(data={"x": 1}))
    assert (
        len(await plain.transcript("a", "s", [Range(session="r1", memory="wm0", first=1, last=2)]))
        == 2
    )
    assert await own.unread("a", "s", 1_000) == []
    assert await own.dream("a", "s", "d1") is None
    assert await own.scope_state("a", "s") == ScopeState()
    assert len(await plain.replies("a", "s", "d1")) == 1
    with pytest.raises(InvalidFact):
        await own.memorize(str(plain.own_agent("a")), "s", "k", 1)
    other = PlainProvider(FiveMethods(), own, "other")
    assert await other.dream("a", "s", "d1") is None
    await plain.end_dream("a", "s", "d1", "nothing_new", "undo")
    assert (await plain.scope_state("a", "s")).failures == 0


async def test_long_agent_names_have_records_too(plain: PlainProvider) -> None:
    """The longest agent name leaves room for ours; two of them stay apart."""
    for last in ("x", "y"):
        assert await plain.append("a" * 511 + last, "s", rows(1, 1)) == 1
    assert plain.own_agent("a" * 511 + "x") != plain.own_agent("a" * 511 + "y")


async def test_a_value_that_is_no_json_is_a_failure_of_the_store(
    plain: PlainProvider, theirs: FiveMethods
) -> None:
    """A value that somebody else put there and JSON cannot carry is reported with its key."""
    theirs.facts["a", "s"] = {"odd": {1, 2}}
    with pytest.raises(ProviderError, match="'odd'"):
        await plain.entries("a", "s")


async def test_a_confirmation_adds_evidence(plain: PlainProvider, theirs: FiveMethods) -> None:
    """It lies in the own store: the value stays, and nothing is written to theirs."""
    tool = Write(key="k", value="tea", trust=Trust.TOOL)
    (version,) = await plain.write("a", "s", [tool])
    theirs.facts["a", "s"]["odd"] = 1
    writes = theirs.writes
    confirm = Write(op="confirm", key="k", evidence=[QUOTED], said_at=START)
    assert await plain.write("a", "s", [confirm, confirm.replace(key="gone")]) == [version, 0]
    await plain.write("a", "s", [confirm.replace(key="odd")])
    for fact in await plain.facts_at("a", "s", {"k": version, "odd": 0}):
        assert (fact.trust, fact.said_at, fact.evidence) == (Trust.USER, START, [QUOTED])
    record = await opened(plain)
    del theirs.facts["a", "s"]["k"]
    step = Step(id="c1", reads=[Read(key="k", version=version)], writes=[confirm])
    assert (await plain.commit("a", "s", record, [step])).conflicts == ["c1"]
    assert theirs.writes == writes


async def test_what_it_forgot_is_not_remembered(plain: PlainProvider) -> None:
    """A store without history has no tombstones."""
    await plain.memorize("a", "s", "k", 1)
    await plain.forget("a", "s", "k")
    assert await plain.tombstones("a", "s") == []


async def test_what_needs_a_history_is_refused(plain: PlainProvider) -> None:
    """Undo and pins say which store cannot do them; a history is empty."""
    await plain.memorize("a", "s", "k", 1)
    assert await plain.history("a", "s", "k") == []
    with pytest.raises(ConfigurationError, match="'redis' keeps no history"):
        await plain.undo("a", "s", "k@1")
    with pytest.raises(ConfigurationError, match="'redis' cannot pin"):
        await plain.pin("a", "s", "k")


async def test_a_scope_is_erased_in_both_stores(
    plain: PlainProvider, theirs: FiveMethods, own: SqlProvider
) -> None:
    """Facts go from theirs, transcripts and dreams from ours; other scopes stay."""
    for scope in ("s", "t"):
        await plain.memorize("a", scope, "k", 1)
        await plain.append("a", scope, rows(1, 2))
        await plain.use("a", scope, ["k"], START.date())
    await opened(plain)
    gone = await plain.erase("a", "s")
    assert (gone["facts"], gone["transcript"], gone["dreams"]) == (1, 2, 1)
    assert await plain.export("a", "s") == []
    assert await own.export(plain.own_agent("a"), "s") == []
    assert theirs.facts["a", "t"] == {"k": 1}
    assert await plain.used("a", "t") == {"k": START.date()}


async def test_a_scope_goes_from_one_kind_of_store_to_the_other(
    plain: PlainProvider, own: SqlProvider
) -> None:
    """Values and transcripts come along; a store with a history gives it up on the way."""
    await own.memorize("a", "s", "city", "Rome")
    await own.memorize("a", "s", "city", {"name": "Oslo"})
    await own.append("a", "s", rows(1, 2))
    await plain.restore("a", "s", await own.export("a", "s"))
    assert await plain.recall("a", "s") == {"city": {"name": "Oslo"}}
    assert len(await plain.unread("a", "s", 1_000)) == 2
    with pytest.raises(ConfigurationError, match="erase them first"):
        await plain.restore("a", "s", [])


async def test_a_message_is_forgotten_in_the_own_store(plain: PlainProvider) -> None:
    """Transcripts lie there, and so does what is to be blanked."""
    await plain.append("a", "s", rows(1, 1))
    assert await plain.forget_message("a", "s", MessageId(session="r1", message="m1")) == 1
    assert [row.text for row in await plain.unread("a", "s", 1_000)] == [""]
    assert await plain.expire(START) == 0


def told(**fields: Any) -> Write:
    """A write that says all that a fact can have."""
    write = Write(
        key="drink",
        value="tea",
        writer="agent",
        trust=Trust.ASSISTANT,
        importance=5,
        kind="preference",
        said_at=START,
        state="tentative",
        unconfirmed=Unconfirmed(value="coffee", said_at=START, evidence=[QUOTED]),
        was=EarlierValue(value="milk", replaced_at=START),
        evidence=[QUOTED],
    )
    return write.replace(**fields)


async def test_what_is_known_of_a_fact_is_in_the_own_store(
    plain: PlainProvider, theirs: FiveMethods
) -> None:
    """By key and digest: it holds for that value alone, whoever else writes to their store."""
    write = told()
    (version,) = await plain.write("a", "s", [write])
    assert theirs.facts["a", "s"] == {"drink": "tea"}
    (fact,) = await plain.facts_at("a", "s", {"drink": version})
    for name in set(Write.model_fields) - {"op", "reason", "replaced_by"}:
        assert getattr(fact, name) == getattr(write, name)
    assert fact.recorded_at
    theirs.facts["a", "s"] = {"drink": "gin", "city": "Oslo"}
    for other in await plain.entries("a", "s"):
        assert (other.writer, other.trust, other.state) == ("unknown", Trust.USER, "settled")
        assert (other.unconfirmed, other.was, other.recorded_at) == (None, None, None)


async def test_a_fact_expires_in_their_store_too(plain: PlainProvider, theirs: FiveMethods) -> None:
    """It is not recalled any more, and is still there for the dream that removes it."""
    soon = datetime.now(UTC) + timedelta(seconds=0.5)
    await plain.write("a", "s", [told(expires_at=soon), told(key="job", value=1)])
    assert await plain.recall("a", "s", "drink") == "tea"
    assert await plain.keys("a", "s") == ["drink", "job"]
    await asyncio.sleep(0.6)
    assert await plain.recall("a", "s", "drink") is None
    assert await plain.recall("a", "s") == {"job": 1}
    assert await plain.keys("a", "s") == ["job"]
    assert [fact.key for fact in await plain.entries("a", "s")] == ["drink", "job"]
    theirs.facts["a", "s"]["drink"] = "gin"
    assert await plain.recall("a", "s", "drink") == "gin"
    await plain.memorize("a", "s", "drink", "tea")
    assert await plain.recall("a", "s", "drink") == "tea"


async def test_a_write_that_fails_leaves_what_was_known(
    plain: PlainProvider, theirs: FiveMethods
) -> None:
    """Their store refuses the new value: the old one keeps its state."""
    await plain.write("a", "s", [told()])
    works = theirs.memorize

    async def fails(agent: str, scope: str, key: str, value: Any) -> None:
        raise ConnectionError("refused")

    theirs.memorize = fails
    with pytest.raises(ProviderError):
        await plain.write("a", "s", [Write(key="drink", value="gin")])
    (fact,) = await plain.entries("a", "s")
    assert (fact.value, fact.state, fact.writer) == ("tea", "tentative", "agent")
    await plain.write("a", "s", [Write(op="confirm", key="drink", evidence=[QUOTED])])
    (fact,) = await plain.entries("a", "s")
    assert (fact.state, fact.trust) == ("tentative", Trust.USER)
    theirs.memorize = works
    await plain.write("a", "s", [Write(key="drink", value="gin")])
    (fact,) = await plain.entries("a", "s")
    assert (fact.value, fact.state, fact.writer) == ("gin", "settled", "code")


@pytest.mark.parametrize("refused", ["memorize", "forget"])
async def test_a_merge_never_loses_a_fact(
    plain: PlainProvider, theirs: FiveMethods, refused: str
) -> None:
    """The merged value is there before its sources go, however the writes are ordered."""
    for key in ("a", "b"):
        await plain.memorize("a", "s", key, key)
    record = await opened(plain)
    merge = Step(
        id="merge",
        reads=[Read(key=key, version=record.snapshot[key]) for key in ("a", "b")],
        writes=[
            Write(op="remove", key="b", replaced_by="a"),
            Write(key="a", value="a and b", writer="dream"),
        ],
    )
    method = getattr(theirs, refused)

    async def fails(*_: Any) -> None:
        raise ConnectionError("refused")

    setattr(theirs, refused, fails)
    with pytest.raises(ProviderError):
        await plain.commit("a", "s", record, [merge])
    assert set("ab") <= set(" ".join(theirs.facts["a", "s"].values()))
    assert theirs.facts["a", "s"]["b"] == "b"
    setattr(theirs, refused, method)
    done = await plain.commit("a", "s", record, [merge])
    assert (done.applied, theirs.facts["a", "s"]) == (["merge"], {"a": "a and b"})


async def test_a_retry_takes_what_earlier_changes_wrote_for_its_own(
    plain: PlainProvider, theirs: FiveMethods
) -> None:
    """Two changes of a dream touch one key: after a crash between them both are applied."""
    await plain.memorize("a", "s", "k", "old")
    record = await opened(plain)
    steps = [
        change("c1", "k", "new", k=record.snapshot["k"]),
        change("c2", "other", 1, k=record.snapshot["k"]),
    ]
    theirs.facts["a", "s"]["k"] = "new"
    done = await plain.commit("a", "s", record, steps)
    assert (done.applied, done.conflicts) == (["c1", "c2"], [])


async def test_what_is_known_goes_with_an_export(
    plain: PlainProvider, own: SqlProvider, theirs: FiveMethods
) -> None:
    """From one such store to another, and from a store with a history to one without."""
    write = told()
    await plain.write("a", "s", [write])
    await plain.append("a", "s", rows(1, 2))
    await own.write("a", "s", [write])
    versions = {fact.key: fact.version for fact in await plain.entries("a", "s")}
    before = await plain.facts_at("a", "s", versions)
    for number, source in enumerate((plain, own)):
        other = PlainProvider(FiveMethods(), own, f"other{number}")
        exported = await source.export("a", "s")
        await other.restore("a", "s", exported)
        after = await other.facts_at("a", "s", versions)
        assert [one.replace(recorded_at=None) for one in after] == [
            one.replace(recorded_at=None) for one in before
        ]


async def test_a_forgotten_message_is_not_quoted_there_either(plain: PlainProvider) -> None:
    """Evidence of their facts lies in the own store, and is blanked there."""
    (version,) = await plain.write("a", "s", [told()])
    which = MessageId(session="r1", message="m1")
    assert await plain.forget_message("a", "s", which) > 0
    (fact,) = await plain.facts_at("a", "s", {"drink": version})
    assert fact.unconfirmed
    for item in (*fact.evidence, *fact.unconfirmed.evidence):
        assert (item.quote, item.forgotten) == ("", True)
