"""The time that a provider asks to wait before the next try."""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

GROWN = timedelta(minutes=1)
"""The longest wait that nobody asked for, before it is spread."""

LONGEST_WAIT = timedelta(minutes=5)
"""A turn has a deadline of minutes: waiting for hours would only hide that it failed."""

# `retry in 34.07s`, `try again in 1m2.5s`, `"retryDelay": "7s"`: what some say instead of a header.
_SAID = re.compile(
    r"(?:re)?try(?:_?delay\W+| again in | in )(?:(\d+)m(?!s))?(?:([\d.]+)\s?(ms|s)\b)?",
    re.IGNORECASE,
)


def next_wait(asked: timedelta | None, attempt: int, random: Callable[[], float]) -> timedelta:
    """Return how long to wait before the next attempt.

    Many sessions fail at one moment where a provider is overloaded, and must not come back at one
    moment: growing waits (1, 2, 4, ... 60 s) are spread by half in both directions, and what the
    provider asked for is never undercut, but exceeded by up to a tenth.

    Args:
        asked: What the provider asked for, if anything.
        attempt: The attempt that failed, from 1.
        random: Gives a number from 0 to 1.
    """
    if asked is not None:
        return asked * (1 + random() / 10)
    return min(timedelta(seconds=2 ** min(attempt - 1, 10)), GROWN) * (0.5 + random())


def asked_wait(headers: Mapping[str, str], text: str, now: datetime) -> timedelta | None:
    """Return how long to wait, at most five minutes; None if the provider does not say.

    Args:
        headers: Of the provider's answer, names in lower case. `Retry-After` counts as seconds or
            as an HTTP date (RFC 9110, 10.2.3); `retry-after-ms` goes before it.
        text: What the provider said.
        now: The time that a date is compared to.
    """
    wait = _of_headers(headers, now)
    if wait is None:
        wait = _of_text(text)
    return None if wait is None else min(max(wait, timedelta()), LONGEST_WAIT)


def _of_headers(headers: Mapping[str, str], now: datetime) -> timedelta | None:
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return timedelta(milliseconds=milliseconds)
    value = headers.get("retry-after", "").strip()
    seconds = _number(value)
    if seconds is not None:
        return timedelta(seconds=seconds)
    try:
        date = parsedate_to_datetime(value)
    except ValueError:
        return None
    return (date if date.tzinfo else date.replace(tzinfo=UTC)) - now


def _of_text(text: str) -> timedelta | None:
    found = _SAID.search(text)
    if found is None or not (found[1] or found[2]):
        return None
    count = _number(found[2] or "0")
    if count is None:
        return None
    rest = timedelta(milliseconds=count) if found[3] == "ms" else timedelta(seconds=count)
    return timedelta(minutes=_number(found[1] or "0") or 0) + rest


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    # Above a day it means the same as a day; NaN and infinity fit in no timedelta.
    return min(number, 86_400_000.0) if number >= 0 else None
