"""The data a working memory hands on to a new run of its workflow, and how it is kept small."""

from collections.abc import Callable, Sequence

from temporalio import workflow

from agentmem.contracts.calls import ScopeRef
from agentmem.errors import InvalidInput
from agentmem.inputs import handed_on
from agentmem.memory.message_log import MessageLog
from agentmem.messages import Group, Message, Role, from_ranges, in_order, to_ranges
from agentmem.wire import PACKED_BYTES, Wire, unpack

LEFT = (
    "[Earlier messages are not shown any more: the conversation is longer than working memory "
    "can hold.]"
)
"""Stands for messages that had to leave the conversation when it went on in a new run."""

RAW_BYTES = 8 * PACKED_BYTES
"""The most bytes of messages that a run tries to hand on; much talk gets 3 to 4 times smaller."""


class CarriedTranscript(Wire):
    """The progress of the transcript of one scope.

    Attributes:
        store: The scope.
        acknowledged: The last sequence number that the store has confirmed.
        numbered: Ids of the messages with the numbers after it, as ranges.
        late: Ids of messages that it has and was not yet told to forget, as ranges.
    """

    store: ScopeRef
    acknowledged: int = 0
    numbered: list[str] = []
    late: list[str] = []


class CarriedMemory(Wire):
    """A working memory between two runs.

    Attributes:
        messages: In order: those of the conversation, and those that a transcript still lacks.
        shown: Ids of the conversation's messages in order, as ranges.
        forgotten: Ids of messages that must stay forgotten, as ranges.
        shortened: Ids of tool results that are shown shortened, as ranges.
        transcripts: How far they are.
        given: Call ids as code wrote them, to our own, of the calls that go along.
        session: The run in which the conversation began; empty in what older versions wrote.
        next: The number of the next id.
        turn: The number of the last turn.
        summaries: How many were made.
        cap: The most tokens of a view, after an overflow.
        prompt_tokens: Of the last request.
    """

    messages: list[Message] = []
    shown: list[str] = []
    forgotten: list[str] = []
    shortened: list[str] = []
    transcripts: list[CarriedTranscript] = []
    given: dict[str, str] = {}
    session: str = ""
    next: int = 0
    turn: int = 0
    summaries: int = 0
    cap: int | None = None
    prompt_tokens: int = 0


def checked_dump(restore: object) -> CarriedMemory:
    """Read what code gives as `restore`.

    Raises:
        InvalidInput: It is no dump.
        NewerVersion: It is none that this version reads, and an earlier run handed it on.
    """
    if isinstance(restore, CarriedMemory):
        return restore
    if not isinstance(restore, bytes):
        kind = type(restore).__name__
        raise InvalidInput(f"restore takes the bytes that dump() gave, not {kind}")
    try:
        return unpack(CarriedMemory, restore, "restore")
    except InvalidInput as error:
        if not workflow.in_workflow():
            raise
        raise handed_on(error) from None


def take(
    log: MessageLog, shown: Sequence[Group], transcripts: Sequence[CarriedTranscript]
) -> CarriedMemory:
    """Return what is handed on of the messages; the rest of the fields is the caller's.

    Args:
        log: All messages of the run.
        shown: The groups that go on.
        transcripts: What they lack goes on too, at full length and without being shown.
    """
    lacking = {i for transcript in transcripts for i in from_ranges(transcript.numbered)}
    taken = {message.id: message for group in shown for message in group}
    for message_id in lacking:
        taken[message_id] = log[message_id]
    late = {i for transcript in transcripts for i in from_ranges(transcript.late)}
    return CarriedMemory(
        messages=[taken[message_id] for message_id in in_order(taken)],
        shown=to_ranges([message.id for group in shown for message in group]),
        forgotten=to_ranges(in_order(log.forgotten & taken.keys() | late)),
        shortened=to_ranges(in_order(log.shortened & taken.keys())),
        transcripts=list(transcripts),
        next=log.next,
    )


def restored(carried: CarriedMemory) -> MessageLog:
    """Return the messages as they were."""
    log = MessageLog()
    log.next = carried.next
    log.forgotten = set(from_ranges(carried.forgotten))
    messages = {message.id: message for message in carried.messages}
    for message in carried.messages:
        log.note(message)
    for message_id in from_ranges(carried.shown):
        log.keep(messages[message_id])
    log.shorten(from_ranges(carried.shortened))
    return log


def pack_within(
    shown: Sequence[Group],
    packed: Callable[[Sequence[Group]], bytes],
    marker: Message,
    limit: int = PACKED_BYTES,
) -> bytes | None:
    """Pack a conversation, without its oldest groups where the whole is too large.

    A summary at the front always stays; where there is none, a marker stands for what left. The
    size decides what the next run is handed, and not what this run does: other builds of zlib
    may pack a little worse. Only where what must go along is too large by itself, this run stays.

    Args:
        shown: The conversation's groups.
        packed: Packs some of them, with whatever goes on besides.
        marker: Stands for what left.
        limit: Bytes of the result.

    Returns:
        The bytes; None if what goes on besides is too large by itself.
    """
    first = list(shown[:1]) if shown and shown[0][0].role is Role.SUMMARY else list[Group]()
    rest = list(shown[len(first) :])
    sizes = [sum(len(m.model_dump_json()) for m in group) for group in rest]
    room = RAW_BYTES
    while True:
        kept = _newest(sizes, room)
        front = first or ([[marker]] if kept < len(rest) else [])
        result = packed([*front, *rest[len(rest) - kept :]])
        if len(result) <= limit:
            return result
        if not kept:
            return None
        # At least one group less each time, and about as many as are too many.
        taken = sum(sizes[len(sizes) - kept :])
        room = min(taken - 1, int(taken * limit / len(result) * 0.95))


def _newest(sizes: Sequence[int], room: int) -> int:
    """Return how many of the last of these sizes fit."""
    count = 0
    for size in reversed(sizes):
        room -= size
        if room < 0:
            break
        count += 1
    return count
