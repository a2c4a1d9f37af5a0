"""A dream's commit killed before each of its statements, each time by SIGKILL in a fork.

Run as `python -m tests.faults.killed_commits WHERE`, a path or a URL: it writes what the store
held after each death as JSON, one line each, the last one of a commit that was left alone. With a
number behind it, the commit stands still (SIGSTOP) before the statement of that number, its
connection open, as that of a machine that vanished; it then goes on and writes what the store held.
"""

import asyncio
import json
import multiprocessing
import os
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import event

from agentmem.facts import Read, Step, Write
from agentmem.records import DreamRecord, Range, TranscriptRow
from agentmem.storage.postgresql import PostgresDatabase
from agentmem.storage.sql.provider import SqlProvider
from agentmem.storage.sqlite import SqliteDatabase
from agentmem.storage.urls import postgresql_address
from agentmem.wire import JSONObject

NOW = datetime(2026, 3, 25, 12, tzinfo=UTC)
RECORD = DreamRecord(
    id="dream-1",
    opened_at=NOW,
    ranges=[Range(session="s", memory="wm0", first=1, last=3)],
    snapshot={"city": 1, "job": 1},
    data={"draft": {}},
)
STEPS = [
    Step(
        id="c1",
        reads=[Read(key="city", version=1)],
        writes=[Write(key="city", value="Bergen", writer="dream")],
    ),
    Step(
        id="c2",
        reads=[Read(key="job", version=1), Read(key="work")],
        writes=[
            Write(op="remove", key="job", replaced_by="work", writer="dream"),
            Write(key="work", value="nurse", writer="dream"),
        ],
    ),
]


async def opened(where: str) -> SqlProvider:
    """Return the store."""
    if where.startswith("postgresql:"):
        store = SqlProvider(PostgresDatabase(postgresql_address(where, "test")))
    else:
        store = SqlProvider(SqliteDatabase(Path(where)))
    await store.open()
    return store


async def prepare(where: str) -> None:
    """Store two facts, three messages and a dream over them."""
    store = await opened(where)
    await store.memorize("a", "s", "city", "Oslo")
    await store.memorize("a", "s", "job", "baker")
    rows = [
        TranscriptRow(
            session="s", memory="wm0", seq=n, message=f"m{n}", role="user", text="x", at=NOW
        )
        for n in (1, 2, 3)
    ]
    await store.append("a", "s", rows)
    await store.open_dream("a", "s", RECORD)
    await store.close()


async def commit(where: str, death: int, by: signal.Signals = signal.SIGKILL) -> None:
    """Commit, and die before the statement of that number; 0 is after the commit itself."""
    store = await opened(where)
    engine = await store.database.write(lambda connection: connection.engine)
    seen = 0

    def count(*_: Any) -> None:
        nonlocal seen
        seen += 1
        if seen == death:
            os.kill(os.getpid(), by)

    event.listen(engine, "before_cursor_execute", count)
    await store.commit("a", "s", RECORD, STEPS)
    if death == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    await store.close()


async def state(where: str) -> JSONObject:
    """Return what the store holds."""
    store = await opened(where)
    found: JSONObject = {
        "facts": await store.recall("a", "s"),
        "unread": len(await store.unread("a", "s", 1_000)),
        "failures": (await store.scope_state("a", "s")).failures,
        "versions": [fact.version for fact in await store.entries("a", "s")],
    }
    await store.close()
    return found


def main(where: str) -> None:
    """Kill a commit before its first statement, its second, ... until one lives."""
    fork = multiprocessing.get_context("fork")

    def ends(work: Any, *arguments: Any) -> int:
        child = fork.Process(target=lambda: asyncio.run(work(where, *arguments)))
        child.start()
        child.join()
        return child.exitcode or 0

    assert ends(prepare) == 0
    death = 0
    while True:
        death += 1
        code = ends(commit, death)
        sys.stdout.write(json.dumps({"killed": code != 0, **asyncio.run(state(where))}) + "\n")
        if code == 0:
            break
    assert ends(commit, 0) == -signal.SIGKILL  # a commit that was done already, its answer lost
    sys.stdout.write(json.dumps({"killed": True, **asyncio.run(state(where))}) + "\n")


def stand_still(where: str, place: int) -> None:
    """Stop in a commit, and go on when told to."""
    asyncio.run(commit(where, place, signal.SIGSTOP))
    sys.stdout.write(json.dumps(asyncio.run(state(where))) + "\n")


if __name__ == "__main__":
    if len(sys.argv) > 2:
        stand_still(sys.argv[1], int(sys.argv[2]))
    else:
        main(sys.argv[1])
