"""Compare two ways to do the same thing, on a machine that others use too.

The two take turns in short rounds, so that whatever slows the machine down slows both. A ratio is
the median over the pairs, and its spread the middle half of them.
"""

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

Operation = Callable[[int], Awaitable[object]]
"""Does a thing once; its number is never given twice."""


@dataclass(frozen=True)
class Pair:
    """What a comparison gave.

    Attributes:
        floor: The floor's median rate, operations a second.
        ours: Our median rate.
        ratio: The median of ours divided by the floor's, pair by pair.
        low: Its lower quartile.
        high: Its upper quartile.
    """

    floor: float
    ours: float
    ratio: float
    low: float
    high: float


class Comparison:
    """Two operations, round by round.

    Args:
        rounds: Pairs of rounds that count; one more goes first and does not.
        seconds: How long a round takes.
    """

    def __init__(self, rounds: int, seconds: float) -> None:
        self._rounds = rounds
        self._seconds = seconds
        self._number = 0

    async def run(self, floor: Operation, ours: Operation, tasks: int = 1) -> Pair:
        """Compare them with this many tasks at once."""
        floors: list[float] = []
        own: list[float] = []
        for turn in range(self._rounds + 1):
            first, second = (floor, ours) if turn % 2 else (ours, floor)
            rates = {id(one): await self._rate(one, tasks) for one in (first, second)}
            if turn:  # the first round fills caches and opens connections
                floors.append(rates[id(floor)])
                own.append(rates[id(ours)])
        ratios = [mine / theirs for mine, theirs in zip(own, floors, strict=True)]
        low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
        return Pair(statistics.median(floors), statistics.median(own), middle, low, high)

    async def _rate(self, operation: Operation, tasks: int) -> float:
        done = 0
        began = time.perf_counter()

        async def work() -> None:
            nonlocal done
            while time.perf_counter() - began < self._seconds:
                self._number += 1
                await operation(self._number)
                done += 1

        await asyncio.gather(*(work() for _ in range(tasks)))
        return done / (time.perf_counter() - began)


async def longest_stall(work: Awaitable[object]) -> float:
    """Return the longest time, in milliseconds, that the event loop was held during a work."""
    worst = 0.0
    ended = asyncio.ensure_future(work)
    while not ended.done():
        before = time.perf_counter()
        await asyncio.sleep(0.001)
        worst = max(worst, time.perf_counter() - before - 0.001)
    await ended
    return worst * 1000
