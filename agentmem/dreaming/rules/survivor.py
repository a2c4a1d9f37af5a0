"""Rule 11: whether some facts hold all that another one says."""

from difflib import SequenceMatcher

from agentmem.dreaming.dates import spans
from agentmem.dreaming.named_dates import without_dates
from agentmem.dreaming.text import content, fold, names, negated, numbers, stems, text_of, urls
from agentmem.dreaming.thresholds import THRESHOLDS, Thresholds
from agentmem.facts import Fact


def told(fact: Fact) -> str:
    """Return a fact as one text: the words of its key, and its value."""
    return f"{fact.key.replace('_', ' ').replace('-', ' ')}: {text_of(fact.value)}"


def lost(gone: Fact, *staying: Fact, limits: Thresholds = THRESHOLDS) -> str:
    """Return what would be lost if a fact went and others stayed, in words; empty for nothing.

    What stays must hold every number, date, URL and name, and 80 % of the content words of what
    goes, negate the same words, and have no other word in the place of one that goes: "a purple
    door" does not survive as "a cyan door". Of a short value the key matters too: "yes" says
    nothing without it.
    """
    old, new = text_of(gone.value), ". ".join(map(told, staying))
    if marks := lost_marks(old, new):
        return marks
    words, mine = set(stems(new)), set(content(old))
    if missing := names(old) - words - names(new):
        return f"the name {min(missing)!r}"
    if (turned := (negated(old) ^ negated(new)) & mine) and not words.isdisjoint(turned):
        return f"whether it is so of {min(turned)!r}"
    if len(mine & words) < limits.survivor_words * len(mine):
        return f"the words {', '.join(sorted(mine - words)[:5])}"
    return _lost_key(gone, staying, words, limits) or _swapped(content(old), content(new), words)


def lost_marks(old: str, new: str) -> str:
    """Return a date, number or URL that one text has and another has not; empty for none."""
    if missing := spans(old) - spans(new):
        return f"the date {min(missing)}"
    if missing := urls(old) - urls(new):
        return f"the address {min(missing)}"
    if missing := numbers(without_dates(old)) - numbers(new):
        return f"the number {min(missing)}"
    return ""


def _lost_key(gone: Fact, staying: tuple[Fact, ...], words: set[str], limits: Thresholds) -> str:
    value = text_of(gone.value)
    telling, key = set(content(value)), set(content(told(gone))) - set(content(value))
    if not telling and not any(fold(value) in fold(text_of(fact.value)) for fact in staying):
        return f"the value {value!r}"
    if len(telling) >= limits.telling_words or not key:
        return ""
    enough = not key.isdisjoint(words) if telling else key <= words
    return "" if enough else f"what {gone.key!r} is about"


def _swapped(old: list[str], new: list[str], words: set[str]) -> str:
    for tag, start, end, other, until in SequenceMatcher(None, old, new, False).get_opcodes():
        if tag == "replace" and end - start == until - other and not set(old[start:end]) <= words:
            return f"{' '.join(old[start:end])!r}, where it says {' '.join(new[other:until])!r}"
    return ""
