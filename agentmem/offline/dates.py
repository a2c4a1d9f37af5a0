"""Dates in texts for the offline model: named dates and relative ones, in ISO form.

It reads dates in the languages of the tables below alone.
"""

import calendar
import re
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from functools import lru_cache
from typing import NamedTuple, TypeVar

from agentmem.offline.text import sentences


def _words(table: dict[int, str]) -> dict[str, int]:
    return {word: meaning for meaning, words in table.items() for word in words.split(" | ")}


DAYS = _words(
    {
        -2: "the day before yesterday | day before yesterday | vorgestern | avant-hier | anteayer"
        " | l'altro ieri | anteontem | позавчера | 前天 | 一昨日 | おととい | 그저께",
        -1: "yesterday | last night | gestern | ayer | ieri | ontem | вчера | 昨天 | 昨日 | 어제",
        0: "today | tonight | this morning | this afternoon | this evening | heute | aujourd'hui"
        " | hoy | oggi | hoje | сегодня | 今天 | 今日 | 오늘",
        1: "tomorrow | demain | domani | amanhã | завтра | 明天 | 明日 | 내일",
        2: "the day after tomorrow | day after tomorrow | übermorgen | après-demain"
        " | pasado mañana | dopodomani | depois de amanhã | послезавтра | 后天 | 後天 | 明後日"
        " | 모레",
    }
)
"""Days as words, and how many days from the day of the message they lie.

German "morgen" and French "hier" stand apart: they are also "morning" and German for "here".
"""

WEEKS = _words(
    {
        -1: "last week | past week | letzte woche | la semaine dernière | la semana pasada"
        " | на прошлой неделе | 上周 | 上週 | 先週 | 지난주",
        0: "this week | diese woche | cette semaine | esta semana | на этой неделе | 本周 | 今週",
        1: "next week | nächste woche | la semaine prochaine | la próxima semana"
        " | на следующей неделе | 下周 | 下週 | 来週 | 다음 주",
    }
)
WEEKENDS = _words(
    {
        -1: "last weekend | past weekend | letztes wochenende",
        0: "this weekend | dieses wochenende",
        1: "next weekend | nächstes wochenende",
    }
)
MONTH_WORDS = _words(
    {
        -1: "last month | past month | letzten monat | le mois dernier | el mes pasado"
        " | в прошлом месяце | 上个月 | 上個月 | 先月 | 지난달",
        0: "this month | diesen monat | ce mois-ci | este mes | в этом месяце | 这个月 | 今月",
        1: "next month | nächsten monat | le mois prochain | el próximo mes"
        " | в следующем месяце | 下个月 | 下個月 | 来月 | 다음 달",
    }
)
YEAR_WORDS = _words(
    {
        -1: "last year | past year | letztes jahr | l'année dernière | el año pasado"
        " | в прошлом году | 去年 | 昨年 | 작년",
        0: "this year | dieses jahr | cette année | este año | в этом году | 今年 | 올해",
        1: "next year | nächstes jahr | l'année prochaine | el próximo año"
        " | в следующем году | 明年 | 来年 | 내년",
    }
)
PERIODS = {
    word: (unit, shift)
    for unit, words in (
        ("week", WEEKS),
        ("weekend", WEEKENDS),
        ("month", MONTH_WORDS),
        ("year", YEAR_WORDS),
    )
    for word, shift in words.items()
}
"""Weeks, weekends, months and years as words: what, and how many of them away."""

NUMBERS = _words(
    {
        1: "a | an | one | einem | einer | un | une | una | um | uma | 一",
        2: "two | a couple of | a couple | couple of | zwei | deux | dos | due | dois | duas"
        " | два | две | 两 | 兩 | 二",
        3: "three | drei | trois | tres | tre | três | три | 三",
        4: "four | vier | quatre | cuatro | quattro | quatro | четыре | 四",
        5: "five | fünf | cinq | cinco | cinque | пять | 五",
        6: "six | sechs | seis | sei | шесть | 六",
        7: "seven | sieben | sept | siete | sette | sete | семь | 七",
        8: "eight | acht | huit | ocho | otto | oito | восемь | 八",
        9: "nine | neun | neuf | nueve | nove | девять | 九",
        10: "ten | zehn | dix | diez | dieci | dez | десять | 十",
        11: "eleven",
        12: "twelve",
    }
)

UNITS = {
    stem: unit
    for unit, stems in (
        ("day", "day | tag | jour | día | dia | giorn | дн | день | 天 | 日 | 일"),
        ("week", "week | woche | semaine | semana | settiman | недел | 周 | 週 | 星期 | 주"),
        ("month", "month | monat | mois | mes | mês | месяц | 个月 | 個月 | か月 | ヶ月 | 개월"),
        ("year", "year | jahr | an | año | ano | год | лет | 年 | 년"),
    )
    for stem in stems.split(" | ")
}
"""The beginnings of the words for units of time, and the units."""

WEEKDAYS = _words(
    {
        0: "monday | mon | montag | lundi | lunes | lunedì | segunda-feira | понедельник",
        1: "tuesday | tues | tue | dienstag | mardi | martes | martedì | terça-feira | вторник",
        2: "wednesday | wed | mittwoch"
        " | mercredi | miércoles | mercoledì | quarta-feira | среду | среда",
        3: "thursday | thurs | thu | donnerstag"
        " | jeudi | jueves | giovedì | quinta-feira | четверг",
        4: "friday | fri | freitag"
        " | vendredi | viernes | venerdì | sexta-feira | пятницу | пятница",
        5: "saturday | sat | samstag | samedi | sábado | sabato | субботу | суббота",
        6: "sunday | sun | sonntag | dimanche | domingo | domenica | воскресенье",
    }
)

MONTHS = _words(
    {
        1: "january | jan | januar | janvier | enero | gennaio | janeiro | января",
        2: "february | feb | februar | février | febrero | febbraio | fevereiro | февраля",
        3: "march | mar | märz | mars | marzo | março | марта",
        4: "april | apr | avril | abril | aprile | апреля",
        5: "may | mai | mayo | maggio | maio | мая",
        6: "june | jun | juni | juin | junio | giugno | junho | июня",
        7: "july | jul | juli | juillet | julio | luglio | julho | июля",
        8: "august | aug | août | agosto | августа",
        9: "september | sept | sep | septembre | septiembre | settembre | setembro | сентября",
        10: "october | oct | oktober | octobre | octubre | ottobre | outubro | октября",
        11: "november | nov | novembre | noviembre | novembro | ноября",
        12: "december | dec | dezember | décembre | diciembre | dicembre | dezembro | декабря",
    }
)

_NEXT = """
next nächsten nächster kommenden prochain próximo próxima prossimo prossima следующий следующую
следующее
"""
NEXT = frozenset(_NEXT.split())
"""Words at a weekday that put it after today; all others but "this" put it before."""

WEEKS_AWAY = {
    sign: away
    for away, signs in ((-1, "上 先 지난"), (0, "这 這 本 今 이번"), (1, "下 来 來 다음"))
    for sign in signs.split()
}
"""Signs before "week" in scripts without spaces and in Korean."""


# ruff: noqa: RUF001 - words and signs of many scripts


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
    return [word for part in sentences(text) for word in _relative_in_sentence(part[:LONGEST], day)]


# A dream looks at the same sentences for every finding and change.
@lru_cache(maxsize=4_000)
def _relative_in_sentence(text: str, day: date) -> tuple[TimeWord, ...]:
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


# ruff: noqa: RUF001 - words of many scripts


def absolute(text: str, day: date | None = None) -> list[TimeWord]:
    """Return the dates that a text names.

    One without a year is the one nearest to `day`; without a day, it is left out.
    """
    return [word for part in sentences(text) for word in _named_in_sentence(part[:LONGEST], day)]


@lru_cache(maxsize=4_000)
def _named_in_sentence(text: str, day: date | None) -> tuple[TimeWord, ...]:
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
