"""Texts and ISO dates as dreams compare them, in every language."""
# ruff: noqa: RUF001 - words and signs of many scripts

import time
import unicodedata
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentmem.dreaming.rules.dates import bounds, is_date, last_day, span
from agentmem.dreaming.rules.text import Rarity, fold, fold_key, words


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("\u00e9t\u00e9", "E\u0301TE\u0301"),
        ("Straße", "STRASSE"),
        ("zero\u200bwidth", "zerowidth"),
        ("ＦＵＬＬ\u3000width", "full width"),
    ],
)
def test_texts_that_look_alike_fold_to_the_same(one: str, other: str) -> None:
    """Case, width, spaces and composition make no difference."""
    assert fold(one) == fold(other)


@pytest.mark.parametrize(
    ("one", "other"), [("balance -5", "balance 5"), ("v1.2", "v12"), ("été", "ete"), ("a>b", "a<b")]
)
def test_texts_that_may_say_something_else_stay_apart(one: str, other: str) -> None:
    """Signs and accents count where values are called equal."""
    assert fold(one) != fold(other)


@given(st.text())
def test_folding_twice_is_folding_once(text: str) -> None:
    """A folded text is its own fold."""
    assert fold(fold(text)) == fold(text)


def test_keys_fold_over_case_and_separators() -> None:
    """`Home-City`, `home_city` and `home city` are one key, `homecities` is another."""
    assert len({fold_key(key) for key in ("Home-City", "home_city", "home city", "HOMECITY")}) == 1
    assert fold_key("homecities") != fold_key("home_city")


@pytest.mark.parametrize(
    ("one", "other", "shared"),
    [
        ("Moved to BERGEN!", "bergen", {"bergen"}),
        ("Café in Köln", "koln cafe", {"cafe", "koln"}),
        ("我搬到卑尔根", "住在卑尔根", {"卑尔", "尔根"}),
        ("커피를 좋아해요", "커피는", {"커피"}),
        ("loves 🐈 cats", "🐈", {"🐈"}),
    ],
)
def test_words_meet_in_every_script(one: str, other: str, shared: set[str]) -> None:
    """Spaced scripts in words, unspaced ones in pairs of characters."""
    both = set(words(one)) & set(words(other))
    assert {unicodedata.normalize("NFC", word) for word in both} >= shared


@given(st.text(max_size=300))
def test_no_text_breaks_the_comparisons(text: str) -> None:
    """Any text has words, all of them with something in them."""
    assert all(words(text))


def test_rare_words_weigh_more() -> None:
    """A word of one text weighs more than one of all."""
    rarity = Rarity(["the cat sat", "the dog ran", "the zeppelin flew"])
    assert rarity.weight("zeppelin") > rarity.weight("the")


@pytest.mark.parametrize("unit", ["a", "1 ", "дн", "不", ". ", "e\u0301"])
def test_a_huge_text_takes_time_in_proportion(unit: str) -> None:
    """50 kB of the same characters are looked through within seconds."""
    begun = time.monotonic()
    words(unit * (50_000 // len(unit)))
    assert time.monotonic() - begun < 10


def test_iso_dates_are_days_months_years_and_intervals() -> None:
    """The end of an interval is not before its start; nothing else is a date."""
    assert span("2026-02") == (date(2026, 2, 1), date(2026, 2, 28))
    assert span("2026-05-03/2026-05-09") == (date(2026, 5, 3), date(2026, 5, 9))
    assert span("2026/2027") == (date(2026, 1, 1), date(2027, 12, 31))
    for text in ("", "2026-13", "2026-02-30", "2026-05-09/2026-05-03", "٢٠٢٦", "yesterday"):
        assert span(text) is None
    assert is_date("2026-05-03/2026-05-09", interval=True)
    assert not is_date("2026-05-03/2026-05-09")
    assert last_day("2026-02") == date(2026, 2, 28)
    assert bounds("2026-05-03/2026-05-09") == ("2026-05-03", "2026-05-09")
    assert bounds("2026") == ("2026", "")
