"""What a tool gave, or how it failed, as the text that a model reads.

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
    numpy array or scalar       what its `tolist()` gives
    UUID, path, URL and alike   text; so is everything else, by `str()`
"""

import base64
import dataclasses
import math
from collections.abc import Collection, Mapping, Set
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from typing import Any, cast

from pydantic import BaseModel
from pydantic_core import to_jsonable_python
from temporalio.exceptions import FailureError

from agentmem.contracts.calls import RESULT_BYTES
from agentmem.errors import ToolError
from agentmem.values import JSONValue, clip, dump_json


def result_text(value: Any, limit: int = RESULT_BYTES) -> str:
    """Return a tool's result as text: never blank, the same each time.

    Args:
        value: The result.
        limit: The most encoded bytes that it may take; a longer one is cut, with its full size.

    Raises:
        ToolError: The value contains itself, or is nested too deeply.
    """
    try:
        text = value if isinstance(value, str) else dump_json(json_form(value))
    except RecursionError as error:
        raise ToolError(
            f"the tool ran, but its result ({type(value).__name__}) has no end: it contains itself"
        ) from error
    return _clean(text if text.strip() else dump_json(text), limit)


def error_text(error: BaseException) -> str:
    """Return what a model reads of an error: type and message; of a `ToolError` its text alone."""
    message = error.message if isinstance(error, FailureError) else str(error)
    kind = type(error).__name__
    if isinstance(error, ToolError) and message.strip():
        return _clean(message)
    return _clean(f"{kind}: {message}" if message.strip() else kind)


def json_form(value: Any) -> JSONValue:
    """Return a value in its JSON form, by the table at the top of this module.

    Raises:
        RecursionError: The value contains itself, or is nested too deeply.
    """
    if isinstance(value, Enum):
        return json_form(value.value)
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
    return _of_container(value)


def _of_container(value: Any) -> JSONValue:
    if isinstance(value, BaseModel):
        return json_form(value.model_dump())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
        return {name: json_form(getattr(value, name)) for name in names}
    if callable(as_list := getattr(value, "tolist", None)):
        return json_form(as_list())
    if isinstance(value, Mapping):
        items = cast("Mapping[Any, Any]", value).items()
        return {_key(key): json_form(item) for key, item in items}
    if isinstance(value, Set):
        return _in_order([json_form(item) for item in cast("Set[Any]", value)])
    if isinstance(value, Collection):
        return [json_form(item) for item in cast("Collection[Any]", value)]
    return cast("JSONValue", to_jsonable_python(value, fallback=str))


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


def _clean(text: str, limit: int = RESULT_BYTES) -> str:
    # A lone surrogate fits into no payload: it is shown as its escape.
    return clip(text.encode("utf-8", "backslashreplace").decode(), limit)
