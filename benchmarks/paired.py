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
    """The result of a comparison.

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


@dataclass(frozen=True)
class Contest:
    """Two operations to compare, with so many tasks at once."""

    floor: Operation
    ours: Operation
    tasks: int = 1


PASSES = 3


class Comparison:
    """Pairs of operations, round by round.

    All of them take turns in a few passes: what disturbs the machine for half a minute disturbs a
    third of each one's rounds, which a median bears, and not all rounds of one.

    Args:
        rounds: Pairs of rounds that count, of each contest; in each pass one more goes first and
            does not.
        seconds: How long a round of one task takes; where many tasks begin and end, twice as long.
    """

    def __init__(self, rounds: int, seconds: float) -> None:
        self._rounds = rounds
        self._seconds = seconds
        self._number = 0

    async def run(self, contests: Sequence[Contest]) -> list[Pair]:
        """Compare each pair."""
        found = [list[tuple[float, float]]() for _ in contests]
        for number in range(PASSES):
            rounds = self._rounds // PASSES + (number < self._rounds % PASSES)
            for contest, rates in zip(contests, found, strict=True):
                rates += await self._pass(contest, rounds)
        return [_paired(rates) for rates in found]

    async def _pass(self, contest: Contest, rounds: int) -> list[tuple[float, float]]:
        """Return the rates of the floor and of ours in each round."""
        floor, ours, tasks = contest.floor, contest.ours, contest.tasks
        seconds = self._seconds if tasks == 1 else 2 * self._seconds
        found: list[tuple[float, float]] = []
        for turn in range(rounds + 1):
            first, second = (floor, ours) if turn % 2 else (ours, floor)
            rates = {id(one): await self._rate(one, tasks, seconds) for one in (first, second)}
            if turn:  # the first round fills caches and opens connections
                found.append((rates[id(floor)], rates[id(ours)]))
        return found

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


def _paired(rates: Sequence[tuple[float, float]]) -> Pair:
    low, middle, high = quartiles([ours / floor for floor, ours in rates])
    floors, own = zip(*rates, strict=True)
    return Pair(statistics.median(floors), statistics.median(own), middle, low, high)


def quartiles(ratios: Sequence[float]) -> tuple[float, float, float]:
    """Return the lower quartile, the median and the upper quartile; of one ratio, itself."""
    if len(ratios) == 1:
        return ratios[0], ratios[0], ratios[0]
    low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
    return low, middle, high


@contextmanager
def one_core(choose: Callable[[set[int]], int] = max) -> Generator[None]:
    """Keep this thread, and the threads and processes that it starts, on one core.

    Where a driver has a thread of its own, the system's choice of a core for it, the same for
    seconds on end, moves a rate by two to three times: more than what is compared. Only on Linux;
    elsewhere nothing is bound.

    Args:
        choose: Which core, of those that there are.
    """
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {choose(cores)})
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
