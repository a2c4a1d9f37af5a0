"""Results and errors of tools as text that a model reads."""

import dataclasses
import enum
import json
import math
from collections import OrderedDict, deque
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import PurePosixPath
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from pydantic import BaseModel, SecretStr

from agentmem.contracts.calls import RESULT_BYTES
from agentmem.errors import ToolError
from agentmem.tools.results import error_text, result_text
from agentmem.wire import encoded_size


class Colour(enum.Enum):
    """A colour."""

    RED = "red"


class Model(BaseModel):
    """A model with what JSON lacks."""

    at: datetime
    mean: float
    tags: set[int]
    password: SecretStr


@dataclasses.dataclass
class Record:
    """A record."""

    name: str
    of: Any


def strictly(text: str) -> Any:
    def refuse(word: str) -> Any:
        raise AssertionError(f"{word} is not JSON")

    return json.loads(text, parse_constant=refuse)


def test_every_python_type_has_a_json_form() -> None:
    """Zones, digits and order are kept, bytes are a data URI, every time alike."""
    oslo = timezone(timedelta(hours=1))
    value = {
        "at": datetime(2026, 3, 10, 9, 12, tzinfo=oslo),
        "naive": datetime(2026, 3, 10, 9, 12),  # noqa: DTZ001
        "d": date(2026, 3, 10),
        "time": time(9, 12),
        "took": timedelta(minutes=90),
        "p": Decimal("0.10"),
        "id": UUID(int=7),
        "raw": b"\xff\x00",
        "s": {2, 10, 1},
        "mixed": frozenset({"b", 1, None}),
        "e": Colour.RED,
        "t": (1, 2),
        "c": Record(name="x", of=[Record(name="y", of=None)]),
        "queue": deque([1]),
        "keys": OrderedDict([(1, "a"), (None, "b"), (date(2026, 1, 1), "c"), ((1, 2), "d")]),
        "path": PurePosixPath("/a/b"),
        "big": 2**70,
        "yes": True,
    }
    text = result_text(value)
    assert text == result_text(value)
    assert strictly(text) == {
        "at": "2026-03-10T09:12:00+01:00",
        "naive": "2026-03-10T09:12:00",
        "d": "2026-03-10",
        "time": "09:12:00",
        "took": "PT1H30M",
        "p": "0.10",
        "id": "00000000-0000-0000-0000-000000000007",
        "raw": "data:application/octet-stream;base64,/wA=",
        "s": [1, 2, 10],
        "mixed": ["b", 1, None],
        "e": "red",
        "t": [1, 2],
        "c": {"name": "x", "of": [{"name": "y", "of": None}]},
        "queue": [1],
        "keys": {"1": "a", "null": "b", "2026-01-01": "c", "[1,2]": "d"},
        "path": "/a/b",
        "big": 2**70,
        "yes": True,
    }


def test_a_pydantic_model_is_an_object_of_its_fields() -> None:
    """NaN and sets inside a model follow the same rules; a secret stays hidden."""
    model = Model(
        at=datetime(2026, 1, 1, tzinfo=UTC), mean=math.nan, tags={3, 1}, password=SecretStr("xyz")
    )
    assert strictly(result_text([model])) == [
        {"at": "2026-01-01T00:00:00+00:00", "mean": "NaN", "tags": [1, 3], "password": "*" * 10}
    ]


def test_arrays_give_their_numbers() -> None:
    """An object with `tolist()`, such as a numpy array or scalar, is shown as plain numbers."""
    assert result_text(SimpleNamespace(tolist=lambda: [1.5, math.inf])) == '[1.5,"Infinity"]'


def test_numbers_that_json_lacks_are_shown_by_name() -> None:
    """NaN and the infinities are neither null nor 0, and the text is standard JSON."""
    text = result_text({"mean": math.nan, "max": math.inf, "min": -math.inf})
    assert strictly(text) == {"mean": "NaN", "max": "Infinity", "min": "-Infinity"}
    assert strictly(result_text(math.nan)) == "NaN"


def test_nothing_is_told_from_empty() -> None:
    """None, empty and blank results are text that no provider refuses, each its own."""
    values: list[Any] = [None, "", [], {}, " \n", 0, False]
    texts = [result_text(value) for value in values]
    assert texts == ["null", '""', "[]", "{}", '" \\n"', "0", "false"]
    assert all(text.strip() for text in texts)


def test_text_is_shown_as_it_is() -> None:
    """A text result is not quoted."""
    assert result_text('He said "hi"\n') == 'He said "hi"\n'


@pytest.mark.parametrize("text", ["x" * 3_000_000, "😀" * 200_000, '"' * 100_000, "\x00" * 20_000])
def test_a_long_result_is_cut_with_its_full_size(text: str) -> None:
    """At most 64 KiB encoded, cut at a character, saying how long it was."""
    cut = result_text(text)
    assert RESULT_BYTES - 16 < encoded_size(cut) <= RESULT_BYTES
    shown, _, notice = cut.partition("... [cut: ")
    assert text.startswith(shown)
    assert notice == f"{encoded_size(text)} bytes in full]"
    cut.encode()


def test_a_result_of_just_the_limit_is_whole() -> None:
    """The limit itself is allowed, one byte more is cut."""
    assert result_text("x" * RESULT_BYTES) == "x" * RESULT_BYTES
    assert "[cut" in result_text("x" * (RESULT_BYTES + 1))


def test_a_lone_surrogate_is_shown_as_its_escape() -> None:
    """Text that is no valid Unicode cannot stop a payload from being written."""
    assert result_text("a\ud800b") == "a\\ud800b"
    assert result_text({"k": "\udfff"}) == '{"k":"\\udfff"}'
    assert error_text(ValueError("\ud800")) == "ValueError: \\ud800"


def test_a_result_that_contains_itself_is_an_error() -> None:
    """A cycle is named as the problem, and does not take the worker down."""
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(ToolError, match=r"the tool ran, but its result \(list\) has no end"):
        result_text(loop)


def test_an_error_shows_its_type_and_message() -> None:
    """A model reads what went wrong; a `ToolError` speaks for itself."""
    assert error_text(ValueError("bad day")) == "ValueError: bad day"
    assert error_text(KeyError("x")) == "KeyError: 'x'"
    assert error_text(TimeoutError()) == "TimeoutError"
    assert error_text(ToolError("No such city; try Oslo.")) == "No such city; try Oslo."
    assert error_text(ToolError(" ")) == "ToolError"
    assert encoded_size(error_text(ValueError("x" * 3_000_000))) <= RESULT_BYTES
