"""Ids of tool calls as every provider takes them.

Our own are positions, `t3.s1.c0`; Anthropic allows no dots, and Mistral wants nine characters.
"""

import hashlib
import re
from functools import lru_cache

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_POSITION = re.compile(r"t(\d+)\.s(\d+)\.c(\d+)")
_WIDTHS = (4, 2, 3)


@lru_cache(maxsize=10_000)  # of each call of a conversation, each time that it is sent
def wire_id(call: str) -> str:
    """Return a call's id for providers: nine letters and digits from its position.

    `t3.s1.c0` becomes `000301000`: turn, step and call in base 36, in 4, 2 and 3 digits. What
    does not fit is hashed instead.
    """
    found = _POSITION.fullmatch(call)
    parts = [_base36(int(digits)) for digits in found.groups()] if found else []
    digits = "".join(part.zfill(width) for part, width in zip(parts, _WIDTHS, strict=False))
    return digits if len(digits) == 9 else hashed_id(call)


def hashed_id(text: str) -> str:
    """Return an id of the same form from any text."""
    number = int.from_bytes(hashlib.sha256(text.encode("utf-8", "replace")).digest()[:8])
    return _base36(number).zfill(9)[-9:]


def _base36(number: int) -> str:
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
    return digits
