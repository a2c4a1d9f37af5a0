"""Many tasks, loops, threads and processes on one store: no lost update, no leak, no deadlock."""

import asyncio
import random
import threading
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection

from agentmem.errors import ProviderError
from agentmem.facts import Read, Step, Write
from agentmem.records import DreamRecord
from agentmem.storage.checks import checked_write
from agentmem.storage.sql import writes as sql_writes
from agentmem.storage.sql.provider import SqlProvider
from agentmem.storage.sql.rows import Place
from agentmem.storage.sqlite import SqliteDatabase

from . import forks
from .conftest import idle, on_postgresql
from .test_transcripts import START

REMOVE = Write(op="remove", key="k")


async def test_writers_of_one_key_lose_nothing(store: SqlProvider) -> None:
    """Writers of one new key at once leave one fact and a version each."""
    for turn in range(5):
        key = f"k{turn}"
        left = await asyncio.gather(
            *(store.write("a", "s", [Write(key=key, value=number)]) for number in range(20))
        )
        assert sorted(version for (version,) in left) == list(range(1, 21))
        (fact,) = await store.entries("a", "s", [key])
        assert fact.version == 20
        assert left[int(str(fact.value))] == [20]


async def test_writers_and_removers_lose_nothing(store: SqlProvider) -> None:
    """A key stored, removed and its scope cleared by many at once never repeats a version."""

    async def work(number: int) -> list[int]:
        if number % 8 == 7:
            await store.forget("a", "s")
            return []
        op = "remove" if number % 2 == 0 else "set"
        return await store.write("a", "s", [Write(op=op, key="k", value=number)])

    left = await asyncio.gather(*map(work, range(400)))
    versions = [version for some in left for version in some if version]
    assert len(versions) == len(set(versions))


async def test_thirty_two_writers_and_a_committing_dream(store: SqlProvider) -> None:
    """Live writes go on while change sets commit; each key ends as its last writer."""
    for number in range(8):
        await store.open_dream("a", "s", DreamRecord(id=f"d{number}", opened_at=START))

    async def live(number: int) -> None:
        for turn in range(4):
            await store.memorize("a", "s", f"live-{number}", turn)

    async def dream(number: int) -> DreamRecord:
        keys = [f"dream-{key}" for key in range(5)]
        seen = {fact.key: fact.version for fact in await store.entries("a", "s", keys)}
        steps = [
            Step(
                id=key,
                reads=[Read(key=key, version=seen.get(key, 0))],
                writes=[Write(key=key, value=seen.get(key, 0) + 1)],
            )
            for key in keys
        ]
        record = DreamRecord(id=f"d{number}", opened_at=START)
        return await store.commit("a", "s", record, steps)

    done = await asyncio.gather(*map(dream, range(8)), *map(live, range(32)))
    facts = {fact.key: fact for fact in await store.entries("a", "s")}
    assert all(facts[f"live-{number}"].value == 3 for number in range(32))
    assert all(facts[f"live-{number}"].version == 4 for number in range(32))
    applied = [key for one in done if one for key in one.applied]
    for key in (f"dream-{number}" for number in range(5)):
        assert facts[key].value == facts[key].version == applied.count(key)


async def test_one_failure_is_no_other_writers(store: SqlProvider) -> None:
    """Writes that reach the database together fail or succeed each on its own."""

    def fails(connection: Connection) -> None:
        connection.exec_driver_sql("INSERT INTO agentmem_nowhere VALUES (1)")

    writes = [store.memorize("a", "s", f"k{number}", number) for number in range(10)]
    failing = [store.database.write(fails) for _ in range(3)]
    done = await asyncio.gather(*writes[:5], *failing, *writes[5:], return_exceptions=True)
    assert [isinstance(one, ProviderError) for one in done] == [False] * 5 + [True] * 3 + [
        False
    ] * 5
    assert await store.recall("a", "s") == {f"k{number}": number for number in range(10)}
    assert {fact.version for fact in await store.entries("a", "s")} == {1}


async def test_a_repeated_call_at_the_same_time_is_one(store: SqlProvider) -> None:
    """A call and its retry, both under way, write one version."""
    writes = [Write(key="k", value=1), Write(key="l", value=2)]
    left = await asyncio.gather(*(store.write("a", "s", writes, "call") for _ in range(6)))
    assert left == [[1, 1]] * 6


async def test_cancelled_reads_give_their_connections_back(store: SqlProvider) -> None:
    """After recalls that were cancelled at any moment, the next ones all succeed."""
    await store.memorize("a", "s", "k", "v")
    chance = random.Random(7)

    async def cancelled(number: int) -> None:
        task = asyncio.create_task(store.recall("a", "s", "k"))
        await asyncio.sleep(chance.random() * 0.05)
        if number % 3 == 0:
            task.cancel()
        await asyncio.wait([task])

    await asyncio.gather(*map(cancelled, range(200)))
    assert await asyncio.gather(*(store.recall("a", "s", "k") for _ in range(200))) == ["v"] * 200
    assert await idle(store)


async def test_a_cancelled_write_is_whole_or_not_there(store: SqlProvider) -> None:
    """Whenever it is cancelled, a write leaves both of its keys or none."""
    chance = random.Random(11)

    async def cancelled(number: int) -> None:
        writes = [Write(key=f"{number}-a", value=1), Write(key=f"{number}-b", value=1)]
        task = asyncio.create_task(store.write("a", "s", writes))
        await asyncio.sleep(chance.random() * 0.05)
        task.cancel()
        await asyncio.wait([task])

    await asyncio.gather(*map(cancelled, range(40)))
    assert await idle(store)
    keys = await store.keys("a", "s")
    assert all(f"{number}-a" in keys for number in {key.split("-")[0] for key in keys})
    assert len(keys) % 2 == 0
    await store.memorize("a", "s", "after", 1)


async def test_a_store_serves_several_event_loops(store: SqlProvider) -> None:
    """Loops one after the other and in two threads at once use one store."""
    await store.memorize("a", "s", "main", 0)
    failures: list[BaseException] = []

    async def use(name: str) -> None:
        for turn in range(10):
            await store.memorize("a", "s", name, turn)
            assert await store.recall("a", "s", name) == turn

    def loops(name: str) -> None:
        try:
            for _ in range(2):
                asyncio.run(use(name))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=loops, args=(name,)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    await use("main")
    await asyncio.gather(*(asyncio.to_thread(thread.join) for thread in threads))
    assert failures == []
    assert await store.recall("a", "s") == {"main": 9, "one": 9, "two": 9}


async def test_in_memory_every_task_sees_the_same(store: SqlProvider) -> None:
    """Ten tasks see at once what another one wrote."""
    await store.memorize("a", "s", "k", 1)
    assert await asyncio.gather(*(store.recall("a", "s", "k") for _ in range(10))) == [1] * 10


@pytest.mark.slow
@pytest.mark.timeout(120)
async def test_two_processes_on_one_file(tmp_path: Path) -> None:
    """Two processes of 25 tasks write 500 facts each; nothing is locked or lost."""
    path = tmp_path / "shared.db"
    processes = await forks.start("write", str(path), 2)
    store = SqlProvider(SqliteDatabase(path))
    await store.open()
    ended = asyncio.create_task(forks.finish(processes))
    while not ended.done():
        await store.keys("a", "s")  # a reader besides
        await asyncio.wait([ended], timeout=0.05)
    await ended
    assert len(await store.keys("a", "s")) == 1_000
    assert {fact.version for fact in await store.entries("a", "s")} == {1}
    await store.close()


async def nothing_was_lost(store: SqlProvider, processes: int) -> None:
    """Every write that was made has its version, without a gap, and the last one is current."""
    counts = await store.recall("a", "applied")
    assert len(counts) == processes
    assert any(counts.values())  # change sets held too
    writes = processes * forks.TASKS * forks.TURNS + sum(counts.values())
    facts = await store.entries("a", "s")
    assert len(facts) == forks.KEYS
    assert sum(fact.version for fact in facts) == writes
    for fact in facts:
        versions = await store.history("a", "s", fact.key)
        assert [one.version for one in versions] == list(range(1, fact.version + 1))
        assert versions[-1].value == fact.value
    assert await idle(store)


@pytest.mark.slow
@pytest.mark.timeout(120)
async def test_four_processes_write_one_scope_of_a_file(tmp_path: Path) -> None:
    """4 processes of 32 tasks and their change sets; nothing locked or lost."""
    path = tmp_path / "shared.db"
    await forks.finish(await forks.start("one_scope", str(path), 4))
    store = SqlProvider(SqliteDatabase(path))
    await store.open()
    await nothing_was_lost(store, 4)
    await store.close()


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.postgresql
async def test_four_processes_write_one_scope_of_a_server(postgresql_url: str) -> None:
    """The same on PostgreSQL; no deadlock, and no connection stays behind."""
    await forks.finish(await forks.start("one_scope", postgresql_url, 4))
    store = on_postgresql(postgresql_url)
    await store.open()
    await nothing_was_lost(store, 4)

    def connections(connection: Connection) -> int:
        of_others = "datname = current_database() AND pid <> pg_backend_pid()"
        return connection.exec_driver_sql(
            f"SELECT count(*) FROM pg_stat_activity WHERE {of_others}"
        ).scalar_one()

    assert await store.database.write(connections) == 0
    await store.close()


@pytest.mark.postgresql
async def test_a_removal_meanwhile_costs_a_set_one_repeat(postgresql_url: str) -> None:
    """A set that waited for a removal goes on from its version, which it had not seen."""
    store, other = on_postgresql(postgresql_url), on_postgresql(postgresql_url)
    await store.open()
    await store.memorize("a", "s", "k", 1)
    waiting: list[asyncio.Task[list[int]]] = []
    loop = asyncio.get_running_loop()

    def remove(connection: Connection) -> list[int]:
        left = sql_writes.write(connection, Place("a", "s"), [checked_write(REMOVE)], "")
        if not waiting:
            waiting.append(loop.create_task(other.write("a", "s", [Write(key="k", value=2)])))
        connection.exec_driver_sql("SELECT pg_sleep(0.5)")  # until the set waits for the lock
        return left

    assert await store.database.write(remove) == [2]
    assert await waiting[0] == [3]
    assert [one.version for one in await store.history("a", "s", "k")] == [1, 2, 3]
    await store.close()
    await other.close()


@pytest.mark.postgresql
async def test_a_small_pool_serves_many(postgresql_url: str) -> None:
    """Two hundred calls wait for five connections; none fails, none leaks."""
    store = on_postgresql(postgresql_url, pool_size=5)
    await store.open()
    await store.memorize("a", "s", "k", 1)
    assert await asyncio.gather(*(store.recall("a", "s", "k") for _ in range(200))) == [1] * 200
    assert store.database.checked_out == 0
    await store.close()


@pytest.mark.postgresql
async def test_a_restarted_server_costs_one_repeat(postgresql_url: str) -> None:
    """Connections that the server has closed are replaced; the caller notices nothing."""
    store = on_postgresql(postgresql_url)
    await store.open()
    await store.memorize("a", "s", "k", 1)

    def end_all_others(connection: Any) -> None:
        connection.exec_driver_sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )

    other = on_postgresql(postgresql_url)
    await other.database.write(end_all_others)
    await other.close()
    assert await store.recall("a", "s", "k") == 1
    await store.memorize("a", "s", "k", 2)
    assert await store.recall("a", "s", "k") == 2
    await store.close()


async def test_a_closed_store_says_so(store: SqlProvider) -> None:
    """Using a store after `close` is a typed error; closing twice is none."""
    await store.close()
    await store.close()
    with pytest.raises(ProviderError, match="closed"):
        await store.recall("a", "s")
