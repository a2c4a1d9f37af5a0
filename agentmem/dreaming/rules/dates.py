"""Dates in ISO form: days, months, years and intervals. Which day is meant, a model says."""

import calendar
import re
from datetime import date, timedelta

_ISO = re.compile(r"(\d{4})(?:-(\d{2})(?:-(\d{2}))?)?", re.ASCII)


def is_date(text: str, *, interval: bool = False) -> bool:
    """Tell if a text is an ISO day, month or year, or an interval whose end is not before it."""
    return span(text) is not None and (interval or "/" not in text)


def span(text: str) -> tuple[date, date] | None:
    """Return the first and last day of an ISO day, month, year or interval; None for others."""
    start, slash, end = text.strip().partition("/")
    first, last = _single(start), _single(end) if slash else _single(start)
    return (first[0], last[1]) if first and last and first[0] <= last[1] else None


def last_day(text: str) -> date:
    """Return the last day of an ISO date; the last day of all for a text that is none."""
    days = span(text)
    return days[1] if days else date.max


def bounds(happened: str) -> tuple[str, str]:
    """Return since when and until when something holds: only an interval has an end."""
    start, _, end = happened.partition("/")
    return start, end


def _single(iso: str) -> tuple[date, date] | None:
    found = _ISO.fullmatch(iso.strip())
    if not found:
        return None
    year, month, day = (int(part) if part else 0 for part in found.groups())
    try:
        last = day or calendar.monthrange(year, month or 12)[1]
        return date(year, month or 1, day or 1), date(year, month or 12, last)
    except ValueError:  # calendar.IllegalMonthError is one
        return None


def day_after(text: str) -> date:
    """Return the day after an ISO date has ended."""
    return last_day(text) + timedelta(days=1)
