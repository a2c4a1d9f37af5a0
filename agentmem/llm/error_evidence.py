"""The facts known of a failed model call: from the wire, from structured errors, from exceptions.

Status and structured codes are evidence in every language; words are not. The class names of
client libraries are none either: they are chosen by words.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from agentmem.contracts.calls import Usage
from agentmem.wire import JSONObject, as_mapping, clip

SHOWN_BYTES = 400

# `litellm.RateLimitError: RateLimitError: OpenAIException - ` says nothing that our text does not.
_WRAPPING = re.compile(r"^(?:litellm\.)?\w*(?:Error|Exception|Timeout)\s*[:-]\s*")

_SSL = re.compile(r" ssl:<[^>]*>")

_KEY_SHAPES = re.compile(
    r"\b(?:sk|pk|rk|gsk|xai|hf|r8)[-_][\w*-]{8,}|\b(?:AIza|AKIA)[\w*-]{8,}"
    r"|(?<=[?&]key=)[^&\s]+|(?<=bearer )\S+|(?<=api key provided: )\S+",
    re.IGNORECASE,
)
_SECRET_LENGTH = 12  # shorter values are no keys, but may be words
_SECRET_NAMES = re.compile(r"KEY|TOKEN|SECRET|PASSWORD", re.IGNORECASE)
_LOGIN_IN_URL = re.compile(r"(?<=://)[^/\s@]+@")


def bare_text(error: BaseException) -> str:
    """Return what an error says without litellm's wrapping, to look for words; not to be shown."""
    text = str(error).strip().split("\nTraceback", 1)[0]
    while (bare := _WRAPPING.sub("", text, count=1)) != text:
        text = bare
    return text


def shown_text(error: BaseException, environ: Mapping[str, str]) -> str:
    """Return what the provider said: one line, without wrapping, keys and passwords.

    Args:
        error: What was raised.
        environ: Environment variables, whose secret values are left out.
    """
    text = " ".join(_SSL.sub("", _inner(bare_text(error))).split()).rstrip(".")
    return clip(without_secrets(text, environ), SHOWN_BYTES) or type(error).__name__


def without_secrets(text: str, environ: Mapping[str, str]) -> str:
    """Return the text with everything that may be a key or a password replaced by `[hidden]`."""
    for name, value in environ.items():
        if len(value) >= _SECRET_LENGTH and _SECRET_NAMES.search(name):
            text = text.replace(value, "[hidden]")
    text = _LOGIN_IN_URL.sub("[hidden]@", text)
    return _KEY_SHAPES.sub("[hidden]", text)


def _inner(text: str) -> str:
    """Return the message of an error body `{"error": {"message": ...}}`, else the text itself."""
    start = text.find("{")
    if start < 0:
        return text
    try:
        body: Any = json.JSONDecoder().raw_decode(text, start)[0]
    except (ValueError, RecursionError):
        return text
    while isinstance(body, dict):
        found = cast("dict[str, Any]", body)
        body = found.get("error") or found.get("message") or found.get("detail")
    return body if isinstance(body, str) else text


_CODES = (
    *("code", "type", "status", "reason", "error_code", "__type"),
    *("status_code", "error_type"),
)
_INSIDE = ("error", "errors", "detail", "details", "raw", "metadata", "message", "innererror")
_DEPTH = 5

# What a stream says after its status, which was 200: vendors' own names for what a status says.
_STATUS_OF = {
    "invalid_request_error": 400,
    "invalid_argument": 400,
    "failed_precondition": 400,
    "badrequesterror": 400,
    "bad_request": 400,
    "validationexception": 400,
    "authentication_error": 401,
    "unauthenticated": 401,
    "invalid_api_key": 401,
    "billing_error": 402,
    "insufficient_quota": 429,
    "permission_error": 403,
    "permission_denied": 403,
    "accessdeniedexception": 403,
    "not_found_error": 404,
    "not_found": 404,
    "request_too_large": 413,
    "validation": 422,  # of Text Generation Inference, as `overloaded` is
    "overloaded": 429,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "resource_exhausted": 429,
    "throttlingexception": 429,
    "too_many_requests": 429,
    "api_error": 500,
    "server_error": 500,
    "internal": 500,
    "internal_server_error": 500,
    "unavailable": 503,
    "service_unavailable": 503,
    "overloaded_error": 529,
    "deadline_exceeded": 504,
    "timeout_error": 504,
}

_NETWORK = ("httpx", "httpx2", "httpcore", "httpcore2", "aiohttp", "urllib3", "requests", "socket")
# They send by means that nobody watches, so that a request may have gone out all the same.
_UNWATCHED = ("boto3", "botocore", "google", "grpc", "requests", "urllib3")
# A request that could not even be written down: an address or a header that is none.
_MALFORMED = {"UnsupportedProtocol", "LocalProtocolError", "InvalidURL", "InvalidSchema"}
_CLASS_NAME = re.compile(r"\b\w*(?:Error|Exception|Timeout)\b")


@dataclass(frozen=True, kw_only=True)
class Sent:
    """The facts about a request that the code that sent it knows.

    Attributes:
        went_out: Whether a request was handed to the network; None if nobody watched.
        status: HTTP status of the response; 0 if there was none.
        body: The response's JSON object; empty if it is not known.
        headers: Of the response, names in lower case.
        tokens: The request's size, estimated.
        context: Tokens that the model takes, as far as that is known or learned; 0 if it is not.
        paid: What the provider wrote all the same.
    """

    went_out: bool | None = None
    status: int = 0
    body: JSONObject = field(default_factory=dict[str, Any])
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    tokens: int = 0
    context: int = 0
    paid: Usage = field(default_factory=Usage)


@dataclass(frozen=True, kw_only=True)
class FailureEvidence:
    """The facts that are known of a failed call.

    Attributes:
        cause: The exception that says best what happened.
        status: HTTP status, or what a stream said in its place; 0 if none is known.
        codes: Structured codes and types of the error, in lower case.
        param: The field of the request that the error is about, as OpenAI's protocol says it.
        text: What was said, in lower case, without class names.
        names: Names of the exceptions' classes, for what no provider was asked about.
        is_broken: Whether the network failed.
        is_late: Whether time ran out.
        is_unwatched: Whether a library failed that sends by means which nobody watches.
        is_malformed: Whether the request could not even be written down.
        has_traceback: Whether the client library failed with a Python error of its own.
        headers: Of the response, names in lower case.
    """

    cause: BaseException
    status: int
    codes: frozenset[str]
    param: str
    text: str
    names: frozenset[str]
    is_broken: bool
    is_late: bool
    is_unwatched: bool
    is_malformed: bool
    has_traceback: bool
    headers: Mapping[str, str]


def gather(error: BaseException, sent: Sent) -> FailureEvidence:
    """Return what is known of a failed call.

    Args:
        error: What litellm, or the code around it, raised.
        sent: What is known of the request.
    """
    chain = _chain(error)
    # A reply that litellm could make nothing of is no error's body.
    is_error = sent.status >= 400 or bool(sent.body.get("error"))
    bodies = [sent.body if is_error else {}, *(_body(one) for one in chain)]
    said = [value for body in bodies for value in _said(body)]
    cause = real_error(error)
    if sent.status == 200 and is_error:  # in a stream, of whose words litellm loses some
        cause = RuntimeError(json.dumps(sent.body, ensure_ascii=False))
    codes = frozenset(value for name, value in said if name in _CODES)
    text = f"{bare_text(cause)} {getattr(error, 'body', None) or ''}"
    names = frozenset(parent.__name__ for one in chain for parent in type(one).__mro__)
    malformed = [one for one in chain if type(one).__name__ in _MALFORMED]
    return FailureEvidence(
        cause=malformed[0] if malformed else cause,
        status=_status(chain, codes, sent),
        codes=codes,
        param=next((value for name, value in said if name == "param"), ""),
        text=_CLASS_NAME.sub("", text).lower(),
        names=names,
        is_broken=any(map(_is_broken, chain)),
        is_late=any(map(_is_late, chain)),
        is_unwatched=any(type(one).__module__.partition(".")[0] in _UNWATCHED for one in chain),
        is_malformed=bool(malformed),
        has_traceback="\nTraceback" in str(error),
        headers=dict(sent.headers) | _headers(chain),
    )


def real_error(error: BaseException) -> BaseException:
    """Return the error inside of litellm's wrapping around what fails in the middle of a stream."""
    inner = getattr(error, "original_exception", None)
    return real_error(inner) if isinstance(inner, BaseException) and inner is not error else error


def _chain(error: BaseException) -> list[BaseException]:
    """Return an error and what it was made from, outermost first."""
    found: list[BaseException] = []
    todo: list[BaseException | None] = [error]
    while todo and len(found) < 20:
        one = todo.pop(0)
        if one is None or any(one is other for other in found):
            continue
        found.append(one)
        inner: Any = getattr(one, "original_exception", None)
        wrapped = inner if isinstance(inner, BaseException) else None
        todo += [wrapped, one.__cause__, one.__context__]
    return found


def _status(chain: list[BaseException], codes: frozenset[str], sent: Sent) -> int:
    if sent.status >= 400:
        return sent.status
    told = next((int(c) for c in codes if c.isascii() and c.isdigit() and 400 <= int(c) < 600), 0)
    told = told or next((_STATUS_OF[code] for code in _STATUS_OF if code in codes), 0)
    if sent.status:  # a stream that began well, or a reply that litellm made nothing of
        return told
    statuses: list[Any] = [getattr(one, "status_code", None) for one in chain]
    return next((one for one in reversed(statuses) if isinstance(one, int)), told)


def _body(error: BaseException) -> Any:
    body: Any = getattr(error, "body", None)
    if isinstance(body, dict | list):
        return cast("object", body)
    text = str(error)
    start = text.find("{")
    if start < 0:
        return None
    try:
        return json.JSONDecoder().raw_decode(text, start)[0]
    except (ValueError, RecursionError):
        return None


def _said(body: Any, depth: int = _DEPTH) -> list[tuple[str, str]]:
    """Return the structured values of an error's body, by name, at whatever depth they stand."""
    if isinstance(body, str) and body.lstrip().startswith("{"):
        try:
            body = json.loads(body)
        except (ValueError, RecursionError):
            return []
    if depth == 0:
        return []
    if isinstance(body, list):
        return [one for item in cast("list[Any]", body)[:5] for one in _said(item, depth - 1)]
    found = as_mapping(body)
    said = [
        (name, str(value).lower())
        for name, value in found.items()
        if name in (*_CODES, "param") and isinstance(value, str | int)
    ]
    for name in _INSIDE:
        if isinstance(found.get(name), dict | list | str):
            said += _said(found[name], depth - 1)
    return said


def _is_broken(error: BaseException) -> bool:
    if isinstance(error, ConnectionError):
        return True
    names = {parent.__name__ for parent in type(error).__mro__}
    if isinstance(error, OSError) and names & {"gaierror", "herror", "SSLError"}:
        return True
    module = type(error).__module__.partition(".")[0]
    return module in _NETWORK and not names & (_MALFORMED | {"HTTPStatusError"})


def _is_late(error: BaseException) -> bool:
    names = {parent.__name__ for parent in type(error).__mro__}
    return bool(names & {"TimeoutError", "Timeout", "TimeoutException", "APITimeoutError"})


def _headers(chain: list[BaseException]) -> dict[str, str]:
    found: dict[str, str] = {}
    for error in chain:
        response = getattr(error, "response", None)
        for headers in (
            getattr(response, "headers", None),
            getattr(error, "headers", None),
            getattr(error, "litellm_response_headers", None),
        ):
            found |= {str(name).lower(): str(value) for name, value in dict(headers or {}).items()}
    return found
