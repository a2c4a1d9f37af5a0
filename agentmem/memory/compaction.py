"""The compaction of a conversation: when it is due, what is shortened, what is summarised."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agentmem.contracts.agents import MemorySettings
from agentmem.memory.view import SHORTENED_BYTES, latest_calls, turn_start
from agentmem.messages import Group, Message, Role, estimate_tokens
from agentmem.values import clip, encoded_size

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
