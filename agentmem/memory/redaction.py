"""Redaction: secrets are removed from a text before long-term memory stores it.

The shapes are those of well-known vendors' keys, PEM blocks, JWT, `password=` and card numbers.
"""

import inspect
import logging
import re
from collections.abc import Callable
from typing import TypeAlias, TypeVar, cast

from agentmem.errors import ConfigurationError

_SHAPES = {
    "a private key": r"-----BEGIN [A-Z ]*PRIVATE KEY-----",
    "a signed token": r"\beyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,}",
    "an access key": (
        r"\b(?:sk-(?:proj-|ant-|or-)?[\w-]{16,}|gh[pousr]_\w{20,}|github_pat_\w{20,}"
        r"|glpat-[\w-]{16,}|xox[abeprs]-[\w-]{10,}|(?:AKIA|ASIA)[0-9A-Z]{16}\b|AIza[\w-]{30,}"
        r"|[rs]k_(?:live|test)_\w{16,}|hf_[A-Za-z]{20,}|npm_\w{30,}|pypi-[\w-]{30,}"
        r"|SG\.[\w-]{16,}\.[\w-]{16,})"
    ),
    "a password": (
        r"(?i:(?<![^\W_])(?:password|passwd|pwd|passphrase|api[_-]?key|secret[_-]?key|access[_-]?token"
        r"|auth[_-]?token|client[_-]?secret)[\"']?\s*[=:]\s*[\"']?[^\s\"']{4,}"
        r"|(?<![^\W_])(?:password|passphrase)\s+is\s+[\"']?(?=\S*\d)[^\s\"']{4,})"
    ),
    "an address with a password": r"\b[a-z][a-z0-9+.-]*://[^\s/:@]+:[^\s/@]+@",
    "an authorisation header": r"(?i:\bauthorization\s*[=:]\s*(?:bearer|basic)\s+\S{8,})",
}
_COMPILED = {name: re.compile(pattern) for name, pattern in _SHAPES.items()}


def secret_shape(text: str) -> str:
    """Return what kind of secret a text seems to hold, like `an access key`; empty for none."""
    found = next((name for name, shape in _COMPILED.items() if shape.search(text)), "")
    return found or ("a card number" if _has_card_number(text) else "")


_CARD = re.compile(r"(?<![\d-])(?<!\d\.)[2-6]\d{3}(?:[ -]?\d){8,15}(?!\d|-\d|\.\d)")


def _has_card_number(text: str) -> bool:
    """Tell if a text holds 13 to 19 digits that begin as cards do and pass Luhn (ISO 7812)."""
    return any(_is_card(found[0]) for found in _CARD.finditer(text))


def _without_card(found: re.Match[str]) -> str:
    return "[removed: a card number]" if _is_card(found[0]) else found[0]


def _is_card(text: str) -> bool:
    digits = re.sub(r"\D", "", text)
    return 13 <= len(digits) <= 19 and _luhn(digits)


def _luhn(digits: str) -> bool:
    doubled = [2 * int(digit) for digit in digits[-2::-2]]
    return (sum(map(int, digits[-1::-2])) + sum(d - 9 if d > 9 else d for d in doubled)) % 10 == 0


def redacted(text: str) -> str:
    """Return the text with every such secret replaced by `[removed: an access key]` or the like."""
    for name, shape in _COMPILED.items():
        text = shape.sub(f"[removed: {name}]", text)
    return _CARD.sub(_without_card, text)


logger = logging.getLogger(__name__)

REDACT_MARK = "__agentmem_redact__"

FAILED = "[removed: it could not be redacted]"
"""The text that is kept in place of one for which the user's own function failed."""

Redactor: TypeAlias = Callable[[str], str]

Function = TypeVar("Function", bound=Redactor)


def redact(function: Function) -> Function:
    """Mark the function that takes out of a text what long-term memory must not keep.

    Put it in the module that the worker loads (`AGENTMEM_APP`), at most one. It is given what was
    said, message by message, before it is stored for dreams or quoted as evidence, and returns
    what may be kept. It runs in a thread, must be quick, and is followed by agentmem's own, which
    removes what looks like a password or a key. Where it raises, nothing of the text is kept.

    Raises:
        ConfigurationError: It is not a plain function.
    """
    made: object = function
    if not inspect.isroutine(made) or inspect.iscoroutinefunction(made):
        raise ConfigurationError("@redact marks a plain function: (text: str) -> str, not async")
    setattr(function, REDACT_MARK, True)
    return function


def redactor(own: Redactor | None = None) -> Redactor:
    """Return the user's function, if there is one, followed by the built-in secret shapes."""
    if own is None:
        return redacted

    def both(text: str) -> str:
        try:
            kept: object = cast(object, own(text)) if text else text
        except Exception as error:  # its message may hold what it was to remove
            logger.warning("@redact failed: %s; the text is left out", type(error).__name__)
            return FAILED
        if not isinstance(kept, str):
            logger.warning("@redact returned %s; the text is left out", type(kept).__name__)
            return FAILED
        return redacted(kept)

    return both
