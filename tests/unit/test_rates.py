"""The shared rate limit against providers of several kinds, on a clock that does not wait."""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from agentmem.llm.rate_limit import FORGOTTEN_AFTER, RateLimit, RateLimited


class Ahead(asyncio.SelectorEventLoop):
    """An event loop whose clock jumps to the next timer."""

    def __init__(self) -> None:
        super().__init__()
        self._now = 1_000.0
        selector: Any = vars(self)["_selector"]
        select: Any = selector.select

        def at_once(timeout: float | None = None) -> Any:
            self._now += max(timeout or 0, 0)
            return select(0)

        selector.select = at_once

    def time(self) -> float:
        """The loop's own time."""
        return self._now


def run(main: Coroutine[Any, Any, Any]) -> Any:
    """Run on such a loop."""
    with asyncio.Runner(loop_factory=Ahead) as runner:
        return runner.run(main)


def now() -> float:
    """The loop's time."""
    return asyncio.get_running_loop().time()


class Bucket:
    """A provider that serves so many requests per second, and as many at once as it saved up."""

    def __init__(self, rate: float, most: float, asks: float | None) -> None:
        self.rate, self.most, self.asks = rate, most, asks
        self.saved, self.at = most, 1_000.0
        self.served: list[float] = []
        self.refused: list[float] = []

    def takes(self) -> bool:
        """Take a request, or refuse it."""
        self.saved = min(self.most, self.saved + (now() - self.at) * self.rate)
        self.at = now()
        taken = self.saved >= 1
        self.saved -= taken
        (self.served if taken else self.refused).append(now())
        return taken


class Window(Bucket):
    """A provider that serves so many requests in each second of the clock."""

    def takes(self) -> bool:
        """Take a request, or refuse it."""
        taken = sum(int(at) == int(now()) for at in self.served) < self.rate
        (self.served if taken else self.refused).append(now())
        return taken


class Refused(Exception):
    """A provider refused."""


async def send(
    limit: RateLimit, provider: Bucket, latency: float, *, background: bool = False
) -> None:
    """Send one request until it is served."""
    again = False
    while True:
        await limit.admission(patience=900, background=background, again=again)
        try:
            with limit.refusals() as note:
                if not provider.takes():
                    await asyncio.sleep(0.02)
                    note(None if provider.asks is None else timedelta(seconds=provider.asks))
                    raise Refused
                await asyncio.sleep(latency)
            return
        except Refused:
            again = True


async def talk(limit: RateLimit, provider: Bucket, *, sessions: int, turns: int, latency: float):
    """Have sessions talk at the same time; return the seconds that it took."""

    async def session() -> None:
        for _ in range(turns):
            await send(limit, provider, latency)

    began = now()
    await asyncio.gather(*(session() for _ in range(sessions)))
    return now() - began


@pytest.mark.parametrize("latency", [0.02, 2.0])
@pytest.mark.parametrize("asks", [1.0, 0.2, None])
@pytest.mark.parametrize(("kind", "at_once"), [(Bucket, 5), (Bucket, 1), (Window, 5)])
def test_at_most_one_request_in_ten_is_refused(
    kind: type[Bucket], at_once: float, asks: float | None, latency: float
) -> None:
    """50 sessions of 4 turns at 5 requests per second: at best 40 s; all are served in twice that.

    With and without a wait that the provider asks for, one that is right and one that is too short.
    """
    made = kind(5, at_once, asks)
    took = run(talk(RateLimit("m"), made, sessions=50, turns=4, latency=latency))
    assert len(made.served) == 200
    assert len(made.refused) <= 20
    assert took < 80


@pytest.mark.parametrize("rate", [0.5, 50, 500])
def test_slow_and_fast_providers_are_learned_alike(rate: float) -> None:
    """The share of refused requests does not depend on the rate."""
    made = Bucket(rate, max(1, rate / 5), None)
    turns = 4 if rate < 1 else 40
    took = run(talk(RateLimit("m"), made, sessions=50, turns=turns, latency=0.05))
    assert len(made.refused) <= len(made.served) / 10
    assert took < 2 * 50 * turns / rate + 10


def test_a_provider_without_a_limit_is_hardly_slowed() -> None:
    """200 calls of ten seconds at once are all sent within two and a half seconds."""
    made = Bucket(1e9, 1e9, None)
    assert run(talk(RateLimit("m"), made, sessions=200, turns=1, latency=10)) < 12.5
    assert made.refused == []


def test_one_refusal_stops_all_for_as_long_as_the_provider_asks() -> None:
    """Nobody sends during the wait, and nobody undercuts it."""
    made = Bucket(3, 3, 20.0)
    run(talk(RateLimit("m"), made, sessions=20, turns=1, latency=0.1))
    last = max(at for at in made.refused if at < 1_001)
    assert [at for at in made.served + made.refused if last < at < last + 20] == []


def test_turns_go_before_dreams_that_are_not_stopped() -> None:
    """Ten dreams wait, then 100 turns; one in ten of the admitted requests is a dream's."""
    order: list[str] = []

    async def main() -> None:
        limit = RateLimit("m", most=10)
        made = Bucket(1e9, 1e9, None)
        await asyncio.gather(*(send(limit, made, 0) for _ in range(4)))  # the burst is used up

        async def one(name: str) -> None:
            await limit.admission(patience=900, background=name == "dream")
            order.append(name)

        dreams = [asyncio.create_task(one("dream")) for _ in range(10)]
        await asyncio.sleep(0)
        await asyncio.gather(*dreams, *(one("turn") for _ in range(100)))

    run(main())
    assert order[:30].count("dream") == 3
    assert len(order) == 110


def test_a_bound_of_ones_own_is_kept_without_any_refusal() -> None:
    """`most` requests per second, from the start."""
    made = Bucket(1e9, 1e9, None)
    took = run(talk(RateLimit("m", most=5), made, sessions=50, turns=4, latency=0.01))
    assert 38 < took < 42


def test_who_cannot_wait_is_told_at_once_how_long_it_takes() -> None:
    """A wait over the caller's patience raises; a short patience ends in the queue too."""

    async def main() -> None:
        limit = RateLimit("m")
        with suppress(Refused), limit.refusals() as note:
            note(timedelta(seconds=100))
            raise Refused
        began = now()
        with pytest.raises(RateLimited) as error:
            await limit.admission(patience=50)
        assert (now() == began, error.value.seconds >= 100) == (True, True)
        waiting = asyncio.create_task(limit.admission(patience=200))
        await asyncio.sleep(0)
        with pytest.raises(RateLimited):
            await limit.admission(patience=error.value.seconds + 0.5)  # behind the other one
        await waiting

    run(main())


def test_a_caller_that_goes_away_blocks_nobody() -> None:
    """A cancelled wait leaves the queue; those behind it are served."""

    async def main() -> None:
        limit = RateLimit("m", most=1)
        for _ in range(4):
            await limit.admission(patience=9)
        gone = [asyncio.create_task(limit.admission(patience=900)) for _ in range(30)]
        await asyncio.sleep(0)
        behind = asyncio.create_task(limit.admission(patience=3))
        await asyncio.sleep(0)
        for task in gone:
            task.cancel()
        await behind
        last = [asyncio.create_task(limit.admission(patience=9)) for _ in range(2)]
        await asyncio.sleep(0)
        last[0].cancel()
        # The timer comes before the cancelled task has run.
        limit._paused_until, limit._tokens = 0.0, 1.0  # pyright: ignore[reportPrivateUsage]
        limit._wake()  # pyright: ignore[reportPrivateUsage]
        await last[1]

    run(main())


def test_what_was_learned_is_forgotten_in_time() -> None:
    """After five minutes without a refusal the provider is tried anew."""

    async def main() -> None:
        limit, made = RateLimit("m"), Bucket(1, 1, 1.0)
        await talk(limit, made, sessions=5, turns=2, latency=0)
        assert limit.rate < 5
        await asyncio.sleep(FORGOTTEN_AFTER + 1)
        made.rate = made.most = 1e9
        assert await talk(limit, made, sessions=20, turns=1, latency=0) < 1.5

    run(main())
