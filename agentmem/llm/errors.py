"""From an exception of a model call to ours: whether a retry can help, and what people can do.

One table decides, by what was seen on the wire: the status, the structured codes, the size of the
request, and whether one went out at all. Words decide only where a provider gives nothing else,
and then only between errors of which none is tried again.
"""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from enum import StrEnum

from agentmem.contracts.calls import FailedCall
from agentmem.errors import ContextOverflow, ModelCallError
from agentmem.llm.error_evidence import FailureEvidence, Sent, gather, shown_text
from agentmem.llm.vendors import is_ollama, key_hint, unreachable_hint

GROWN = timedelta(minutes=1)
"""The longest wait that nobody asked for, before it is spread."""

LONGEST_WAIT = timedelta(minutes=5)
"""A turn has a deadline of minutes: waiting for hours would only hide that it failed."""

# `retry in 34.07s`, `try again in 1m2.5s`, `"retryDelay": "7s"`: what some say instead of a header.
_SAID = re.compile(
    r"(?:re)?try(?:_?delay\W+| again in | in )(?:(\d+)m(?!s))?(?:([\d.]+)\s?(ms|s)\b)?",
    re.IGNORECASE,
)


def next_wait(asked: timedelta | None, attempt: int, random: Callable[[], float]) -> timedelta:
    """Return how long to wait before the next attempt.

    Many sessions fail at one moment where a provider is overloaded, and must not come back at one
    moment: growing waits (1, 2, 4, ... 60 s) are spread by half in both directions, and what the
    provider asked for is never undercut, but exceeded by up to a tenth.

    Args:
        asked: What the provider asked for, if anything.
        attempt: The attempt that failed, from 1.
        random: Gives a number from 0 to 1.
    """
    if asked is not None:
        return asked * (1 + random() / 10)
    return min(timedelta(seconds=2 ** min(attempt - 1, 10)), GROWN) * (0.5 + random())


def asked_wait(headers: Mapping[str, str], text: str, now: datetime) -> timedelta | None:
    """Return how long to wait, at most five minutes; None if the provider does not say.

    Args:
        headers: Of the provider's answer, names in lower case. `Retry-After` counts as seconds or
            as an HTTP date (RFC 9110, 10.2.3); `retry-after-ms` goes before it.
        text: What the provider said.
        now: The time that a date is compared to.
    """
    wait = _of_headers(headers, now)
    if wait is None:
        wait = _of_text(text)
    return None if wait is None else min(max(wait, timedelta()), LONGEST_WAIT)


def _of_headers(headers: Mapping[str, str], now: datetime) -> timedelta | None:
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return timedelta(milliseconds=milliseconds)
    value = headers.get("retry-after", "").strip()
    seconds = _number(value)
    if seconds is not None:
        return timedelta(seconds=seconds)
    try:
        date = parsedate_to_datetime(value)
    except ValueError:
        return None
    return (date if date.tzinfo else date.replace(tzinfo=UTC)) - now


def _of_text(text: str) -> timedelta | None:
    found = _SAID.search(text)
    if found is None or not (found[1] or found[2]):
        return None
    count = _number(found[2] or "0")
    if count is None:
        return None
    rest = timedelta(milliseconds=count) if found[3] == "ms" else timedelta(seconds=count)
    return timedelta(minutes=_number(found[1] or "0") or 0) + rest


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    # Above a day it means the same as a day; NaN and infinity fit in no timedelta.
    return min(number, 86_400_000.0) if number >= 0 else None


class Kind(StrEnum):
    """The kind of a failure; the value is what people read."""

    OVERFLOW = "the prompt is too long for the model {model}: {said}"
    LARGE = (
        "the model {model} did not accept a request of about {tokens} tokens, which may be too "
        "long for it: {said}"
    )
    KEY = "the model {model} needs a valid key: {key}"
    KEYLESS = "the model {model} needs a valid key, and was not asked: {said}; {key}"
    FORBIDDEN = "this account may not use the model {model}: {said}; {key}"
    QUOTA = "the quota or credit for the model {model} is used up: {said}"
    UNNAMED = (
        "the model {model} names no provider that litellm knows; write it as provider/name, such "
        "as ollama/llama3.2"
    )
    MISSING = "there is no model {model}: {said}{pull}"
    REFUSED = "the model {model} refuses this prompt by its content policy: {said}"
    INVALID = "the model {model} did not accept the request: {said}"
    LIBRARY = "the model {model} needs a package that the worker lacks: {said}; install it there"
    UNSENT = (
        "the model {model} was not asked, as no request could be made: {said}; check the worker's "
        "configuration of this provider"
    )
    UNWRITABLE = (
        "the model {model} was not asked, as its address or a header of the request is none: "
        "{said}; {address}"
    )
    SLOW = "the model {model} did not answer in time: {said}"
    LIMITED = "the model {model} limits the rate of requests: {said}"
    UNREACHABLE = "the model {model} cannot be reached: {said}; {address}"
    DOWN = "the model {model} is unavailable, its provider failed: {said}"
    GARBLED = "the model {model} sent something that is no reply"
    FAILING = "the model {model} failed: {said}"


NO_TOOLS = "toolless"
"""The kind of a call that was not made, as its model takes no tools."""

SETTING = "The model is set by AGENTMEM_MODEL or by the agent's `model`."

_OUTAGES = {Kind.LIMITED, Kind.UNREACHABLE, Kind.DOWN}
_RETRIED = _OUTAGES | {Kind.SLOW, Kind.GARBLED, Kind.FAILING}

# What a code says where a provider has one for it. Others are taken for the size they come with.
_OVERFLOW_CODES = {
    "context_length_exceeded",
    "context_window_exceeded",
    "model_max_prompt_tokens_exceeded",
    "request_too_large",
    "string_above_max_length",
    "1261",  # Zhipu
}
_BILLING_CODES = {
    "insufficient_quota",
    "insufficient_balance",
    "insufficient_credits",
    "billing_error",
    "billing_hard_limit_reached",
    "billing_not_active",
    "payment_required",
    "exceeded_current_quota_error",  # Moonshot
    "arrearage",  # Alibaba
    "1113",  # Zhipu
}
_POLICY_CODES = {
    "content_filter",
    "content_policy_violation",
    "responsibleaipolicyviolation",
    "data_inspection_failed",  # Alibaba
    "datainspectionfailed",
    "prohibited_content",
    "1301",  # Zhipu
}
# The request was taken, and what the model made of it was not: another try may bring a better one.
_MODEL_CODES = {
    "json_validate_failed",  # Groq
    "tool_use_failed",
    "output_parse_failed",
}
# Another cause than the size, for a request that may well be large.
_OTHER_CODES = {
    "invalid_api_key",
    "invalid_function_parameters",
    "invalid_json_schema",
    "invalid_schema",
    "invalid_tool_call",
    "invalid_value",
    "missing_required_parameter",
    "model_not_found",
    "unknown_parameter",
    "unsupported_parameter",
    "unsupported_value",
}
_PROMPT_PARAMS = ("messages", "input", "prompt", "contents", "max_tokens", "max_completion_tokens")

# A server's trouble under 500: a conflict, a part that failed (TGI), too early, no capacity (Groq),
# a connection that somebody between closed.
_PASSING = (409, 424, 425, 498, 499)

SMALLEST_CONTEXT = 4_096
"""Tokens of a context that nobody knows: few models in use have a smaller one."""

# Known phrases, so that an overflow is told from its first words and not from a second request.
_OVERFLOW = re.compile(
    r"context.?(?:length|window|size|limit)|maximum (?:context|model|(?:input|prompt)) length"
    r"|(?:prompt|input|request|conversation)(?: \w+)? (?:is )?too (?:long|large)"
    r"|(?:input|prompt) tokens? (?:count )?(?:of \d+ |\(\d+\) )?exceed"
    r"|input length (?:exceed|should)|exceeded model token limit|must be <= ?\d+"
    r"|tokens? (?:count |limit )?exceed|exceeds? (?:the )?max\w* (?:length|tokens)"
    r"|exceeds? the (?:max\w*|limit)[\w ]* tokens|must have less than \d+ tokens"
    r"|too many (?:input |prompt |total )?tokens|reduce the length|string_above_max_length"
)
_NO_KEY = re.compile(
    r"missing credentials|(?:missing|no|invalid|incorrect) [\w ]{0,30}\bapi[ _]key"
    r"|api[ _]key [\w ]{0,40}(?:must be set|not set|missing|not (?:valid|provided|found))"
)
# Of exceptions that lost what caused them, and of network libraries that nobody watches.
_BROKEN_LINE = re.compile(
    r"connection (?:error|reset|refused|aborted|closed)|cannot connect|connect call failed"
    r"|name or service|name resolution|getaddrinfo|unreachable|reset by peer"
    r"|payload is not completed|incomplete (?:chunked )?read|server closed|stream ended before"
)


def model_call_error(
    error: BaseException,
    *,
    model: str,
    environ: Mapping[str, str],
    now: datetime,
    sent: Sent | None = None,
) -> ModelCallError:
    """Return the error to raise for what a model call raised.

    It names the model, the setting and what to do, holds no key, and says whether a retry can
    help; a wait that the provider asked for becomes the delay before the next attempt. Its one
    detail is a `FailedCall`. Raise it `from None`: the cause would carry the provider's words,
    keys included, into the history.

    Args:
        error: What litellm, or the code around it, raised.
        model: The model as the settings name it.
        environ: Environment variables: addresses to name, secrets to hide.
        now: The time, for waits that are given as a date.
        sent: What is known of the request; nothing if None.
    """
    sent = sent or Sent()
    found = gather(error, sent)
    wait = asked_wait(found.headers, found.text, now)
    kind = _kind(found, sent)
    provider = str(getattr(error, "llm_provider", "") or model.partition("/")[0])
    name = model.partition("/")[2] or model
    words = kind.value.format(
        model=model,
        said=shown_text(found.cause, environ),
        tokens=sent.tokens,
        key=key_hint(provider),
        address=unreachable_hint(provider, environ),
        pull=f"; `ollama pull {name}` fetches it" if is_ollama(provider) else "",
    )
    failed = FailedCall(kind=kind.name.lower(), paid=sent.paid)
    message = f"{words}. {SETTING}"
    if kind in (Kind.OVERFLOW, Kind.LARGE):
        return ContextOverflow(message, failed)
    retried = kind in _RETRIED
    return ModelCallError(
        message, failed, non_retryable=not retried, next_retry_delay=wait if retried else None
    )


def is_surely_too_long(error: ModelCallError) -> bool:
    """Tell whether a provider said that a prompt is too long, not merely that it takes it not."""
    return _is(error, Kind.OVERFLOW)


def lies_with_prompt(error: ModelCallError) -> bool:
    """Tell whether another prompt may pass where this one did not: it is too long, or refused."""
    return isinstance(error, ContextOverflow) or _is(error, Kind.REFUSED)


def is_outage(error: ModelCallError) -> bool:
    """Tell whether the model is away for now: not to be reached, rate limited or overloaded.

    Such an error says nothing about the request, which may pass unchanged later.
    """
    return not error.non_retryable and _is(error, *_OUTAGES)


def is_limited(error: ModelCallError) -> bool:
    """Tell whether the provider refused the request for its rate alone (HTTP 429)."""
    return _is(error, Kind.LIMITED)


def not_admitted(model: str, seconds: float) -> ModelCallError:
    """Return the error of a request that was not sent, since the rate limit had no room for it.

    Args:
        model: The model as the settings name it.
        seconds: How long the provider wants no request; 0 if too many requests wait.
    """
    why = f"it wants no request for {seconds:.0f} s" if seconds else "too many requests wait for it"
    return ModelCallError(
        f"the model {model} limits the rate of requests: {why}. A higher limit at the provider, "
        "fewer sessions at a time or another model help",
        FailedCall(kind=Kind.LIMITED.name.lower()),
        next_retry_delay=timedelta(seconds=seconds) if seconds else None,
    )


def not_accepted(error: ModelCallError) -> bool:
    """Tell whether a provider refused the form of a request: one of its parameters, perhaps.

    A large request that was refused without a cause may be too long, or have such a parameter.
    """
    return _is(error, Kind.INVALID, Kind.LARGE)


def lies_with_tools(error: ModelCallError) -> bool:
    """Tell whether the same prompt may pass without tools, which not every model takes.

    Providers say so in words of their own: as a request that they do not accept, which may look
    too long where it is large, or as a model that they do not have for such requests.
    """
    return not_accepted(error) or _is(error, Kind.MISSING) or _kind_of(error) == NO_TOOLS


def _is(error: ModelCallError, *kinds: Kind) -> bool:
    return _kind_of(error) in {kind.name.lower() for kind in kinds}


def _kind_of(error: ModelCallError) -> str:
    failed = next((one for one in error.details if isinstance(one, FailedCall)), FailedCall())
    return failed.kind


def _kind(found: FailureEvidence, sent: Sent) -> Kind:
    """Return the first kind that the evidence allows, the surest evidence first."""
    for kind in (
        _by_codes(found),
        _by_request(found, sent),
        _by_status(found, sent),
        _by_exception(found),
    ):
        if kind is not None:
            return kind
    return Kind.FAILING


def _by_codes(found: FailureEvidence) -> Kind | None:
    if found.status == 402 or found.codes & _BILLING_CODES:
        return Kind.QUOTA
    # litellm chooses these classes by words, which stand in rate limits too.
    names = found.names if found.status != 429 else frozenset[str]()
    if found.codes & _OVERFLOW_CODES or "ContextWindowExceededError" in names:
        return Kind.OVERFLOW if found.status != 429 else None
    if found.codes & _MODEL_CODES:
        return Kind.FAILING
    if found.codes & _POLICY_CODES or "ContentPolicyViolationError" in names:
        return Kind.REFUSED
    return None


def _by_request(found: FailureEvidence, sent: Sent) -> Kind | None:
    """Return the kind of what no provider was asked about."""
    is_sure = sent.went_out is False and not found.is_unwatched
    if "ImportError" in found.names and not sent.went_out:
        return Kind.LIBRARY
    if found.status == 401 or _lacks_key(found, sent):
        return Kind.KEYLESS if is_sure else Kind.KEY
    if "provider not provided" in found.text:
        return Kind.UNNAMED
    if found.is_malformed:
        return Kind.UNWRITABLE
    return Kind.UNSENT if is_sure and not (found.is_broken or found.is_late) else None


def _lacks_key(found: FailureEvidence, sent: Sent) -> bool:
    if sent.status:
        return found.status in (400, 403) and bool(_NO_KEY.search(found.text))
    return "AuthenticationError" in found.names or bool(_NO_KEY.search(found.text))


def _by_status(found: FailureEvidence, sent: Sent) -> Kind | None:
    status = found.status
    if status == 429:
        # A request above all of a minute's tokens can never pass.
        return Kind.OVERFLOW if "request too large" in found.text else Kind.LIMITED
    # A stream may say it without a status, and some servers that fail over it say 500.
    if status == 413 or (status in (0, 400, 422, 500) and _OVERFLOW.search(found.text)):
        return Kind.OVERFLOW
    if status in (400, 422) and _may_be_large(found, sent):
        return Kind.LARGE
    known = {403: Kind.FORBIDDEN, 404: Kind.MISSING, 408: Kind.SLOW}
    if status in known:
        return known[status]
    return Kind.INVALID if 400 <= status < 500 and status not in _PASSING else None


def _may_be_large(found: FailureEvidence, sent: Sent) -> bool:
    """Tell whether a request that was refused without a cause may be too long."""
    if sent.tokens * 2 <= (sent.context or SMALLEST_CONTEXT):
        return False
    names_field = bool(found.param) and not found.param.startswith(_PROMPT_PARAMS)
    return not (found.codes & _OTHER_CODES or (names_field and found.param != "none"))


def _by_exception(found: FailureEvidence) -> Kind | None:
    if found.is_late and not found.status >= 500:
        return Kind.SLOW
    if found.is_broken or _BROKEN_LINE.search(found.text):
        return Kind.UNREACHABLE
    # litellm stumbled over the reply: what it says then is its own Python error.
    if found.has_traceback or "invalid response" in found.text:
        return Kind.GARBLED
    return Kind.DOWN if found.status >= 500 else None
