"""Run the fault cells, the replays and the load, and write the page on them: `make reliability`.

`--cells`, `--replay` and `--load` run one of the three, and the page keeps the others; `--page`
runs none. `--only TEXT` runs the cells whose name has the text and writes nothing; `--again` runs
those that had harm the last time, and keeps the others.
"""

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from tests.faults import page
from tests.faults.cells import CELLS, EXPLAINED, Cell
from tests.faults.load import load
from tests.faults.world import Outcome, World, run, world
from tests.replay.pythons import interpreters, replay, supported

AT_ONCE = 6
"""Cells at a time: most of their time is spent waiting for timeouts."""

LOADS = [
    (store, workers, sessions)
    for sessions in (200, 100)
    for workers in (2, 1)
    for store in ("sqlite", "postgresql")
]
"""Store, workers and sessions, the hardest first."""


async def run_cells(cells: Sequence[Cell], shared: World, at_once: int) -> list[Outcome]:
    """Run cells, some at a time, and say how each went."""
    slots = asyncio.Semaphore(at_once)

    async def one(cell: Cell) -> Outcome:
        async with slots:
            found = await run(cell, shared)
        say(f"{'ok  ' if found.is_sound else 'HARM'} {found.cell}, {found.counts.seconds} s")
        if not found.is_sound:
            say(f"     {found.counts.harm}{'' if found.struck else ', the fault did not strike'}")
            for note in found.notes:
                say(f"     {note[:400]}")
        return found

    return list(await asyncio.gather(*map(one, cells)))


async def run_loads(shared: World, told: str) -> None:
    """Run the loads one after the other, say how each went, and keep what was counted.

    Args:
        shared: The servers.
        told: The machine, for the page.
    """
    found: list[page.Row] = []
    for one in LOADS:
        found.append({**asdict(await load(shared, *one)), "machine": told})
        say(str(found[-1]))
        save(page.LOAD, found)


def say(line: str) -> None:
    """Write a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def keep(outcomes: Sequence[Outcome]) -> None:
    """Keep what was counted, in the order of the cells; other cells stay as they were."""
    known = {one["cell"]: one for one in page.read(page.CELLS)}
    known |= {one.cell: {**asdict(one), "notes": []} for one in outcomes}
    save(page.CELLS, [known[cell.name] for cell in CELLS if cell.name in known])


def save(path: Path, rows: Sequence[page.Row]) -> None:
    """Write what was counted, a line each."""
    path.parent.mkdir(exist_ok=True)
    path.write_text("[\n" + ",\n".join(json.dumps(one) for one in rows) + "\n]\n")


async def run_replays() -> list[page.Row]:
    """Replay the recorded histories on each supported Python that is on this machine."""
    there, found = interpreters(), list[page.Row]()
    for version in supported():
        said = "not on this machine"
        if version in there:
            _, text = await replay(there[version])
            said = text.strip().splitlines()[-1]
        found.append({"python": version, "said": said})
        say(f"Python {version}: {said}")
    return found


def machine() -> str:
    """Return what this machine is."""
    gigabytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    cores = len(os.sched_getaffinity(0))
    return (
        f"{cores} cores and {gigabytes:.0f} GiB, for servers, workers, model and clients together; "
        f"its load average was {os.getloadavg()[0]:.1f} before, by other work"
    )


def chosen(given: argparse.Namespace) -> list[Cell]:
    """Return the cells that were asked for."""
    if given.only:
        return [cell for cell in CELLS if given.only in cell.name]
    if given.again:
        sound = {one["cell"] for one in page.read(page.CELLS) if page.is_sound(one)}
        return [cell for cell in CELLS if cell.name not in sound]
    return CELLS if given.cells else []


async def main(given: argparse.Namespace) -> int:
    """Run what was asked for; returns how many cells had harm."""
    cells, told = chosen(given), machine()
    outcomes = list[Outcome]()
    if cells or given.load:
        async with world() as shared:
            outcomes = await run_cells(cells, shared, given.at_once)
            say(f"{sum(one.is_sound for one in outcomes)} of {len(outcomes)} cells without harm")
            if given.load:
                await run_loads(shared, told)
    if given.replay:
        save(page.REPLAY, await run_replays())
    if not given.only:
        keep(outcomes)
        page.PAGE.write_text(page.current(EXPLAINED))
    return sum(not one.is_sound and one.cell not in EXPLAINED for one in outcomes)


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.reliability")
    for name in ("cells", "replay", "load", "page", "again"):
        parser.add_argument(f"--{name}", action="store_true")
    parser.add_argument("--only", default="", metavar="TEXT")
    parser.add_argument("--at-once", type=int, default=AT_ONCE)
    given = parser.parse_args()
    if not any((given.cells, given.replay, given.load, given.page, given.again, given.only)):
        given.cells = given.replay = given.load = True
    return given


if __name__ == "__main__":
    sys.exit(min(asyncio.run(main(options())), 1))
