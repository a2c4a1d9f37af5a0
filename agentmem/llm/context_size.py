"""The context sizes of models: learned limits, and prompts that a provider cut silently."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

from agentmem.llm.errors import SMALLEST_CONTEXT
from agentmem.messages import IMAGE_TOKENS
from agentmem.wire import JSONObject, as_list, as_mapping, joined_text, objects

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


LEAST_BYTES = 8_000
"""A shorter prompt fits every model."""

ASCII_BYTES_PER_TOKEN = 7
OTHER_BYTES_PER_TOKEN = 10
"""More bytes of text than this for each counted token, and the provider has not read it all.

Of the tokenizers in use, English takes 4 to 5 bytes for a token; scripts of which each letter is
two or three bytes of UTF-8, Hindi and Russian, take up to 9.
"""

# A tokenizer has one token for a long run of spaces, dashes or any other character.
_RUN = re.compile(r"(.)\1{3,}", re.DOTALL)


def is_cut(messages: Sequence[JSONObject], usage: JSONObject) -> bool:
    """Tell whether a provider counted far fewer tokens than a prompt must have.

    Only text is counted that every provider reads: no images, no reasoning, no tool schemas.

    Args:
        messages: The request's messages, in OpenAI's form.
        usage: The reply's usage, in OpenAI's form; where it has no count, nothing is known.
    """
    counted = counted_tokens(usage)
    # A message takes a token or more: a smaller count, such as a gateway's constant, is none.
    if counted < len(messages) or not counted:
        return False
    texts = list(_texts(messages))
    if _least_tokens(texts) <= counted:
        return False
    return _least_tokens(_RUN.sub(r"\1", text) for text in texts) > counted


def counted_tokens(usage: JSONObject) -> int:
    """Return the tokens of a prompt that a provider read, those from its cache included.

    Most providers include the cached tokens in `prompt_tokens`; where there are more cached ones
    than that, they are counted beside it.
    """
    details = as_mapping(usage.get("prompt_tokens_details"))
    prompt = _count(usage.get("prompt_tokens"))
    cached = _count(details.get("cached_tokens") or usage.get("cache_read_input_tokens"))
    written = _count(usage.get("cache_creation_input_tokens"))
    return prompt if prompt >= cached + written else prompt + cached + written


def _texts(messages: Sequence[JSONObject]) -> Iterator[str]:
    for message in messages:
        content = message.get("content")
        yield content if isinstance(content, str) else joined_text(objects(as_list(content)))
        for call in objects(message.get("tool_calls")):
            yield str(as_mapping(call.get("function")).get("arguments") or "")


def _least_tokens(texts: Iterable[str]) -> float:
    """Return the fewest tokens that texts can have; 0 for short ones."""
    ascii_bytes = other_bytes = 0
    for text in texts:
        size = len(text.encode("utf-8", "replace"))
        in_ascii = size if text.isascii() else len(text.encode("ascii", "ignore"))
        ascii_bytes += in_ascii
        other_bytes += size - in_ascii
    if ascii_bytes + other_bytes <= LEAST_BYTES:
        return 0
    return ascii_bytes / ASCII_BYTES_PER_TOKEN + other_bytes / OTHER_BYTES_PER_TOKEN


def _count(value: object) -> int:
    return max(0, value) if isinstance(value, int) else 0
