"""One phase of one dream at work: its talk with the model, its result, its words for people."""

from collections.abc import Sequence
from dataclasses import dataclass

from agentmem.contracts import Phase, PhaseResult
from agentmem.dreaming.exchange import Exchange, Work
from agentmem.dreaming.prompts import phase_message
from agentmem.dreaming.replies import REPLY_TOKENS, Asker, Progress, Replies
from agentmem.dreaming.snapshot import Desk, Kept
from agentmem.dreaming.tools import PhaseName
from agentmem.errors import DreamFailed
from agentmem.values import JSONObject

Blocks = Sequence[tuple[str, Sequence[JSONObject]]]


@dataclass(frozen=True, kw_only=True)
class Job:
    """One phase of one dream.

    Attributes:
        name: Which phase.
        phase: What was asked for.
        desk: The dream.
        ask: Asks the model.
        progress: Told small counters.
    """

    name: PhaseName
    phase: Phase
    desk: Desk
    ask: Asker
    progress: Progress

    async def talk(self, work: Work, blocks: Blocks) -> Exchange:
        """Put data before the model and let it work until the phase ends."""
        desk = self.desk
        replies = Replies(
            ask=self.ask,
            provider=desk.provider,
            store=desk.store,
            dream=desk.record.id,
            phase=self.name,
            model=self.phase.model,
            progress=self.progress,
        )
        messages = [*desk.prefix, phase_message(self.name, desk.record.id, blocks)]
        exchange = Exchange(replies=replies, work=work, limit=self.phase.limit, messages=messages)
        await exchange.run()
        return exchange

    async def end(
        self,
        kept: Kept,
        summary: str,
        counts: dict[str, int],
        exchange: Exchange | None = None,
    ) -> PhaseResult:
        """Keep the phase's result, and return it."""
        result = PhaseResult(summary=summary, counts=counts)
        if exchange is None:
            result = result.replace(summary=f"{summary}, no model call")
        else:
            result = result.replace(usage=exchange.replies.usage, trace=exchange.trace)
            if exchange.limit_reached:
                kept = noted(kept, f"{self.name}: limit_reached, {exchange.calls} tool calls")
        return await self.desk.save(kept, self.name, result)


def noted(kept: Kept, note: str) -> Kept:
    """Return what phases keep with one more note for the report."""
    return kept.replace(notes=[*kept.notes, note])


def nothing_handed_in(job: Job, exchange: Exchange) -> DreamFailed:
    """Return the error of a phase that code cannot stand in for, in words for people."""
    if exchange.limit_reached:
        why = "its limit of tool calls is reached"
    elif exchange.cut_off:
        why = f"its reply was cut off at {REPLY_TOKENS} tokens"
    else:
        why = "it answered in prose"
    return DreamFailed(
        f"{job.phase.model} handed in nothing in {job.name}: {why}. A model that calls tools, or a "
        "larger one, may do better; the messages wait for the next dream"
    )
