"""The parts that a provider wants back unchanged: reasoning, signed thinking, its own fields.

Each reasoning part is stored with a `type`: `thinking` and `redacted_thinking` blocks as they
came, `reasoning_content` with its `text` (left out where the blocks say the same), `content` for
reasoning that stood among the content parts, and `reasoning_details` or `reasoning_items` with
their `value`. On a request each stands where it came from. A `thought` with its `text` stood
between tags in the model's text: it is kept for people, and no provider takes it back.
"""

from agentmem.messages import IN_CONTENT, THOUGHT, Message
from agentmem.models.plain import as_mapping, objects
from agentmem.values import JSONObject

_BLOCKS = ("thinking", "redacted_thinking")
_LISTS = ("reasoning_details", "reasoning_items")
_SPECIFIC = "provider_specific_fields"


def read_reasoning(message: JSONObject) -> list[JSONObject]:
    """Return the reasoning parts of a reply's message, in OpenAI's form as litellm gives it."""
    blocks = objects(message.get("thinking_blocks"))
    parts = list(blocks)
    if thought := message.get("thought"):
        parts.append({"type": THOUGHT, "text": thought})
    text = message.get("reasoning_content")
    if isinstance(text, str) and text:
        same = text == _thought(blocks)
        parts.append({"type": "reasoning_content", **({} if same else {"text": text})})
    specific = as_mapping(message.get(_SPECIFIC))
    parts += [
        {"type": "content", "part": part}
        for part in (*objects(message.get("content")), *objects(specific.get("content")))
        if part.get("type") in IN_CONTENT
    ]
    for name in _LISTS:
        value = message.get(name) or specific.get(name)
        if value:
            parts.append({"type": name, "value": value})
    return parts


def read_fields(message: JSONObject) -> JSONObject:
    """Return the fields of a message that only its provider understands, signatures for example.

    What litellm repeats there from the message itself is left out.
    """
    fields = {
        name: value
        for name, value in as_mapping(message.get(_SPECIFIC)).items()
        if value is not None and name not in (*_LISTS, "refusal") and not message.get(name)
    }
    return {_SPECIFIC: fields} if fields else {}


def read_call_fields(call: JSONObject) -> JSONObject:
    """Return what a provider attached to a call, besides what a call is made of."""
    fields = {
        name: value
        for name, value in call.items()
        if name not in ("id", "type", "function", "index") and value is not None
    }
    inner = as_mapping(as_mapping(call.get("function")).get(_SPECIFIC))
    return {_SPECIFIC: inner, **fields} if inner else fields


def written(message: Message) -> JSONObject:
    """Return the fields by which a request's message carries its reasoning and provider fields."""
    blocks = [part for part in message.reasoning if part.get("type") in _BLOCKS]
    fields: JSONObject = dict(message.fields)
    if blocks:
        fields["thinking_blocks"] = blocks
    for part in message.reasoning:
        if part.get("type") == "reasoning_content":
            fields["reasoning_content"] = part.get("text", _thought(blocks))
        elif part.get("type") in _LISTS:
            fields[part["type"]] = part.get("value")
    return fields


def content_parts(message: Message) -> list[JSONObject]:
    """Return the reasoning that stood among the content parts."""
    return [part["part"] for part in message.reasoning if part.get("type") == "content"]


def _thought(blocks: list[JSONObject]) -> str:
    return "".join(str(block.get("thinking") or "") for block in blocks)
