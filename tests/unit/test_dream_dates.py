"""Dates: what relative words meant when they were said."""

import time
from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentmem.offline.dates import agree, bounds, local_day, settle, span, spans
from agentmem.offline.named_dates import absolute, mentions_time, without_dates
from agentmem.offline.timewords import relative
from tests.drafts import row

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
    """Each is counted from the message's own day (M-17)."""
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
    """Titles, quoted words, spans of time and vague words stay what they are (M-17)."""
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


def test_a_date_without_its_year_is_left_out_when_no_day_is_near() -> None:
    """Two facts are compared by full dates alone."""
    assert spans("9 March, and 10 March 2026") == {"2026-03-10"}
    assert without_dates("on 9 March 2026 at 9").split() == ["on", "at", "9"]


@given(st.text(max_size=200), st.dates())
def test_no_text_and_no_day_break_the_reading(text: str, day: date) -> None:
    """Whatever is read is a span of days; at the ends of the calendar nothing is."""
    for word in (*relative(text, day), *absolute(text, day)):
        assert span(word.iso)
    mentions_time(text)


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


def test_the_message_s_own_zone_says_what_day_it_was() -> None:
    """An hour before midnight in Bergen is that day there, wherever the dream runs (H-07)."""
    late = datetime(2026, 3, 10, 23, 0, tzinfo=timezone(timedelta(hours=1)))
    assert local_day(late, "Asia/Tokyo") == date(2026, 3, 10)
    assert local_day(late.astimezone(UTC), "Asia/Tokyo") == date(2026, 3, 11)
    assert local_day(late.astimezone(UTC), "UTC") == date(2026, 3, 10)


def test_yesterday_of_an_old_message_is_old() -> None:
    """A message 400 days back means the day 401 days back, never the dream's (M-17)."""
    said = datetime(2026, 3, 10, 12, tzinfo=UTC) - timedelta(days=400)
    told = [row("I moved to Bergen yesterday", at=said)]
    assert settle("", "", "Moved to Bergen", told, "UTC").happened == "2025-02-02"


def test_a_model_s_date_that_disagrees_gives_way() -> None:
    """Yesterday by the dream's clock is corrected to yesterday by the message's (H-07)."""
    told = [row("I moved to Bergen yesterday")]
    assert settle("2026-03-24", "yesterday", "Moved to Bergen", told, "UTC") == (
        "2026-03-09",
        "date_corrected",
    )


@pytest.mark.parametrize(
    ("given_date", "said", "settled"),
    [
        ("2026-03", "I moved yesterday", ("2026-03-09", "")),
        ("2026-03-09", "I moved in March 2026", ("2026-03-09", "")),
        ("2026-05-03/2026-05-09", "In Rome 3 to 9 May", ("2026-05-03/2026-05-09", "")),
        ("2026-03-24", "I moved", ("", "")),
        ("2026-02-02", "I moved on a Monday", ("2026-02-02", "date_unchecked")),
        ("the other day", "I moved", ("", "date_unreadable")),
        ("2026-03-10", "We just moved in", ("2026-03-10", "date_unchecked")),
    ],
)
def test_a_model_s_date_is_held_against_the_evidence(
    given_date: str, said: str, settled: tuple[str, str]
) -> None:
    """What agrees stays, the finer of both; what nothing speaks of goes (M-17)."""
    assert settle(given_date, "", "Moved", [row(said)], "UTC") == settled


def test_the_sentence_that_says_it_gives_the_time() -> None:
    """Of two times in a message, that of the statement's own sentence counts."""
    told = [row("I moved to Bergen last Friday. Tomorrow I will see Anna.")]
    assert settle("", "", "Moved to Bergen", told, "UTC").happened == "2026-03-06"
    assert settle("", "", "Will see Anna", told, "UTC").happened == "2026-03-11"


def test_a_time_in_the_next_sentence_still_counts() -> None:
    """What happened is told first, and when it was in the sentence behind it."""
    told = [row("I moved to Bergen. It was last Friday.")]
    assert settle("", "", "Moved to Bergen", told, "UTC").happened == "2026-03-06"


def test_words_that_the_model_copied_choose_among_several_times() -> None:
    """Time words that the evidence does not hold choose nothing."""
    told = [row("Yesterday or maybe last Friday I moved")]
    assert settle("", "last friday", "Moved", told, "UTC").happened == "2026-03-06"
    assert settle("", "two weeks ago", "Moved", told, "UTC").happened == ""


def test_iso_dates_agree_within_each_other() -> None:
    """A day agrees with its month and its interval, not with its neighbour."""
    assert agree("2026-03-09", "2026-03")
    assert agree("2026", "2026-03-09")
    assert agree("2026-05-04", "2026-05-03/2026-05-09")
    assert not agree("2026-03-09", "2026-03-10")
    assert not agree("yesterday", "2026")
    assert span("2026-02-30") is None
    assert span("2026-05-09/2026-05-03") is None
    assert bounds("2026-05-03/2026-05-09") == ("2026-05-03", "2026-05-09")
    assert bounds("2026-03") == ("2026-03", "")


@pytest.mark.parametrize("unit", ["1 ", "дн", "5 d", "a ", "3月", "2026-"])
def test_a_huge_message_takes_time_in_proportion(unit: str) -> None:
    """50 kB of figures and beginnings of words are looked through within seconds (M-40)."""
    text = unit * (50_000 // len(unit))
    begun = time.monotonic()
    relative(text, TUESDAY)
    absolute(text, TUESDAY)
    mentions_time(text)
    assert time.monotonic() - begun < 10
