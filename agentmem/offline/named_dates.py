"""The dates that a text names, in figures or with the names of months, in ISO form."""
# ruff: noqa: RUF001 - words of many scripts

import calendar
from collections.abc import Callable
from datetime import date, timedelta
from functools import lru_cache

from agentmem.offline.calendar_words import MONTHS
from agentmem.offline.text import sentences
from agentmem.offline.timewords import (
    LONGEST,
    TYPOGRAPHY,
    Match,
    Pattern,
    TimeWord,
    name_pattern,
    regex,
    safely,
)


def absolute(text: str, day: date | None = None) -> list[TimeWord]:
    """Return the dates that a text names.

    One without a year is the one nearest to `day`; without a day, it is left out.
    """
    return [word for part in sentences(text) for word in _in_sentence(part[:LONGEST], day)]


@lru_cache(maxsize=4_000)
def _in_sentence(text: str, day: date | None) -> tuple[TimeWord, ...]:
    found: list[tuple[int, TimeWord]] = []
    rest = text.translate(TYPOGRAPHY)
    for pattern, meaning in _ABSOLUTE:
        for match in pattern.finditer(rest):
            if iso := safely(meaning, match, day):
                start, end = match.span()
                found.append((start, TimeWord(text[start:end].strip(), iso)))
        rest = pattern.sub(lambda match: " " * len(match[0]), rest)
    return tuple(word for _, word in sorted(found))


Naming = Callable[[Match, date | None], str]

_MONTH = rf"(?P<month>{name_pattern(MONTHS)})\b\.?"
_DAY = r"\b(?P<day>\d{1,2})(?:st|nd|rd|th|\.|º)?"
_LAST = r"\s*(?:-|to|until|bis)\s*(?P<last>\d{1,2})(?:st|nd|rd|th|\.)?"
_YEAR = r"(?:,?\s+(?:de\s+|del\s+)?(?P<year>(?:19|20)\d{2})\b)"


def _iso(year: int, month: int, day: int = 0) -> str:
    if not day:
        return date(year, month, 1).isoformat()[:7]
    return date(year, month, day).isoformat()


def _month_date(match: Match, said: date | None) -> str:
    parts = match.groupdict()
    name = parts["month"]
    if name in ("may", "march", "mar"):  # also English words: only capitalised they are months
        return ""
    month, day = MONTHS[name.casefold()], int(parts.get("day") or 0)
    year = int(parts.get("year") or 0) or _nearest_year(month, day or 15, said)
    first = _iso(year, month, day)
    last = parts.get("last")
    return f"{first}/{_iso(year, month, int(last))}" if last else first


def _nearest_year(month: int, day: int, said: date | None) -> int:
    if said is None:
        raise ValueError("no year is named, and none is near")
    years = range(said.year - 1, said.year + 2)
    return min(years, key=lambda year: abs((_clamped(year, month, day) - said).days))


def _clamped(year: int, month: int, day: int) -> date:
    return date(year, month, min(day, calendar.monthrange(year, month)[1]))


def _day_of_month(match: Match, said: date | None) -> str:
    if said is None:
        raise ValueError("no month is named, and none is near")
    around = (said + timedelta(days=shift) for shift in sorted(range(-31, 32), key=abs))
    return next((day.isoformat() for day in around if day.day == int(match["day"])), "")


def _digits(match: Match, said: date | None) -> str:
    parts = {name: int(value) for name, value in match.groupdict().items() if value}
    if not parts.get("month"):
        return f"{parts['year']:04}"
    year = parts.get("year") or _nearest_year(parts["month"], parts.get("day", 15), said)
    return _iso(year, parts["month"], parts.get("day", 0))


def _interval(match: Match, said: date | None) -> str:
    first, last = date.fromisoformat(match["first"]), date.fromisoformat(match["until"])
    return f"{first}/{last}" if first <= last else ""


_ISO_DAY = r"\d{4}-\d{2}-\d{2}"
_ABSOLUTE: tuple[tuple[Pattern, Naming], ...] = (
    (regex(rf"(?<![\d-])(?P<first>{_ISO_DAY})/(?P<until>{_ISO_DAY})(?!\d)"), _interval),
    (regex(r"(?<![\d-])(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})(?!\d)"), _digits),
    (regex(r"(?<![\d/])(?P<year>\d{4})/(?P<month>\d{1,2})/(?P<day>\d{1,2})(?![\d/])"), _digits),
    (regex(r"(?<![\d-])(?P<year>(?:19|20)\d{2})-(?P<month>0[1-9]|1[0-2])(?![\d-])"), _digits),
    (regex(r"(?<![\d.])(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>\d{4})(?!\d)"), _digits),
    (regex(rf"{_DAY}{_LAST}\s+(?:of\s+)?{_MONTH}{_YEAR}?"), _month_date),
    (regex(rf"\b{_MONTH}\s+{_DAY}{_LAST}{_YEAR}?"), _month_date),
    (regex(rf"{_DAY}\s+(?:of\s+|de\s+)?{_MONTH}{_YEAR}?"), _month_date),
    (regex(rf"\b{_MONTH}\s+{_DAY}(?!\d){_YEAR}?"), _month_date),
    (regex(rf"\b{_MONTH}{_YEAR}"), _month_date),
    (
        regex(
            r"\bon the (?P<day>\d{1,2})(?:st|nd|rd|th)\b"
            r"(?!\s+(?:of|floor|century|street|avenue|day|time|try|attempt|anniversary))"
        ),
        _day_of_month,
    ),
    (
        regex(
            r"(?:(?P<year>\d{4})\s?[年년]\s?)?(?P<month>\d{1,2})\s?[月월]\s?(?P<day>\d{1,2})\s?[日号號일]"
        ),
        _digits,
    ),
    (regex(r"(?P<year>\d{4})\s?[年년](?:\s?(?P<month>\d{1,2})\s?[月월])?"), _digits),
    (
        regex(
            r"\b(?:in|since|from|until|by|im jahr|seit|en|depuis|desde|в|с)\s+"
            r"(?P<year>(?:19|20)\d{2})\b(?!-)"
        ),
        _digits,
    ),
)
