"""A scripted `Reply` as the body of an HTTP answer, in OpenAI's shape and in Ollama's."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from agentmem.testing import ollama
from agentmem.testing.replies import Call, Reply
from agentmem.testing.request import Request
from agentmem.values import JSONObject

OPENAI_MODELS = {"object": "list", "data": [{"id": "scripted", "object": "model"}]}
OLLAMA_MODELS = {"models": [{"name": "scripted", "model": "scripted"}]}
OLLAMA_SHOW = {
    "capabilities": ["completion", "tools"],
    "template": "{{ .Tools }}",
    "model_info": {"scripted.context_length": 131_072},
}


def body(reply: Reply, request: Request) -> object:
    """The JSON body that answers a request; tokens are estimated as four bytes each."""
    if reply.raw is not None:
        return reply.raw
    in_ollama = request.path == ollama.PATH
    if reply.status >= 400:
        return {"error": reply.content} if in_ollama else _openai_error(reply)
    return _ollama_answer(reply, request) if in_ollama else _openai_answer(reply, request)


def given_message(body: object, path: str) -> JSONObject | None:
    """The assistant message of an answer's body, in the OpenAI shape; None if it holds none."""
    try:
        if path == ollama.PATH:
            return ollama.as_openai([cast("Any", body)["message"]])[0]
        return dict(cast("Any", body)["choices"][0]["message"])
    except (TypeError, KeyError, IndexError, ValueError, AttributeError):
        return None


def _openai_error(reply: Reply) -> JSONObject:
    kind = "invalid_request_error" if reply.status < 500 else "server_error"
    return {"error": {"message": reply.content, "type": kind, "param": None, "code": None}}


def _openai_answer(reply: Reply, request: Request) -> JSONObject:
    message: JSONObject = {"role": "assistant", "content": reply.content}
    if reply.calls:
        message["tool_calls"] = [
            _openai_call(call, f"call_{request.number}_{place}")
            for place, call in enumerate(reply.calls)
        ]
    message |= reply.extra
    finish = reply.finish or ("tool_calls" if reply.calls else "stop")
    return {
        "id": f"chatcmpl-{request.number}",
        "object": "chat.completion",
        "created": 0,
        "model": request.model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": _usage(reply, request, message),
    }


def _ollama_answer(reply: Reply, request: Request) -> JSONObject:
    content = "" if reply.content is None else reply.content
    message: JSONObject = {"role": "assistant", "content": content, **reply.extra}
    if "reasoning_content" in message:
        message["thinking"] = message.pop("reasoning_content")
    if reply.calls:
        message["tool_calls"] = [_ollama_call(call) for call in reply.calls]
    usage = _usage(reply, request, message)
    return {
        "model": request.model,
        "created_at": "2026-01-01T00:00:00Z",
        "message": message,
        "done": True,
        "done_reason": reply.finish or "stop",
        "prompt_eval_count": usage["prompt_tokens"],
        "eval_count": usage["completion_tokens"],
    }


def _openai_call(call: Call | Mapping[str, object], fresh_id: str) -> Mapping[str, object]:
    if not isinstance(call, Call):
        return call
    arguments = call.arguments
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    call_id = fresh_id if call.id is None else call.id
    return {"id": call_id, "type": "function", "function": {"name": call.name, "arguments": text}}


def _ollama_call(call: Call | Mapping[str, object]) -> Mapping[str, object]:
    if not isinstance(call, Call):
        return call
    given_id = {} if call.id is None else {"id": call.id}
    return {**given_id, "function": {"name": call.name, "arguments": call.arguments}}


def _usage(reply: Reply, request: Request, message: JSONObject) -> JSONObject:
    counts: JSONObject = {
        "prompt_tokens": len(request.raw) // 4,
        "completion_tokens": len(json.dumps(message)) // 4,
    }
    counts |= reply.usage
    total = (counts["prompt_tokens"] or 0) + (counts["completion_tokens"] or 0)
    return {"total_tokens": total, **counts}
