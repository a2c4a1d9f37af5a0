"""One phase of one dream: its exchanges with the model, its result, its words.

A phase that does not fit into one request is split into parts. A reply that ends at its token
limit, or a prompt that the model finds too long, halves its part, at most twice; the same request
is never sent again.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from agentmem.contracts import PhaseName, PhaseResult, PhaseRun, Trace
from agentmem.dreaming.model_exchange import PhaseConversation, Work
from agentmem.dreaming.model_replies import Asker, Progress, Replies
from agentmem.dreaming.prompts import phase_message
from agentmem.dreaming.snapshot import Desk, Kept
from agentmem.dreaming.tools import offered
from agentmem.errors import ContextOverflow, DreamFailed
from agentmem.wire import JSONObject, dump_json, encoded_size

FEW_FACTS = 10
"""A scope with fewer facts has no beginning that is worth a provider's cache."""

Blocks = Sequence[tuple[str, Sequence[JSONObject]]]


@dataclass(kw_only=True)
class Talk:
    """A phase's talk with its model, all parts together.

    Attributes:
        calls: Tool calls made.
        trace: What was called and how it went.
        parts: Parts that the data was shown in.
        handed_in: Whether each part was handed in.
        limit_reached: Whether the limit of calls ended one.
        cut_off: Whether the last reply ended at the token limit.
        closing: The model's last text.
    """

    calls: int = 0
    trace: list[Trace] = field(default_factory=list[Trace])
    parts: int = 0
    handed_in: bool = True
    limit_reached: bool = False
    cut_off: bool = False
    closing: str = ""

    def add(self, exchange: PhaseConversation, *, whole: bool = True) -> None:
        """Add an exchange; one that was not `whole` is repeated in halves."""
        self.calls += exchange.calls
        self.trace += exchange.trace
        self.cut_off = exchange.cut_off
        self.closing = exchange.closing or self.closing
        if whole:
            self.parts += 1
            self.handed_in = self.handed_in and exchange.handed_in
            self.limit_reached = self.limit_reached or exchange.limit_reached


@dataclass(kw_only=True)
class Job:
    """One phase of one dream.

    Attributes:
        name: Which phase.
        phase: What was asked for.
        desk: The dream.
        ask: Asks the model.
        progress: Told small counters.
        replies: The phase's model calls, in order, over all of its exchanges.
    """

    name: PhaseName
    phase: PhaseRun
    desk: Desk
    ask: Asker
    progress: Progress
    replies: Replies = field(init=False)

    def __post_init__(self) -> None:
        """Make the replies."""
        self.replies = Replies(
            ask=self.ask,
            provider=self.desk.provider,
            store=self.desk.store,
            dream=self.desk.record.id,
            phase=self.name,
            model=self.phase.model,
            tokens=self.desk.kept.sizes.reply,
            tools=offered(self.name, small=self._small),
            progress=self.progress,
            forgets=self.desk.kept.forgets,
        )

    @property
    def _small(self) -> bool:
        """Tell if requests offer only the phase's own tools: nothing worth caching is shared."""
        return self.desk.kept.sizes.small or len(self.desk.record.snapshot) < FEW_FACTS

    def exchange(
        self, work: Work, blocks: Blocks, *, calls: int, halves: bool, task: str = ""
    ) -> PhaseConversation:
        """Return a talk about these data, not yet begun.

        Args:
            work: Does what the model says.
            blocks: The data.
            calls: Tool calls that the phase has made already.
            halves: Whether a reply that was cut off ends it, since less will be shown then.
            task: What the model is to do, the phase's own task if empty.
        """
        return PhaseConversation(
            replies=self.replies,
            work=work,
            limit=max(0, self.phase.limit - calls),
            messages=[
                *self.desk.prefix,
                phase_message(self.name, self.desk.record.id, blocks, task),
            ],
            halves=halves,
        )

    async def end(
        self, kept: Kept, summary: str, counts: dict[str, int], talk: Talk | None = None
    ) -> PhaseResult:
        """Keep the phase's result, and return it."""
        result = PhaseResult(summary=summary, counts=counts)
        if talk is None:
            result = result.replace(summary=f"{summary}, no model call")
        else:
            result = result.replace(usage=self.replies.usage, trace=talk.trace)
            if talk.limit_reached:
                kept = noted(kept, f"{self.name}: limit_reached, {talk.calls} tool calls")
        return await self.desk.save(kept, self.name, result)


def noted(kept: Kept, note: str) -> Kept:
    """Return what phases keep with one more note for the report."""
    return kept.replace(notes=[*kept.notes, note])


def nothing_handed_in(job: Job, talk: Talk) -> DreamFailed:
    """Return the error of a phase that code cannot stand in for, in words for people."""
    if talk.limit_reached:
        why = "its limit of tool calls is reached"
    elif talk.cut_off:
        why = f"its reply was cut off at {job.replies.tokens} tokens"
    else:
        why = "it answered in prose, or with nothing that could be used"
    return DreamFailed(
        f"{job.phase.model} handed in nothing in {job.name}: {why}. A model that calls tools, or a "
        "larger one, may do better; the messages wait for the next dream"
    )


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
