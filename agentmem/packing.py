"""State that goes along to a new run of a workflow: a model as compressed bytes, and back."""

import bz2
import zlib
from typing import TypeVar

from pydantic import ValidationError

from agentmem.errors import InvalidInput
from agentmem.values import Wire

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
