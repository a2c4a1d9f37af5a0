"""Sessions that share a provider's rate limit: a real worker, real HTTP, a limit that refuses."""

import asyncio
import time
from datetime import timedelta
from pathlib import Path

import pytest
from temporalio.client import Client, WorkflowUpdateFailedError, WorkflowUpdateStage

from agentmem.testing import Reply, fail, reply
from agentmem.testing.request import Request
from tests.stack import PLAIN, stack

ACCEPTED = WorkflowUpdateStage.ACCEPTED


class Provider:
    """An endpoint that serves so many requests per second, and refuses the others with 429.

    Args:
        rate: Requests per second; as many are served at once.
        retry_after: What it asks to wait, in seconds; None for no such header.
    """

    def __init__(self, rate: float, retry_after: int | None = 1) -> None:
        self._rate, self._saved, self._at = rate, rate, time.monotonic()
        self._headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
        self.served = 0
        self.refused = 0

    def __call__(self, request: Request) -> Reply:
        """Answer, or refuse."""
        now = time.monotonic()
        self._saved = min(self._rate, self._saved + (now - self._at) * self._rate)
        self._at = now
        if self._saved < 1:
            self.refused += 1
            return fail(429, "Too many requests, slow down.", headers=self._headers)
        self._saved -= 1
        self.served += 1
        return reply("Here it is.")


async def talk(client: Client, data: Path, provider: Provider, *, sessions: int, turns: int) -> int:
    """Have sessions talk at the same time; return how many turns failed."""
    async with stack(client, data, provider) as running:

        async def session() -> int:
            handle = await running.start(agent="plain", session=True)
            failed = 0
            for turn in range(turns):
                try:
                    # A client's own timeout is no failure of the turn: it asks again.
                    update = await handle.start_update(
                        "send", f"Turn {turn}", wait_for_stage=ACCEPTED, result_type=str
                    )
                    await update.result(rpc_timeout=timedelta(minutes=5))
                except WorkflowUpdateFailedError:
                    failed += 1
            await handle.signal("end")
            await handle.result()
            return failed

        return sum(await asyncio.gather(*(session() for _ in range(sessions))))


@pytest.mark.parametrize("retry_after", [1, None])
async def test_no_turn_fails_by_a_rate_limit(
    client: Client, tmp_path: Path, retry_after: int | None
) -> None:
    """15 sessions of 3 turns against 15 requests per second, with and without Retry-After."""
    provider = Provider(15, retry_after)
    assert await talk(client, tmp_path, provider, sessions=15, turns=3) == 0
    assert provider.served == 45
    assert provider.refused <= 12  # what it takes to find the limit counts more in a short run


@pytest.mark.slow
async def test_fifty_sessions_share_five_requests_per_second(
    client: Client, tmp_path: Path
) -> None:
    """No turn of 200 fails, at most one request in ten is refused, in at most twice the 40 s."""
    provider = Provider(5)
    began = time.monotonic()
    assert await talk(client, tmp_path, provider, sessions=50, turns=4) == 0
    took = time.monotonic() - began
    print(f"{provider.served} served, {provider.refused} refused, {took:.0f} s")  # noqa: T201
    assert provider.served == 200
    assert provider.refused <= 20
    assert took < 100


async def test_a_turn_ends_with_the_providers_words_when_its_minutes_are_over(
    client: Client, tmp_path: Path
) -> None:
    """A limit that never lets go fails the turn in its time, and the error names the limit."""
    agents = PLAIN + "turn_minutes = 0.1\n"
    async with stack(client, tmp_path, Provider(0, 30), agents=agents) as running:
        handle = await running.start(agent="plain", session=True)
        began = time.monotonic()
        with pytest.raises(WorkflowUpdateFailedError) as error:
            await handle.execute_update("send", "Hello")
        assert time.monotonic() - began < 9
        assert "limits the rate of requests" in str(error.value.cause)
        await handle.signal("end")
