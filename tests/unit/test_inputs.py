"""What people send is read in code: every wrong input is refused with the field's name."""

from typing import Any

import pytest

from agentmem.contracts import AgentInput
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
]


@pytest.mark.parametrize(("args", "words"), WRONG)
def test_wrong_inputs_are_refused_by_name(args: tuple[Any, ...], words: str) -> None:
    """F-15: missing, surplus, unknown and mistyped inputs name the field and what exists."""
    with pytest.raises(InvalidInput, match=words) as caught:
        parse_input(AgentInput, args, "the input of agent")
    assert caught.value.type == "InvalidInput"
    assert caught.value.non_retryable


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
