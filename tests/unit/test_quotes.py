"""Quotes: what counts as a verbatim piece of a message, in any script."""
# ruff: noqa: RUF001 - words and signs of many scripts

import pytest

from agentmem.memory.quotes import QUOTE_BYTES, find_quote, quote_of


@pytest.mark.parametrize(
    ("quote", "text"),
    [
        pytest.param("I moved to Bergen", "By the way, I moved to Bergen in May.", id="english"),
        pytest.param("我搬到了北京", "对了,我搬到了北京,上个月的事。", id="chinese"),
        pytest.param("花生过敏", "我对花生过敏。", id="four-chinese-characters"),
        pytest.param("猫を二匹飼っています", "うちでは猫を 二匹飼っています。", id="japanese"),
        pytest.param(
            "ガーデンに住んで",
            "\uff76\uff9e\uff70\uff83\uff9e\uff9dに住んでいます",
            id="half-width",
        ),
        pytest.param("ผมย้ายไปเชียงใหม่", "เมื่อวาน ผมย้ายไปเชียงใหม่ แล้ว", id="thai"),
        pytest.param("انتقلت إلى القاهرة", "مرحبا، انتقلت إلى القاهرة أمس", id="arabic"),
        pytest.param("انتقلت إلى القاهرة", "انتَقَلتُ إلى القاهرة", id="arabic-vowels"),
        pytest.param("मैं पुणे में रहता हूँ", "अब मैं पुणे में रहता हूँ।", id="hindi"),
        pytest.param("עברתי לחיפה", "השבוע עָבַרְתִּי לְחֵיפָה", id="hebrew-points"),
        pytest.param("부산으로 이사했어요", "저는 부산으로이사했어요!", id="korean-spacing"),
        pytest.param("переехал в Пермь", "Я переехал в ПЕРМЬ", id="cyrillic-case"),
        pytest.param("Me mude a Malaga", "Me mudé a Málaga el martes", id="accents-missing"),
        pytest.param("Mieszkam w Lodzi", "Mieszkam w Łodzi od maja", id="strokes-missing"),
        pytest.param("bor i Tromsø nå", "Jeg bor i Tromso na", id="strokes-added"),
        pytest.param("the office file", "In the oﬃce ﬁle it says so", id="ligatures"),
        pytest.param("Hauptstrasse 12", "Ich wohne in der Hauptstraße 12.", id="sharp-s"),
        pytest.param("istanbul'da oturuyorum", "İstanbul’da oturuyorum", id="dotted-i"),
        pytest.param("Isparta'da yaşıyorum", "ISPARTA'DA YAŞIYORUM", id="dotless-i"),
        pytest.param('I said "no peanuts"', "I said “no peanuts” twice", id="curly-quotes"),
        pytest.param("I don't eat fish", "Well, I don’t eat fish", id="apostrophe"),
        pytest.param("love my dog Rex", "I love my dog 🐶 Rex 🎉!", id="emoji-between"),
        pytest.param(
            "I live in Bergen, Norway. Since May.",
            "so i live in bergen norway since may okay",
            id="voice-transcript",
        ),
        pytest.param(
            "room 12, floor 3", "It is room \uff11\uff12, floor \uff13", id="full-width-digits"
        ),
        pytest.param("I moved ... to Bergen", "I moved with my family to Bergen", id="pieces"),
        pytest.param("I moved … to Bergen", "I moved with my family to Bergen", id="one-sign"),
        pytest.param("[...] moved to Bergen...", "I moved to Bergen in May", id="at-both-ends"),
        pytest.param("Well... I moved out", "Well... I moved out", id="dots-of-the-message"),
        pytest.param("ok", "OK!", id="whole-short-message"),
        pytest.param("👍", " 👍", id="whole-message-of-signs"),
        pytest.param("はい", "はい。", id="whole-short-japanese"),
    ],
)
def test_a_verbatim_piece_is_found(quote: str, text: str) -> None:
    """Case, accents, vowel points, ligatures, spaces and punctuation make no difference."""
    assert find_quote(quote, text)


@pytest.mark.parametrize(
    ("quote", "text"),
    [
        pytest.param("I moved to Oslo", "I moved to Bergen", id="another-word"),
        pytest.param("I am vegetarian now", "I am not vegetarian now", id="a-word-left-out"),
        pytest.param("my rent is 1,250", "my rent is 1,350", id="another-number"),
        pytest.param("我搬到了上海", "我搬到了北京", id="another-city"),
        pytest.param("to Bergen ... I moved", "I moved with Ann to Bergen", id="wrong-order"),
        pytest.param(
            "Bergen ... Bergen ... Bergen", "Bergen, then Bergen", id="twice-is-not-thrice"
        ),
        pytest.param("Bergen", "I moved to Bergen", id="too-short"),
        pytest.param("过敏", "我对花生过敏", id="two-characters"),
        pytest.param("Bergen ... .. . !!!!!!!", "I moved to Bergen", id="padded-with-signs"),
        pytest.param("B e r g e n", "I moved to Bergen", id="padded-with-spaces"),
        pytest.param("👍", "👍 I moved to Bergen", id="signs-out-of-a-message"),
        pytest.param("............", "I moved to Bergen", id="dots"),
        pytest.param("", "I moved to Bergen", id="empty"),
        pytest.param("", "", id="both-empty"),
        pytest.param("  ", "\n", id="both-blank"),
        pytest.param("I moved to Bergen", "", id="empty-message"),
    ],
)
def test_what_the_message_does_not_say_is_not_found(quote: str, text: str) -> None:
    """Another word, number or order is no quote, nor is what is too short to mean anything."""
    assert not find_quote(quote, text)


def test_the_least_length_counts_bytes_of_utf_8() -> None:
    """Twelve Latin letters or four Chinese characters are enough; one letter less is not."""
    assert QUOTE_BYTES == 12
    assert find_quote("abcdefghijkl", "see abcdefghijklm")
    assert not find_quote("abcdefghijk", "see abcdefghijklm")


def test_a_quote_that_was_cut_is_still_found() -> None:
    """The quote that evidence keeps of a long message is a piece of it."""
    text = "I moved to Bergen. " * 40
    assert quote_of(text).endswith("…")
    assert find_quote(quote_of(text), text)
