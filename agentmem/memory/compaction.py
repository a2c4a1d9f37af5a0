"""Compaction: when it is due, what is shortened or summarised, and recovery from an overflow.

The activity's side is in `activities/compact.py`, with the requests in `agentmem/llm/summaries.py`.
"""

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from temporalio import workflow
from temporalio.common import Priority
from temporalio.exceptions import ActivityError, ApplicationError

from agentmem import contracts
from agentmem.contracts import Compact, Definition, MemorySettings, Usage
from agentmem.error_text import describe, failed_call, raise_cancellation
from agentmem.memory.selection import SHORTENED_BYTES, latest_calls, turn_start
from agentmem.memory.tools import MEMORY_TOOLS
from agentmem.messages import Group, Message, Role, estimate_tokens
from agentmem.wire import clip, encoded_size

if TYPE_CHECKING:
    from agentmem.memory.working import WorkingMemory
from agentmem.policies import COMPACT
from agentmem.queues import until_taken
from agentmem.wire import dump_json

INPUT_TOKENS = 50_000
"""The most that one compaction takes in; what is over it waits for the next model call."""

OLD_BYTES = 2_000
"""Encoded bytes that a summariser reads of a tool result which is shown shortened."""

WORTHWHILE = 0.1
"""The share of `max_tokens` that must have become old since the last summary: where what may not
be summarised is over the threshold alone, each turn would pay for a summary of next to nothing."""

SUMMARY_SHARE = 0.5
"""The share of `max_tokens` that a summary may take: the conversation needs the other half."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The work that compaction is to do.

    Attributes:
        shorten: Ids of tool results to be shown shortened from now on.
        replace: Ids of the messages that a summary is to stand for: whole groups from the front,
            the summary before included, the running turn's question left out. Empty where
            shortening is enough.
    """

    shorten: list[str]
    replace: list[str]


def plan(
    groups: Sequence[Group],
    settings: MemorySettings,
    *,
    prompt_tokens: int,
    turn: int | None = None,
    overhead: int = 0,
    overflow: bool = False,
    size: Callable[[Message], int] = estimate_tokens,
) -> Plan | None:
    """Say what compaction is to do now, if it is due.

    It is due when the conversation, what the window hides included, is over the threshold, by the
    estimate or by the part that it has in the last request's real tokens. What a summary cannot
    shrink, the system prompt and the tools, does not count.

    Messages before the last `compact_preserve` may go. Tool results from before the running turn
    are shortened first, and messages are summarised if that is not enough. Of the running turn the
    question and the latest tool calls with all that follows them stay as they are; its earlier
    calls go, also those among the last `compact_preserve` messages, if the threshold has no room
    for all of these. While no turn runs, the newest user message and what follows it stay.

    Args:
        groups: The conversation as a model is shown it: tool results shortened before stand so.
        settings: Of the working memory.
        prompt_tokens: The last request's tokens as the provider counted them; 0 if unknown.
        turn: The number of the running turn; None while none runs.
        overhead: The estimated tokens of each request's fixed part.
        overflow: The provider refused the prompt: compaction is due, whatever the estimate says.
        size: Says how many tokens a message has.
    """
    if not settings.compact_model or settings.max_tokens is None:
        return None
    limit = settings.max_tokens * settings.compact_threshold
    said = tokens(groups, size)
    used = max(said, prompt_tokens * said // max(1, said + overhead))
    if used <= limit and not overflow:
        return None
    begin = turn_start(groups, turn)
    cut = _cut(groups, begin, settings.compact_preserve, limit, size)
    earlier, work = groups[: min(begin, cut)], groups[begin:cut]
    old = [*earlier, *(group for at, group in enumerate(work) if at or not _asks(group))]
    large = [message for group in earlier for message in group if _is_large(message)]
    saved = sum(size(m) - estimate_tokens(shortened(m)) for m in large)
    worth = 1 if overflow else settings.max_tokens * WORTHWHILE
    fresh = [group for group in old if group[0].role is not Role.SUMMARY]
    is_enough = used - saved <= limit and not overflow
    goes = not is_enough and bool(fresh) and tokens(fresh, size) - saved >= worth
    return Plan(
        shorten=[message.id for message in large],
        replace=[m.id for group in _front(old, size) for m in group] if goes else [],
    )


def fits(summary: Message, replaced: Sequence[Message], settings: MemorySettings) -> bool:
    """Tell whether a summary is smaller than what it replaces, and leaves room beside it."""
    size = estimate_tokens(summary)
    room = (settings.max_tokens or 0) * SUMMARY_SHARE
    return bool(summary.text.strip()) and size < tokens([replaced]) and size <= room


def shortened(message: Message) -> Message:
    """Return a tool result as it is shown once it is old."""
    return message.replace(content=clip(message.text, SHORTENED_BYTES))


def tokens(groups: Sequence[Group], size: Callable[[Message], int] = estimate_tokens) -> int:
    """Estimate the tokens of groups."""
    return sum(size(message) for group in groups for message in group)


def _cut(
    groups: Sequence[Group],
    begin: int,
    preserve: int,
    limit: float,
    size: Callable[[Message], int],
) -> int:
    """Return how many groups from the front may go; `begin` is where the running turn begins."""
    cut = len(groups)
    kept = 0
    while cut and kept < preserve:
        cut -= 1
        kept += len(groups[cut])
    if begin >= len(groups) - 1:
        users = [index for index, group in enumerate(groups) if _asks(group)]
        return min(cut, users[-1]) if users else 0
    latest = begin + latest_calls(groups[begin:])
    stays = tokens(groups[cut:], size)
    while cut < latest and stays > limit:
        stays -= tokens(groups[cut : cut + 1], size)
        cut += 1
    return min(cut, latest)


def _asks(group: Group) -> bool:
    return group[0].role is Role.USER


def _front(groups: Sequence[Group], size: Callable[[Message], int]) -> Sequence[Group]:
    """Return the groups from the front that one compaction takes in, two at least."""
    total = 0
    for taken, group in enumerate(groups):
        total += tokens([group], size)
        if taken >= 2 and total > INPUT_TOKENS:
            return groups[:taken]
    return groups


def _is_large(message: Message) -> bool:
    # Parts that are no text, such as images, cannot be shortened.
    return (
        message.role is Role.TOOL_RESULT
        and isinstance(message.content, str)
        and encoded_size(message.content) > SHORTENED_BYTES
    )


LARGE = "large"
"""The kind of a failed call whose prompt may be too long, by its size alone."""

LONGEST = 1_000
"""The most words that a summary is asked to have."""


IN_TURNS = "compaction-in-turns"
"""The patch since which compaction runs before each model call of a turn, not before the first
alone, and looks at the conversation without a request's fixed part."""


def counted(paid: Usage) -> Usage:
    """Return what refused replies took; nothing in runs that began before that was counted."""
    return paid if paid != Usage() and workflow.patched("paid-attempts") else Usage()


def overhead(definition: Definition) -> dict[str, int]:
    """Estimate the fixed part of an agent's requests, which no summary can shrink.

    Returns:
        Tokens (bytes / 4) of the `system prompt`, the `tools` and the `response format`.
    """
    own = [MEMORY_TOOLS[t.name][1] for t in definition.tools if t.store and t.name in MEMORY_TOOLS]
    form = definition.response_format
    sizes = {
        "system prompt": encoded_size(definition.system_prompt) // 4,
        "tools": definition.schema_tokens + sum(len(dump_json(schema)) for schema in own) // 4,
        "response format": len(dump_json(form)) // 4 if form else 0,
    }
    return {name: size for name, size in sizes.items() if size}


def warn_of_overhead(definition: Definition, settings: MemorySettings) -> None:
    """Log a warning if an agent's fixed part alone is over the threshold of compaction."""
    if not settings.compact_model or settings.max_tokens is None:
        return
    parts = overhead(definition)
    limit = int(settings.max_tokens * settings.compact_threshold)
    if sum(parts.values()) > limit:
        workflow.logger.warning(
            "agent %s: each request has a fixed part of about %d tokens (%s), over the %d tokens "
            "at which compaction begins (compact_threshold %g of max_tokens %d). No summary makes "
            "it smaller, so only the conversation counts; see that the model takes both",
            definition.name,
            sum(parts.values()),
            ", ".join(f"{name} {size}" for name, size in parts.items()),
            limit,
            settings.compact_threshold,
            settings.max_tokens,
        )


class Compaction:
    """The compaction of a conversation: summaries when due, one answer to an overflow a turn."""

    def __init__(
        self,
        memory: "WorkingMemory",
        spend: Callable[[Usage], None],
        overhead: int = 0,
        *,
        priority: Priority = Priority.default,
        wait: Callable[[timedelta], None] = lambda _: None,
    ) -> None:
        """Keep this conversation within bounds.

        Args:
            memory: The conversation.
            spend: Told what summaries took.
            overhead: The estimated tokens of each request's fixed part.
            priority: Of its calls where they wait for a worker.
            wait: Told how long a call waited for a worker's free slot.
        """
        self._memory = memory
        self._priority = priority
        self._wait = wait
        self._spend = spend
        self._overhead = overhead
        self._asked_in = 0  # turns count from 1
        self._failed_in = 0
        self._recovered_in = 0
        self._is_guess = False
        self._before: int | None = None

    async def run(self, *, overflow: bool = False) -> bool:
        """Compact the conversation if it is due; returns whether that changed anything.

        A summariser that fails or says nothing of use changes nothing but a line in the log, and
        is not asked again in this turn.

        Args:
            overflow: The provider refused the prompt: it is due, whatever the estimate says.
        """
        memory = self._memory
        todo = self._plan(overflow=overflow)
        if todo is None:
            return False
        memory.log.shorten(todo.shorten)
        summarised = bool(todo.replace) and await self._summarise(todo.replace)
        return summarised or bool(todo.shorten)

    def _plan(self, *, overflow: bool) -> Plan | None:
        memory = self._memory
        if not memory.settings.compact_model:
            return None
        due = partial(
            plan,
            memory.log.groups,
            memory.settings,
            prompt_tokens=memory.prompt_tokens,
            overflow=overflow,
            size=memory.sizes,
        )
        todo = due(turn=memory.turn if memory.running else None, overhead=self._overhead)
        has_begun = memory.running and len(memory.turn_messages()) > 1
        before = None if has_begun and not overflow else due()
        # Asked only where it matters: a marker takes an event of the history.
        return todo if todo == before or workflow.patched(IN_TURNS) else before

    async def recover(self, error: ActivityError) -> bool:
        """After a failed model call: make the prompt smaller if it was too long, once a turn.

        Returns:
            Whether the call is worth another try.
        """
        cause = error.cause
        is_overflow = isinstance(cause, ApplicationError) and cause.type == "ContextOverflow"
        if not is_overflow or self._recovered_in == self._memory.turn:
            return False
        self._recovered_in = self._memory.turn
        if failed_call(error).kind == LARGE and workflow.patched("guessed-overflow"):
            # No reason to pay for a summary, which would stay.
            self._before = self._memory.bound
            self._is_guess = True
            return self._memory.halve()
        if not await self.run(overflow=True):
            self._memory.halve()
        return True

    def failed_again(self) -> None:
        """After a recovery that was of no use: where the overflow was a guess, take it back."""
        if self._is_guess:
            self._memory.restore_bound(self._before)

    async def _summarise(self, ids: list[str]) -> bool:
        memory = self._memory
        if self._asked_in == memory.turn and (
            self._failed_in == memory.turn or not workflow.patched(IN_TURNS)
        ):
            return False
        self._asked_in = self._failed_in = memory.turn
        # What is shown shortened is read shortened: it was old when it came to that.
        short = {i: OLD_BYTES for i in ids if i in memory.log.shortened}
        asked = Compact(
            prompt=memory.reference(ids).replace(clipped=short),
            reply=memory.reserve(),
            model=memory.settings.compact_model or "",
            words=min(LONGEST, (memory.settings.max_tokens or 0) // 5 + 1),
        )
        try:
            made = await until_taken(
                lambda look: workflow.execute_activity(
                    contracts.compact,
                    asked,
                    summary=f"{len(ids)} messages of {memory.name}",
                    schedule_to_start_timeout=look,
                    priority=self._priority,
                    **COMPACT,
                ),
                self._wait,
            )
        except ActivityError as error:
            raise_cancellation(error)
            failed = failed_call(error)
            self._wait(timedelta(seconds=failed.waited))
            self._spend(counted(failed.paid))
            workflow.logger.warning("%s is not summarised: %s", memory.name, describe(error))
            return False
        self._wait(timedelta(seconds=made.waited))
        self._spend(made.usage.plus(counted(made.paid)))
        wanted = set(ids)
        replaced = [m for group in memory.log.groups for m in group if m.id in wanted]
        # Other code of the workflow may have forgotten some of them meanwhile, or answered a call.
        is_same = [message.id for message in replaced] == ids and not self._grew(wanted)
        if not is_same or not fits(made.message, replaced, memory.settings):
            why = "the summary is no smaller" if is_same else "its messages changed meanwhile"
            workflow.logger.warning("%s is not summarised: %s", memory.name, why)
            return False
        memory.summarise(ids, made.message)
        self._failed_in = 0
        return True

    def _grew(self, ids: Set[str]) -> bool:
        """Tell whether groups that a summary is to stand for have results that it knows nothing of.

        Args:
            ids: Of their messages when the summary was asked for.
        """
        groups = [group for group in self._memory.log.groups if group[0].id in ids]
        grew = any(message.id not in ids for group in groups for message in group)
        return grew and workflow.patched("late-results")
