"""Dreams: opened and ended once, replies kept, one commit or none, alike on every store."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, event, update

from agentmem.errors import ProviderError
from agentmem.facts import Evidence, Read, Step, Write
from agentmem.records import DreamRecord, Range, ReplyRecord, ScopeState
from agentmem.storage.sql.provider import SqlProvider
from agentmem.storage.sql.schema import facts

from .test_transcripts import START, rows

LATER = START + timedelta(hours=1)


def record(name: str = "d1", **fields: Any) -> DreamRecord:
    """A dream's record."""
    return DreamRecord(id=name, opened_at=START, **fields)


def change(name: str, key: str, value: Any, **reads: int) -> Step:
    """A step that sets a key, resting on versions."""
    seen = [Read(key=read, version=version) for read, version in reads.items()]
    return Step(id=name, reads=seen, writes=[Write(key=key, value=value, writer="dream")])


async def opened(store: SqlProvider, name: str = "d1", **fields: Any) -> DreamRecord:
    """Open a dream."""
    return await store.open_dream("a", "s", record(name, **fields))


async def test_a_dream_is_opened_and_counted_once(store: SqlProvider) -> None:
    """A retried opening returns what is there and counts no second attempt."""
    data = {"draft": {"text": "\x00\ud800 ü"}, "model": "m", "prompt_version": "7"}
    first = await opened(store, snapshot={"k": 3}, data=data)
    again = await opened(store, snapshot={"other": 1})
    assert again == first
    assert again.data == data
    assert await store.scope_state("a", "s") == ScopeState(failures=1, last_attempt=START)
    assert await store.dream("a", "s", "d1") == first
    assert await store.dream("a", "s", "d2") is None
    assert await store.dream("a", "t", "d1") is None


async def test_a_record_is_replaced_while_its_dream_runs(store: SqlProvider) -> None:
    """A phase's work is kept; what has ended stays as it was."""
    running = await opened(store)
    await store.save_dream("a", "s", running.replace(data={"phase": "orient"}))
    assert (await store.dream("a", "s", "d1") or running).data == {"phase": "orient"}
    await store.end_dream("a", "s", "d1", "nothing_learned", "zero")
    await store.save_dream("a", "s", running.replace(data={"phase": "late"}))
    found = await store.dream("a", "s", "d1")
    assert found is not None
    assert (found.data, found.status) == ({"phase": "orient"}, "nothing_learned")


async def test_a_dream_that_was_never_opened_is_an_error(store: SqlProvider) -> None:
    """Saving, ending and committing need a dream that is there."""
    with pytest.raises(ProviderError, match="never opened"):
        await store.save_dream("a", "s", record())
    with pytest.raises(ProviderError, match="never opened"):
        await store.end_dream("a", "s", "d1", "nothing_new", "undo")
    with pytest.raises(ProviderError, match="never opened"):
        await store.commit("a", "s", record(), [])


async def test_failures_add_up_until_a_dream_goes_well(store: SqlProvider) -> None:
    """Attempts that end no other way count as failures; a commit zeroes them."""
    for number in range(3):
        await opened(store, f"d{number}")
    assert (await store.scope_state("a", "s")).failures == 3
    await store.commit("a", "s", record("d2"), [])
    assert await store.scope_state("a", "s") == ScopeState(failures=0, last_attempt=START)
    assert await store.scope_state("a", "other") == ScopeState()


async def test_an_ended_dream_counts_as_told(store: SqlProvider) -> None:
    """`undo` takes the attempt back with its time, `zero` clears the count; each once."""
    await opened(store, "d1")
    await store.open_dream("a", "s", record("d2").replace(opened_at=LATER))
    for _ in range(2):
        await store.end_dream("a", "s", "d2", "nothing_new", "undo")
        assert await store.scope_state("a", "s") == ScopeState(failures=1, last_attempt=START)
    await store.end_dream("a", "s", "d1", "nothing_learned", "zero")
    assert (await store.scope_state("a", "s")).failures == 0


async def test_replies_are_kept_by_phase_and_step(store: SqlProvider) -> None:
    """A reply replaces the one of its phase and step; all come back in order, exactly."""
    await opened(store)
    for phase, step, text in (("b", 1, "x"), ("b", 0, "y"), ("a", 0, "z"), ("b", 1, "\x00\ud800")):
        reply = ReplyRecord(phase=phase, step=step, digest=f"{phase}{step}", reply={"text": text})
        await store.save_reply("a", "s", "d1", reply)
    found = [
        (one.phase, one.step, one.reply["text"]) for one in await store.replies("a", "s", "d1")
    ]
    assert found == [("a", 0, "z"), ("b", 0, "y"), ("b", 1, "\x00\ud800")]
    assert await store.replies("a", "s", "d2") == []


async def test_a_commit_applies_everything_at_once(store: SqlProvider) -> None:
    """Facts, versions with their dream and evidence, cursors, gate and record move together."""
    await store.memorize("a", "s", "city", "Oslo")
    await store.append("a", "s", rows(1, 3))
    ranges = [Range(session="r1", memory="wm0", first=1, last=2)]
    running = await opened(store, ranges=ranges)
    evidence = [Evidence(session="r1", memory="wm0", message="m1", quote="in Rome")]
    steps = [
        Step(
            id="c1",
            reads=[Read(key="city", version=1)],
            writes=[Write(key="city", value="Rome", writer="dream", evidence=evidence)],
        ),
        change("c2", "new", {"x": 1}, new=0),
    ]
    done = await store.commit("a", "s", running, steps)
    assert (done.status, done.applied, done.conflicts) == ("completed", ["c1", "c2"], [])
    assert await store.recall("a", "s") == {"city": "Rome", "new": {"x": 1}}
    (fact,) = await store.facts_at("a", "s", {"city": 2})
    assert (fact.writer, fact.evidence) == ("dream", evidence)
    assert [row.seq for row in await store.unread("a", "s", 1_000)] == [3]
    assert (await store.scope_state("a", "s")).failures == 0
    assert await store.dream("a", "s", "d1") == done


async def test_a_repeated_commit_is_a_no_op(store: SqlProvider) -> None:
    """An acknowledged or lost commit, sent again, returns the first one's record."""
    running = await opened(store)
    first = await store.commit("a", "s", running, [change("c1", "k", 1, k=0)])
    await store.memorize("a", "s", "k", 2)
    again = await store.commit("a", "s", running, [change("c1", "k", 1, k=0)])
    assert again == first
    assert await store.recall("a", "s", "k") == 2
    assert [fact.version for fact in await store.entries("a", "s")] == [2]


async def test_the_live_agent_wins(store: SqlProvider) -> None:
    """Keys that changed meanwhile are left alone and reported; the rest commits."""
    for key in ("a", "b", "gone"):
        await store.memorize("a", "s", key, "old")
    running = await opened(store, snapshot={"a": 1, "b": 1, "gone": 1})
    await store.memorize("a", "s", "a", "live")
    await store.memorize("a", "s", "added", "live")
    await store.forget("a", "s", "gone")
    steps = [
        change("c1", "a", "dream", a=1),
        change("c2", "b", "dream", b=1),
        change("c3", "added", "dream", added=0),
        change("c4", "gone", "dream", gone=1),
    ]
    done = await store.commit("a", "s", running, steps)
    assert (done.applied, done.conflicts) == (["c2"], ["c1", "c3", "c4"])
    assert await store.recall("a", "s") == {"a": "live", "b": "dream", "added": "live"}


async def test_what_rests_on_a_dropped_change_drops_too(store: SqlProvider) -> None:
    """A merge with a moved source leaves all alone, and so does what builds on the merge."""
    for key in ("a", "b", "free"):
        await store.memorize("a", "s", key, key)
    running = await opened(store)
    await store.memorize("a", "s", "a", "live")
    merge = Step(
        id="merge",
        reads=[Read(key="a", version=1), Read(key="b", version=1), Read(key="c", version=0)],
        writes=[
            Write(key="c", value="a and b"),
            Write(op="remove", key="a", replaced_by="c"),
            Write(op="remove", key="b", replaced_by="c"),
        ],
    )
    steps = [
        change("far", "f", 1, e=0),
        merge,
        change("near", "e", 1, c=0),
        change("free", "free", 2, free=1),
    ]
    done = await store.commit("a", "s", running, steps)
    assert (done.applied, done.conflicts) == (["free"], ["far", "merge", "near"])
    assert await store.recall("a", "s") == {"a": "live", "b": "b", "free": 2}


async def test_a_pinned_fact_is_out_of_reach(store: SqlProvider) -> None:
    """A fact that was pinned while the dream ran is not changed by it."""
    await store.memorize("a", "s", "k", "pinned")
    running = await opened(store)

    def pin(connection: Connection) -> None:
        connection.execute(update(facts).values(pinned=True))

    await store.database.write(pin)
    done = await store.commit("a", "s", running, [change("c1", "k", "dream", k=1)])
    assert done.conflicts == ["c1"]
    await store.memorize("a", "s", "k", "by hand")
    assert [(fact.value, fact.pinned) for fact in await store.entries("a", "s")] == [
        ("by hand", True)
    ]


async def test_evidence_is_consumed_once(store: SqlProvider) -> None:
    """A dream whose evidence another one has read changes nothing at all."""
    await store.append("a", "s", rows(1, 4))
    both = [Range(session="r1", memory="wm0", first=1, last=3)]
    await opened(store, "d1", ranges=both)
    await opened(store, "d2", ranges=both)
    await store.commit("a", "s", record("d1", ranges=both), [change("c1", "k", 1, k=0)])
    with pytest.raises(ProviderError, match="another dream"):
        await store.commit("a", "s", record("d2", ranges=both), [change("c1", "z", 1, z=0)])
    assert await store.keys("a", "s") == ["k"]
    assert (await store.dream("a", "s", "d2") or record()).status == "running"
    next_one = [Range(session="r1", memory="wm0", first=4, last=4)]
    await store.commit("a", "s", record("d2", ranges=next_one), [])
    assert await store.unread("a", "s", 1_000) == []


async def test_a_range_that_skips_rows_is_refused(store: SqlProvider) -> None:
    """A cursor moves over consecutive rows only."""
    await store.append("a", "s", rows(1, 4))
    skips = [Range(session="r1", memory="wm0", first=2, last=4)]
    with pytest.raises(ProviderError, match="cursor stands at 0"):
        await store.commit("a", "s", await opened(store, ranges=skips), [])
    assert len(await store.unread("a", "s", 1_000)) == 4


async def test_a_crash_before_the_commit_changes_nothing(store: SqlProvider) -> None:
    """A failure in the middle of a commit leaves facts, cursors and gate as they were."""
    await store.memorize("a", "s", "k", 1)
    await store.append("a", "s", rows(1, 2))
    ranges = [Range(session="r1", memory="wm0", first=1, last=2)]
    running = await opened(store, ranges=ranges)

    def crash(_connection: Connection, _cursor: Any, statement: str, *_rest: Any) -> None:
        if statement.startswith("UPDATE agentmem_dreams"):  # the commit's last table but one
            raise OSError("the power went")

    engine = await store.database.write(lambda connection: connection.engine)
    event.listen(engine, "before_cursor_execute", crash)
    with pytest.raises(ProviderError) as failed:
        await store.commit("a", "s", running, [change("c1", "k", 2, k=1)])
    event.remove(engine, "before_cursor_execute", crash)
    assert isinstance(failed.value.__cause__, OSError)
    assert await store.recall("a", "s") == {"k": 1}
    assert len(await store.unread("a", "s", 1_000)) == 2
    assert (await store.scope_state("a", "s")).failures == 1
    done = await store.commit("a", "s", running, [change("c1", "k", 2, k=1)])
    assert done.applied == ["c1"]


async def test_two_commits_of_one_dream_at_once_are_one(store: SqlProvider) -> None:
    """A commit that timed out and its retry, both under way, apply it once."""
    running = await opened(store)
    steps = [change("c1", "k", 1, k=0)]
    first, second = await asyncio.gather(
        *(store.commit("a", "s", running, steps) for _ in range(2))
    )
    assert first == second
    assert [fact.version for fact in await store.entries("a", "s")] == [1]


async def test_commits_that_cross_do_not_deadlock(store: SqlProvider) -> None:
    """Commits over the same keys in opposite orders all end, and no update is lost."""
    for key in ("a", "b"):
        await store.memorize("a", "s", key, 0)
    for number in range(8):
        await opened(store, f"d{number}")

    async def commit(number: int) -> DreamRecord:
        order = ("a", "b") if number % 2 else ("b", "a")
        steps = [change(f"c-{key}", key, number, **{key: 1}) for key in order]
        return await store.commit("a", "s", record(f"d{number}"), steps)

    done = await asyncio.gather(*map(commit, range(8)))
    assert sorted(len(one.applied) for one in done) == [0] * 7 + [2]
    assert [fact.version for fact in await store.entries("a", "s")] == [2, 2]


async def test_the_commits_status_is_kept(store: SqlProvider) -> None:
    """A record that says how the dream ended is stored with that."""
    running = await opened(store)
    done = await store.commit("a", "s", running.replace(status="completed_with_rejections"), [])
    assert done.status == "completed_with_rejections"
