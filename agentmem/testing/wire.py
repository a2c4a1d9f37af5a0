"""The two chat protocols of a scripted model: a `Reply` in OpenAI's shape and in Ollama's."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from agentmem.testing.replies import Call, Reply
from agentmem.values import JSONObject

OPENAI = "/v1/chat/completions"
OLLAMA = "/api/chat"


def body(reply: Reply, path: str, *, model: str, number: int, prompt_bytes: int) -> object:
    """The JSON body of a reply to one request.

    Args:
        reply: What the script answers.
        path: `OPENAI` or `OLLAMA`: the protocol that the client speaks.
        model: The model that the client asked for.
        number: The request's number, from which fresh call ids are made.
        prompt_bytes: Size of the request; a token is estimated as four bytes.
    """
    if reply.raw is not None:
        return reply.raw
    if reply.status >= 400:
        return _error(reply, path)
    message = _message(reply, path, number)
    usage = _usage(reply, prompt_bytes, len(json.dumps(message)))
    if path == OLLAMA:
        return {
            "model": model,
            "created_at": "2026-01-01T00:00:00Z",
            "message": message,
            "done": True,
            "done_reason": reply.finish or "stop",
            "prompt_eval_count": usage["prompt_tokens"],
            "eval_count": usage["completion_tokens"],
        }
    finish = reply.finish or ("tool_calls" if reply.calls else "stop")
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": 0,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": usage,
    }


def given_message(answer: object, path: str) -> JSONObject | None:
    """The assistant message of an answer, in the OpenAI shape; None if it holds none."""
    try:
        if path == OLLAMA:
            return from_ollama([cast("Any", answer)["message"]])[0]
        return dict(cast("Any", answer)["choices"][0]["message"])
    except (TypeError, KeyError, IndexError, ValueError, AttributeError):
        return None


def from_ollama(messages: Sequence[JSONObject]) -> list[JSONObject]:
    """JSONObjects of an Ollama chat request in the OpenAI shape: arguments become JSON text."""
    return [_openai_message(message) for message in messages]


def _openai_message(message: JSONObject) -> JSONObject:
    converted = dict(message)
    if "thinking" in converted:
        converted["reasoning_content"] = converted.pop("thinking")
    if message.get("tool_calls"):
        converted["tool_calls"] = [_openai_call(call) for call in message["tool_calls"]]
    return converted


def _openai_call(call: JSONObject) -> JSONObject:
    function: JSONObject = dict(call.get("function") or {})
    if not isinstance(function.get("arguments"), str):
        function["arguments"] = json.dumps(function.get("arguments"))
    return {"type": "function", **call, "function": function}


def _error(reply: Reply, path: str) -> dict[str, object]:
    if path == OLLAMA:
        return {"error": reply.content}
    kind = "invalid_request_error" if reply.status < 500 else "server_error"
    return {"error": {"message": reply.content, "type": kind, "param": None, "code": None}}


def _message(reply: Reply, path: str, number: int) -> dict[str, object]:
    message: dict[str, object] = {"role": "assistant", "content": reply.content}
    if path == OLLAMA and reply.content is None:
        message["content"] = ""
    if reply.calls:
        message["tool_calls"] = [
            _call(call, path, f"call_{number}_{place}") for place, call in enumerate(reply.calls)
        ]
    return {**message, **reply.extra}


def _call(call: Call | Mapping[str, object], path: str, fresh_id: str) -> Mapping[str, object]:
    if not isinstance(call, Call):
        return call
    arguments = call.arguments
    if path == OLLAMA:
        given = {} if call.id is None else {"id": call.id}
        return {**given, "function": {"name": call.name, "arguments": arguments}}
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {
        "id": fresh_id if call.id is None else call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": text},
    }


def _usage(reply: Reply, prompt_bytes: int, answer_bytes: int) -> dict[str, object]:
    prompt = reply.usage.get("prompt_tokens", prompt_bytes // 4)
    completion = reply.usage.get("completion_tokens", answer_bytes // 4)
    total = prompt + completion if isinstance(prompt, int) and isinstance(completion, int) else None
    counts: dict[str, object] = {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": total,
    }
    return counts | dict(reply.usage)
