"""From an exception of a model call to ours: whether a retry can help, and what people can do.

One table decides. An exception is told by the classes that it is made of, by its HTTP status and
by its words: providers agree on none of them, and litellm maps some wordings to a class of its own
and leaves others as a plain 400.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

from agentmem.errors import ContextOverflow, ModelCallError
from agentmem.models.vendors import is_ollama, key_hint, unreachable_hint
from agentmem.models.waits import asked_wait
from agentmem.models.wordings import bare_text, shown_text


class Kind(StrEnum):
    """What went wrong; the value is what people read."""

    OVERFLOW = "the prompt is too long for the model {model}: {said}"
    KEY = "the model {model} needs a valid key: {key}"
    FORBIDDEN = "this account may not use the model {model}: {said}; {key}"
    QUOTA = "the quota or credit for the model {model} is used up: {said}"
    UNNAMED = (
        "the model {model} names no provider that litellm knows; write it as provider/name, such "
        "as ollama/llama3.2"
    )
    MISSING = "there is no model {model}: {said}{pull}"
    REFUSED = "the model {model} refuses this prompt by its content policy: {said}"
    INVALID = "the model {model} did not accept the request: {said}"
    LIBRARY = "the model {model} needs a package that the worker lacks: {said}"
    SLOW = "the model {model} did not answer in time: {said}"
    LIMITED = "the model {model} limits the rate of requests: {said}"
    UNREACHABLE = "the model {model} cannot be reached: {said}; {address}"
    GARBLED = "the model {model} sent something that is no reply"
    FAILING = "the model {model} failed: {said}"


SETTING = "The model is set by AGENTMEM_MODEL or by the agent's `model`."

_RETRIED = {Kind.SLOW, Kind.LIMITED, Kind.UNREACHABLE, Kind.GARBLED, Kind.FAILING}

_OVERFLOW = re.compile(
    r"context.?(?:length|window|size|limit)|maximum (?:context|(?:input|prompt) length)"
    r"|(?:prompt|input|request|conversation)(?: \w+)? (?:is )?too (?:long|large)"
    r"|(?:input|prompt) tokens? (?:count )?(?:of \d+ |\(\d+\) )?exceed"
    r"|input length (?:exceed|should)|exceeded model token limit|must be <= ?\d+"
    r"|tokens? (?:count |limit )?exceed|exceeds? the (?:max\w*|limit)[\w ]* tokens"
    r"|too many (?:input |prompt |total )?tokens|reduce the length|string_above_max_length"
)
_NO_KEY = re.compile(
    r"missing credentials|(?:missing|no|invalid|incorrect) [\w ]{0,30}\bapi[ _]key"
    r"|api[ _]key [\w ]{0,40}(?:must be set|not set|missing|not (?:valid|provided|found))"
)
_QUOTA = re.compile(
    r"insufficient_quota|exceeded your current quota|usage limit|billing|credit balance"
    r"|insufficient (?:credits?|balance|funds)|payment required"
)
_BROKEN_LINE = re.compile(
    r"connect|name or service|name resolution|getaddrinfo|unreachable|reset by peer"
    r"|payload is not completed|incomplete (?:chunked )?read|server closed|(?:read|network) ?error"
)


def model_call_error(
    error: BaseException, *, model: str, environ: Mapping[str, str], now: datetime
) -> ModelCallError:
    """Return the error to raise for what a model call raised.

    It names the model, the setting and what to do, holds no key, and says whether a retry can
    help; a wait that the provider asked for becomes the delay before the next attempt. Raise it
    `from None`: the cause would carry the provider's words, keys included, into the history.

    Args:
        error: What litellm, or the code around it, raised.
        model: The model as the settings name it.
        environ: Environment variables: addresses to name, secrets to hide.
        now: The time, for waits that are given as a date.
    """
    text = f"{bare_text(error)} {getattr(error, 'body', None) or ''}"
    wait = asked_wait(_headers(error), text, now)
    kind = _kind(error, text.lower(), asks_to_wait=wait is not None)
    provider = str(getattr(error, "llm_provider", "") or model.partition("/")[0])
    name = model.partition("/")[2] or model
    words = kind.value.format(
        model=model,
        said=shown_text(error, environ),
        key=key_hint(provider),
        address=unreachable_hint(provider, environ),
        pull=f"; `ollama pull {name}` fetches it" if is_ollama(provider) else "",
    )
    message = f"{words}. {SETTING}"
    if kind is Kind.OVERFLOW:
        return ContextOverflow(message)
    retried = kind in _RETRIED
    made = ModelCallError(
        message, non_retryable=not retried, next_retry_delay=wait if retried else None
    )
    made.limited = kind is Kind.LIMITED
    return made


def lies_with_prompt(error: ModelCallError) -> bool:
    """Whether another prompt may pass where this one did not: it is too long, or refused."""
    refused = Kind.REFUSED.value.partition("{model}")[2].partition(":")[0]
    return isinstance(error, ContextOverflow) or refused in error.message


def _kind(error: BaseException, text: str, *, asks_to_wait: bool) -> Kind:
    names = {parent.__name__ for parent in type(error).__mro__}
    status = _status(error)
    if "ContextWindowExceededError" in names or _is_overflow(status, text):
        return Kind.OVERFLOW
    if "AuthenticationError" in names or status == 401 or _NO_KEY.search(text):
        return Kind.KEY
    if "provider not provided" in text:
        return Kind.UNNAMED
    if status == 402 or (status in (400, 403, 429) and _QUOTA.search(text) and not asks_to_wait):
        return Kind.QUOTA
    by_name = next((kind for name, kind in _BY_NAME.items() if name in names), None)
    return by_name or _by_status(status, text, traceback="\nTraceback" in str(error))


# In this order: litellm's Timeout is a connection error to openai, whose classes it derives from.
_BY_NAME = {
    "ContentPolicyViolationError": Kind.REFUSED,
    "PermissionDeniedError": Kind.FORBIDDEN,
    "NotFoundError": Kind.MISSING,
    "ImportError": Kind.LIBRARY,
    "Timeout": Kind.SLOW,
    "TimeoutError": Kind.SLOW,
    "RateLimitError": Kind.LIMITED,
}


def _by_status(status: int, text: str, *, traceback: bool) -> Kind:
    known = {403: Kind.FORBIDDEN, 404: Kind.MISSING, 408: Kind.SLOW, 429: Kind.LIMITED}
    if status in known:
        return known[status]
    if 400 <= status < 500 and status not in (409, 425):
        return Kind.INVALID
    if _BROKEN_LINE.search(text):
        return Kind.UNREACHABLE
    # litellm stumbled over the reply: what it says then is its own Python error.
    return Kind.GARBLED if traceback or "invalid response" in text else Kind.FAILING


def _is_overflow(status: int, text: str) -> bool:
    # A limit of tokens a minute (429) is no overflow, whatever its words; one request that is
    # larger than it can never pass, and is called too large.
    if status == 429:
        return "request too large" in text
    return status in (400, 413, 422, 500) and bool(_OVERFLOW.search(text))


def _status(error: BaseException) -> int:
    status: Any = getattr(error, "status_code", 0)
    return status if isinstance(status, int) else 0


def _headers(error: BaseException) -> dict[str, str]:
    response = getattr(error, "response", None)
    found: dict[str, str] = {}
    for headers in (
        getattr(response, "headers", None),
        getattr(error, "headers", None),
        getattr(error, "litellm_response_headers", None),
    ):
        found |= {str(name).lower(): str(value) for name, value in dict(headers or {}).items()}
    return found
