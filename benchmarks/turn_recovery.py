"""How soon a session answers again when its only worker is gone."""

import asyncio
import signal
import time

from benchmarks.turn_floors import question
from benchmarks.turn_stage import Contender, Stage

Seconds = dict[str, list[float]]

KINDS = ("held", "plain")


async def recovery(
    stage: Stage, rounds: int, long: int = 200, short: int = 100
) -> dict[str, Seconds]:
    """Measure what a new worker needs, from when it is ready (it has answered another session).

    Args:
        stage: Where.
        rounds: How often each.
        long: Turns of the session that a new worker takes over after an orderly stop.
        short: Turns of the session whose worker is killed.
    """
    found: dict[str, Seconds] = {
        f"next answer, new worker, {long} turns": {},
        f"next answer after SIGKILL, {short} turns": {},
        "answer after SIGKILL in a model call, from the kill": {},
        "new worker ready after that kill": {},
    }
    stopped, killed, in_call, ready = found.values()
    contenders = [stage.contender(kind) for kind in KINDS]
    try:
        for contender in contenders:
            await contender.start_worker()
            await contender.begin()
        await _talk(contenders, 1, short)
        for _ in range(rounds):
            for contender in contenders:
                killed.setdefault(contender.kind, []).append(
                    await _replaced(contender, signal.SIGKILL)
                )
        await _talk(contenders, short + rounds, long)
        for _ in range(rounds):
            for contender in contenders:
                stopped.setdefault(contender.kind, []).append(
                    await _replaced(contender, signal.SIGTERM)
                )
        ours = contenders[-1]
        pairs = [await _killed_in_call(stage, ours) for _ in range(rounds)]
        in_call[ours.kind], ready[ours.kind] = map(list, zip(*pairs, strict=True))
    finally:
        for contender in contenders:
            await contender.end_worker(signal.SIGTERM)
    return found


async def _talk(contenders: list[Contender], first: int, last: int) -> None:
    for number in range(first, last + 1):
        for contender in contenders:
            await contender.say(question(number, 0))


async def _replaced(contender: Contender, number: signal.Signals) -> float:
    await contender.end_worker(number)
    await contender.start_worker()
    return await contender.say(question(0, 0))


async def _killed_in_call(stage: Stage, contender: Contender) -> tuple[float, float]:
    """Return when the answer came and when the new worker was ready, in seconds from the kill."""
    stage.model.held.clear()
    stage.model.holding = True
    answered: list[float] = []
    answer = asyncio.create_task(contender.say(question(0, 0)))
    answer.add_done_callback(lambda _: answered.append(time.perf_counter()))
    await stage.model.held.wait()
    stage.model.holding = False
    began = time.perf_counter()
    await contender.end_worker(signal.SIGKILL)
    await contender.start_worker()
    ready = time.perf_counter() - began
    await answer
    await asyncio.sleep(0)  # for the callback
    return answered[0] - began, ready
