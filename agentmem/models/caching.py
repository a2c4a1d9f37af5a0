"""Marks up to which Claude caches the beginning of a prompt; other vendors cache by themselves."""

from collections.abc import Sequence

from agentmem.models.plain import objects
from agentmem.values import JSONObject

_MARK: JSONObject = {"cache_control": {"type": "ephemeral"}}


def marked(messages: Sequence[JSONObject]) -> list[JSONObject]:
    """Return a conversation's messages with marks for Claude's prompt cache.

    The marks are behind the system prompt (the tools come before it), behind the message that
    ended the request before this one, and at the end, where the next request will find it. Of the
    four that Anthropic allows, one stays free. Tokens of the cache cost a tenth, and those that are
    written to it a quarter more than others.

    Args:
        messages: In OpenAI's form, in order.
    """
    answers = [at for at, message in enumerate(messages) if message.get("role") == "assistant"]
    places = {0} if messages and messages[0].get("role") == "system" else set[int]()
    places.add(len(messages) - 1)
    places.update(_asked_before(messages, answers[-1]) if answers else ())
    return [_marked(m) if at in places else m for at, m in enumerate(messages)]


def _asked_before(messages: Sequence[JSONObject], answer: int) -> list[int]:
    asked = [at for at in range(answer) if messages[at].get("role") in ("user", "tool")]
    return asked[-1:]


def _marked(message: JSONObject) -> JSONObject:
    content = message.get("content")
    if isinstance(content, list) and message.get("role") == "user":
        *parts, last = objects(content)  # pyright: ignore[reportUnknownArgumentType]
        return {**message, "content": [*parts, {**last, **_MARK}]}
    return {**message, **_MARK}
