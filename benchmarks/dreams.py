"""Measure what a dream costs: requests, prompts, its own time, its history.

Each dream runs on a worker of its own in this process, with SQLite in a file. The offline model's
rules answer over HTTP, and the time that they take is left out.
"""

import argparse
import json
import tempfile
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

from temporalio.client import Client

from agentmem.contracts import ScopeRef
from agentmem.dreaming.hook import dream_id
from agentmem.facts import Evidence, Write
from agentmem.offline.model import answer
from agentmem.records import TranscriptRow
from agentmem.storage.protocol import TransactionalProvider
from agentmem.testing import Reply, Request, reply
from benchmarks.report import Benchmark, Figures, Sheet
from benchmarks.server import start_server
from benchmarks.texts import CITIES
from tests.stack import stack

NOW = datetime.now(UTC)
AGENT = "dreamer"

SIZES = (
    *((10, 10), (100, 10), (1_000, 10), (10, 100), (100, 100), (1_000, 100)),
    *((10, 1_000), (100, 1_000), (1_000, 1_000)),
)
"""Facts in the scope, new messages in the transcript."""

SMALL, REPEATS = 100, 3
"""Up to so many facts and messages a dream is measured so often, and the one whose own time is the
median is kept: requests, prompts and history are the same each time."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """The measurements of one dream; bytes of prompts are counted as sent, tools included."""

    facts: int
    messages: int
    status: str
    rounds: int
    requests: int
    prompt_bytes: int
    shared_bytes: int
    wall: float
    model: float
    events: int
    history_bytes: int


class Asked:
    """The offline model behind HTTP, and what it was asked."""

    def __init__(self) -> None:
        self.prompts: list[str] = []
        self.seconds = 0.0

    def __call__(self, request: Request) -> Reply:
        """Answer by the offline model's rules."""
        began = time.perf_counter()
        body = request.body
        # As a provider reads a prompt, and so its cache: tools first.
        self.prompts.append(json.dumps([body.get("tools"), body["messages"]], ensure_ascii=False))
        made = answer(body)
        self.seconds += time.perf_counter() - began
        return reply(raw=made)

    @property
    def shared(self) -> int:
        """Bytes that prompts have in common with the beginning of the one before."""
        return sum(_shared(one, other) for one, other in pairwise(self.prompts))


def _shared(one: str, other: str) -> int:
    """Return how many bytes two texts begin alike with."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return len(one[:low].encode())


async def measure(_: argparse.Namespace) -> Figures:
    """Dream of each size, several times where that is quick; a first dream is not counted."""
    environment = await start_server()
    async with environment:

        async def dreamt(facts: int, messages: int) -> Row:
            with tempfile.TemporaryDirectory() as folder:
                return await _dreamt(environment.client, Path(folder), facts, messages)

        await dreamt(*SIZES[0])  # opens and imports what all need
        rows: list[Row] = []
        for size in SIZES:
            times = REPEATS if max(size) <= SMALL else 1
            found = [await dreamt(*size) for _ in range(times)]
            rows.append(sorted(found, key=lambda row: row.wall - row.model)[times // 2])
    return {"repeats": REPEATS, "rows": [asdict(row) for row in rows]}


async def _dreamt(client: Client, folder: Path, facts: int, messages: int) -> Row:
    model = Asked()
    async with stack(client, folder, model, strict=False) as made:
        providers = made.configuration.providers
        provider = await providers.get("default")
        await fill(provider, facts, messages)
        identity = providers.resolve("default")
        name = dream_id(ScopeRef(provider=identity, agent=AGENT, scope="s"))
        began = time.perf_counter()
        handle = await client.start_workflow(
            "agent_dream",
            {"agent": AGENT, "scope": "s", "model": "openai/offline"},
            id=name,
            task_queue=made.task_queue,
            result_type=dict,
        )
        report: dict[str, Any] = await handle.result()
        wall = time.perf_counter() - began
        size, events, rounds = await _histories(client, name, handle.first_execution_run_id)
    return Row(
        facts=facts,
        messages=messages,
        status=str(report["status"]),
        rounds=rounds,
        requests=len(model.prompts),
        prompt_bytes=sum(len(prompt.encode()) for prompt in model.prompts),
        shared_bytes=model.shared,
        wall=wall,
        model=model.seconds,
        events=events,
        history_bytes=size,
    )


async def _histories(client: Client, name: str, run: str | None) -> tuple[int, int, int]:
    """Return bytes and events of all rounds, each of which is a run, and how many there were."""
    size = events = rounds = 0
    while run:
        handle = client.get_workflow_handle(name, run_id=run)
        info = (await handle.describe()).raw_description.workflow_execution_info
        size, events = size + info.history_size_bytes, events + info.history_length
        rounds += 1
        last = (await handle.fetch_history()).events[-1]
        run = last.workflow_execution_continued_as_new_event_attributes.new_execution_run_id
    return size, events, rounds


async def fill(
    provider: TransactionalProvider, facts: int, messages: int, scope: str = "s"
) -> None:
    """Store so many facts in a scope, and so many messages for its next dream."""
    long_ago = NOW - timedelta(days=90)
    witness = Evidence(session="old", memory="wm0", message="m0", said_at=long_ago)
    for first in range(0, facts, 100):
        writes = [
            Write(
                key=f"person_{number}_city",
                value=f"Person {number} lives in {CITIES[number % len(CITIES)]}.",
                writer="dream",
                said_at=long_ago,
                evidence=[witness],
            )
            for number in range(first, min(first + 100, facts))
        ]
        await provider.write(AGENT, scope, writes)
    rows = [
        TranscriptRow(
            session="run-1",
            memory="wm0",
            seq=number + 1,
            message=f"m{number}",
            role="assistant" if number % 2 else "user",
            text=_said(number),
            at=NOW - timedelta(hours=2) + timedelta(seconds=number),
        )
        for number in range(messages)
    ]
    await provider.append(AGENT, scope, rows)


def _said(number: int) -> str:
    if number % 2:
        return "Noted."
    if number % 10 == 0:
        return f"My project number {number} is in {CITIES[number // 10 % len(CITIES)]}."
    return f"I had a long day, number {number}, and talked about the weather and the news. " * 3


COLUMNS = (
    *("facts", "messages", "status", "rounds", "model requests", "prompts kB"),
    *("of it begun alike", "s without the model", "events", "history kB"),
)


def sheets(figures: Figures) -> list[Sheet]:
    """Return the table."""
    rows = [
        [
            *(f"{row['facts']:,}", f"{row['messages']:,}", row["status"], str(row["rounds"])),
            *(str(row["requests"]), f"{row['prompt_bytes'] / 1000:.0f}"),
            f"{row['shared_bytes'] / max(1, row['prompt_bytes']):.0%}",
            *(f"{row['wall'] - row['model']:.1f}", str(row["events"])),
            f"{row['history_bytes'] / 1000:.1f}",
        ]
        for row in figures["rows"]
    ]
    return [Sheet(title="A dream, by the size of its scope", columns=COLUMNS, rows=rows)]


def sizes(figures: Figures) -> dict[str, float]:
    """Return what a dream of each size cost."""
    found: dict[str, float] = {}
    for row in figures["rows"]:
        name = f"{row['facts']:,} facts, {row['messages']:,} messages"
        found |= {
            f"{name}: requests": row["requests"],
            f"{name}: prompts kB": row["prompt_bytes"] / 1000,
            f"{name}: history kB": row["history_bytes"] / 1000,
            f"{name}: seconds": row["wall"] - row["model"],
        }
    return found


BENCHMARK = Benchmark(
    name="dreams", about="What a dream costs.", measure=measure, sheets=sheets, sizes=sizes
)

if __name__ == "__main__":
    BENCHMARK.command()
