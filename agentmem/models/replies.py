"""From a provider's reply to the message that a workflow stores."""

import json
import math
from dataclasses import dataclass
from typing import Any, cast

from agentmem.contracts.calls import Usage
from agentmem.errors import ModelCallError
from agentmem.values import JSONObject


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The answer in a reply.

    Attributes:
        message: The assistant's message, in OpenAI's form.
        finish: stop, tool_calls, length or content_filter.
        usage: What the call took; 0 where the provider did not say.
    """

    message: JSONObject
    finish: str
    usage: Usage


# litellm maps most vendors' words to OpenAI's; these are what custom providers let through.
_FINISH = {
    "length": "length",
    "max_tokens": "length",
    "content_filter": "content_filter",
    "refusal": "content_filter",
    "safety": "content_filter",
}


def read_choice(reply: JSONObject, *, model: str) -> Choice:
    """Return the answer in a reply.

    A refusal counts as `content_filter`, whichever field holds it; a reply with calls that did
    not end early counts as `tool_calls`, whatever its finish reason.

    Args:
        reply: Plain JSON in OpenAI's form.
        model: The model, for the error.

    Raises:
        ModelCallError: There is no message in it; a retry may bring one.
    """
    usage = _usage(_mapping(reply.get("usage")))
    choices = _list(reply.get("choices"))
    choice = _mapping(choices[0]) if choices else {}
    message = choice.get("message")
    if not isinstance(message, dict):
        reason = choice.get("finish_reason") or "none"
        raise ModelCallError(
            f"the model {model} sent a reply without a message (finish reason {reason}, "
            f"{usage.prompt} tokens read, {usage.completion} written)"
        )
    found = cast("JSONObject", message)
    finish = _FINISH.get(str(choice.get("finish_reason") or "").lower(), "stop")
    if refusal(found):
        finish = "content_filter"
    elif finish == "stop" and (found.get("tool_calls") or found.get("function_call")):
        finish = "tool_calls"
    return Choice(message=found, finish=finish, usage=usage)


def refusal(message: JSONObject) -> str:
    """Return a model's refusal from the field that it has for it; empty if it did not refuse."""
    fields = _mapping(message.get("provider_specific_fields"))
    return str(message.get("refusal") or fields.get("refusal") or "")


def plain(value: Any) -> Any:
    """Return a value as JSON that every encoder takes.

    Half of a surrogate pair, which no UTF-8 can hold, becomes `?`; NaN and the infinities become
    their names.
    """
    text = json.dumps(value, ensure_ascii=False, default=str)
    return json.loads(text.encode("utf-8", "replace"), parse_constant=str)


def _usage(usage: JSONObject) -> Usage:
    details = _mapping(usage.get("prompt_tokens_details"))
    cost = usage.get("cost")
    return Usage(
        prompt=_count(usage.get("prompt_tokens")),
        completion=_count(usage.get("completion_tokens")),
        cached=_count(details.get("cached_tokens") or usage.get("cache_read_input_tokens")),
        cost=float(cost) if isinstance(cost, int | float) and math.isfinite(cost) else 0.0,
    )


def _count(value: object) -> int:
    return max(0, value) if isinstance(value, int) else 0


def _mapping(value: object) -> JSONObject:
    return cast("JSONObject", value) if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []
