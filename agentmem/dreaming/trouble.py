"""The treatment of messages that dreams failed on: fewer of them at a time, at last none.

Only failures that lie with the input count: a model that hands in nothing, or refuses the prompt.
A model that cannot be reached says nothing about the messages.
"""

from collections.abc import Sequence

from agentmem.dreaming.snapshot import Kept
from agentmem.memory.providers.protocol import DreamRecord, TranscriptRow
from agentmem.values import Wire


class Portion(Wire):
    """The number of the new messages that a dream takes.

    Attributes:
        messages: The first so many.
        unreadable: Whether the first of them has failed alone, twice: it is passed over.
    """

    messages: int
    unreadable: bool = False


def portion(rows: Sequence[TranscriptRow], earlier: Sequence[DreamRecord]) -> Portion:
    """Return how many of these messages to take, after dreams that failed on them.

    The second failure on the same messages halves them. One that still fails, twice, is passed
    over, so that nothing blocks a scope for ever.

    Args:
        rows: The new messages, in order.
        earlier: The scope's dreams, the newest first.
    """
    sizes = [Kept.model_validate(one.data).messages for one in earlier if _failed_on(one, rows[0])]
    if not sizes:
        return Portion(messages=len(rows))
    if len(sizes) == 1 or sizes[1] != sizes[0]:
        return Portion(messages=min(len(rows), sizes[0]))
    if sizes[0] == 1:
        return Portion(messages=len(rows), unreadable=True)
    return Portion(messages=min(len(rows), sizes[0] // 2))


def passed_over(row: TranscriptRow) -> str:
    """Return what the report says of a message that was passed over."""
    return (
        f"unreadable: a message of {row.at.isoformat(timespec='minutes')} ({row.role}, "
        f"{row.session}/{row.memory}/{row.message}) failed dreams and was passed over"
    )


def _failed_on(record: DreamRecord, first: TranscriptRow) -> bool:
    if record.status != "running" or not record.data.get("failed") or not record.ranges:
        return False
    begin = record.ranges[0]
    return (begin.session, begin.memory, begin.first) == (first.session, first.memory, first.seq)
