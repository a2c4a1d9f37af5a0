"""The result of a tool, or its failure, as the text that a model reads.

The JSON form of a result, for every Python type:

    text                        as it is; blank text in quotes, as providers refuse blank content
    None, bool, int, float      JSON; NaN, Infinity and -Infinity as text, for JSON has none
    Decimal                     text with its digits: "0.10"
    datetime, date, time        ISO 8601, with the zone where there is one; a timedelta too
    bytes                       a data URI: "data:application/octet-stream;base64,/wA="
    Enum                        its value
    dict                        an object; keys that are not text in their JSON form
    list, tuple, other sized    a list
    set                         a list in order: by value, or by the elements' JSON
    pydantic model, dataclass   an object of its fields
    iterator, generator, and    a list, read up to the limit of the result
      what else can be read
    async generator             the same, where it is the whole result
    numpy array or scalar       what its `tolist()` gives
    UUID, path, URL and alike   text; so is everything else, by `str()`
"""

import base64
import dataclasses
import inspect
import math
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    Collection,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Set,
)
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from typing import Any, cast

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, to_jsonable_python
from temporalio.exceptions import FailureError

from agentmem.contracts.calls import RESULT_BYTES
from agentmem.errors import ToolError
from agentmem.wire import JSONValue, clip, dump_json


def result_text(value: Any, limit: int = RESULT_BYTES) -> str:
    """Return a tool's result as text: never blank, the same each time.

    Args:
        value: The result.
        limit: The most encoded bytes that it may take; a longer one is cut, with its full size.

    Raises:
        ToolError: The value contains itself, or is nested too deeply.
    """
    if isinstance(value, str):
        return _shown(value, limit)
    reading = _Reading(limit)
    try:
        text = dump_json(json_form(value, reading))
    except RecursionError as error:
        raise ToolError(
            f"the tool ran, but its result ({type(value).__name__}) has no end: it contains itself"
        ) from error
    return _shown(text, limit, is_whole=not reading.is_cut)


async def lazy_result_text(value: Any, limit: int = RESULT_BYTES) -> str:
    """Return a tool's result as text, also of an async iterator; the rest is `result_text`'s."""
    if not isinstance(value, AsyncIterable):
        return result_text(value, limit)
    found: list[JSONValue] = []
    reading = _Reading(limit)
    items = cast("AsyncIterable[object]", value)
    async for item in items:
        found.append(json_form(item, reading))
        reading.take(found[-1])
        if reading.read > limit:
            reading.is_cut = True
            if isinstance(items, AsyncGenerator):
                await items.aclose()
            break
    return _shown(dump_json(found), limit, is_whole=not reading.is_cut)


def is_async(value: object) -> bool:
    """Tell whether a result must be awaited or read in an event loop."""
    return inspect.isawaitable(value) or isinstance(value, AsyncIterable)


def error_text(error: BaseException) -> str:
    """Return what a model reads of an error: type and message; of a `ToolError` its text alone."""
    message = error.message if isinstance(error, FailureError) else str(error)
    kind = type(error).__name__
    if isinstance(error, ToolError) and message.strip():
        return _clean(message)
    return _clean(f"{kind}: {message}" if message.strip() else kind)


class _Reading:
    """The amount of a result that was read: one without an end must not be read to the end.

    Attributes:
        limit: Bytes at which an iterator is read no further.
        read: Bytes so far, about.
        is_cut: Whether something was left unread.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.read = 0
        self.is_cut = False

    def take(self, form: JSONValue) -> None:
        """Count a value; what is inside of a list or an object was counted before."""
        self.read += len(form) + 3 if isinstance(form, str) else 3

    def items(self, values: Iterable[object], most: int) -> list[JSONValue]:
        """Return the forms of values, up to so many bytes of the whole result."""
        forms: list[JSONValue] = []
        for value in values:
            if self.read > most:
                self.is_cut = True
                if isinstance(values, Generator):
                    values.close()
                break
            forms.append(json_form(value, self))
            self.take(forms[-1])
        return forms


COLLECTION_BYTES = 4 * 1024 * 1024
"""Bytes of lists and the like that are read, so that the notice can say the size of most."""


def json_form(value: Any, reading: _Reading | None = None) -> JSONValue:
    """Return a value in its JSON form, by the table at the top of this module.

    Raises:
        RecursionError: The value contains itself, or is nested too deeply.
    """
    reading = reading or _Reading(COLLECTION_BYTES)
    if isinstance(value, Enum):
        return json_form(value.value, reading)
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else _not_finite(value)
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, bytes | bytearray):
        encoded = base64.b64encode(value).decode()
        return f"data:application/octet-stream;base64,{encoded}"
    return _of_container(value, reading)


def _of_container(value: Any, reading: _Reading) -> JSONValue:
    if isinstance(value, BaseModel):
        return json_form(value.model_dump(), reading)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
        return {name: json_form(getattr(value, name), reading) for name in names}
    if callable(as_list := getattr(value, "tolist", None)):
        return json_form(as_list(), reading)
    if isinstance(value, Mapping):
        return _of_mapping(cast("Mapping[Any, Any]", value), reading)
    if isinstance(value, Set):
        return _in_order(reading.items(cast("Set[Any]", value), COLLECTION_BYTES))
    if isinstance(value, Collection):
        return reading.items(cast("Collection[Any]", value), COLLECTION_BYTES)
    if isinstance(value, Iterator):
        return reading.items(cast("Iterator[Any]", value), reading.limit)
    try:
        return cast("JSONValue", to_jsonable_python(value))
    except PydanticSerializationError:  # no type that has a form of its own
        if isinstance(value, Iterable):
            return reading.items(cast("Iterable[object]", value), reading.limit)
        return cast("JSONValue", to_jsonable_python(value, fallback=str))


def _of_mapping(value: Mapping[Any, Any], reading: _Reading) -> JSONValue:
    form: dict[str, JSONValue] = {}
    for key, item in value.items():
        if reading.read > COLLECTION_BYTES:
            reading.is_cut = True
            break
        name = _key(key)
        form[name] = json_form(item, reading)
        reading.take(name)
        reading.take(form[name])
    return form


def _not_finite(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def _key(key: Any) -> str:
    form = json_form(key)
    return form if isinstance(form, str) else dump_json(form)


def _in_order(items: list[Any]) -> list[JSONValue]:
    try:
        return sorted(items)
    except TypeError:
        return sorted(items, key=dump_json)


_NOT_READ = "... [cut: the rest of the result was not read]"


def _shown(text: str, limit: int, *, is_whole: bool = True) -> str:
    shown = text if text.strip() else dump_json(text)
    if is_whole:
        return _clean(shown, limit)
    cut = _clean(shown, limit - len(_NOT_READ))
    # The size in the notice of `clip` is that of what was read.
    before, notice, _ = cut.rpartition("... [cut: ")
    return (before if notice and cut.endswith("bytes in full]") else cut) + _NOT_READ


def _clean(text: str, limit: int = RESULT_BYTES) -> str:
    # A lone surrogate fits into no payload: it is shown as its escape.
    return clip(text.encode("utf-8", "backslashreplace").decode(), limit)
