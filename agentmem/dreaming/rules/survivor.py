"""Rule 11: whether some facts hold all that another one says."""

from difflib import SequenceMatcher

from agentmem.dreaming.dates import spans
from agentmem.dreaming.named_dates import without_dates
from agentmem.dreaming.text import content, names, negations, numbers, stems, text_of, urls
from agentmem.dreaming.thresholds import THRESHOLDS, Thresholds
from agentmem.facts import Fact


def told(fact: Fact) -> str:
    """Return a fact as one text: the words of its key, and its value."""
    return f"{fact.key.replace('_', ' ').replace('-', ' ')}: {text_of(fact.value)}"


def lost(gone: Fact, *staying: Fact, limits: Thresholds = THRESHOLDS) -> str:
    """Return what would be lost if a fact went and others stayed, in words; empty for nothing.

    What stays must hold every number, date, URL and name, and 80 % of the content words of what
    goes, negate as often, and have no other word in the place of one that goes: "a purple door"
    does not survive as "a cyan door".
    """
    old, new = text_of(gone.value), " ".join(map(told, staying))
    if marks := lost_marks(old, new):
        return marks
    words = set(stems(new))
    if missing := names(old) - words - names(new):
        return f"the name {min(missing)!r}"
    if negations(old) != negations(" ".join(text_of(fact.value) for fact in staying)):
        return "a negation"
    mine = set(content(old))
    if len(mine & words) < limits.survivor_words * len(mine):
        return f"the words {', '.join(sorted(mine - words)[:5])}"
    return _swapped(content(old), content(new), words)


def lost_marks(old: str, new: str) -> str:
    """Return a date, number or URL that one text has and another has not; empty for none."""
    if missing := spans(old) - spans(new):
        return f"the date {min(missing)}"
    if missing := urls(old) - urls(new):
        return f"the address {min(missing)}"
    if missing := numbers(without_dates(old)) - numbers(new):
        return f"the number {min(missing)}"
    return ""


def _swapped(old: list[str], new: list[str], words: set[str]) -> str:
    for tag, start, end, other, until in SequenceMatcher(None, old, new, False).get_opcodes():
        if tag == "replace" and end - start == until - other and not set(old[start:end]) <= words:
            return f"{' '.join(old[start:end])!r}, where it says {' '.join(new[other:until])!r}"
    return ""
