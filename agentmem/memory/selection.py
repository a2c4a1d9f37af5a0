"""Which messages of a conversation a model is shown: the running turn, and before it what fits."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from agentmem.messages import CODE_CALLS, Group, Message, Role, estimate_tokens
from agentmem.wire import clip, fair_limit

SHORTENED_BYTES = 800
"""Encoded bytes that are left of an old tool result: what it was about, not what it said."""

CLIPPED_BYTES = 200
"""The least that is left of a text that had to be shortened to fit."""

EARLIER_SHARE = 4
"""The earlier work of a running turn keeps one part in so many of the budget, however large the
latest tool results are."""

NOTE_BYTES = 600
"""Encoded bytes of the note that stands for tool calls which do not fit even shortened."""


@dataclass(frozen=True, kw_only=True)
class View:
    """The messages in view, oldest first.

    Attributes:
        messages: Whole groups, in order.
        clipped: Messages too large for the budget, with the encoded bytes that each may take.
        notes: Texts that stand before a message, by its id, in place of what is left out there.
    """

    messages: list[Message]
    clipped: dict[str, int] = field(default_factory=dict[str, int])
    notes: dict[str, str] = field(default_factory=dict[str, str])


class TokenEstimates:
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
    turn: int | None = None,
    window: int | None = None,
    max_tokens: int | None = None,
    size: Callable[[Message], int] = estimate_tokens,
) -> View:
    """Choose what is in view.

    The running turn is always in view, from its question on, whatever the window and the budget.
    So is a summary, which stands first; one that code memorized is shown shortened where it takes
    over half of the budget. Before the turn, groups are taken whole, from the newest
    back, while they fit the window (messages) and the budget (estimated tokens); the first of them
    is the user's, unless nothing at all stands before it.

    A running turn over the budget is shown shortened, and says so: first its earlier tool results,
    the oldest first; then a note stands for its earliest calls and counts them; the latest calls
    stay whole with their reasoning, and their results are shortened only if they do not fit alone.

    While no turn runs, the newest user message and the newest group take the running turn's place.

    Args:
        groups: The conversation.
        turn: The number of the running turn; None while none runs.
        window: The most messages; None for no bound.
        max_tokens: The most tokens; None for no bound.
        size: Says how many tokens a message has.
    """
    if not groups:
        return View(messages=[])
    begin = turn_start(groups, turn)
    minimum = set(range(begin, len(groups))) or {len(groups) - 1}
    if begin == len(groups) or not any(_opens(groups[i]) for i in minimum):
        # No turn runs, or its question was forgotten: no model answers without a user's message.
        asked = next((i for i in reversed(range(begin)) if _opens(groups[i])), None)
        begin = begin if asked is None else asked
        minimum |= set() if asked is None else {asked}
    if groups[0][0].role is Role.SUMMARY:
        minimum.add(0)
    least = sum(size(message) for i in minimum for message in groups[i])
    start = _start(groups, minimum, least, window, max_tokens, size)
    while 0 < start < begin and not _opens(groups[start]):
        start += 1
    kept = [groups[i] for i in sorted(minimum) if i < start] + list(groups[start:])
    if max_tokens is not None and least > max_tokens:
        return _shortened(kept, max_tokens, size)
    return View(messages=[message for group in kept for message in group])


def turn_start(groups: Sequence[Group], turn: int | None) -> int:
    """Return the place of a turn's first group, which is the last turn; else how many there are."""
    start = len(groups)
    while start and groups[start - 1][0].turn == turn:
        start -= 1
    return start


def latest_calls(groups: Sequence[Group]) -> int:
    """Return the place of the model's newest tool calls; without any, of code's, or of the last."""
    with_calls = [at for at, group in enumerate(groups) if group[0].calls]
    models = [at for at in with_calls if not groups[at][0].calls[0].id.startswith(CODE_CALLS)]
    return (models or with_calls or [len(groups) - 1])[-1]


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


def _shortened(kept: Sequence[Group], max_tokens: int, size: Callable[[Message], int]) -> View:
    """Show groups that must all be in view and are over the budget."""
    front = list(kept[:1]) if kept[0][0].role is Role.SUMMARY else []
    work = kept[len(front) :]
    most = max(CLIPPED_BYTES // 4, max_tokens // 2)
    shorter = {m.id: most * 4 for group in front for m in group if size(m) > most}
    room = max_tokens - min(_tokens(front, size), most)
    if not work:
        return View(messages=list(front[0]), clipped=shorter)
    whole = {latest_calls(work), len(work) - 1}
    if _opens(work[0]):
        whole.add(0)
    newest = [work[i] for i in sorted(whole)]
    earlier = [group for i, group in enumerate(work) if i not in whole]
    share = max(room - _tokens(newest, size), room // EARLIER_SHARE)
    clipped, left, taken = _earlier(earlier, share, size)
    clipped |= _newest(newest, room - taken, size)
    gone = {group[0].id for group in left}
    shown = [group for group in work if group[0].id not in gone]
    notes: dict[str, str] = {}
    if left:
        place = next(i for i, group in enumerate(work) if group[0].id in gone)
        following = next(group for group in work[place:] if group[0].id not in gone)
        notes[following[0].id] = _note(left)
    messages = [message for group in (*front, *shown) for message in group]
    return View(messages=messages, clipped=shorter | clipped, notes=notes)


def _earlier(
    groups: Sequence[Group], room: int, size: Callable[[Message], int]
) -> tuple[dict[str, int], Sequence[Group], int]:
    """Say what of a turn's earlier groups is shortened, and what is left out, the oldest first.

    Returns:
        The bytes of what is shortened, the groups left out, and the tokens that all takes then.
    """
    clipped: dict[str, int] = {}
    sizes = {message.id: size(message) for group in groups for message in group}
    total = sum(sizes.values())
    for message in (message for group in groups for message in group):
        if total <= room:
            return clipped, [], total
        if _can_be_cut(message) and sizes[message.id] > SHORTENED_BYTES // 4:
            total -= sizes[message.id] - SHORTENED_BYTES // 4
            sizes[message.id] = SHORTENED_BYTES // 4
            clipped[message.id] = SHORTENED_BYTES
    left = 0
    while left < len(groups) and total + bool(left) * NOTE_BYTES // 4 > room:
        total -= sum(sizes[message.id] for message in groups[left])
        left += 1
    gone = {message.id for group in groups[:left] for message in group}
    kept = {name: limit for name, limit in clipped.items() if name not in gone}
    return kept, groups[:left], total + bool(left) * NOTE_BYTES // 4


def _newest(groups: Sequence[Group], room: int, size: Callable[[Message], int]) -> dict[str, int]:
    """Say how to shorten the question and the latest results, if they are too large together."""
    texts = [g[0] for g in groups if not g[0].calls and _can_be_cut(g[0])]
    results = [m for group in groups for m in group[1:] if _can_be_cut(m)]
    room -= _tokens(groups, size) - sum(map(size, [*texts, *results]))
    least = CLIPPED_BYTES // 4
    clipped: dict[str, int] = {}
    for messages, reserved in ((texts, least * len(results)), (results, 0)):
        limit = max(least, fair_limit([size(m) for m in messages], room - reserved))
        clipped |= {m.id: limit * 4 for m in messages if size(m) > limit}
        room -= sum(min(size(m), limit) for m in messages)
    return clipped


def _can_be_cut(message: Message) -> bool:
    # A signature fits only what it signed: such a message is shown whole or not at all.
    return not (message.reasoning or message.fields or message.calls)


def _tokens(groups: Sequence[Group], size: Callable[[Message], int]) -> int:
    return sum(size(message) for group in groups for message in group)


def _note(left: Sequence[Group]) -> str:
    """Return the note that stands for groups of the running turn."""
    calls = Counter(call.name for group in left for call in group[0].calls)
    names = ", ".join(f"{name}: {number}" for name, number in calls.most_common(5))
    messages = sum(not group[0].calls for group in left)
    parts = [f"{calls.total()} tool calls and their results ({names})"] if calls else []
    parts += [f"{messages} other messages"] if messages else []
    made = " The calls were made." if calls else ""
    text = f"Not shown here, for size, of what came earlier in this turn: {', '.join(parts)}.{made}"
    return f"[{clip(text, NOTE_BYTES - 2)}]"
