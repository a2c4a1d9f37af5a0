"""Redaction: what must not be kept is taken out of a text before long-term memory stores it."""

import inspect
import logging
from collections.abc import Callable
from typing import TypeAlias, TypeVar, cast

from agentmem.errors import ConfigurationError
from agentmem.secret_shapes import redacted

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
