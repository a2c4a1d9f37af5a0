"""Values as they travel: JSON, compact models, packed state, and sizes in encoded bytes."""

import bz2
import json
import zlib
from collections.abc import Sequence
from typing import Any, ClassVar, Self, TypeAlias, TypeVar, cast

from pydantic import (
    BaseModel,
    ConfigDict,
    JsonValue,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
)
from pydantic_core import to_jsonable_python

from agentmem.errors import InvalidInput

JSONValue: TypeAlias = JsonValue
JSONObject: TypeAlias = dict[str, Any]
"""A JSON object whose inside belongs to somebody else (a provider, a tool, a model)."""


class Wire(BaseModel):
    """A frozen model that leaves its defaults out when it is written.

    What goes through Temporal stays in a history for the whole retention time, so a field that
    holds its default costs nothing there. A field added later needs a default, and then older
    histories still decode.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    _defaults: ClassVar[dict[str, Any]] = {}

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        cls._defaults = {
            name: field.get_default(call_default_factory=True, validated_data={})
            for name, field in cls.model_fields.items()
        }

    @model_serializer(mode="wrap")
    def _without_defaults(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        defaults = self._defaults
        return {
            name: value
            for name, value in handler(self).items()
            if name not in defaults or getattr(self, name) != defaults[name]
        }

    def replace(self, **changes: Any) -> Self:
        """Return a copy with these fields changed; the values are not validated again."""
        return self.model_copy(update=changes)

    def full(self) -> JSONObject:
        """Return every field, defaults too, as JSON for people."""
        return {name: _full(getattr(self, name)) for name in type(self).model_fields}


def _full(value: Any) -> Any:
    if isinstance(value, list):
        return [_full(item) for item in cast("list[Any]", value)]
    return value.full() if isinstance(value, Wire) else to_jsonable_python(value)


def dump_json(value: Any) -> str:
    """Write a JSON value on one line, keys in their order, every character readable.

    Raises:
        ValueError: The value holds NaN or an infinity, which JSON cannot carry.
        TypeError: The value is not JSON.
    """
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def as_line(row: JSONObject) -> str:
    """Return a row as a line of JSON, readable; what is no valid Unicode is escaped."""
    text = json.dumps(row, ensure_ascii=False, allow_nan=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(row, allow_nan=False)
    return text


def encoded_size(text: str) -> int:
    """Count the bytes that a text takes inside a JSON payload.

    Temporal's limits are on encoded bytes: a quote takes two, a control character six.
    """
    return len(json.dumps(text, ensure_ascii=False).encode("utf-8", "surrogatepass")) - 2


def printable(text: str) -> str:
    """Return a name as it can be stored and shown: control characters and half pairs become `?`."""
    return "".join(char if char.isprintable() else "?" for char in text)


def fair_limit(sizes: Sequence[int], room: int) -> int:
    """Return the largest limit for each that keeps all together within a room.

    What is smaller than the limit leaves its part to the others. Without sizes it is the room.
    """
    for taken, size in enumerate(sorted(sizes)):
        limit = room // (len(sizes) - taken)
        if size > limit:
            return limit
        room -= size
    return max(sizes, default=0) + room


def clip(text: str, limit: int, note: str = "") -> str:
    """Cut a text to at most `limit` encoded bytes, at a character, saying its full size.

    Args:
        text: What may be too long.
        limit: Encoded bytes that the result may take, the notice included.
        note: What to do about it, put behind the size in the notice.

    Returns:
        The text itself if it fits, else its beginning and a notice with the full size in bytes.
    """
    if len(text) * 6 <= limit or encoded_size(text) <= limit:
        return text
    size = encoded_size(text)
    notice = f"... [cut: {size} bytes in full{'; ' + note if note else ''}]"
    room = max(0, limit - encoded_size(notice))
    low, high = 0, min(len(text), room)
    while low < high:  # the longest prefix that fits: sizes grow with the prefix
        middle = (low + high + 1) // 2
        if encoded_size(text[:middle]) <= room:
            low = middle
        else:
            high = middle - 1
    return text[:low] + notice


PACKED_BYTES = 1024 * 1024
"""The most that a run hands on: half of what Temporal takes as the sum of all arguments. Over
that limit a workflow hangs."""

_UNPACKED_BYTES = 64 * 1024 * 1024

_BZIP2 = b"BZh"
"""The first bytes of what bzip2 wrote."""

Model = TypeVar("Model", bound=Wire)


def pack(model: Wire) -> bytes:
    """Return a model as bytes.

    They are to be an argument of their own: inside a model Temporal's converter would write them
    as base64, a third larger.
    """
    # A format is read one release before it is written, so that workers of two versions can share
    # sessions during a deployment. bzip2, which packs talk better, is read from this release on.
    return zlib.compress(model.model_dump_json().encode())


def unpack(model: type[Model], packed: bytes, what: str) -> Model:
    """Read what `pack` gave.

    Args:
        model: What it should be.
        packed: The bytes.
        what: What they are, for messages.

    Raises:
        InvalidInput: They are something else, or hold what only a newer version knows.
    """
    try:
        reader = bz2.BZ2Decompressor() if packed[:3] == _BZIP2 else zlib.decompressobj()
        text = reader.decompress(packed, _UNPACKED_BYTES)
        if not reader.eof:
            raise InvalidInput(f"{what} is cut off or too large")
        # What it does not know it must not drop: a newer version counts on it.
        return model.model_validate_json(text, extra="forbid")
    except (OSError, zlib.error, ValidationError, TypeError) as error:
        raise InvalidInput(f"{what} is not what a run hands on: it cannot be read") from error


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
