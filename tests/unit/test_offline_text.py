"""Texts as the offline model compares them."""
# ruff: noqa: RUF001 - words and signs of many scripts

import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentmem.offline.text import content, fold, numbers, sentences, text_of


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("\u00e9t\u00e9", "E\u0301TE\u0301"),
        ("Straße", "STRASSE"),
        ("“So”  – he\u00a0said", '"so" - he said'),
        ("it’s", "IT'S"),
        ("zero\u200bwidth", "zerowidth"),
        ("Ёлка", "ёлка"),
        ("ＦＵＬＬ\u3000width", "ｆｕｌｌ width"),
    ],
)
def test_texts_that_look_alike_fold_to_the_same(one: str, other: str) -> None:
    """Case, typography, spaces and composition make no difference."""
    assert fold(one) == fold(other)


@given(st.text())
def test_folding_twice_is_folding_once(text: str) -> None:
    """A folded text is its own fold, in NFC."""
    folded = fold(text)
    assert fold(folded) == folded
    assert unicodedata.is_normalized("NFC", folded)


@given(st.text(max_size=300))
def test_no_text_breaks_the_comparisons(text: str) -> None:
    """Any text, of any script, with lone marks or emoji, has content words and numbers."""
    for look in (content, numbers, sentences):
        assert all(look(text))


@pytest.mark.parametrize(
    ("one", "other", "shared"),
    [
        ("She moved to Bergen", "moving", {"mov"}),
        ("I stopped drinking coffee", "stop drink coffees", {"stop", "drink", "coffe"}),
        ("переехала в Берген", "Бергене", {"берге"}),
        ("我搬到卑尔根", "住在卑尔根", {"卑尔", "尔根"}),
        ("커피를 좋아해요", "커피는", {"커피"}),
        ("हिन्दी बोलता हूँ", "हिन्दी", {"हिन्दी"[:5]}),
        ("loves 🐈 cats", "🐈", {"🐈"}),
    ],
)
def test_content_words_meet_across_forms_and_scripts(
    one: str, other: str, shared: set[str]
) -> None:
    """Inflected words meet in their stems, unspaced scripts in pairs, emoji in themselves."""
    assert set(content(one)) & set(content(other)) == shared


def test_small_words_carry_no_content() -> None:
    """Words of grammar are left out in each tried language; names of two letters stay."""
    assert content("I am with you, and so on") == []
    assert content("ich bin nicht der, und du auch") == ["nicht"]
    assert content("Bo is in the UK") == ["bo", "uk"]


def test_numbers_of_any_script_compare() -> None:
    """Thousands' commas and Arabic digits make no difference; versions stay whole."""
    assert numbers("1,200 cats, ١٢ dogs, v2.10.3, 9:30") == {"1200", "12", "2.10.3", "9:30"}


def test_values_that_are_no_text_are_compared_as_json() -> None:
    """Any JSON value has a text."""
    assert text_of({"a": [1, None]}) == '{"a":[1,null]}'
    assert text_of("x") == "x"


@pytest.mark.parametrize("unit", ["a", "1 ", "a@", "дн", "<a", "不", ". ", "http://"])
def test_a_huge_text_takes_time_in_proportion(unit: str) -> None:
    """50 kB of the same characters are looked through within seconds."""
    text = unit * (50_000 // len(unit))
    begun = time.monotonic()
    for look in (content, numbers, sentences):
        look(text)
    assert time.monotonic() - begun < 10
