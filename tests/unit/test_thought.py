"""Thought that a model writes into its text, apart from what it says."""

import time

import pytest

from agentmem.llm.reasoning import split_thought


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
        ("<|begin_of_thought|>hm<|end_of_thought|>\n\nCairo.", "hm"),
        ("<|inner_prefix|>hm<|inner_suffix|>Cairo.", "hm"),
        ("<|channel>hm<channel|>Cairo.", "hm"),
        ("<think>hm</thinking>\nCairo.", "hm"),
        ("<think>hm</think>\n</think>\nCairo.", "hm"),
        ("I see. </think> Cairo.", "I see."),
        ("x:\n```py\na = 1\n</think>\nCairo.", "x:\n```py\na = 1"),
    ],
)
def test_thought_is_taken_out_of_the_text(text: str, thought: str) -> None:
    """With tags, with a closing tag alone, empty, twice, nested, in any template's markup."""
    assert split_thought(text) == (thought, "Cairo.")


@pytest.mark.parametrize(
    ("opened", "text", "said"),
    [
        ("<think>", 'so {"a": 1}</think>{"city": "Cairo"}', '{"city": "Cairo"}'),
        ("<think>", "(an easy one)</think>[1, 2]", "[1, 2]"),
        ("[THINK]", 'he says "hi"[/THINK]"Cairo."', '"Cairo."'),
        ("<think>", "it's 'easy'</think>'Cairo.'", "'Cairo.'"),
        ("<think>", "见《书》</think>《开罗》", "《开罗》"),
        ("<think>", "see `x`</think>`y`", "`y`"),
    ],
)
def test_an_answer_may_begin_with_a_mark_where_a_thought_ends_with_one(
    opened: str, text: str, said: str
) -> None:
    """Only marks that belong together make a tag a quoted one."""
    assert split_thought(f"{opened}{text}")[1] == said
    assert split_thought(text)[1] == said


@pytest.mark.parametrize(
    "text",
    [
        "<think>hm</think><answer>Cairo.</answer>",
        "hm</think>\n<response>\nCairo.\n</response>\n",
        "<|START_THINKING|>hm<|END_THINKING|><|START_RESPONSE|>Cairo.<|END_RESPONSE|>",
        "<think>hm</think><answer>Cairo.",
        "<think>hm</think>\n<|begin_of_box|>Cairo.<|end_of_box|>",
    ],
)
def test_the_markup_around_an_answer_goes_with_the_thought(text: str) -> None:
    """Templates that mark the thought mark the answer too."""
    assert split_thought(text) == ("hm", "Cairo.")


@pytest.mark.parametrize(
    "text",
    ["<answer>Cairo.</answer>", "<response>a</response>", "<answer>a</answer><answer>b</answer>"],
)
def test_markup_without_a_thought_is_text(text: str) -> None:
    """The user may have asked for it; so may one that holds two answers."""
    assert split_thought(text) == ("", text)
    assert split_thought("<think>hm</think><answer>a</answer> or <answer>b</answer>") == (
        "hm",
        "<answer>a</answer> or <answer>b</answer>",
    )


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
        "It's called '</think>', it closes.",
        "标签'</think>'表示结束。",
        "标签「</think>」表示结束。",
        "„</think>“ schließt.",
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
    start = time.process_time()  # of this process alone, however busy the machine is
    for text in (
        "<think>\n" * 20_000,
        "a </think> " * 20_000,
        "</think>" * 20_000,
        "<think>a</think>\n" * 20_000,
        "```\n<think>a</think>\n```\n" * 5_000,
        '"</think>"' * 5_000,
        "a. </think> " * 5_000,
    ):
        split_thought(text)
    assert time.process_time() - start < 20
