"""Rule 11: whether some facts hold all that another one says."""

from difflib import SequenceMatcher

from agentmem.dreaming.language.dates import nearest, spans
from agentmem.dreaming.language.named_dates import without_dates
from agentmem.dreaming.language.sense import told_apart
from agentmem.dreaming.language.text import (
    content,
    fold,
    names,
    negated,
    numbers,
    stems,
    text_of,
    urls,
)
from agentmem.dreaming.thresholds import THRESHOLDS, Thresholds
from agentmem.facts import Fact
from agentmem.values import JSONValue


def told(fact: Fact) -> str:
    """Return a fact as one text: the words of its key, and its value."""
    return f"{fact.key.replace('_', ' ').replace('-', ' ')}: {text_of(fact.value)}"


def lost(gone: Fact, *staying: Fact, limits: Thresholds = THRESHOLDS) -> str:
    """Return what kind of thing would be lost if a fact went and others stayed; empty for none.

    What stays must hold every number, date, URL and name, and 80 % of the content words of what
    goes, negate and doubt the same words, and have no other word in the place of one that goes:
    "a purple door" does not survive as "a cyan door", nor "A manages B" as "B manages A". Of a
    short value the key matters too: "yes" says nothing without it.
    """
    old, new = text_of(gone.value), ". ".join(map(told, staying))
    if marks := lost_marks(old, new):
        return marks
    old, words = without_dates(old), set(stems(new))
    if names(old) - words - names(new):
        return "a name"
    mine = _words(old)
    if (negated(old) ^ negated(new)) & set(mine) & words:
        return "whether it is so or not"
    if len(words & set(mine)) < limits.survivor_words * len(set(mine)):
        return "enough of its words"
    if _lost_key(gone, staying, limits):
        return "what its key asks"
    if _swapped(mine, _words(new), words):
        return "a word that another has replaced"
    values = "\n".join(text_of(fact.value) for fact in staying)
    return told_apart(old, nearest(values, old))


def speaks_alone(value: JSONValue, limits: Thresholds = THRESHOLDS) -> bool:
    """Whether a value says something without its key: "lives in Bergen" does, "yes" does not."""
    return len(stems(text_of(value))) >= limits.telling_words


def same_topic(one: str, other: str) -> bool:
    """Whether one key has all words of the other: `city` and `home_city`, not `home_phone`."""
    a, b = set(content(one)), set(content(other))
    return one == other or (bool(a and b) and (a <= b or b <= a))


def lost_marks(old: str, new: str) -> str:
    """Return what of dates, numbers and URLs one text has and another has not; empty for none."""
    if spans(old) - spans(new):
        return "a date"
    if urls(old) - urls(new):
        return "an address"
    return "a number" if numbers(without_dates(old)) - numbers(new) else ""


def _words(text: str) -> list[str]:
    """Return content words; figures are compared as numbers."""
    return [word for word in content(text) if not word.isdigit()]


def _lost_key(gone: Fact, staying: tuple[Fact, ...], limits: Thresholds) -> bool:
    value = fold(text_of(gone.value))
    if not content(value) and not any(value in fold(text_of(fact.value)) for fact in staying):
        return True
    key = set(content(told(gone.replace(value=""))))
    if speaks_alone(gone.value, limits) or not key:
        return False
    words = set(stems(" ".join(map(told, staying))))
    held = [any(_kindred(mine, other) for other in words) for mine in key]
    return not (any(held) if content(value) else all(held))


def _kindred(one: str, other: str) -> bool:
    """Whether two stems begin alike: colour and color, fav and favourite."""
    length = min(4, len(one), len(other))
    return one == other or (length >= 3 and one[:length] == other[:length])


def _swapped(old: list[str], new: list[str], words: set[str]) -> bool:
    return any(
        tag == "replace" and end - start == until - other and not words.issuperset(old[start:end])
        for tag, start, end, other, until in SequenceMatcher(None, old, new, False).get_opcodes()
    )
