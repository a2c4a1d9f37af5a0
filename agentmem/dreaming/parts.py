"""A phase's talk in parts: what does not fit into one request, and what was too much for one.

A reply that ends at its token limit, or a prompt that the model finds too long, halves its part,
at most twice; the same request is never sent again.
"""

from collections.abc import Callable, Iterator, Sequence

from agentmem.dreaming.exchange import Work
from agentmem.dreaming.job import Blocks, Job, Talk
from agentmem.errors import ContextOverflow
from agentmem.values import JSONObject, dump_json, encoded_size

HALVINGS = 2

Lines = Sequence[JSONObject]


async def talk(
    job: Job, work: Work, lines: Lines, blocks: Callable[[Lines], Blocks], most: int = 0
) -> Talk:
    """Put lines of data before the model, in as many parts as they need.

    Args:
        job: The phase.
        work: Does what the model says.
        lines: What is split into parts; without any there is one part all the same.
        blocks: The data of a part.
        most: Parts at most; what is left over is not shown. 0 for all.
    """
    found = Talk()
    parts = list(split(lines, job.desk.kept.sizes.chunk))
    for part in parts[: most or len(parts)]:
        await _held(job, work, part, blocks, found, HALVINGS)
    return found


def split(lines: Lines, room: int) -> Iterator[Lines]:
    """Split lines into parts of so many bytes, of one line at least."""
    part: list[JSONObject] = []
    size = 0
    for line in lines:
        length = encoded_size(dump_json(line))
        if part and size + length > room:
            yield part
            part, size = [], 0
        part.append(line)
        size += length
    yield part


async def _held(
    job: Job,
    work: Work,
    part: Lines,
    blocks: Callable[[Lines], Blocks],
    found: Talk,
    halvings: int,
) -> None:
    halves = halvings > 0 and len(part) > 1
    exchange = job.exchange(work, blocks(part), calls=found.calls, halves=halves)
    try:
        await exchange.run()
        too_much = halves and exchange.cut_off and not exchange.handed_in
    except ContextOverflow:
        if not halves:
            raise
        too_much = True
    found.add(exchange, whole=not too_much)
    if too_much:
        middle = len(part) // 2
        for half in (part[:middle], part[middle:]):
            await _held(job, work, half, blocks, found, halvings - 1)
