"""A model endpoint over real HTTP that answers by a script and records what it was asked."""

from __future__ import annotations

import asyncio
import inspect
import json
import socket
import struct
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Literal, Self, cast

from aiohttp import web

from agentmem.testing import strict, wire
from agentmem.testing.replies import Reply, fail

# A conversation may be long: aiohttp's own limit of 1 MiB would hide the client's behaviour.
_MAX_REQUEST_BYTES = 1 << 30


@dataclass(kw_only=True, eq=False)
class Request:
    """One chat request as the endpoint received it.

    Attributes:
        number: 1 for the first request.
        path: `/v1/chat/completions` or `/api/chat`.
        raw: The body, byte for byte.
        headers: HTTP headers.
        at: Seconds of `time.monotonic()` when it arrived.
        body: The parsed body; empty if it is no JSON object.
        violations: The strict rules that it breaks, one line each.
        answered: Whether the whole scripted answer was sent.
        disconnected: Whether the client closed the connection before that.
    """

    number: int
    path: str
    raw: bytes
    headers: dict[str, str]
    at: float = field(default_factory=time.monotonic)
    body: dict[str, Any] = field(default_factory=dict[str, Any])
    violations: list[str] = field(default_factory=list[str])
    answered: bool = False
    disconnected: bool = False

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages, in the shape that the client sent them."""
        return self.body.get("messages") or []

    @property
    def tools(self) -> list[dict[str, Any]]:
        """The declared tools; empty without any."""
        return self.body.get("tools") or []

    @property
    def model(self) -> str:
        """The model that the client asked for."""
        return str(self.body.get("model", ""))


Script = Callable[[Request], Reply | Awaitable[Reply]]


class ScriptedModel:
    """An OpenAI- and Ollama-compatible chat endpoint on 127.0.0.1, for tests.

    Use it as an async context manager, one for each test. It serves in the running event loop
    and answers `POST /v1/chat/completions`, `POST /api/chat` and the model listings. Every
    request is checked against the strict rules (`agentmem.testing.strict`). An exception that
    a script function raises is answered with 400, and raised again when the context ends.

    Args:
        script: Replies in order, or a function from the request to its reply, sync or async.
            A request beyond the last reply is answered with 400.
        strict: `refuse` answers a request that breaks a rule with 400, as the most demanding
            provider does, and leaves the script where it is; `record` answers it by the script.
        system_prompt: What every system message must begin with; None leaves that unchecked.

    Attributes:
        requests: Every chat request so far, oldest first.
    """

    def __init__(
        self,
        script: Iterable[Reply] | Script = (),
        *,
        strict: Literal["refuse", "record"] = "refuse",
        system_prompt: str | None = None,
    ) -> None:
        self.requests: list[Request] = []
        self._function = script if callable(script) else None
        self._replies = deque(() if callable(script) else script)
        self._refuse = strict == "refuse"
        self._system_prompt = system_prompt
        self._given: list[dict[str, Any]] = []
        self._error: Exception | None = None
        self._changed = asyncio.Condition()
        self._port = 0
        app = web.Application(client_max_size=_MAX_REQUEST_BYTES)
        app.router.add_post(wire.OPENAI, self._chat)
        app.router.add_post(wire.OLLAMA, self._chat)
        app.router.add_get("/v1/models", _models)
        app.router.add_get("/api/tags", _models)
        app.router.add_post("/api/show", _show)
        # Handlers still open at the end (a reply that hangs) are cancelled at once.
        self._runner = web.AppRunner(
            app, access_log=None, handler_cancellation=True, shutdown_timeout=0.01
        )

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self._port = self._runner.addresses[0][1]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._runner.cleanup()
        if self._error is not None and error is None:
            raise self._error

    @property
    def base_url(self) -> str:
        """The endpoint's address, without `/v1`."""
        return f"http://127.0.0.1:{self._port}"

    def env(self) -> dict[str, str]:
        """Environment variables that send litellm here, in this process or in another one."""
        return {
            "OPENAI_API_BASE": f"{self.base_url}/v1",
            "OPENAI_BASE_URL": f"{self.base_url}/v1",
            "OPENAI_API_KEY": "scripted",
            "OLLAMA_API_BASE": self.base_url,
            "NO_PROXY": "127.0.0.1",
        }

    def add(self, *replies: Reply) -> None:
        """Append replies to the script."""
        self._replies.extend(replies)

    async def received(self, number: int, *, timeout: float = 30) -> Request:
        """The request of that number, waited for; TimeoutError after `timeout` seconds."""
        await self._until(lambda: len(self.requests) >= number, timeout)
        return self.requests[number - 1]

    async def disconnected(self, number: int, *, timeout: float = 30) -> Request:
        """The request of that number, once its client went away; TimeoutError as above."""
        request = await self.received(number, timeout=timeout)
        await self._until(lambda: request.disconnected, timeout)
        return request

    def assert_strict(self) -> None:
        """Raise AssertionError with each request that broke a strict rule, and the rule."""
        broken = [
            f"request {request.number} (POST {request.path}): {violation}"
            for request in self.requests
            for violation in request.violations
        ]
        if broken:
            raise AssertionError("\n".join(broken))
