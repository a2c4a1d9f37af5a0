"""Counts in words, for summaries that people read in the Temporal UI."""

from collections.abc import Mapping

_ONE = {
    "facts": "fact",
    "messages": "new message",
    "findings": "finding",
    "changes": "change",
    "duplicates": "duplicate",
    "contradictions": "contradiction",
}
_MANY = {"messages": "new messages"}


def in_words(counts: Mapping[str, int], *names: str) -> str:
    """Return counts in words, like `12 findings, 40 facts`.

    Args:
        counts: Numbers by name.
        names: Which of them; the first is always told, the others unless they are zero.
    """
    told = [name for place, name in enumerate(names) if counts.get(name) or place == 0]
    return ", ".join(
        f"{(number := counts.get(name, 0))} {(_ONE if number == 1 else _MANY).get(name, name)}"
        for name in told
    )
