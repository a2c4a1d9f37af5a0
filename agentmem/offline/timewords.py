"""Relative time words, and the ISO dates that they mean on the day they were said."""
# ruff: noqa: RUF001 - words and signs of many scripts

import re
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from functools import lru_cache
from typing import NamedTuple, TypeVar

from agentmem.offline.calendar_words import (
    DAYS,
    NEXT,
    NUMBERS,
    PERIODS,
    UNITS,
    WEEKDAYS,
    WEEKS_AWAY,
)
from agentmem.offline.text import sentences

LONGEST = 4_000
"""Characters of a sentence that are looked at."""
TYPOGRAPHY = str.maketrans({"’": "'", "‘": "'", "–": "-", "—": "-", "“": '"', "”": '"'})


class TimeWord(NamedTuple):
    """Words that name a time, and the ISO day, month, year or interval that they mean."""

    words: str
    iso: str


def relative(text: str, day: date) -> list[TimeWord]:
    """Return a text's relative time words as they were meant on `day`.

    Quoted words and capitalised ones inside a sentence are titles ("Yesterday" is a song), and
    `today's` belongs to a thing: none of them is a time.
    """
    return [word for part in sentences(text) for word in _in_sentence(part[:LONGEST], day)]


# A dream looks at the same sentences for every finding and change.
@lru_cache(maxsize=4_000)
def _in_sentence(text: str, day: date) -> tuple[TimeWord, ...]:
    found: list[tuple[int, TimeWord]] = []
    plain = re.sub(r'"[^"]*"', lambda quote: " " * len(quote[0]), text.translate(TYPOGRAPHY))
    for pattern, meaning in _RELATIVE:
        rest = plain
        for match in pattern.finditer(rest):
            iso = "" if _is_title(rest, match) else safely(meaning, match, day)
            if iso:
                start, end = match.span()
                found.append((start, TimeWord(text[start:end].strip(), iso)))
                plain = plain[:start] + " " * (end - start) + plain[end:]  # read once
    return tuple(word for _, word in sorted(found))


Match = re.Match[str]
Pattern = re.Pattern[str]
Meaning = Callable[[Match, date], str]

D = TypeVar("D")


def safely(meaning: Callable[[Match, D], str], match: Match, day: D) -> str:
    """Return what a match means, or nothing: there is no 31st of June, no year 10,000."""
    try:
        return meaning(match, day)
    except (ValueError, OverflowError):
        return ""


def name_pattern(table: Mapping[str, object], *, spaced: bool | None = None) -> str:
    """Return the pattern of a table's words, longest first; only of scripts with spaces, or not."""
    chosen = [name for name in table if spaced is None or (name[0] < "\u2e80") == spaced]
    return "|".join(re.escape(name) for name in sorted(chosen, key=len, reverse=True))


def regex(pattern: str) -> Pattern:
    """Compile a pattern that ignores case."""
    return re.compile(pattern, re.IGNORECASE)


def _is_title(text: str, match: Match) -> bool:
    before = text[: match.start()].rstrip()
    return match[0][:1].isupper() and bool(before) and before[-1] not in ".:;(-*"


_COUNT = rf"(?P<n>\d{{1,3}}|{name_pattern(NUMBERS)})"
_UNIT = rf"(?P<unit>{name_pattern(UNITS)})"
_WEEKDAY = rf"(?P<weekday>{name_pattern(WEEKDAYS)})\b"


def _shift(day: date, count: int, unit: str) -> str:
    if unit in ("day", "week"):
        return (day + timedelta(days=count * (7 if unit == "week" else 1))).isoformat()
    if unit == "month":
        months = day.year * 12 + day.month - 1 + count
        return date(months // 12, months % 12 + 1, 1).isoformat()[:7]
    return date(day.year + count, 1, 1).isoformat()[:4]


def _named_day(match: Match, day: date) -> str:
    return _shift(day, DAYS.get(match["name"].casefold(), 1), "day")  # "morgen" is not in DAYS


def _counted(sign: int) -> Meaning:
    def meaning(match: Match, day: date) -> str:
        words = (match["n"] or "1").casefold()
        count = int(words) if words.isdigit() else NUMBERS[words]
        return _shift(day, sign * count, UNITS[match["unit"].casefold()])

    return meaning


def _period(match: Match, day: date) -> str:
    unit, shift = PERIODS[" ".join(match["name"].casefold().split())]
    if unit in ("month", "year"):
        return _shift(day, shift, unit)
    monday = day + timedelta(days=7 * shift - day.weekday())
    first = monday + timedelta(days=5 if unit == "weekend" else 0)
    return f"{first}/{monday + timedelta(days=6)}"


def _on_weekday(match: Match, day: date) -> str:
    away = (WEEKDAYS[match["weekday"].casefold()] - day.weekday()) % 7
    which = match["which"].casefold()
    if which in ("this", "this coming"):
        return _shift(day, away, "day")
    if which in NEXT:
        return _shift(day, away or 7, "day")
    return _shift(day, away - 7, "day")


def _of_week(match: Match, day: date) -> str:
    monday = day + timedelta(days=7 * WEEKS_AWAY[match["week"]] - day.weekday())
    return _shift(monday, _SIGNS[match["sign"]], "day")


def _french_yesterday(match: Match, day: date) -> str:
    if not _FRENCH.search(match.string):
        raise ValueError("German: here")
    return _shift(day, -1, "day")


def _ahead(match: Match, day: date) -> str:
    before = match.string[: match.start()]
    if _DONE.search(before) or not (
        _COMING.search(before) or match["unit"].casefold() in _GERMAN_UNITS
    ):
        raise ValueError("how long something took")
    return _counted(1)(match, day)


_DONE = regex(r"\b(?:was|were|had|did|can|could|built|wrote|read|\w+ed|hat|habe|haben|war|wurde)\b")
_COMING = regex(
    r"(?:\b(?:is|are|am|will|due|leav(?:e|es|ing)|mov(?:e|es|ing)|starts?|begins?|ends?|expires?)\b"
    r"|'(?:m|re|s|ll)\b)"
)
_GERMAN_UNITS = frozenset(["tag", "woche", "monat", "jahr"])
_FRENCH = regex(
    r"\b[jlcd]'|\bqu'|\b(?:je|nous|elle|ils?|ai|avons|est|était|le|une|à|au|chez|soir|matin)\b"
)
_SIGNS = {
    sign: place
    for place, signs in enumerate(
        ("一月월", "二火화", "三水수", "四木목", "五金금", "六土토", "日天일")
    )
    for sign in signs
}
"""The weekdays by their signs, of Chinese, Japanese and Korean."""

_RELATIVE: tuple[tuple[Pattern, Meaning], ...] = (
    (regex(rf"(?<![\w-])(?P<name>{name_pattern(DAYS, spaced=True)})(?![\w-]|'s)"), _named_day),
    (regex(r"(?<!guten )(?<!am )(?<!jeden )(?<!diesen )\b(?P<name>morgen)\b"), _named_day),
    (regex(r"(?<![\w-])hier(?![\w-])"), _french_yesterday),
    (regex(rf"(?P<name>{name_pattern(DAYS, spaced=False)})"), _named_day),
    (regex(rf"\b{_COUNT}\s+{_UNIT}s?\s+(?:ago|back)\b"), _counted(-1)),
    (regex(rf"\b{_COUNT}\s+{_UNIT}s?\s+from\s+(?:now|today)\b"), _counted(1)),
    (regex(rf"\b(?:vor|il y a|hace|há)\s+{_COUNT}\s+{_UNIT}\w{{0,4}}"), _counted(-1)),
    (regex(rf"\b{_COUNT}\s+{_UNIT}\w{{0,4}}\s+fa\b"), _counted(-1)),
    (regex(rf"\b(?:{_COUNT}\s+)?{_UNIT}\w{{0,4}}\s+назад\b"), _counted(-1)),
    (
        regex(rf"\b(?:dans|dentro de|fra|daqui a)\s+{_COUNT}\s+{_UNIT}\w{{0,4}}"),
        _counted(1),
    ),
    (regex(rf"\bin\s+{_COUNT}\s+{_UNIT}(?:s|e?n)?\b"), _ahead),
    (regex(rf"\bчерез\s+(?:{_COUNT}\s+)?{_UNIT}\w{{0,4}}"), _counted(1)),
    (regex(rf"{_COUNT}\s?{_UNIT}(?:间|間)?(?:之?前|以前|\s?전)"), _counted(-1)),
    (
        regex(
            r"(?<!the )\b(?P<which>last|this past|this coming|this|past|next|letzten|letzter"
            rf"|vorigen|nächsten|nächster|kommenden)\s+{_WEEKDAY}(?!'s)"
        ),
        _on_weekday,
    ),
    (
        regex(
            r"\b(?:el\s+)?(?P<which>próximo|próxima|pasado|prossimo|scorso|прошлый|прошлую|прошлое"
            rf"|следующий|следующую|следующее)\s+{_WEEKDAY}"
        ),
        _on_weekday,
    ),
    (
        regex(
            rf"\b{_WEEKDAY}\s+(?P<which>dernier|prochain|pasado|próximo|scorso|scorsa|prossimo"
            r"|prossima|passado|passada|próxima)\b"
        ),
        _on_weekday,
    ),
    (
        regex(
            r"(?P<week>[上下这這本先今来來]|지난|이번|다음)\s?[个個]?(?:周|週|星期|礼拜|禮拜|주)\s?の?"
            r"(?P<sign>[一二三四五六日天月火水木金土월화수목금토일])(?:曜|요일)?"
        ),
        _of_week,
    ),
    (regex(rf"(?<!the )(?<!\w)(?P<name>{name_pattern(PERIODS, spaced=True)})(?!\w|'s)"), _period),
    (regex(rf"(?P<name>{name_pattern(PERIODS, spaced=False)})"), _period),
)
