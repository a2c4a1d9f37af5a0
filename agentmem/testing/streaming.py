"""A scripted answer in pieces: server-sent events, or JSON lines in Ollama's protocol."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from typing import Any

from aiohttp import web

from agentmem.testing import ollama
from agentmem.testing.replies import Reply
from agentmem.testing.request import Request
from agentmem.testing.shapes import calls, mapping, text
from agentmem.wire import JSONObject

PIECE = 12
"""Characters of a piece of text."""


def wants_pieces(request: Request) -> bool:
    """Tell if a request asks for its answer in pieces."""
    return mapping(request.body).get("stream") is True


async def deliver_pieces(
    http: web.Request, reply: Reply, request: Request, body: object
) -> web.StreamResponse:
    """Answer in pieces, `reply.pause` seconds apart, and end as the reply says."""
    await asyncio.sleep(reply.delay)
    in_ollama = request.path == ollama.PATH
    kind = "application/x-ndjson" if in_ollama else "text/event-stream"
    response = web.StreamResponse(headers={"Content-Type": kind, **reply.headers})
    await response.prepare(http)
    chunks = reply.chunks
    if chunks is None:
        chunks = list(_ollama(body) if in_ollama else _openai(body))
    for chunk in chunks:
        line = json.dumps(chunk)
        await response.write(f"{line}\n".encode() if in_ollama else f"data: {line}\n\n".encode())
        await asyncio.sleep(reply.pause)
    if reply.ending == "hang":
        await asyncio.Event().wait()
    if reply.ending == "reset" and http.transport is not None:
        http.transport.abort()
        return response
    if not in_ollama:
        await response.write(b"data: [DONE]\n\n")
    await response.write_eof()
    return response


def _openai(body: object) -> Iterator[JSONObject]:
    whole = dict(mapping(body))
    (choice,) = whole.pop("choices")
    usage = whole.pop("usage")
    whole |= {"object": "chat.completion.chunk"}

    def chunk(delta: JSONObject, finish: object = None) -> JSONObject:
        return {**whole, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    message = dict(choice["message"])
    yield chunk({"role": "assistant", "content": ""})
    for name in ("reasoning_content", "content"):
        value = message.pop(name, None)
        for piece in _cut(value if isinstance(value, str) else text({"content": value})):
            yield chunk({name: piece})
    for place, call in enumerate(calls(message)):
        function = mapping(call.get("function"))
        first = {**call, "index": place, "function": {**function, "arguments": ""}}
        yield chunk({"tool_calls": [first]})
        for piece in _cut(str(function.get("arguments") or "")):
            yield chunk({"tool_calls": [{"index": place, "function": {"arguments": piece}}]})
    rest = {k: v for k, v in message.items() if k not in ("role", "tool_calls")}
    if rest:
        yield chunk(rest)
    yield chunk({}, choice["finish_reason"])
    yield {**whole, "choices": [], "usage": usage}


def _ollama(body: object) -> Iterator[JSONObject]:
    whole = dict(mapping(body))
    message = dict(mapping(whole["message"]))
    start: JSONObject = {"model": whole["model"], "created_at": whole["created_at"], "done": False}
    for piece in _cut(str(message.pop("content", ""))):
        yield {**start, "message": {"role": "assistant", "content": piece}}
    if message.keys() - {"role"}:
        yield {**start, "message": {**message, "content": ""}}
    yield {**whole, "message": {"role": "assistant", "content": ""}}


def _cut(whole: str) -> Sequence[Any]:
    return [whole[at : at + PIECE] for at in range(0, len(whole), PIECE)]
