"""From a provider's reply to the message that a workflow stores, and its tool calls."""

import json
import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, cast

from agentmem.contracts.calls import FailedCall, ModelCall, ModelReply, Usage
from agentmem.errors import ModelCallError
from agentmem.llm.reasoning import read_call_fields, read_fields, read_reasoning, split_thought
from agentmem.llm.structured_output import read_structured
from agentmem.llm.vendors import vendor_of
from agentmem.messages import THOUGHT, Message, Role, ToolCall
from agentmem.wire import JSONObject, as_mapping, clip, joined_text, objects, plain, printable

MOST_CALLS = 128
"""Calls of one reply that are kept; no turn may run that many."""

MOST_ARGUMENT_BYTES = 256 * 1024
NAME_CHARACTERS = 128
_DEPTH = 64

CUT_OFF = "the call was cut off at the reply's limit of {tokens} tokens; send it again, shorter"


def read_calls(message: JSONObject, position: str) -> list[ToolCall]:
    """Return the tool calls of a reply's message.

    Ids are positions (`t3.s1.c0`): a model's own may be missing or stand twice. Missing, empty
    and null arguments are an empty object. A call whose arguments are anything but an object
    has a `problem`, in words for the model, and must not run. Control characters in a name, which
    no store may take, become `?`.

    Args:
        message: In OpenAI's form.
        position: The turn and step of the reply, `t3.s1`.
    """
    calls = objects(message.get("tool_calls"))
    if not calls and message.get("function_call"):  # the form before tools, still in use
        calls = [{"function": message["function_call"]}]
    return [_call(call, f"{position}.c{place}") for place, call in enumerate(calls[:MOST_CALLS])]


def call_in_text(text: str, tools: Collection[str], position: str) -> list[ToolCall]:
    """Return the call that a model wrote as its text, as small models do.

    Only where the whole text is a JSON object with the name of an offered tool and its arguments
    (`arguments` or `parameters`), and nothing else: a call inside a sentence, in a fence, or of an
    unknown tool is text.
    """
    stripped = text.strip()
    if not (stripped.startswith("{") and stripped.endswith("}")):
        return []
    try:
        found = as_mapping(json.loads(stripped))
    except (ValueError, RecursionError):
        return []
    rest = {name: value for name, value in found.items() if name not in ("name", "type")}
    if found.get("name") not in tools or set(rest) not in ({"arguments"}, {"parameters"}):
        return []
    function = {"name": found["name"], "arguments": next(iter(rest.values()))}
    return [_call({"function": function}, f"{position}.c0")]


def _call(call: JSONObject, place: str) -> ToolCall:
    function = as_mapping(call.get("function"))
    arguments, problem = _arguments(function.get("arguments"))
    return ToolCall(
        id=place,
        name=printable(str(function.get("name") or "")[:NAME_CHARACTERS]),
        arguments=arguments,
        problem=problem,
        fields=read_call_fields(call),
    )


def _arguments(value: object) -> tuple[JSONObject, str]:
    if value is None or (isinstance(value, str) and value.strip() in ("", "null")):
        return {}, ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if len(text.encode("utf-8", "replace")) > MOST_ARGUMENT_BYTES:
        return {}, f"the arguments are larger than {MOST_ARGUMENT_BYTES} bytes; send less"
    try:
        parsed: Any = json.loads(text, parse_constant=_refuse)
        if isinstance(parsed, str) and parsed.lstrip().startswith("{"):  # encoded twice
            parsed = json.loads(parsed, parse_constant=_refuse)
    except RecursionError:
        return {}, "the arguments are nested too deeply"
    except ValueError as error:
        return {}, f"the arguments are not valid JSON ({error}); send the call again"
    if not isinstance(parsed, dict):
        return {}, f"a JSON object is expected as the arguments, not {text:.40}; send it again"
    if _too_deep(cast("JSONObject", parsed), _DEPTH):
        return {}, f"the arguments are nested more than {_DEPTH} deep"
    return plain(parsed), ""


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _too_deep(value: object, room: int) -> bool:
    if isinstance(value, dict):
        inner = list(cast("JSONObject", value).values())
    elif isinstance(value, list):
        inner = cast("list[Any]", value)
    else:
        return False
    return room == 0 or any(_too_deep(item, room - 1) for item in inner)


REPLY_BYTES = 1024 * 1024
"""Encoded bytes of a stored reply; Temporal refuses a result of 2 MiB."""


REASON_CHARACTERS = 64


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The answer in a reply.

    Attributes:
        message: The assistant's message, in OpenAI's form. Thought that stood between tags in its
            text is apart from it, in the field `thought`.
        finish: stop, tool_calls, length or content_filter.
        usage: What the call took; 0 where the provider did not say.
        reason: Why it ended, in the provider's own word.
    """

    message: JSONObject
    finish: str
    usage: Usage
    reason: str = ""


# litellm maps most vendors' words to OpenAI's; these are what custom providers let through.
_FINISH = {
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "content_filter",
    "refusal": "content_filter",
    "safety": "content_filter",
}

# The provider failed half-way: what there is of the reply is no answer.
_BROKEN = {"error", "network_error", "malformed_response", "insufficient_system_resource"}


# OpenAI's, Anthropic's, Gemini's and Ollama's names.
_COUNTS = {
    "prompt": ("prompt_tokens", "input_tokens", "promptTokenCount", "prompt_eval_count"),
    "completion": ("completion_tokens", "output_tokens", "candidatesTokenCount", "eval_count"),
    "cached": ("cache_read_input_tokens", "cachedContentTokenCount"),
}


def read_reply(reply: JSONObject, call: ModelCall, *, attempt: int) -> ModelReply:
    """Return a reply exactly as the workflow stores it.

    Text parts are joined; other content parts are left out, reasoning excepted. A refusal is the
    text, and runs no calls. Calls of a reply that was cut off have a `problem`. Where no calls
    were allowed, those that came are left out, and the finish is `tool_limit`. The message takes
    at most 1 MiB encoded: a longer text is clipped with a notice. With a response format the text
    is the JSON alone, or there is a `problem`.

    Args:
        reply: Plain JSON in OpenAI's form.
        call: What was asked.
        attempt: Which attempt of the activity this is.

    Raises:
        ModelCallError: There is no message in it, or a broken one; a retry may bring one.
    """
    choice = read_choice(reply, model=call.model)
    text, finish = _text(choice.message), choice.finish
    position = f"t{call.turn}.s{call.step}"
    calls = read_calls(choice.message, position)
    if not calls and finish == "stop" and call.tool_choice == "auto" and not call.response_format:
        calls = call_in_text(text, call.tools, position)
        text, finish = ("", "tool_calls") if calls else (text, finish)
    is_cut = bool(calls) and (finish == "content_filter" or call.tool_choice == "none")
    if is_cut and finish != "content_filter":
        finish = "tool_limit"
    made = [] if is_cut else calls
    problem = ""
    if call.response_format and not made and finish != "content_filter":
        text, problem = read_structured(text, call.response_format)
        if problem and finish == "length":
            problem = f"it was cut off at the limit of {call.max_tokens} tokens; be shorter"
    checked = _checked(made, choice, call.max_tokens)
    reasoning, fields = read_reasoning(choice.message), read_fields(choice.message)
    is_bound = bool(fields) or any(part["type"] != THOUGHT for part in reasoning)
    message = Message(
        id=call.reply,
        role=Role.ASSISTANT,
        content=text,
        turn=call.turn,
        calls=checked,
        reasoning=reasoning,
        fields=fields,
        vendor=vendor_of(call.model) if is_bound or any(c.fields for c in checked) else "",
        attempt=attempt,
    )
    bounded = _bounded(message.without_calls() if is_cut else message)
    if call.response_format and bounded.text != text:
        problem = f"it takes over {REPLY_BYTES} bytes; be shorter"
    is_answer = bool(bounded.calls or bounded.text.strip())
    return ModelReply(
        message=bounded,
        finish=finish,
        usage=choice.usage,
        problem=problem,
        reason="" if is_answer else choice.reason,
    )


def read_choice(reply: JSONObject, *, model: str) -> Choice:
    """Return the answer in a reply.

    A refusal counts as `content_filter`, whichever field holds it; a reply with calls that did
    not end early counts as `tool_calls`, whatever its finish reason.

    Args:
        reply: Plain JSON in OpenAI's form.
        model: The model, for the error.

    Raises:
        ModelCallError: There is no message in it, or a broken one; a retry may bring one.
    """
    usage = read_usage(reply)
    choices = objects(reply.get("choices"))
    choice = choices[0] if choices else {}
    message = as_mapping(choice.get("message"))
    if not message:
        reason = choice.get("finish_reason") or "none"
        raise ModelCallError(
            f"the model {model} sent a reply without a message (finish reason {reason}, "
            f"{usage.prompt} tokens read, {usage.completion} written)",
            FailedCall(kind="garbled", paid=usage),
        )
    reason = _reason(choice)
    if reason in _BROKEN:
        raise ModelCallError(
            f"the provider of the model {model} broke its reply off (finish reason {reason}, "
            f"{usage.completion} tokens written)",
            FailedCall(kind="broken", paid=usage),
        )
    finish = _FINISH.get(reason, "stop")
    if _refusal(message):
        finish = "content_filter"
    elif finish == "stop" and (message.get("tool_calls") or message.get("function_call")):
        finish = "tool_calls"
    message = _without_thought(message)
    return Choice(message=message, finish=finish, usage=usage, reason=reason[:REASON_CHARACTERS])


def _without_thought(message: JSONObject) -> JSONObject:
    content: object = message.get("content")
    parts = objects(content)
    thought, said = split_thought(content if isinstance(content, str) else joined_text(parts))
    if not thought and said == (content if isinstance(content, str) else joined_text(parts)):
        return message
    others = [part for part in parts if part.get("type") != "text"]
    rest: object = [*others, {"type": "text", "text": said}] if others else said
    return {**message, "content": rest, "thought": thought}


def _reason(choice: JSONObject) -> str:
    # litellm calls `stop` what it does not know, and keeps the provider's own word beside it.
    own = as_mapping(choice.get("provider_specific_fields")).get("native_finish_reason")
    said = str(choice.get("finish_reason") or "").lower()
    return str(own).lower() if own and said == "stop" else said


def _checked(calls: list[ToolCall], choice: Choice, limit: int) -> list[ToolCall]:
    """Keep calls that were cut off from running: what parses of them may be half of a file."""
    # Some providers do not say that a reply was cut.
    is_full = choice.usage.completion >= limit
    cut = [choice.finish == "length" or (bool(call.problem) and is_full) for call in calls]
    problem = CUT_OFF.format(tokens=limit)
    return [
        call.replace(arguments={}, fields={}, problem=problem) if is_cut else call
        for call, is_cut in zip(calls, cut, strict=True)
    ]


def _text(message: JSONObject) -> str:
    content = message.get("content")
    if isinstance(content, list):
        content = joined_text(objects(cast("object", content)))
    return content if isinstance(content, str) and content.strip() else _refusal(message).strip()


def _refusal(message: JSONObject) -> str:
    fields = as_mapping(message.get("provider_specific_fields"))
    return str(message.get("refusal") or fields.get("refusal") or "")


def _bounded(message: Message) -> Message:
    """Bring a message under its limit, what matters least first."""
    if _size(message) <= REPLY_BYTES:
        return message
    # A signature fits only what it signed, so reasoning goes whole or not at all.
    message = message.replace(reasoning=[], fields={})
    if _size(message.replace(content="")) > REPLY_BYTES // 2:
        problem = "the arguments of all calls together are too large; send fewer at a time"
        calls = [c.replace(arguments={}, fields={}, problem=problem) for c in message.calls]
        message = message.replace(calls=calls)
    room = REPLY_BYTES - _size(message.replace(content="-"))
    return message.replace(content=clip(message.text, room))


def _size(message: Message) -> int:
    return len(message.model_dump_json().encode())


def read_usage(reply: JSONObject) -> Usage:
    """Return what a reply took: in OpenAI's form, or as vendors say it that litellm knows.

    Args:
        reply: Plain JSON, such as one that litellm could make nothing of.

    Returns:
        One request; tokens are 0 where the provider did not say.
    """
    usage = as_mapping(reply.get("usage")) or as_mapping(reply.get("usageMetadata")) or reply
    details = as_mapping(usage.get("prompt_tokens_details"))
    cost = usage.get("cost")
    counts = {
        field: next((count for name in names if (count := _count(usage.get(name)))), 0)
        for field, names in _COUNTS.items()
    }
    return Usage(
        requests=1,
        prompt=counts["prompt"],
        completion=counts["completion"],
        cached=_count(details.get("cached_tokens")) or counts["cached"],
        cost=float(cost) if isinstance(cost, int | float) and math.isfinite(cost) else 0.0,
    )


def _count(value: object) -> int:
    return max(0, value) if isinstance(value, int) else 0
