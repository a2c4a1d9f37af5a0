"""Rule 11: whether some facts hold all that another one says."""

from difflib import SequenceMatcher

from agentmem.dreaming.dates import spans
from agentmem.dreaming.named_dates import without_dates
from agentmem.dreaming.text import content, fold, names, negated, numbers, stems, text_of, urls
from agentmem.dreaming.thresholds import THRESHOLDS, Thresholds
from agentmem.facts import Fact
from agentmem.values import JSONValue


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
    old, words = without_dates(old), set(stems(new))
    if missing := names(old) - words - names(new):
        return f"the name {min(missing)!r}"
    mine = _words(old)
    if turned := (negated(old) ^ negated(new)) & set(mine) & words:
        return f"whether it is so of {min(turned)!r}"
    if len(words & set(mine)) < limits.survivor_words * len(set(mine)):
        return f"the words {', '.join(sorted(set(mine) - words)[:5])}"
    return _lost_key(gone, staying, limits) or _swapped(mine, _words(new), words)


def speaks_alone(value: JSONValue, limits: Thresholds = THRESHOLDS) -> bool:
    """Whether a value says something without its key: "lives in Bergen" does, "yes" does not."""
    return len(stems(text_of(value))) >= limits.telling_words


def lost_marks(old: str, new: str) -> str:
    """Return a date, number or URL that one text has and another has not; empty for none."""
    if missing := spans(old) - spans(new):
        return f"the date {min(missing)}"
    if missing := urls(old) - urls(new):
        return f"the address {min(missing)}"
    if missing := numbers(without_dates(old)) - numbers(new):
        return f"the number {min(missing)}"
    return ""


def _words(text: str) -> list[str]:
    """Return content words; figures are compared as numbers."""
    return [word for word in content(text) if not word.isdigit()]


def _lost_key(gone: Fact, staying: tuple[Fact, ...], limits: Thresholds) -> str:
    value = fold(text_of(gone.value))
    if not content(value) and not any(value in fold(text_of(fact.value)) for fact in staying):
        return f"the value {value!r}"
    key, words = (
        set(content(told(gone.replace(value="")))),
        set(stems(" ".join(map(told, staying)))),
    )
    if speaks_alone(gone.value, limits) or not key:
        return ""
    held = [any(_kindred(mine, other) for other in words) for mine in key]
    enough = any(held) if content(value) else all(held)
    return "" if enough else f"what {gone.key!r} is about"


def _kindred(one: str, other: str) -> bool:
    """Whether two stems begin alike: colour and color, fav and favourite."""
    length = min(4, len(one), len(other))
    return one == other or (length >= 3 and one[:length] == other[:length])


def _swapped(old: list[str], new: list[str], words: set[str]) -> str:
    for tag, start, end, other, until in SequenceMatcher(None, old, new, False).get_opcodes():
        if tag == "replace" and end - start == until - other and not set(old[start:end]) <= words:
            return f"{' '.join(old[start:end])!r}, where it says {' '.join(new[other:until])!r}"
    return ""
