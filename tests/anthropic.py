"""A stand-in for Anthropic's Messages API over real HTTP: whole and streamed replies, and a cache.

The cache follows Anthropic's documents: the prompt is tools, system, messages; it is stored up to
each mark, at most four of them, and read up to the longest stored part that ends in the last 20
blocks before a mark.
"""

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from agentmem.wire import JSONObject, dump_json

MARKS = 4
LOOK_BACK = 20


class Anthropic:
    """Answers with content blocks in order, and keeps what it was asked.

    Attributes:
        requests: The bodies of the requests.
        url: Its address.
    """

    def __init__(self, replies: Sequence[Sequence[JSONObject]]) -> None:
        self._replies = list(replies)
        self._stored: set[str] = set()
        self.requests: list[JSONObject] = []
        self.url = ""

    async def answer(self, http: web.Request) -> web.StreamResponse:
        """Answer one request of the Messages API."""
        body: JSONObject = await http.json()
        self.requests.append(body)
        content = self._replies[len(self.requests) - 1]
        tools = any(block["type"] == "tool_use" for block in content)
        message: JSONObject = {
            "id": f"msg_{len(self.requests)}",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": list(content),
            "stop_reason": "tool_use" if tools else "end_turn",
            "stop_sequence": None,
            "usage": self._usage(body),
        }
        if not body.get("stream"):
            return web.json_response(message)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(http)
        for event in _events(message):
            await response.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
        await response.write_eof()
        return response

    def _usage(self, body: JSONObject) -> JSONObject:
        blocks = _blocks(body)
        marks = [at for at, block in enumerate(blocks) if "cache_control" in block]
        assert len(marks) <= MARKS, f"{len(marks)} marks"
        bare = [{k: v for k, v in block.items() if k != "cache_control"} for block in blocks]
        parts = [dump_json(bare[: at + 1]) for at in range(len(bare))]
        read = max(
            (
                at + 1
                for mark in marks
                for at in range(max(0, mark - LOOK_BACK), mark + 1)
                if parts[at] in self._stored
            ),
            default=0,
        )
        written = max((mark + 1 for mark in marks), default=0)
        self._stored |= {parts[mark] for mark in marks}

        def tokens(begin: int, end: int) -> int:
            return len(dump_json(bare[begin:end])) // 4 if end > begin else 0

        return {
            "input_tokens": tokens(max(read, written), len(bare)),
            "cache_read_input_tokens": tokens(0, read),
            "cache_creation_input_tokens": tokens(read, written),
            "output_tokens": 10,
        }


def _blocks(body: JSONObject) -> list[JSONObject]:
    system: Any = body.get("system") or []
    blocks = [*body.get("tools", []), *([{"text": system}] if isinstance(system, str) else system)]
    for message in body["messages"]:
        content: Any = message["content"]
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        blocks += [{"role": message["role"], **part} for part in parts]
    return blocks


def _events(message: JSONObject) -> list[JSONObject]:
    usage = message["usage"]
    events: list[JSONObject] = [
        {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}
    ]
    for at, block in enumerate(message["content"]):
        is_text = block["type"] == "text"
        empty: JSONObject = {**block, "text": ""} if is_text else {**block, "input": {}}
        pieces: list[JSONObject] = (
            [{"type": "text_delta", "text": character} for character in block["text"]]
            if is_text
            else [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
        )
        events.append({"type": "content_block_start", "index": at, "content_block": empty})
        events += [{"type": "content_block_delta", "index": at, "delta": one} for one in pieces]
        events.append({"type": "content_block_stop", "index": at})
    delta = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    return [
        *events,
        {"type": "message_delta", "delta": delta, "usage": usage},
        {"type": "message_stop"},
    ]


@asynccontextmanager
async def anthropic(*replies: Sequence[JSONObject]) -> AsyncGenerator[Anthropic]:
    """Serve these replies, each a list of content blocks."""
    made = Anthropic(replies)
    app = web.Application(client_max_size=1 << 26)
    app.router.add_post("/v1/messages", made.answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    made.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield made
    finally:
        await runner.cleanup()


def text(said: str) -> JSONObject:
    """Return a block of text."""
    return {"type": "text", "text": said}


def use(name: str, **arguments: object) -> JSONObject:
    """Return a block that calls a tool."""
    return {"type": "tool_use", "id": f"toolu_{name}", "name": name, "input": arguments}
