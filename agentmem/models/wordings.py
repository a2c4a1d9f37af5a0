"""The text of a provider's error, made short and safe to show."""

import json
import re
from collections.abc import Mapping
from typing import Any, cast

from agentmem.values import clip

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
