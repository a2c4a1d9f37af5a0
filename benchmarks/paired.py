"""Compare two ways to do the same thing, on a machine that others use too.

The two take turns in short rounds, so that whatever slows the machine down slows both. A ratio is
the median over the pairs, and its spread the middle half of them.
"""

import asyncio
import os
import statistics
import time
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
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
        rounds: Pairs of rounds of one task that count; one more goes first and does not. Where
            many tasks begin and end, half as many rounds are twice as long.
        seconds: How long a round of one task takes.
    """

    def __init__(self, rounds: int, seconds: float) -> None:
        self._rounds = rounds
        self._seconds = seconds
        self._number = 0

    async def run(self, floor: Operation, ours: Operation, tasks: int = 1) -> Pair:
        """Compare them with this many tasks at once."""
        floors: list[float] = []
        own: list[float] = []
        rounds, seconds = self._rounds, self._seconds
        if tasks > 1:
            rounds, seconds = (rounds + 1) // 2, 2 * seconds
        for turn in range(rounds + 1):
            first, second = (floor, ours) if turn % 2 else (ours, floor)
            rates = {id(one): await self._rate(one, tasks, seconds) for one in (first, second)}
            if turn:  # the first round fills caches and opens connections
                floors.append(rates[id(floor)])
                own.append(rates[id(ours)])
        ratios = [mine / theirs for mine, theirs in zip(own, floors, strict=True)]
        low, middle, high = quartiles(ratios)
        return Pair(statistics.median(floors), statistics.median(own), middle, low, high)

    async def _rate(self, operation: Operation, tasks: int, seconds: float) -> float:
        done = 0
        began = time.perf_counter()

        async def work() -> None:
            nonlocal done
            while time.perf_counter() - began < seconds:
                self._number += 1
                await operation(self._number)
                done += 1

        await asyncio.gather(*(work() for _ in range(tasks)))
        return done / (time.perf_counter() - began)


def quartiles(ratios: Sequence[float]) -> tuple[float, float, float]:
    """Return the lower quartile, the median and the upper quartile; of one ratio, itself."""
    if len(ratios) == 1:
        return ratios[0], ratios[0], ratios[0]
    low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
    return low, middle, high


@contextmanager
def one_core() -> Generator[None]:
    """Keep this thread, and those that it starts, on one core (Linux; elsewhere nothing).

    Where a driver has a thread of its own, the system's choice of a core for it, the same for
    seconds on end, moves a rate by two to three times: more than what is compared.
    """
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


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
