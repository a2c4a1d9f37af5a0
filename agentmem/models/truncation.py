"""A prompt that its provider cut without saying so, told by the tokens that it counted."""

import re
from collections.abc import Iterable, Iterator, Sequence

from agentmem.models.plain import as_list, as_mapping, joined_text, objects
from agentmem.values import JSONObject

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
