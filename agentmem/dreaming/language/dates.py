"""Dates: ISO days, months, years and intervals, and what "yesterday" was when it was said.

Only what the words fix is resolved: "recently" stays what it is. English words, and the commonest
of a few other languages.
"""

import calendar
import re
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

from agentmem.dreaming.language.named_dates import absolute, mentions_time
from agentmem.dreaming.language.text import content, fold, sentences
from agentmem.dreaming.language.timewords import TimeWord, relative
from agentmem.memory.providers.protocol import TranscriptRow


def local_day(at: datetime, zone: str) -> date:
    """Return the day on which something was said where it was said.

    A time that carries an offset of its own keeps it. UTC says nothing about the speaker, since
    clocks of servers run on it, so there `zone` decides.
    """
    if zone == "UTC" or at.utcoffset() != timedelta(0):
        return at.date()
    return at.astimezone(ZoneInfo(zone)).date()


class Settled(NamedTuple):
    """A date as code settles it.

    Attributes:
        happened: The ISO day, month, year or interval; empty when nothing says it.
        flag: What is odd: `date_corrected`, `date_unchecked`, `date_unreadable`, or empty.
    """

    happened: str
    flag: str = ""


def bounds(happened: str) -> tuple[str, str]:
    """Return since when and until when something holds: only an interval has an end."""
    start, _, end = happened.partition("/")
    return start, end


def span(iso: str) -> tuple[date, date] | None:
    """Return the first and last day of an ISO day, month, year or interval; None for others."""
    start, slash, end = iso.strip().partition("/")
    first, last = _single(start), _single(end) if slash else _single(start)
    return (first[0], last[1]) if first and last and first[0] <= last[1] else None


def agree(one: str, other: str) -> bool:
    """Whether one ISO date lies within the other: a day agrees with its month."""
    a, b = span(one), span(other)
    if not a or not b:
        return False
    return (a[0] <= b[0] and b[1] <= a[1]) or (b[0] <= a[0] and a[1] <= b[1])


def spans(text: str) -> set[str]:
    """Return the days, months and intervals that a text names with their year, in ISO form."""
    return {word.iso for word in absolute(text) if len(word.iso) > len("2026")}


def settle(
    happened: str, words: str, statement: str, rows: Sequence[TranscriptRow], zone: str
) -> Settled:
    """Say when something happened, by what its evidence says and not by what a model made of it.

    Args:
        happened: The model's date.
        words: The time words that the model copied.
        statement: What happened; it picks the sentence whose time words count.
        rows: The evidence.
        zone: The zone whose days count where a message has none of its own.
    """
    given = happened.strip() if span(happened) else ""
    quoted = _meanings(rows, zone, lambda text: text if fold(words) in fold(text) else "")
    quoted = {word.iso for word in quoted if words and fold(word.words) in fold(words)}
    close = {word.iso for word in _meanings(rows, zone, lambda text: nearest(text, statement))}
    for known in (quoted, close):
        if len(known) == 1:
            return _preferring(next(iter(known)), given)
    beside = {word.iso for word in _meanings(rows, zone, lambda text: nearest(text, statement, 1))}
    if not given and len(beside) == 1:
        return Settled(next(iter(beside)))
    every = close | {word.iso for word in _meanings(rows, zone, str)}
    if given and not any(agree(given, iso) for iso in every):
        if not any(mentions_time(row.text) for row in rows):
            return Settled("")
        return Settled(given, "date_unchecked")
    return Settled(given, "" if given or not happened.strip() else "date_unreadable")


def nearest(text: str, statement: str, around: int = 0) -> str:
    """Return the sentences of a text that share most words with a statement.

    Args:
        text: The text.
        statement: The statement.
        around: How many sentences before and after each of them to return as well.
    """
    wanted, parts = set(content(statement)), sentences(text)
    shared = [len(wanted & set(content(part))) for part in parts]
    best = [place for place, count in enumerate(shared) if count == max(shared)]
    return "\n".join(
        part
        for place, part in enumerate(parts)
        if any(abs(place - other) <= around for other in best)
    )


def _meanings(
    rows: Sequence[TranscriptRow], zone: str, part: Callable[[str], str]
) -> set[TimeWord]:
    found: set[TimeWord] = set()
    for row in rows:
        day, text = local_day(row.at, zone), part(row.text)
        found.update(relative(text, day), absolute(text, day))
    return found


def _preferring(known: str, given: str) -> Settled:
    if not given:
        return Settled(known)
    if agree(known, given):
        return Settled(known if _days(known) <= _days(given) else given)
    return Settled(known, "date_corrected")


def _days(iso: str) -> int:
    first = span(iso)
    return (first[1] - first[0]).days if first else 0


def _single(iso: str) -> tuple[date, date] | None:
    found = re.fullmatch(r"(\d{4})(?:-(\d{2})(?:-(\d{2}))?)?", iso)
    if not found:
        return None
    year, month, day = (int(part) if part else 0 for part in found.groups())
    try:
        last = day or calendar.monthrange(year, month or 12)[1]
        return date(year, month or 1, day or 1), date(year, month or 12, last)
    except ValueError:  # calendar.IllegalMonthError is one
        return None
