"""Long-term memory in workflows: the same class, as recorded activities."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client, WorkflowFailureError, WorkflowHistory
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.exceptions import ApplicationError, CancelledError
from temporalio.worker import Worker

from activities.memory import MemoryActivities
from agentmem.memory.long_term import LongTermMemory, long_term_memory
from agentmem.memory.references import sqlite
from agentmem.storage.registry import Providers
from agentmem.storage.sql.provider import SqlProvider
from agentmem.storage.sqlite import SqliteDatabase
from tests.replayer import replayer
from tests.small_workflows import Calls, Planning, Remembering, Unguarded


class Flaky:
    """A user's own store: fails, or does not answer, so many times."""

    def __init__(self, failures: int, stall: float = 0) -> None:
        self.failures, self.stall = failures, stall
        self.values: dict[str, Any] = {}
        self.asked = asyncio.Event()

    async def _reach(self) -> None:
        self.asked.set()
        await asyncio.sleep(self.stall)
        if self.failures:
            self.failures -= 1
            raise ConnectionError("refused")

    async def memorize(self, agent: str, scope: str, key: str, value: Any) -> None:
        """Store."""
        await self._reach()
        self.values[key] = value

    async def recall(self, agent: str, scope: str, key: str | None = None) -> Any:
        """Return."""
        await self._reach()
        return self.values if key is None else self.values.get(key)

    async def forget(self, agent: str, scope: str, key: str | None = None) -> None:
        """Forget one."""
        await self._reach()
        self.values.pop(key or "", None)

    async def keys(self, agent: str, scope: str) -> list[str]:
        """List."""
        await self._reach()
        return list(self.values)

    async def scopes(self, agent: str) -> list[str]:
        """List."""
        await self._reach()
        return []


class Unanswered(SqlProvider):
    """A real store that forgets, whose answer is lost once, while somebody stores a new fact."""

    lost = False

    async def forget(
        self, agent: str, scope: str, key: str | None = None, *, idempotency: str = ""
    ) -> None:
        """Forget, and fail the first time nevertheless."""
        await super().forget(agent, scope, key, idempotency=idempotency)
        if not self.lost:
            self.lost = True
            await self.memorize(agent, scope, "new", "stored in between")
            raise ConnectionError("the answer was lost")


async def unanswered() -> Unanswered:
    """Such a store, opened."""
    made = Unanswered(SqliteDatabase(None))
    await made.open()
    return made


@pytest.fixture
async def stalled() -> Flaky:
    return Flaky(failures=0, stall=60)


@pytest.fixture
async def providers(tmp_path: Path, stalled: Flaky) -> AsyncIterator[Providers]:
    registered = {
        "flaky": lambda: Flaky(failures=2),
        "down": lambda: Flaky(failures=1_000),
        "stalled": lambda: stalled,
        "unanswered": unanswered,
    }
    opened = Providers(tmp_path, registered=registered)
    yield opened
    await opened.close()


@pytest.fixture
async def worker(
    request: pytest.FixtureRequest, client: Client, task_queue: str, providers: Providers
) -> AsyncIterator[Worker]:
    async with Worker(
        client,
        task_queue=task_queue,
        workflows=[Remembering, Planning, Unguarded],
        activities=MemoryActivities(providers, zone="Europe/Oslo").activities,
        disable_payload_error_limit=getattr(request, "param", False),
    ) as running:
        yield running


async def remember(
    client: Client, worker: Worker, calls: Calls, *, provider: str = "", agent: str = "assistant"
) -> tuple[list[Any], WorkflowHistory]:
    handle = await client.start_workflow(
        Remembering.run,
        args=[agent, provider, calls],
        id=worker.task_queue,
        task_queue=worker.task_queue,
    )
    return await handle.result(), await handle.fetch_history()


def scheduled(history: WorkflowHistory) -> list[tuple[str, str]]:
    """Each activity with its summary."""
    converter = pydantic_data_converter.payload_converter
    return [
        (
            event.activity_task_scheduled_event_attributes.activity_type.name,
            converter.from_payload(event.user_metadata.summary, str),
        )
        for event in history.events
        if event.HasField("activity_task_scheduled_event_attributes")
    ]


CALLS: Calls = [
    ("recall", []),
    ("memorize", ["city", "Bergen"]),
    ("memorize", ["nothing", None]),
    ("memorize", ["pets", [{"name": "Pus"}, 0, False]]),
    ("recall", ["city"]),
    ("recall", ["nothing"]),
    ("recall", ["street"]),
    ("recall", []),
    ("keys", []),
    ("scopes", []),
    ("forget", ["city"]),
    ("forget", ["street"]),
    ("keys", []),
    ("forget", []),
    ("recall", []),
]


async def directly(memory: LongTermMemory, calls: Sequence[tuple[str, list[Any]]]) -> list[Any]:
    return [await getattr(memory, method)(*arguments) for method, arguments in calls]


async def test_a_workflow_gets_what_a_script_gets(
    client: Client, worker: Worker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One class, the same results inside and outside of workflows."""
    inside, _ = await remember(client, worker, CALLS)
    monkeypatch.setenv("AGENTMEM_DATA", str(tmp_path / "script"))
    outside = await directly(long_term_memory(sqlite("facts.db"), "assistant", "user-1"), CALLS)
    assert inside == outside
    assert inside[7] == {"city": "Bergen", "nothing": None, "pets": [{"name": "Pus"}, 0, False]}


async def test_each_call_is_an_activity_named_by_its_key(client: Client, worker: Worker) -> None:
    """The UI shows which key was touched, and never a value; replay asks no store."""
    _, history = await remember(client, worker, CALLS[1:2] + CALLS[4:5] + CALLS[7:11])
    assert scheduled(history) == [
        ("memory.memorize", "memorize city"),
        ("memory.recall", "recall city"),
        ("memory.recall", "recall all"),
        ("memory.keys", "list keys"),
        ("memory.scopes", "list scopes"),
        ("memory.forget", "forget city"),
    ]
    await replayer(Remembering).replay_workflow(history)


async def test_a_fact_ends_with_its_last_day(client: Client, worker: Worker) -> None:
    """A workflow stores `until`, a day of the worker's zone; what is over is not recalled."""
    untils = {"offer": "2020-02-01", "visit": "2999-05-09", "tour": "2999-06"}
    handle = await client.start_workflow(
        Planning.run, untils, id=worker.task_queue, task_queue=worker.task_queue
    )
    everything, visit, wrong = await handle.result()
    assert everything.keys() == {"tour", "visit"}
    assert everything["visit"] == visit
    assert visit["until"] == "2999-05-09T22:00:00Z"
    assert everything["tour"]["until"] == "2999-06-30T22:00:00Z"
    assert (visit["value"], visit["state"], visit["trust"]) == ("the visit", "settled", "user")
    assert "2026-05-09" in wrong
    await replayer(Planning).replay_workflow(await handle.fetch_history())


async def test_the_longest_key_fits_into_a_summary(client: Client, worker: Worker) -> None:
    """A key of 512 bytes is cut for the UI: a longer summary would hang the workflow."""
    key = "é" * 256
    results, history = await remember(client, worker, [("memorize", [key, 1]), ("recall", [key])])
    assert results == [None, 1]
    assert all(len(summary.encode()) <= 200 for _, summary in scheduled(history))


async def test_what_cannot_be_stored_never_travels(client: Client, worker: Worker) -> None:
    """Keys and values are checked before they enter the history."""
    calls: Calls = [
        ("memorize", ["", 1]),
        ("memorize", ["k", "x" * 70_000]),
        ("forget", [""]),
        ("recall", [7]),
    ]
    results, history = await remember(client, worker, calls)
    assert [kind for kind, _ in results] == ["InvalidFact"] * 4
    assert scheduled(history) == []


async def test_what_is_for_people_is_refused(client: Client, worker: Worker) -> None:
    """Their results would stay in the history, also after they were erased: nothing is asked."""
    calls: Calls = [
        *(("entries", []), ("history", ["city"]), ("undo", ["city@1"]), ("pin", ["city"])),
        *(("unpin", ["city"]), ("erase", []), ("export", []), ("restore", [[]])),
        ("confirm", ["city"]),
    ]
    results, history = await remember(client, worker, calls)
    assert [kind for kind, _ in results] == ["ConfigurationError"] * len(calls)
    assert all("call it in an activity or a script" in message for _, message in results)
    assert scheduled(history) == []


async def test_an_error_of_ours_fails_the_workflow(client: Client, worker: Worker) -> None:
    """A workflow that lets the error pass fails with its type, and does not hang."""
    with pytest.raises(WorkflowFailureError) as failure:
        await client.execute_workflow(
            Unguarded.run, " ", id=worker.task_queue, task_queue=worker.task_queue
        )
    cause = failure.value.cause
    assert isinstance(cause, ApplicationError)
    assert (cause.type, cause.message) == ("InvalidFact", "key is empty; give it a name")


async def test_a_store_that_recovers_is_not_noticed(client: Client, worker: Worker) -> None:
    """Two failures are retried within the policy."""
    results, _ = await remember(
        client, worker, [("memorize", ["k", 1]), ("recall", ["k"])], provider="flaky"
    )
    assert results == [None, 1]


@pytest.mark.slow
async def test_a_store_that_stays_down_is_a_typed_error(client: Client, worker: Worker) -> None:
    """After five attempts workflow code gets a ProviderError that names the key."""
    [[kind, message]], _ = await remember(client, worker, [("recall", ["city"])], provider="down")
    assert kind == "ProviderError"
    assert message.startswith("recall city: ")


async def test_the_callers_mistakes_are_not_retried(client: Client, worker: Worker) -> None:
    """An unknown provider and a reserved agent are typed errors at once."""
    [[kind, message]], _ = await remember(client, worker, [("keys", [])], provider="redis")
    assert kind == "ConfigurationError"
    assert "redis" in message
    [[kind, message]], _ = await remember(client, worker, [("keys", [])], agent="agentmem/x")
    assert kind == "InvalidFact"


@pytest.mark.parametrize("worker", [False, True], indirect=True, ids=["worker", "server"])
async def test_a_scope_too_large_for_one_answer_says_so(
    client: Client, worker: Worker, providers: Providers
) -> None:
    """Over 2 MB at once is an error with what to do, and single keys still work.

    Whether the worker refuses the result or the server does.
    """
    store = await providers.get("sqlite:facts.db")
    for n in range(40):
        await store.memorize("assistant", "user-1", f"k{n}", "x" * 60_000)
    [[kind, message], one], _ = await remember(client, worker, [("recall", []), ("recall", ["k1"])])
    assert (kind, message) == (
        "ProviderError",
        "recall all: over 2 MB at once; recall the keys one by one",
    )
    assert one == "x" * 60_000


async def test_a_cancelled_workflow_is_cancelled(
    client: Client, worker: Worker, stalled: Flaky
) -> None:
    """A cancellation while the store is asked passes as what it is, not as a store's failure."""
    handle = await client.start_workflow(
        Unguarded.run, "k", id=worker.task_queue, task_queue=worker.task_queue
    )
    await asyncio.wait_for(stalled.asked.wait(), 10)
    await handle.cancel()
    with pytest.raises(WorkflowFailureError) as failure:
        await handle.result()
    assert isinstance(failure.value.cause, CancelledError)


async def test_a_scope_that_was_forgotten_keeps_what_came_after(
    client: Client, worker: Worker
) -> None:
    """The activity runs twice since its answer was lost; its second attempt forgets nothing."""
    calls: Calls = [("memorize", ["old", 1]), ("forget", []), ("recall", [])]
    results, _ = await remember(client, worker, calls, provider="unanswered")
    assert results[-1] == {"new": "stored in between"}
