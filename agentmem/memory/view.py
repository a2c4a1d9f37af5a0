"""Which messages of a conversation a model is shown: whole groups, newest first."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from agentmem.messages import Group, Message, Role, estimate_tokens

CLIPPED_BYTES = 200
"""The least that is left of a tool result that had to be shortened to fit."""


@dataclass(frozen=True, kw_only=True)
class View:
    """The messages in view, oldest first.

    Attributes:
        messages: Whole groups, in order; the first is the user's or a summary.
        clipped: Messages too large for the budget, with the encoded bytes that each may take.
    """

    messages: list[Message]
    clipped: dict[str, int] = field(default_factory=dict[str, int])


class Sizes:
    """The estimates of a conversation's messages, each made once: a view is chosen at each call."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Message, int]] = {}

    def __call__(self, message: Message) -> int:
        """Return what `estimate_tokens` does."""
        known = self._known.get(message.id)
        if known is None or known[0] is not message:
            known = self._known[message.id] = message, estimate_tokens(message)
        return known[1]


def shown_tokens(view: View) -> int:
    """Estimate the tokens of a view, with what is shown shorter at the size that it is shown in."""
    sizes = ((estimate_tokens(message), view.clipped.get(message.id)) for message in view.messages)
    return sum(size if limit is None else min(size, limit // 4) for size, limit in sizes)


def select(
    groups: Sequence[Group],
    *,
    window: int | None = None,
    max_tokens: int | None = None,
    size: Callable[[Message], int] = estimate_tokens,
) -> View:
    """Choose what is in view.

    Groups are taken whole, from the newest back, while they fit the window (messages) and the
    budget (estimated tokens). The newest user message is always in view, and so is the newest
    group after it: that is the least that a model can be asked with. Where that alone is over the
    budget, its texts are marked to be shortened. A summary, which stands first, is always in view
    too. Nothing stands before the first user message or summary: no provider takes a conversation
    that an assistant opens. `size` says how many tokens a message has.
    """
    newest = next((i for i in reversed(range(len(groups))) if _opens(groups[i])), None)
    if newest is None:
        return View(messages=[])
    minimum = {newest, len(groups) - 1}
    if groups[0][0].role is Role.SUMMARY:
        minimum.add(0)
    least = sum(size(message) for i in minimum for message in groups[i])
    start = _start(groups, minimum, least, window, max_tokens, size)
    kept = [groups[i] for i in sorted(minimum) if i < start] + list(groups[start:])
    while not _opens(kept[0]):
        kept.pop(0)
    messages = [message for group in kept for message in group]
    if max_tokens is None or least <= max_tokens:
        return View(messages=messages)
    return View(messages=messages, clipped=_clips(kept, max_tokens, size))


def _opens(group: Group) -> bool:
    return group[0].role in (Role.USER, Role.SUMMARY)


def _start(
    groups: Sequence[Group],
    minimum: set[int],
    tokens: int,
    window: int | None,
    max_tokens: int | None,
    size: Callable[[Message], int],
) -> int:
    """Return where the newest groups that fit begin; those of the minimum are in already."""
    last = len(groups) - 1
    if window is None and max_tokens is None:
        return 0
    count = sum(len(groups[i]) for i in minimum)
    most = math.inf if window is None else window
    budget = math.inf if max_tokens is None else max_tokens
    start = last
    for index in range(last - 1, -1, -1):
        if index not in minimum:
            group = groups[index]
            count += len(group)
            tokens += sum(map(size, group))
            if count > most or tokens > budget:
                break
        start = index
    return start


def _clips(
    kept: Sequence[Group], max_tokens: int, size: Callable[[Message], int]
) -> dict[str, int]:
    """Say how to shorten the minimum, which alone is over the budget."""
    clipped: dict[str, int] = {}
    *summary, user = [group[0] for group in kept if _opens(group)]
    room = max_tokens - sum(map(size, summary))
    if size(user) > room:
        clipped[user.id] = max(CLIPPED_BYTES, room * 4)
        return clipped | {m.id: CLIPPED_BYTES for m in kept[-1] if m.role is Role.TOOL_RESULT}
    room -= size(user)
    results = [m for m in kept[-1] if m.role is Role.TOOL_RESULT]
    room -= sum(size(m) for m in kept[-1] if m.role is not Role.TOOL_RESULT)
    if results:
        share = max(CLIPPED_BYTES, room * 4 // len(results))
        clipped |= {m.id: share for m in results if size(m) * 4 > share}
    return clipped
