"""What compaction does to a conversation: when it is due, what is shortened, what is summarised."""

from collections.abc import Sequence
from dataclasses import dataclass

from agentmem.contracts.agents import MemorySettings
from agentmem.memory.view import SHORTENED_BYTES
from agentmem.messages import Group, Message, Role, estimate_tokens
from agentmem.values import clip, encoded_size

INPUT_TOKENS = 50_000
"""The most that one compaction takes in; what is over it waits for the next turn."""

WORTHWHILE = 0.1
"""The share of `max_tokens` that must have become old since the last summary: where what may not
be summarised is over the threshold alone, each turn would pay for a summary of next to nothing."""

SUMMARY_SHARE = 0.5
"""The share of `max_tokens` that a summary may take: the conversation needs the other half."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What compaction is to do.

    Attributes:
        shorten: Ids of tool results to be shown shortened from now on.
        replace: Ids of the messages that a summary is to stand for: whole groups from the front,
            the summary before included. Empty where shortening is enough.
    """

    shorten: list[str]
    replace: list[str]


def plan(
    groups: Sequence[Group], settings: MemorySettings, *, prompt_tokens: int, overflow: bool = False
) -> Plan | None:
    """Say what compaction is to do now, if it is due.

    It is due when the conversation, what the window hides included, or the last request was over
    the threshold. Messages before the last `compact_preserve` may go, and the newest user message
    and what follows it never do. Their tool results are shortened first, and they are summarised
    if that is not enough.

    Args:
        groups: The conversation as a model is shown it: tool results shortened before stand so.
        settings: Of the working memory.
        prompt_tokens: The last request's tokens as the provider counted them; 0 if unknown.
        overflow: The provider refused the prompt: compaction is due, whatever the estimate says.
    """
    if not settings.compact_model or settings.max_tokens is None:
        return None
    limit = settings.max_tokens * settings.compact_threshold
    used = max(tokens(groups), prompt_tokens)
    if used <= limit and not overflow:
        return None
    old = groups[: _cut(groups, settings.compact_preserve)]
    large = [message for group in old for message in group if _is_large(message)]
    saved = sum(estimate_tokens(m) - estimate_tokens(shortened(m)) for m in large)
    worth = 1 if overflow else settings.max_tokens * WORTHWHILE
    fresh = [group for group in old if group[0].role is not Role.SUMMARY]
    is_enough = used - saved <= limit and not overflow
    goes = not is_enough and bool(fresh) and tokens(fresh) - saved >= worth
    return Plan(
        shorten=[message.id for message in large],
        replace=[message.id for group in _front(old) for message in group] if goes else [],
    )


def fits(summary: Message, replaced: Sequence[Message], settings: MemorySettings) -> bool:
    """Tell whether a summary is smaller than what it replaces, and leaves room beside it."""
    size = estimate_tokens(summary)
    room = (settings.max_tokens or 0) * SUMMARY_SHARE
    return bool(summary.text.strip()) and size < tokens([replaced]) and size <= room


def shortened(message: Message) -> Message:
    """Return a tool result as it is shown once it is old."""
    return message.replace(content=clip(message.text, SHORTENED_BYTES))


def tokens(groups: Sequence[Group]) -> int:
    """Estimate the tokens of groups."""
    return sum(estimate_tokens(message) for group in groups for message in group)


def _cut(groups: Sequence[Group], preserve: int) -> int:
    """Return how many groups from the front may go."""
    cut = len(groups)
    kept = 0
    while cut and kept < preserve:
        cut -= 1
        kept += len(groups[cut])
    users = [index for index, group in enumerate(groups) if group[0].role is Role.USER]
    return min(cut, users[-1]) if users else 0


def _front(groups: Sequence[Group]) -> Sequence[Group]:
    """Return the groups from the front that one compaction takes in, two at least."""
    size = 0
    for taken, group in enumerate(groups):
        size += tokens([group])
        if taken >= 2 and size > INPUT_TOKENS:
            return groups[:taken]
    return groups


def _is_large(message: Message) -> bool:
    # Parts that are no text, such as images, cannot be shortened.
    return (
        message.role is Role.TOOL_RESULT
        and isinstance(message.content, str)
        and encoded_size(message.content) > SHORTENED_BYTES
    )
