"""A turn's history is bounded and flat: what is said travels once, prompts by reference."""

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client
from temporalio.worker import Worker

from agentmem.testing import Request, reply
from tests.floor import Floor, floor_reply
from tests.stack import stack

SAID = "x" * 1_000


async def sizes(handle: Any, turns: int) -> list[tuple[int, int]]:
    """Send messages; returns history bytes and events after each."""
    found: list[tuple[int, int]] = []
    for _ in range(turns):
        await handle.execute_update("send", SAID)
        info = (await handle.describe()).raw_description.workflow_execution_info
        found.append((info.history_size_bytes, info.history_length))
    await handle.signal("end")
    await handle.result()
    return found


def growth(found: list[tuple[int, int]], first: int, last: int) -> tuple[float, float]:
    """Return bytes and events a turn between two turns."""
    (bytes_a, events_a), (bytes_b, events_b) = found[first - 1], found[last - 1]
    return (bytes_b - bytes_a) / (last - first), (events_b - events_a) / (last - first)


@pytest.fixture
def answer() -> Callable[[Request], Any]:
    """A script that answers with 1,000 characters."""
    return lambda request: reply(SAID)


@pytest.mark.timeout(240)
async def test_a_turn_costs_less_than_one_and_a_half_floors_and_stays_so(
    client: Client, tmp_path: Path, answer: Callable[[Request], Any]
) -> None:
    """100 turns of 1,000 characters: under 1.5 times bare Temporal's bytes, linear."""
    queue = f"floor-{uuid.uuid4()}"
    async with Worker(client, task_queue=queue, workflows=[Floor], activities=[floor_reply]):
        bare = await client.start_workflow("floor", id=queue, task_queue=queue)
        floor = growth(await sizes(bare, 30), 10, 30)
    async with stack(client, tmp_path, answer) as s:
        session = await s.start(agent="plain", session=True)
        found = await sizes(session, 100)
        early, late = growth(found, 10, 40), growth(found, 70, 100)
        s.model.assert_strict()
    assert late[0] < 1.5 * floor[0], (late, floor)
    assert late[1] == floor[1], (late, floor)
    assert late[0] < 1.05 * early[0], (early, late)
