"""A model behind OpenAI's protocol that answers at once, as the user's message says."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from benchmarks.texts import asked


class Model:
    """An endpoint that answers at once with text, or with calls of `look_up` or `recall_memory`.

    Attributes:
        holding: While set, requests are not answered; `held` is set when one waits.
    """

    def __init__(self) -> None:
        self.holding = False
        self.held = asyncio.Event()
        self._runner = web.AppRunner(self._application(), access_log=None, shutdown_timeout=0.1)
        self._number = 0

    def _application(self) -> web.Application:
        app = web.Application(client_max_size=1 << 30)
        app.router.add_post("/v1/chat/completions", self._chat)
        return app

    @asynccontextmanager
    async def serve(self) -> AsyncGenerator[dict[str, str]]:
        """Serve; gives the environment that sends litellm here."""
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/v1"
        try:
            yield {"OPENAI_API_BASE": url, "OPENAI_BASE_URL": url, "OPENAI_API_KEY": "none"}
        finally:
            await self._runner.cleanup()

    async def _chat(self, request: web.Request) -> web.Response:
        sent = await request.read()
        body = json.loads(sent)
        messages = body["messages"]
        if self.holding:
            self.held.set()
            await asyncio.sleep(600)
        self._number += 1
        said = next(one["content"] for one in reversed(messages) if one["role"] == "user")
        calls, text = self.answer(said)
        message: dict[str, Any] = {"role": "assistant", "content": text}
        calling = calls > 0 and messages[-1]["role"] == "user"
        if calling:
            message["content"] = None
            message["tool_calls"] = [self._call(body["tools"], page) for page in range(calls)]
        finish = "tool_calls" if calling else "stop"
        choice = {"index": 0, "message": message, "finish_reason": finish}
        # As a provider counts English: a worker compares the count with what it sent.
        counts = {"prompt_tokens": len(sent) // 4, "completion_tokens": len(text) // 4}
        usage = {**counts, "total_tokens": sum(counts.values())}
        reply = {"id": "x", "object": "chat.completion", "created": 0, "model": "test-model"}
        return web.json_response({**reply, "choices": [choice], "usage": usage})

    def answer(self, said: str) -> tuple[int, str]:
        """Return how many tools to call for what a user said, and the text to answer with."""
        calls, size = asked(said)
        return calls, "y" * size

    def _call(self, tools: list[dict[str, Any]], page: int) -> dict[str, Any]:
        names = {tool["function"]["name"] for tool in tools}
        function = {"name": "look_up", "arguments": json.dumps({"page": page})}
        if "look_up" not in names:
            function = {"name": "recall_memory", "arguments": json.dumps({"key": f"page {page}"})}
        return {"id": f"c{self._number}_{page}", "type": "function", "function": function}
