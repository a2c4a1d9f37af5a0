"""Connections that break in the middle: what was stored is stored once, and nobody is failed."""

import asyncio
import itertools
from collections.abc import AsyncGenerator, Awaitable, Callable
from datetime import UTC, date, datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from agentmem.errors import StoreUnavailable
from agentmem.facts import Evidence, Step, Write
from agentmem.records import DreamRecord, Range, ReplyRecord, TranscriptRow
from agentmem.storage.sql.provider import SqlProvider

from .breaking_line import How, Line, breaking_line
from .conftest import idle, on_postgresql

pytestmark = pytest.mark.postgresql

AT = datetime(2026, 5, 1, 12, tzinfo=UTC)
Use = Callable[[SqlProvider, str], Awaitable[Any]]

ROWS = [
    TranscriptRow(
        session="run",
        memory="wm0",
        seq=seq,
        message=f"m{seq}",
        role="user",
        text="x",
        at=AT,
        turn=1,
    )
    for seq in (1, 2, 3)
]
DREAM = DreamRecord(
    id="d1", opened_at=AT, ranges=[Range(session="run", memory="wm0", first=1, last=2)]
)
CITED = Write(
    key="k", value=2, evidence=[Evidence(session="run", memory="wm0", message="m1", role="user")]
)
SET = Write(key="k", value=2)
REMOVE = Write(op="remove", key="k")

REPEATED: dict[str, Use] = {
    "memorize": lambda store, scope: store.memorize("a", scope, "k", 2),
    "memorize a new key": lambda store, scope: store.memorize("a", scope, "new", 2),
    "set by name": lambda store, scope: store.write("a", scope, [SET], "c"),
    "set with evidence": lambda store, scope: store.write("a", scope, [CITED], "c"),
    "remove": lambda store, scope: store.write("a", scope, [REMOVE], "c"),
    "remove a missing key": lambda store, scope: store.forget("a", scope, "no", idempotency="c"),
    "several": lambda store, scope: store.write("a", scope, [REMOVE, SET, CITED], "c"),
    "clear": lambda store, scope: store.forget("a", scope, idempotency="c"),
    "pin": lambda store, scope: store.pin("a", scope, "k"),
    "undo": lambda store, scope: store.undo("a", scope, "k@1"),
    "use": lambda store, scope: store.use("a", scope, ["k"], date(2026, 5, 1)),
    "append": lambda store, scope: store.append("a", scope, ROWS),
    "open a session": lambda store, scope: store.open_session("a", scope, "other", "wm0"),
    "open a dream": lambda store, scope: store.open_dream(
        "a", scope, DreamRecord(id="d2", opened_at=AT)
    ),
    "save a dream": lambda store, scope: store.save_dream(
        "a", scope, DREAM.replace(data={"draft": 1})
    ),
    "save a reply": lambda store, scope: store.save_reply(
        "a", scope, "d1", ReplyRecord(phase="orient", step=0, digest="x", reply={"a": 1})
    ),
    "end a dream": lambda store, scope: store.end_dream("a", scope, "d1", "nothing", "undo"),
    "commit": lambda store, scope: store.commit(
        "a", scope, DREAM, [Step(id="c1", writes=[SET.replace(writer="dream")])]
    ),
    "recall": lambda store, scope: store.recall("a", scope, "k"),
    "recall all": lambda store, scope: store.recall("a", scope),
    "keys": lambda store, scope: store.keys("a", scope),
    "entries": lambda store, scope: store.entries("a", scope),
    "unread": lambda store, scope: store.unread("a", scope, 1000),
    "state": lambda store, scope: store.scope_state("a", scope),
}
NOT_REPEATED: dict[str, Use] = {
    "set with evidence": lambda store, scope: store.write("a", scope, [CITED]),
    "remove": lambda store, scope: store.forget("a", scope, "k"),
    "clear": lambda store, scope: store.forget("a", scope),
    "erase": lambda store, scope: store.erase("a", scope),
}


@pytest.fixture
async def line(postgresql_url: str) -> AsyncGenerator[Line]:
    """A line to the test's server."""
    folder = parse_qs(urlsplit(postgresql_url).query)["host"][0]
    async with breaking_line(f"{folder}/.s.PGSQL.5432") as line:
        yield line


@pytest.fixture
async def store(line: Line, postgresql_url: str) -> AsyncGenerator[SqlProvider]:
    """A store at the end of it."""
    database = urlsplit(postgresql_url).path
    url = f"postgresql://postgres@127.0.0.1:{line.port}{database}?sslmode=disable"
    store = on_postgresql(url)
    await store.open()
    yield store
    assert await idle(store), "a connection was not given back"
    await store.close()


async def fill(store: SqlProvider, scope: str) -> None:
    """Store something of each kind."""
    await store.memorize("a", scope, "k", 1)
    await store.memorize("a", scope, "other", 1)
    await store.append("a", scope, ROWS[:2])
    await store.open_dream("a", scope, DREAM)


async def state(store: SqlProvider, scope: str) -> list[dict[str, Any]]:
    """Return what the scope has, without its name and without clock times."""
    rows = await store.export("a", scope)
    named = {"scope", "recorded_at", "moved_at", "consumed_at", "saved_at", "at", "ended_at"}
    return [{name: row[name] for name in row if name not in named} for row in rows]


@pytest.mark.parametrize("how", ["before", "after"])
@pytest.mark.parametrize("name", REPEATED)
async def test_a_line_that_breaks_fails_nobody_and_repeats_nothing(
    line: Line, store: SqlProvider, name: str, how: How
) -> None:
    """Each request of each use is cut, before the server has it or before its answer is there."""
    use = REPEATED[name]
    await fill(store, "whole")
    said = await use(store, "whole")
    left = await state(store, "whole")
    cut = 0
    for request in itertools.count(1):
        scope = f"cut {request}"
        await fill(store, scope)
        line.cut_at(request, how)
        answer = await use(store, scope)
        if line.asked < request:
            break
        cut = request
        assert await state(store, scope) == left
        if name not in {"recall all", "entries", "unread"}:
            assert answer == said
    assert cut > 0


@pytest.mark.parametrize("how", ["before", "after"])
@pytest.mark.parametrize("name", NOT_REPEATED)
async def test_what_cannot_be_repeated_says_that_it_may_be_done(
    line: Line, store: SqlProvider, name: str, how: How
) -> None:
    """Only at the commit it is open whether it was done, and only then is it an error."""
    use = NOT_REPEATED[name]
    await fill(store, "whole")
    before = await state(store, "whole")
    await use(store, "whole")
    left = await state(store, "whole")
    failed = 0
    for request in itertools.count(1):
        scope = f"cut {request}"
        await fill(store, scope)
        line.cut_at(request, how)
        [answer] = await asyncio.gather(use(store, scope), return_exceptions=True)
        cut = line.asked >= request
        now = await state(store, scope)
        if isinstance(answer, BaseException):
            with pytest.raises(StoreUnavailable, match="look before you store it again"):
                raise answer
            failed += 1
            assert now == (left if how == "after" else before)
        else:
            assert now == left
        if not cut:
            break
    assert failed == 1


@pytest.mark.parametrize("has_read", [False, True])
@pytest.mark.parametrize("close_after", [0, 0.1])
async def test_a_connection_that_is_just_ending_fails_nobody(
    line: Line, store: SqlProvider, close_after: float, has_read: bool
) -> None:
    """The server says that it ends the connections (57P01), and closes them a moment later."""
    uses = [REPEATED[name] for name in ("recall", "memorize", "remove", "append", "commit")]
    for number, use in enumerate(uses):
        scope = f"s{number}"
        await fill(store, scope)
        await asyncio.gather(*(store.recall("a", scope, f"k{n}") for n in range(8)))
        line.say_farewell(close_after)
        await asyncio.sleep(0.02 * has_read)
        await use(store, scope)
        await asyncio.gather(*(store.memorize("a", scope, f"k{n}", n) for n in range(8)))
        assert await store.recall("a", scope, "k7") == 7
        assert len(await store.history("a", scope, "k7")) == 1


@pytest.mark.parametrize("how", ["before", "after"])
async def test_a_store_that_stays_away_after_a_lost_answer_says_so(
    line: Line, store: SqlProvider, how: How, postgresql_url: str
) -> None:
    """The answer was lost and nothing can be looked up: the error does not say "not stored"."""
    await fill(store, "s")
    line.cut_at(1, how)
    line.closed = True
    with pytest.raises(StoreUnavailable, match="look before you store it again"):
        await store.memorize("a", "s", "k", 2)
    line.closed = False
    assert await store.recall("a", "s", "k") == (2 if how == "after" else 1)
