"""The most tokens that a model takes, learned from what it took and what it refused."""

from typing import Any, cast

from agentmem.messages import IMAGE_TOKENS
from agentmem.models.failures import SMALLEST_CONTEXT
from agentmem.values import JSONObject

LEAST_LEARNED = 1_024
"""Tokens: no model has a context below that, so a smaller request was refused by mistake."""


class Contexts:
    """The facts that a worker has learned of its models' contexts; none of them is lasting."""

    def __init__(self) -> None:
        self._passed: dict[str, int] = {}
        self._refused: dict[str, int] = {}

    def passed(self, model: str, tokens: int) -> None:
        """Take note of a request that a model took, by the provider's count of its tokens."""
        if tokens > self._passed.get(model, 0):
            self._passed[model] = tokens
        if tokens >= self._refused.get(model, tokens + 1):
            del self._refused[model]

    def refused(self, model: str, tokens: int) -> None:
        """Take note of a request that was too long for a model."""
        if tokens < LEAST_LEARNED:
            return
        self._refused[model] = min(tokens, self._refused.get(model, tokens))

    def of(self, model: str, known: int) -> int:
        """Return the tokens that a model takes at most, as far as anybody knows.

        Args:
            model: The model.
            known: What lists of models say; 0 if they say nothing.
        """
        context = known or max(SMALLEST_CONTEXT, self._passed.get(model, 0))
        return min(context, self._refused.get(model, context))


def request_tokens(request: JSONObject) -> int:
    """Estimate the tokens of a whole request, its tools included: bytes of UTF-8 / 4.

    An image counts `IMAGE_TOKENS`, whatever its bytes.
    """
    sent = [request.get(name) for name in ("messages", "tools", "response_format")]
    return sum(map(_bytes, sent)) // 4


def _bytes(value: Any) -> int:
    if isinstance(value, str):
        is_image = value.startswith("data:")
        return IMAGE_TOKENS * 4 if is_image else len(value.encode("utf-8", "replace"))
    if isinstance(value, dict):
        return sum(len(k) + _bytes(v) for k, v in cast("JSONObject", value).items())
    if isinstance(value, list):
        return sum(map(_bytes, cast("list[Any]", value)))
    return 4
