"""How the rules compare texts."""
# ruff: noqa: RUF001 - words and signs of many scripts

import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentmem.offline.text import (
    Rarity,
    content,
    fold,
    fold_key,
    names,
    negated,
    numbers,
    sentences,
    stems,
    text_of,
    urls,
)


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
    """Case, typography, spaces and composition make no difference (M-42)."""
    assert fold(one) == fold(other)


@given(st.text())
def test_folding_twice_is_folding_once(text: str) -> None:
    """A folded text is its own fold, in NFC."""
    folded = fold(text)
    assert fold(folded) == folded
    assert unicodedata.is_normalized("NFC", folded)


def test_keys_fold_over_case_and_separators() -> None:
    """`Home-City`, `home_city` and `home city` are one key for comparison, `homecities` is not."""
    assert len({fold_key(key) for key in ("Home-City", "home_city", "home city", "HOMECITY")}) == 1
    assert fold_key("homecities") != fold_key("home_city")


@given(st.text(max_size=300))
def test_no_text_breaks_the_comparisons(text: str) -> None:
    """Any text, of any script, with lone marks or emoji, has stems, names and numbers."""
    assert set(content(text)) <= set(stems(text))
    for look in (names, numbers, urls, negated, sentences, stems):
        assert all(look(text))
    assert 0 <= Rarity([text]).overlap(text, text) <= 1.000_001


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


def test_addresses_are_found_without_what_ends_the_sentence() -> None:
    """A URL or mail address loses the full stop behind it."""
    assert urls("See https://Example.org/a?b=1. Write to Anna@example.org!") == {
        "https://example.org/a?b=1",
        "anna@example.org",
    }


def test_names_are_capitalised_words_and_chinese_characters() -> None:
    """Small words that begin a sentence are no names."""
    assert names("The user met Anna Lund in Bergen") == {"anna", "lund", "bergen"}
    assert names("喜欢紫色") == set("喜欢紫色")


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("does not like coffee", "coffe"),
        ("doesn't like coffee", "coffe"),
        ("mag keinen Kaffee", "kaffe"),
        ("mag Kaffee nicht", "kaffe"),
        ("не пьёт кофе", "кофе"),
        ("不喜欢咖啡", "喜欢"),
    ],
)
def test_negation_stands_beside_its_word(text: str, word: str) -> None:
    """What is negated is known by its word, in front of it or behind it."""
    assert word in negated(text)


def test_negation_reaches_no_other_part_of_the_sentence() -> None:
    """In "works at Acme and does not eat meat" the work is not negated."""
    assert negated("works at Acme and does not eat meat") & {"work", "acm"} == set()


def test_rare_words_weigh_more() -> None:
    """A shared rare word makes more of an overlap than a shared common one."""
    rarity = Rarity(["the cat sat", "a cat ran", "my cat purred", "zeppelin cat"])
    assert rarity.overlap("cat zeppelin", "zeppelin") > rarity.overlap("cat zeppelin", "cat")
    assert rarity.overlap("", "cat") == 0


def test_values_that_are_no_text_are_compared_as_json() -> None:
    """Any JSON value has a text (M-44)."""
    assert text_of({"a": [1, None]}) == '{"a":[1,null]}'
    assert text_of("x") == "x"


@pytest.mark.parametrize("unit", ["a", "1 ", "a@", "дн", "<a", "不", ". ", "http://"])
def test_a_huge_text_takes_time_in_proportion(unit: str) -> None:
    """50 kB of the same characters are looked through within seconds (M-40)."""
    text = unit * (50_000 // len(unit))
    begun = time.monotonic()
    for look in (content, names, numbers, urls, negated, sentences):
        look(text)
    assert time.monotonic() - begun < 10
