"""Which facts the offline model takes to be about the same thing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import SequenceMatcher

from agentmem.dreaming.text import content, fold
from agentmem.testing.offline.reading import Said, regex

# Words that mean one subject, whichever of them a key, a value or a question uses.
_TOPICS = {
    "user_name": regex(r"""
        my (?:own )?name|who am i|\buser name\b|^name$|heißt?\b|(?:me|se) llam[oa]|名字
        |我叫|اسمي
    """),
    "home_city": regex(r"""
        (?:which|what) (?:city|town)|\b(?:home(?: ?(?:city|town))?|lives?|living|moved?
        |residence|wohn\w*|viv[oe])\b|住|أعيش|أسكن|يعيش
    """),
    "work_employer": regex(r"""
        employer|company|where.*\bwork\b|\bworks? (?:at|for)\b|arbeite\w* bei|trabaj[oa] en
    """),
    "work_role": regex(r"\b(?:job|role|profession|occupation|works? as|arbeite\w* als)\b"),
}


def subject(text: str) -> set[str]:
    """Return what a key, a value or a question is about: its topics and its other content words."""
    folded = fold(text.replace("_", " "))
    found: set[str] = set()
    for topic, pattern in _TOPICS.items():
        if pattern.search(folded):
            found.add(topic)
            folded = pattern.sub(" ", folded)
    return found | set(content(folded))


def shared(ours: Iterable[str], theirs: Iterable[str]) -> int:
    """Count the words of one side that the other has, spelling aside (color, colour)."""
    return sum(any(_same(one, other) for other in theirs) for one in ours)


def alike(key: str, other: str) -> bool:
    """Whether two keys name the same thing: same topics, same words, same numbers."""
    ours, theirs = (subject(name) | set(re.findall(r"\d+", name)) for name in (key, other))
    return len(ours) == len(theirs) == shared(ours, theirs)


def _same(one: str, other: str) -> bool:
    near = min(len(one), len(other)) > 3 and one[0] == other[0]
    return one == other or (near and SequenceMatcher(None, one, other).ratio() >= 0.8)


def placed(told: Said, known: Mapping[str, str], last: str, caught: str) -> tuple[str, str]:
    """Return the key that a statement belongs to and its new value, empty if it is taken back.

    Args:
        told: The statement.
        known: What is known so far, by key, in the order in which it was said.
        last: The key of what was said just before.
        caught: What that said of its subject.
    """
    if told.key:
        return next((key for key in known if alike(key, told.key)), told.key), told.value
    old = subject(told.old)
    holds = (key for key in reversed(list(known)) if old and old <= subject(f"{key} {known[key]}"))
    key = next(holds, "" if told.old else last)
    if told.kind == "retraction" or not key:
        return key, told.value
    gone, value = told.old or caught, known[key]
    changed = re.sub(re.escape(gone), lambda _: told.caught, value, flags=re.IGNORECASE)
    changed = re.sub(r"\b(\w+)( \1\b)+", r"\1", changed)  # 35 pounds, 36 pounds pounds
    return ("", "") if changed == value else (key, changed)
