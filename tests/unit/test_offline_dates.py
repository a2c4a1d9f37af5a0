"""Dates: what relative words meant when they were said."""

import time
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentmem.dreaming.rules.dates import span
from agentmem.offline.dates import absolute, relative

TUESDAY = date(2026, 3, 10)


@pytest.mark.parametrize(
    ("text", "iso"),
    [
        ("I moved to Bergen yesterday", "2026-03-09"),
        ("we met the day before yesterday", "2026-03-08"),
        ("leaving tomorrow", "2026-03-11"),
        ("last night we danced", "2026-03-09"),
        ("3 days ago", "2026-03-07"),
        ("a week ago", "2026-03-03"),
        ("two weeks ago", "2026-02-24"),
        ("3 months ago", "2025-12"),
        ("five years ago", "2021"),
        ("10 days from now", "2026-03-20"),
        ("last Friday", "2026-03-06"),
        ("last Tuesday", "2026-03-03"),
        ("next Tuesday", "2026-03-17"),
        ("next Monday", "2026-03-16"),
        ("this Friday", "2026-03-13"),
        ("last week", "2026-03-02/2026-03-08"),
        ("last weekend", "2026-03-07/2026-03-08"),
        ("next month", "2026-04"),
        ("last year", "2025"),
        ("ich bin gestern umgezogen", "2026-03-09"),
        ("Guten Morgen, morgen fahre ich", "2026-03-11"),
        ("vor zwei Wochen", "2026-02-24"),  # codespell:ignore vor
        ("letzten Freitag", "2026-03-06"),
        ("il y a 3 jours", "2026-03-07"),
        ("hace dos semanas", "2026-02-24"),  # codespell:ignore hace
        ("due settimane fa", "2026-02-24"),
        ("вчера переехал", "2026-03-09"),
        ("два дня назад", "2026-03-08"),
        ("неделю назад", "2026-03-03"),
        ("我昨天搬到卑尔根", "2026-03-09"),
        ("三天前", "2026-03-07"),
        ("昨日引っ越した", "2026-03-09"),
        ("3日前", "2026-03-07"),
        ("어제 이사했어요", "2026-03-09"),
        ("j'ai déménagé à Bergen hier", "2026-03-09"),
        ("lundi dernier", "2026-03-09"),
        ("vendredi prochain", "2026-03-13"),
        ("me mudé el lunes pasado", "2026-03-09"),
        ("el próximo viernes", "2026-03-13"),
        ("lunedì scorso", "2026-03-09"),
        ("в прошлую пятницу", "2026-03-06"),
        ("我上周一搬家", "2026-03-02"),
        ("下个星期五", "2026-03-20"),
        ("先週の月曜日に引っ越した", "2026-03-02"),
        ("다음 주 금요일", "2026-03-20"),
        ("dans deux semaines", "2026-03-24"),
        ("dentro de tres días", "2026-03-13"),
        ("fra due settimane", "2026-03-24"),
        ("через неделю", "2026-03-17"),
        ("my exam is in 3 days", "2026-03-13"),
        ("we're moving in two weeks", "2026-03-24"),
        ("ich ziehe in zwei Wochen um", "2026-03-24"),
    ],
)
def test_relative_words_mean_the_day_they_were_said(text: str, iso: str) -> None:
    """Each is counted from the message's own day."""
    assert [word.iso for word in relative(text, TUESDAY)] == [iso]


@pytest.mark.parametrize(
    "text",
    [
        "today's rule is simple",
        "I love the song Yesterday",
        'the film "Yesterday" is good',
        "over the last week or so",
        "Guten Morgen",
        "recently",
        "hier ist alles gut",
        "ich wohne hier in Bergen",
        "I finished it in two weeks",
        "I can read a book in two days",
        "das habe ich in zwei Tagen gebaut",
        "the future",
    ],
)
def test_what_is_no_time_is_not_resolved(text: str) -> None:
    """Titles, quoted words, spans of time and vague words stay what they are."""
    assert relative(text, TUESDAY) == []


@pytest.mark.parametrize(
    ("text", "iso"),
    [
        ("on 2026-03-09", "2026-03-09"),
        ("in 2026-03", "2026-03"),
        ("2026-05-03/2026-05-09", "2026-05-03/2026-05-09"),
        ("9 March 2026", "2026-03-09"),
        ("March 9th, 2026", "2026-03-09"),
        ("on 9 March", "2026-03-09"),
        ("on 30 December", "2025-12-30"),
        ("in Rome 3 to 9 May", "2026-05-03/2026-05-09"),
        ("May 3-9, 2027", "2027-05-03/2027-05-09"),
        ("in May 2024", "2024-05"),
        ("since 2019", "2019"),
        ("am 9.3.2026", "2026-03-09"),
        ("am 9. März 2026", "2026-03-09"),
        ("le 5 mai 2026", "2026-05-05"),
        ("9 марта 2026", "2026-03-09"),
        ("2026年3月9日", "2026-03-09"),
        ("3月9日", "2026-03-09"),
        ("on the 15th", "2026-03-15"),
        ("on the 28th", "2026-02-28"),
    ],
)
def test_named_dates_are_read(text: str, iso: str) -> None:
    """With the year, or with the one nearest to the day they were said."""
    assert [word.iso for word in absolute(text, TUESDAY)] == [iso]


@pytest.mark.parametrize(
    "text", ["you may 5 times", "31 June 2026", "2026-13-01", "1.2.3", "on the 5th floor", "12/5"]
)
def test_what_is_no_date_is_not_read(text: str) -> None:
    """Impossible days, verbs and versions name no date."""
    assert absolute(text, TUESDAY) == []


@given(st.text(max_size=200), st.dates())
def test_no_text_and_no_day_break_the_reading(text: str, day: date) -> None:
    """Whatever is read is a span of days; at the ends of the calendar nothing is."""
    for word in (*relative(text, day), *absolute(text, day)):
        assert span(word.iso)


@pytest.mark.parametrize(
    ("day", "resolved"),
    [
        (date.min, ["tomorrow", "next month", "next year"]),
        (date.max, ["yesterday", "9 years ago", "last week", "last month"]),
    ],
)
def test_the_calendar_has_ends(day: date, resolved: list[str]) -> None:
    """The word "yesterday" on the first day of the calendar resolves to nothing, as any other."""
    text = "yesterday, tomorrow, 9 years ago, last week, last month, next month, next year"
    assert [word.words for word in relative(text, day)] == resolved
    absolute("9 March, on the 30th", day)


@pytest.mark.parametrize("unit", ["1 ", "дн", "5 d", "a ", "3月", "2026-"])
def test_a_huge_message_takes_time_in_proportion(unit: str) -> None:
    """50 kB of figures and beginnings of words are looked through within seconds."""
    text = unit * (50_000 // len(unit))
    begun = time.monotonic()
    relative(text, TUESDAY)
    absolute(text, TUESDAY)
    assert time.monotonic() - begun < 10
