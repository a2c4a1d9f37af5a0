"""The rules of the most demanding model provider, as one check over a request's messages.

Each rule has a name, which begins the line of what breaks it:

- system message: At most one, first, beginning with the configured prompt.
- first message: The first message besides the system message is from the user.
- results: Every tool message answers a call of the nearest assistant message before it.
- open calls: Every call is answered exactly once before the next user or assistant message.
- call ids: Non-empty text, unique in the request.
- arguments: Those of every call are text that parses as a JSON object.
- blank messages: No message has blank content and no calls.
- JSON: Everything encodes to UTF-8 and to standard JSON (no NaN, no lone surrogate).
- reasoning: Its parts stand unchanged on the message that they came with, and on no other. What
  another vendor sent, by the protocol that it was asked in, stands on none.
- tool schemas: Parameters are an object, each part of them has one type or alternatives, each array
  says what it holds, and there are no tuples, `oneOf`, `const` or other words that some refuse.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from agentmem.testing import shapes
from agentmem.testing.shapes import Message

_REASONING = ("reasoning_content", "reasoning_details", "reasoning_items", "thinking_blocks")
_REASONING_PARTS = ("thinking", "redacted_thinking", "reasoning")
_SYSTEM = ("system", "developer")
_SCHEMA_WORDS = {
    *("type", "description", "default", "enum", "anyOf", "properties", "required", "items"),
    *("additionalProperties", "minItems", "maxItems", "minimum", "maximum", "exclusiveMinimum"),
    *("exclusiveMaximum", "multipleOf", "minLength", "maxLength", "pattern", "format"),
    *("$ref", "$defs"),
}


def violations(
    messages: Sequence[Message],
    system_prompt: str | None = None,
    *,
    given: Sequence[Message] = (),
) -> list[str]:
    """The rules that a request's messages break, one line each; empty when there are none.

    Args:
        messages: Messages in the OpenAI shape (`ollama.as_openai` turns the other shape into it).
        system_prompt: What the system message must begin with; None skips that comparison.
        given: The assistant messages that the model gave so far; when empty, only the place of
            reasoning parts is checked, not their content.
    """
    return [
        *_system_first(messages, system_prompt),
        *_user_first(messages),
        *_pairs(messages),
        *_ids(messages),
        *_arguments(messages),
        *_blank(messages),
        *encoding_violations(messages),
        *_reasoning(messages, given),
    ]


def without_reasoning(message: Message) -> dict[str, Any]:
    """A message as another vendor must be sent it: without what its own one signed."""
    own = (*_REASONING, "provider_specific_fields", "thinking")
    rest = {name: value for name, value in message.items() if name not in own}
    calls = [
        {name: value for name, value in one.items() if name not in own}
        for one in shapes.calls(message)
    ]
    parts = [part for part in shapes.parts(message) if part.get("type") not in _REASONING_PARTS]
    return rest | ({"tool_calls": calls} if calls else {}) | ({"content": parts} if parts else {})


def encoding_violations(value: object) -> list[str]:
    """Return what keeps a JSON value from standard JSON in UTF-8, in at most one line."""
    try:
        json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        return [f"JSON: lone surrogate {error.object[error.start : error.end]!a}"]
    except (ValueError, TypeError) as error:
        return [f"JSON: {error}"]
    return []


def tool_violations(tools: Sequence[Message]) -> list[str]:
    """The parts of tools' parameters that some provider refuses, one line each."""
    found: list[str] = []
    for tool in tools:
        function = shapes.mapping(tool.get("function"))
        parameters = shapes.mapping(function.get("parameters"))
        name = str(function.get("name"))
        if parameters.get("type") != "object":
            found.append(f"tool schemas: the parameters of {name} are no object")
        found += [f"tool schemas: {name}{problem}" for problem in _schema(parameters, "")]
    return found


def _schema(node: Message, place: str) -> Iterator[str]:
    if unknown := sorted(set(node) - _SCHEMA_WORDS):
        yield f"{place}: {', '.join(unknown)}"
    kind = node.get("type")
    if "$ref" not in node and "anyOf" not in node and not isinstance(kind, str):
        yield f"{place}: no type" if kind is None else f"{place}: several types"
    if kind == "array" and not shapes.mapping(node.get("items")):
        yield f"{place}: an array of nothing"
    inner = [(name, shapes.mapping(node.get(name))) for name in ("items", "additionalProperties")]
    for holder in ("properties", "$defs"):
        inner += [(n, shapes.mapping(one)) for n, one in shapes.mapping(node.get(holder)).items()]
    inner += [(str(at), one) for at, one in enumerate(shapes.objects(node.get("anyOf")))]
    for name, one in inner:
        if one or name in shapes.mapping(node.get("properties")):
            yield from _schema(one, f"{place}.{name}")


def _system_first(messages: Sequence[Message], prompt: str | None) -> Iterator[str]:
    places = [at for at, message in enumerate(messages) if message.get("role") in _SYSTEM]
    if len(places) > 1:
        yield f"system message: {len(places)} system messages, at {places}"
    elif places and places != [0]:
        yield f"system message: the system message is at {places[0]}, not first"
    if prompt is not None:
        content = shapes.text(messages[places[0]]) if places else ""
        if not content.startswith(prompt):
            yield "system message: the system message does not begin with the configured prompt"


def _user_first(messages: Sequence[Message]) -> Iterator[str]:
    first = next((m.get("role") for m in messages if m.get("role") not in _SYSTEM), None)
    if first != "user":
        yield f"first message: the first message besides the system message is from {first}"


def _pairs(messages: Sequence[Message]) -> Iterator[str]:
    open_calls: list[Any] = []
    known: list[Any] = []
    for at, message in enumerate(messages):
        if message.get("role") != "tool":
            yield from (
                f"open calls: call {call!r} has no result before message {at}"
                for call in open_calls
            )
            known = [call.get("id") for call in shapes.calls(message)]
            open_calls = list(known)
        elif (answered := message.get("tool_call_id")) in open_calls:
            open_calls.remove(answered)
        elif answered in known:
            yield f"open calls: message {at} answers call {answered!r} again"
        else:
            yield f"results: message {at} answers {answered!r}, no call of the message before it"
    yield from (f"open calls: call {call!r} has no result" for call in open_calls)


def _ids(messages: Sequence[Message]) -> Iterator[str]:
    seen: set[str] = set()
    for at, call in _all_calls(messages):
        name = call.get("id")
        if not isinstance(name, str) or not name.strip():
            yield f"call ids: a call of message {at} has the id {name!r}"
        elif name in seen:
            yield f"call ids: the call id {name!r} stands twice, again in message {at}"
        else:
            seen.add(name)


def _arguments(messages: Sequence[Message]) -> Iterator[str]:
    for at, call in _all_calls(messages):
        text = shapes.mapping(call.get("function")).get("arguments")
        if not isinstance(shapes.parsed(text), dict):
            yield f"arguments: arguments of a call in message {at} are no JSON object: {text!r:.80}"


def _blank(messages: Sequence[Message]) -> Iterator[str]:
    for at, message in enumerate(messages):
        if (
            not shapes.calls(message)
            and not shapes.text(message).strip()
            and not _has_other_parts(message)
        ):
            yield f"blank messages: message {at} ({message.get('role')}) has no text and no calls"


def _reasoning(messages: Sequence[Message], given: Sequence[Message]) -> Iterator[str]:
    known = [_reasoning_of(message) for message in given]
    origins: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for message, parts in zip(given, known, strict=True):
        origins[_visible(message)].append(parts)
    for at, message in enumerate(messages):
        parts = _reasoning_of(message)
        if message.get("role") != "assistant":
            if parts:
                yield f"reasoning: message {at} ({message.get('role')}) carries reasoning parts"
            continue
        twins = origins.get(_visible(message), [])
        if given and parts not in (twins or known) and (twins or parts):
            yield f"reasoning: reasoning parts of message {at} are not those that it came with"


def _reasoning_of(message: Message) -> dict[str, Any]:
    """Every reasoning part of a message and the signatures on its calls, by field."""
    parts = {name: message[name] for name in _REASONING if message.get(name)}
    blocks = [part for part in shapes.parts(message) if part.get("type") in _REASONING_PARTS]
    # Only the signature: clients keep copies of other fields beside it.
    specific = [
        shapes.mapping(c.get("provider_specific_fields")) for c in (message, *shapes.calls(message))
    ]
    signatures = [fields.get("thought_signature") for fields in specific]
    if blocks:
        parts["content"] = blocks
    if any(signatures):
        parts["thought_signature"] = signatures
    return parts


def _visible(message: Message) -> str:
    """Return, as a key, what a client keeps of a message whatever it does to ids and spelling."""
    functions = [shapes.mapping(call.get("function")) for call in shapes.calls(message)]
    calls = [(f.get("name"), shapes.parsed(f.get("arguments"))) for f in functions]
    return json.dumps([shapes.text(message).strip(), calls], sort_keys=True)


def _all_calls(messages: Sequence[Message]) -> Iterator[tuple[int, Message]]:
    for at, message in enumerate(messages):
        yield from ((at, call) for call in shapes.calls(message))


def _has_other_parts(message: Message) -> bool:
    return any(part.get("type") != "text" for part in shapes.parts(message))
