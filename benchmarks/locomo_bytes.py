"""Measure what a turn adds to a session's history when people's talk is said, against the floor.

    python -m benchmarks.locomo_bytes PATH/locomo10.json

The text of the other benchmarks packs better than talk does, and what is in view goes along packed
to each new run of a session. Bytes are the same on any machine; no time is measured. Needs the data
set's file (snap-research/LoCoMo, CC BY-NC 4.0), which is not part of this project.
"""

import argparse
import asyncio
import json
import tempfile
from collections.abc import Iterator
from itertools import cycle, islice, pairwise
from pathlib import Path

from rich.console import Console

from benchmarks.locomo import sessions
from benchmarks.model import Model
from benchmarks.report import Sheet
from benchmarks.stage import FLOOR, OURS, Contender, stage
from benchmarks.turn import SIZED
from benchmarks.turn_cases import MARKS

SIZES = (100, 1_000)
"""Characters of a message and of an answer."""

Said = dict[str, str]
"""The user's messages, in order, each with its answer."""


class Talker(Model):
    """A model that answers with what the other one said in a conversation."""

    def __init__(self, answers: Said) -> None:
        super().__init__()
        self._answers = answers

    def answer(self, said: str) -> tuple[int, str]:
        """Return the answer; to another message, as to one that warms a worker up, any."""
        return 0, self._answers.get(said, "y")


def words(path: Path) -> Iterator[str]:
    """Give what was said in all conversations of the file, without days and names."""
    for one in json.loads(path.read_text()):
        for _, turns in sessions(one["conversation"]):
            yield from (turn["text"] for turn in turns)


def talk(text: str, size: int) -> Said:
    """Cut a text into messages and answers of a size, from its beginning again at its end."""
    pieces = [text[at : at + size].strip() for at in range(0, len(text) - size, size)]
    wanted = (2 * MARKS[-1] // len(pieces) + 1) * pieces
    return dict(zip(wanted[::2], wanted[1::2], strict=False))


async def hold(contender: Contender, said: Said) -> dict[int, int]:
    """Hold a session; returns the bytes of its history by the number of turns."""
    session = await contender.open()
    sizes = {0: 0}
    for number, message in enumerate(islice(cycle(said), MARKS[-1]), 1):
        await session.say(message)
        if number % SIZED == 0:
            sizes[number] = (await session.history())[0]
    await session.handle.terminate()
    return sizes


async def measure(path: Path) -> list[list[str]]:
    """Hold the sessions of each size with both contenders, and return the rows."""
    text = " ".join(words(path))
    said = {size: talk(text, size) for size in SIZES}
    model = Talker({message: pairs[message] for pairs in said.values() for message in pairs})
    rows: list[list[str]] = []
    with tempfile.TemporaryDirectory() as folder:
        async with (
            stage(Path(folder), model) as made,
            made.contenders([FLOOR, OURS]) as contenders,
        ):
            for size, pairs in said.items():
                floor, ours = await asyncio.gather(*(hold(one, pairs) for one in contenders))
                for before, mark in pairwise((0, *MARKS)):
                    held, own = (
                        (sizes[mark] - sizes[before]) / (mark - before) for sizes in (floor, ours)
                    )
                    cells = (f"{held / 1000:.2f}", f"{own / 1000:.2f}", f"{own / held:.2f}")
                    rows.append([f"{size:,}", f"{mark:,}", *cells])
    return rows


def main() -> None:
    """Read the command line, measure, show the table."""
    parser = argparse.ArgumentParser(description="A turn's bytes of history, with people's talk.")
    parser.add_argument("path", type=Path, help="locomo10.json")
    rows = asyncio.run(measure(parser.parse_args().path))
    columns = ("characters", "turn", "held kB", "agentmem kB", "kB / held")
    Console().print(Sheet(title="A turn of talk", columns=columns, rows=rows).shown())


if __name__ == "__main__":
    main()
