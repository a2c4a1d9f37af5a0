"""Thought that a model writes into its text, apart from what it says."""

import time

import pytest

from agentmem.models.thought import split_thought


@pytest.mark.parametrize(
    ("text", "thought"),
    [
        ("<think>hm</think>Cairo.", "hm"),
        ("<think>\nhm\n</think>\n\nCairo.", "hm"),
        ("\n<THINK>hm</THINK> Cairo.", "hm"),
        ("<think>\n\n</think>\n\nCairo.", ""),
        ("hm</think>Cairo.", "hm"),
        ("One.\n\nTwo.\n</think>\n\nCairo.", "One.\n\nTwo."),
        ("</think>Cairo.", ""),
        ("<think>a</think>\n<think>b</think>\nCairo.", "a\nb"),
        ("<think>a <think>b</think> c</think>Cairo.", "a <think>b</think> c"),
        ("<think>I must close <think> first</think>Cairo.", "I must close <think> first"),
        ("<thinking>hm</thinking>\nCairo.", "hm"),
        ("[THINK]hm[/THINK]Cairo.", "hm"),
        ("◁think▷hm◁/think▷Cairo.", "hm"),
        ("<seed:think>hm</seed:think>Cairo.", "hm"),
        ("<|START_THINKING|>hm<|END_THINKING|>Cairo.", "hm"),
        ("<thought>嗯</thought>Cairo.", "嗯"),
        ("so say 'Cairo'</think>Cairo.", "so say 'Cairo'"),
        ("<think>the tag `</think>` ends it</think>Cairo.", "the tag `</think>` ends it"),
        ("\ufeff<think>hm</think>Cairo.", "hm"),
    ],
)
def test_thought_is_taken_out_of_the_text(text: str, thought: str) -> None:
    """With tags, with a closing tag alone, empty, twice, nested, in any template's markup."""
    assert split_thought(text) == (thought, "Cairo.")


@pytest.mark.parametrize("text", ["<think>so far", "<think>", "  <think>\nso"])
def test_a_reply_that_was_cut_off_in_its_thought_says_nothing(text: str) -> None:
    """No half of a thought is taken for the answer."""
    assert split_thought(text)[1] == ""


def test_a_block_after_some_words_is_thought_too() -> None:
    """Models that think in between open a line with it."""
    assert split_thought("Sure.\n<think>hm</think>\nCairo.") == ("hm", "Sure.\nCairo.")


@pytest.mark.parametrize(
    "text",
    [
        "Cairo.",
        "Wrap it in <think> and </think> tags.",
        "A `</think>` closes the block.",
        "The tag is called '</think>', it closes.",
        "End it (</think>) there.",
        "Such as:\n```\n<think>hm</think>\n```\nDone.",
        "Write\n\n    x = '<think>'\n",
        "  padded  ",
        "a < b, think about it",
    ],
)
def test_text_that_speaks_of_tags_stays_as_it_is(text: str) -> None:
    """In a sentence, in quotes, in a fenced block."""
    assert split_thought(text) == ("", text)


def test_json_after_a_thought_is_the_json_alone() -> None:
    """A response format is read behind it."""
    assert split_thought('<think>{"no": 1}</think>\n{"city": "Cairo"}')[1] == '{"city": "Cairo"}'


def test_a_long_text_of_tags_takes_no_time() -> None:
    """A hostile reply must not hold the worker's loop."""
    start = time.monotonic()
    for text in (
        "<think>\n" * 20_000,
        "a </think> " * 20_000,
        "</think>" * 20_000,
        "<think>a</think>\n" * 20_000,
        "```\n<think>a</think>\n```\n" * 5_000,
    ):
        split_thought(text)
    assert time.monotonic() - start < 10
