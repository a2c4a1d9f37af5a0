"""Ollama's chat messages in the OpenAI shape, so that one set of rules reads both."""

from __future__ import annotations

import json
from collections.abc import Sequence

from agentmem.testing.shapes import Message, calls, mapping
from agentmem.wire import JSONObject

PATH = "/api/chat"


def as_openai(messages: Sequence[Message]) -> list[JSONObject]:
    """Messages of an Ollama request or answer in the OpenAI shape.

    Arguments become JSON text and `thinking` becomes `reasoning_content`. Fields that Ollama's
    protocol does not know, and a client therefore cannot send back, are left out.
    """
    return [_message(message) for message in messages]


def _message(message: Message) -> JSONObject:
    names = {"role": "role", "content": "content", "tool_call_id": "tool_call_id"}
    names["thinking"] = "reasoning_content"
    converted = {to: message[name] for name, to in names.items() if name in message}
    if asked := calls(message):
        converted["tool_calls"] = [_call(call) for call in asked]
    return converted


def _call(call: Message) -> JSONObject:
    function = dict(mapping(call.get("function")))
    if not isinstance(function.get("arguments"), str):
        function["arguments"] = json.dumps(function.get("arguments"))
    return {"id": call.get("id"), "type": "function", "function": function}
