"""A scripted model's answers, and their HTTP bodies in OpenAI's and Ollama's shape."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from agentmem.testing import ollama
from agentmem.testing.request import Request
from agentmem.wire import JSONObject


@dataclass(frozen=True)
class Call:
    """One tool call of a reply.

    Attributes:
        name: The tool's name.
        arguments: A mapping, or text that is sent exactly as it is (broken JSON, for example).
        id: The call's id; None gives an OpenAI reply a fresh one, and an Ollama reply none.
    """

    name: str
    arguments: Mapping[str, object] | str = field(default_factory=dict[str, object])
    id: str | None = None


@dataclass(frozen=True, kw_only=True)
class Reply:
    """One answer of the endpoint; build it with `reply`, `fail`, `hang` or `reset`.

    Attributes:
        content: The message's content: text, None, or a list of parts.
        calls: Tool calls; a mapping is sent as it is, whatever its shape.
        finish: Finish reason; None means `tool_calls` with calls and `stop` without.
        extra: More fields of the message, such as `reasoning_content` or `thinking_blocks`.
        usage: Token counts that replace the estimated ones, by their OpenAI names.
        raw: The whole body instead of all of the above: JSON, or bytes that are sent as they are.
        status: HTTP status.
        headers: HTTP headers.
        delay: Seconds between the request and the answer.
        ending: Whether the answer is sent, held back for ever, or replaced by a TCP reset.
        headers_first: With `hang` and `reset`: the headers and half of the body go out before.
        chunks: Where the client asks for pieces: these, each sent as it is, in place of the
            pieces of the answer.
        pause: Where the client asks for pieces: seconds between them.
    """

    content: object = None
    calls: Sequence[Call | Mapping[str, object]] = ()
    finish: str | None = None
    extra: Mapping[str, object] = field(default_factory=dict[str, object])
    usage: Mapping[str, object] = field(default_factory=dict[str, object])
    raw: object = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    delay: float = 0
    ending: Literal["sent", "hang", "reset"] = "sent"
    headers_first: bool = False
    chunks: Sequence[object] | None = None
    pause: float = 0


def call(name: str, /, **arguments: object) -> Call:
    """A tool call with a fresh id and the keywords as its arguments.

    Use `Call` for an id of your own or for arguments that are not valid.
    """
    return Call(name, arguments)


def reply(
    content: object = None,
    *,
    calls: Sequence[Call | Mapping[str, object]] = (),
    finish: str | None = None,
    extra: Mapping[str, object] | None = None,
    usage: Mapping[str, object] | None = None,
    raw: object = None,
    headers: Mapping[str, str] | None = None,
    delay: float = 0,
    chunks: Sequence[object] | None = None,
    pause: float = 0,
) -> Reply:
    """An answer with status 200; the arguments are those of `Reply`."""
    return Reply(
        content=content,
        calls=calls,
        finish=finish,
        extra=extra or {},
        usage=usage or {},
        raw=raw,
        headers=headers or {},
        delay=delay,
        chunks=chunks,
        pause=pause,
    )


def fail(
    status: int,
    body: object = None,
    *,
    headers: Mapping[str, str] | None = None,
    delay: float = 0,
) -> Reply:
    """An error answer.

    Args:
        status: HTTP status, such as 429.
        body: Text becomes the message in the provider's error shape; anything else is sent as the
            body, as `Reply.raw`; None stands for a neutral message.
        headers: HTTP headers, such as `{"Retry-After": "7"}`.
        delay: Seconds between the request and the answer.
    """
    text = f"scripted failure {status}" if body is None else body
    return Reply(
        content=text if isinstance(text, str) else None,
        raw=None if isinstance(text, str) else text,
        status=status,
        headers=headers or {},
        delay=delay,
    )


def hang(*, headers_first: bool = False) -> Reply:
    """No answer: the request is accepted and stays open until the client gives up.

    Args:
        headers_first: The status, the headers and half of a body are sent, and then nothing.
    """
    return Reply(content="never finished", ending="hang", headers_first=headers_first)


def reset(*, headers_first: bool = False) -> Reply:
    """No answer: the connection is reset.

    Args:
        headers_first: The status, the headers and half of a body are sent before the reset.
    """
    return Reply(content="never finished", ending="reset", headers_first=headers_first)


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
