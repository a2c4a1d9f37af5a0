"""The ratios of the benchmarks: ours to the floor's, pair by pair, never the other way round."""

import asyncio
from dataclasses import asdict

import pytest

from benchmarks.goals import goals
from benchmarks.paired import Comparison, Contest, quartiles
from benchmarks.report import Benchmark, Figures
from benchmarks.resume_tables import ratios as resume_ratios
from benchmarks.stage import BARE, FLOOR, FREE, OURS
from benchmarks.throughput import Round, summed
from benchmarks.turn import Record, Row, row
from benchmarks.turn_sheets import ratios as turn_ratios


async def test_rates_are_ours_to_the_floor_s() -> None:
    """The second of two operations takes a third of the time: its rate is about three times."""
    numbers: list[int] = []

    async def floor(number: int) -> None:
        numbers.append(number)
        await asyncio.sleep(0.015)

    async def ours(number: int) -> None:
        numbers.append(number)
        await asyncio.sleep(0.005)

    contests = [Contest(floor, ours), Contest(ours, floor, tasks=4)]
    quick, slow = await Comparison(rounds=4, seconds=0.03).run(contests)
    assert quick.floor < quick.ours
    assert quick.low <= quick.ratio <= quick.high
    assert quick.ratio > 1.5
    assert slow.ratio < 1 / 1.5
    assert len(numbers) == len(set(numbers))  # a key is never written twice


def test_quartiles_of_few() -> None:
    """One ratio is its own middle half."""
    assert quartiles([2.0]) == (2.0, 2.0, 2.0)
    assert quartiles([1.0, 2.0, 3.0, 4.0, 5.0]) == (2.0, 3.0, 4.0)


def _record(wall: float, cpu: float, size: int, turns: int = 10) -> Record:
    return Record(
        wall=[wall] * turns,
        worker=[cpu * number for number in range(turns + 1)],
        server=[2 * cpu] * turns,
        bytes={0: 0, turns: size * turns},
        events={0: 0, turns: 11 * turns},
    )


def test_a_turn_is_ours_to_the_floor_s() -> None:
    """Time, processor time and bytes of a turn that takes twice, three and four times as much."""
    found = {
        BARE: [_record(0.5, 0.5, 50)],
        FLOOR: [_record(1.0, 1.0, 100)],
        FREE: [_record(0.8, 0.8, 100)],
        OURS: [_record(2.0, 3.0, 400)],
    }
    made = row(found, "plain", OURS, 10)
    assert made.wall_ratio == (2.0, 2.0, 2.0)
    assert made.wall_free == pytest.approx(2.5)
    assert (made.worker_ratio, made.bytes_ratio) == (3.0, 4.0)
    assert (made.wall_ms, made.worker_ms, made.server_ms) == (2000, 3000, 6000)
    assert (made.bytes, made.events) == (400, 11)


def test_many_sessions_are_ours_to_the_floor_s() -> None:
    """Rounds are paired in order: half of the turns a second in each is a half."""
    floor = [Round(rate=rate, worker=10, server=5, driver=1) for rate in (10, 100, 20)]
    ours = [Round(rate=rate / 2, worker=15, server=5, driver=1) for rate in (10, 100, 20)]
    made = summed(ours, floor, 1, 10, OURS)
    assert made.ratio == (0.5, 0.5, 0.5)
    assert made.worker_ratio == 1.5


def test_a_resume_is_ours_to_the_floor_s() -> None:
    """Answers are paired in order; sessions with default limits stand against as many turns."""
    cold = {
        "200 turns/held": [1.0, 10.0],
        "200 turns/held, free": [0.5, 5.0],
        "200 turns/agentmem": [2.0, 20.0],
        "200 turns, default limits/agentmem": [0.1, 1.0],
    }
    killed = {FLOOR: [1.0], FREE: [1.0], OURS: [1.5]}
    found = resume_ratios({"cold": cold, "killed": killed})
    assert found["200 turns, to held"] == 2.0
    assert found["200 turns, to held, free"] == 4.0
    assert found["200 turns, default limits, to held"] == 0.1
    assert found["100 turns, SIGKILL, to held"] == 1.5


def _turns(**grown: object) -> Figures:
    """Return figures of a session in which ours at turn 1,000 differs from the rest by this."""
    same = Row(
        case="plain",
        turn=10,
        contender=FLOOR,
        wall_ms=1,
        wall_ratio=(1, 1, 1),
        wall_free=None,
        worker_ms=1,
        worker_ratio=1,
        worker_free=None,
        server_ms=1,
        bytes=1,
        bytes_ratio=1,
        events=11,
    )
    kinds = [(turn, kind) for turn in (10, 1_000) for kind in (FLOOR, OURS)]
    rows = [asdict(same) | {"turn": turn, "contender": kind} for turn, kind in kinds]
    rows[-1] |= grown
    return {"rows": rows}


@pytest.mark.parametrize(
    ("grown", "missed"),
    [
        ({}, set[str]()),
        ({"bytes": 1.2}, {"history at most 1.1"}),
        ({"wall_ratio": (1.14, 1.0, 1.2)}, {"floor's, at most 1.1"}),
        ({"bytes_ratio": 1.31}, {"history at most 1.3"}),
    ],
)
def test_a_session_that_gets_dearer_is_seen(
    grown: dict[str, object], missed: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Turns that take more and more miss the goal of a flat session."""

    def kept(_: Benchmark) -> Figures:
        return _turns(**grown)

    monkeypatch.setattr(Benchmark, "kept", kept)
    found = [goal.what for _, goal in goals(["turn"]) if not goal.met]
    assert len(found) == len(missed)
    assert all(any(part in what for what in found) for part in missed)


def test_the_server_s_time_is_compared() -> None:
    """The server's processor time has a floor as the worker's has."""
    assert turn_ratios(_turns(server_ms=1.5))["plain, turn 1,000: server CPU"] == 1.5
