"""Reading messages of which nothing is certain: whatever is not of the expected shape is empty."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

Message = Mapping[str, Any]


def mapping(value: object) -> Message:
    """The value if it is a JSON object, else an empty one."""
    return cast("Message", value) if isinstance(value, Mapping) else {}


def calls(message: Message) -> list[Message]:
    """The tool calls of a message."""
    return _items(message, "tool_calls")


def parts(message: Message) -> list[Message]:
    """The content parts of a message; none if its content is text."""
    return _items(message, "content")


def text(message: Message) -> str:
    """The text of a message, the texts of its parts joined."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    return "".join(str(part.get("text") or "") for part in parts(message))


def parsed(arguments: object) -> object:
    """The value of JSON text; None if it is no text, or not JSON by the strict standard."""
    try:
        return json.loads(arguments, parse_constant=_refuse) if isinstance(arguments, str) else None
    except ValueError:
        return None


def objects(value: object) -> list[Message]:
    """The items of a list, as JSON objects; none of anything else."""
    return (
        [mapping(item) for item in cast("list[object]", value)] if isinstance(value, list) else []
    )


def _items(message: Message, field: str) -> list[Message]:
    return objects(message.get(field))


def _refuse(constant: str) -> None:
    raise ValueError(constant)
