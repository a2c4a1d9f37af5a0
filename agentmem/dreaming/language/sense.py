"""Whether texts of the same words say the same: "-18" and "18", "tea over coffee" and the reverse.

A guess on the careful side: what it wrongly tells apart stays as two facts.
"""
# ruff: noqa: RUF001 - signs of many scripts

import re
from collections.abc import Iterator
from itertools import pairwise

from agentmem.dreaming.language.text import content, fold, hedged, names, numbers, stems, tokens
from agentmem.dreaming.language.words import CLOSED_CLASS, JOINING, OPPOSITES

_SIGNED = re.compile(r"(?<![\w.,-])([-+<>≤≥€$£¥]*)\s?(\d+(?:[.,:]\d+)*)\s?([%€$£¥]?)")
_CLAUSE = re.compile(r"[,;:()\n!?、，；：。！？]+|\.(?:\s|$)")


def told_apart(old: str, new: str) -> str:
    """Return what tells a text from another one that has its words; empty for nothing."""
    mine = set(content(old)) & set(stems(new))
    if (hedged(old) ^ hedged(new)) & mine:
        return "whether it is so"
    if _other_sign(old, new):
        return "a sign"
    if any(_opposed(one, other) for one in _clauses(old) for other in _clauses(new)):
        return "a small word that matters"
    if any(_turned(one, other) for one in _clauses(old) for other in _clauses(new)):
        return "which of the two it is"
    return "whom it is about" if _other_subject(old, new) else ""


def _clauses(text: str) -> Iterator[list[str]]:
    for part in _CLAUSE.split(text):
        if words := stems(part):
            yield words


def _signed(text: str) -> dict[str, set[str]]:
    """Return the signs at each number of a text."""
    found: dict[str, set[str]] = {}
    for before, figure, after in _SIGNED.findall(fold(text)):
        for number in numbers(figure):
            found.setdefault(number, set()).update(before + after)
    return found


def _other_sign(old: str, new: str) -> bool:
    mine, other = _signed(old), _signed(new)
    return any(
        signs - other[number] or ("-" in signs) != ("-" in other[number])
        for number, signs in mine.items()
        if number in other
    )


_CONTRARY = {stems(one)[0]: stems(other)[0] for one, other in OPPOSITES.items()}


def _opposed(old: list[str], new: list[str]) -> bool:
    there = set(pairwise(new))
    return any(
        (one, other) not in there
        and ((_CONTRARY.get(one), other) in there or (one, _CONTRARY.get(other)) in there)
        for one, other in pairwise(old)
    )


def _turned(old: list[str], new: list[str]) -> bool:
    """Whether two things have changed places: "Anna manages Bob" and "Bob manages Anna"."""
    there = f" {' '.join(new)} "
    for start in range(len(old)):
        for first in (1, 2):
            for between in range(1, 4):
                for last in (1, 2):
                    middle, end = start + first, start + first + between
                    parts = old[start:middle], old[middle:end], old[end : end + last]
                    if len(parts[2]) == last and _changed_places(*parts, there):
                        return True
    return False


def _changed_places(one: list[str], between: list[str], other: list[str], there: str) -> bool:
    if one == other or not JOINING.isdisjoint(between):
        return False
    if CLOSED_CLASS.issuperset(one) or CLOSED_CLASS.issuperset(other):
        return False
    now, then = [*other, *between, *one], [*one, *between, *other]
    return f" {' '.join(now)} " in there and f" {' '.join(then)} " not in there


def _other_subject(old: str, new: str) -> bool:
    """Whether a name stands before what an old text says of its nameless subject."""
    first, mine = tokens(old)[:1], names(old)
    if not first or len(content(old)) < 2:
        return False
    begins = stems(first[0])
    for part in _CLAUSE.split(new):
        words = tokens(part)
        if len(words) > 1 and stems(words[1]) == begins and words[0][:1].isupper():
            known = mine | set(stems(old))
            return not words[0].endswith("ly") and bool(names(words[0]) - known)  # "Currently"
    return False
