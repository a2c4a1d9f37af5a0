"""JSON from others, made safe to read and to send on."""

import json
from typing import Any, cast

from agentmem.values import JSONObject


def plain(value: Any) -> Any:
    """Return a value as JSON that every encoder takes.

    Half of a surrogate pair, which no UTF-8 can hold, becomes `?`; NaN and the infinities become
    their names.
    """
    text = json.dumps(value, ensure_ascii=False, default=str)
    return json.loads(text.encode("utf-8", "replace"), parse_constant=str)


def plain_text(text: str) -> str:
    """Return a text as every encoder takes it: `plain` for the common case."""
    if text.isascii():  # known without looking through it
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def as_mapping(value: object) -> JSONObject:
    """Return an object as it is, anything else as an empty one."""
    return cast("JSONObject", value) if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    """Return a list as it is, anything else as an empty one."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def objects(value: object) -> list[JSONObject]:
    """Return the objects of a list."""
    return [cast("JSONObject", item) for item in as_list(value) if isinstance(item, dict)]


def joined_text(parts: list[JSONObject]) -> str:
    """Return the text of a list of content parts; parts without text add nothing."""
    texts = (part.get("text") for part in parts)
    return "".join(text for text in texts if isinstance(text, str))
