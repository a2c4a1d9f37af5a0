"""Inputs that people send are read in code: each wrong one is refused with the field's name."""

from typing import Any

import pytest

from agentmem.contracts import AgentInput, DreamInput
from agentmem.errors import InvalidInput
from agentmem.inputs import MESSAGE_BYTES, parse_input, parse_text

WRONG: list[tuple[tuple[Any, ...], str]] = [
    ((), "missing"),
    ((None,), "missing"),
    (({}, {}), "one argument"),
    (({}, b"carried", {}), "one argument"),
    (("text",), "JSON object"),
    (([1],), "JSON object"),
    ((7,), "JSON object"),
    (({"agnt": "x"},), "'agnt'"),
    (({"agent": 5},), "'agent'"),
    (({"session": "yes"},), "'session'"),
    (({"end_after_minutes": "soon"},), "'end_after_minutes'"),
    (({"end_after_minutes": -1},), "'end_after_minutes'"),
    (({"end_after_minutes": 1e308},), "'end_after_minutes'"),
    (({"end_after_minutes": float("inf")},), "'end_after_minutes'"),
]


@pytest.mark.parametrize(("args", "words"), WRONG)
def test_wrong_inputs_are_refused_by_name(args: tuple[Any, ...], words: str) -> None:
    """Missing, surplus, unknown and mistyped inputs name the field and what exists."""
    with pytest.raises(InvalidInput, match=words) as caught:
        parse_input(AgentInput, args, "the input of agent")
    assert caught.value.type == "InvalidInput"
    assert caught.value.non_retryable
    assert caught.value.__cause__ is None, "the CLI shows causes: pydantic's words beside ours"


@pytest.mark.parametrize(
    ("model", "field", "most"),
    [
        (AgentInput, "agent", 512),
        (AgentInput, "scope", 512),
        (DreamInput, "agent", 512),
        (DreamInput, "scope", 512),
        (DreamInput, "provider", 1024),
        (DreamInput, "model", 512),
    ],
)
def test_long_names_are_refused_without_repeating_them(
    model: type[AgentInput | DreamInput], field: str, most: int
) -> None:
    """A name over its bound is refused in a short message: errors are bounded by the server."""
    named = {"agent": "a", "scope": "s", field: "n" * most}
    assert parse_input(model, [named], "the input").model_dump()[field] == "n" * most
    named[field] = "n" * 2_000_000
    with pytest.raises(InvalidInput, match=f"'{field}'.*at most {most} characters") as caught:
        parse_input(model, [named], "the input")
    assert len(caught.value.message) < 300


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"limits": {"orientt": 3}}, "orientt"),
        ({"before": {"status": "completed", "usage": {"tokens": 1}}}, "tokens"),
        ({"rounds": -1}, "'rounds'"),
    ],
)
def test_a_dreams_input_is_checked_to_its_depth(wrong: dict[str, Any], words: str) -> None:
    """A misspelt limit is refused, not ignored, and so is a negative number of rounds."""
    with pytest.raises(InvalidInput, match=words):
        parse_input(DreamInput, [{"agent": "a", "scope": "s", **wrong}], "the input")


def test_a_good_input_is_read_with_its_defaults() -> None:
    """Fields that are left out take their defaults."""
    read = parse_input(AgentInput, [{"scope": "user-1", "message": "hi"}], "the input of agent")
    assert read == AgentInput(agent="assistant", scope="user-1", message="hi")


@pytest.mark.parametrize("args", [(), ("a", "b"), (5,), (None,), ({"text": "x"},), ("  \n",)])
def test_messages_that_are_no_text_are_refused(args: tuple[Any, ...]) -> None:
    """A message is one JSON string that is not blank."""
    with pytest.raises(InvalidInput, match="the message"):
        parse_text(args, "the message")


@pytest.mark.parametrize(("character", "bytes_each"), [("a", 1), ('"', 2), ("😀", 4), ("\x00", 6)])
def test_messages_are_limited_in_encoded_bytes(character: str, bytes_each: int) -> None:
    """At the limit a message passes, one character over it is refused with its size."""
    most = MESSAGE_BYTES // bytes_each
    assert parse_text([character * most], "the message") == character * most
    with pytest.raises(InvalidInput, match=str(MESSAGE_BYTES)):
        parse_text([character * (most + 1)], "the message")
