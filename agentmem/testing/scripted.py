"""A model endpoint over real HTTP that answers by a script and records what it was asked."""

from __future__ import annotations

import asyncio
import inspect
import json
import socket
import struct
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from types import TracebackType
from typing import Any, Literal, Self, TypeVar

from aiohttp import web

from agentmem.testing import ollama
from agentmem.testing import replies as wire
from agentmem.testing.replies import Reply, fail
from agentmem.testing.request import Request
from agentmem.testing.streaming import deliver_pieces, wants_pieces
from agentmem.testing.strict import without_reasoning
from agentmem.wire import JSONObject

T = TypeVar("T")


class BackgroundLoop:
    """Runs coroutines beside the caller's event loop, even while that one is blocked."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    async def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the thread and wait here for its result."""
        return await run_in(self._loop, coroutine)

    def close(self) -> None:
        """Stop the loop and end the thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def run_in(loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in another thread's loop; cancelling the wait cancels the coroutine."""
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine, loop))


def fixed(body: object) -> Callable[[web.Request], Awaitable[web.Response]]:
    """A handler that answers every request with the same JSON."""

    async def answer(http: web.Request) -> web.Response:
        return web.json_response(body)

    return answer


async def deliver(http: web.Request, reply: Reply, body: bytes) -> web.StreamResponse:
    """Answer a request as the reply says, after its delay.

    Raises:
        ConnectionError: The client was gone when the answer was written.
    """
    await asyncio.sleep(reply.delay)
    if reply.ending != "sent":
        return await _broken(http, reply, body)
    headers = {"Content-Type": "application/json", **reply.headers}
    response = web.Response(body=body, status=reply.status, headers=headers)
    await response.prepare(http)
    await response.write_eof()
    return response


async def _broken(http: web.Request, reply: Reply, body: bytes) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    if reply.headers_first:
        response.content_length = len(body)
        await response.prepare(http)
        await response.write(body[: len(body) // 2])
    if reply.ending == "hang":
        await asyncio.Event().wait()
    if http.transport is not None:
        # Lingering for zero seconds turns the close into a reset.
        linger = struct.pack("ii", 1, 0)
        connection = http.transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        http.transport.abort()
    return response


# A conversation may be long: aiohttp's own limit of 1 MiB would hide the client's behaviour.
_MAX_REQUEST_BYTES = 1 << 30

Script = Callable[[Request], Reply | Awaitable[Reply]]


class ScriptedModel:
    """An OpenAI- and Ollama-compatible chat endpoint on 127.0.0.1, for tests.

    Use it as an async context manager, one for each test. It answers
    `POST /v1/chat/completions`, `POST /api/chat` and the listings of models, and checks every
    chat request against the strict rules (`agentmem.testing.strict`). It serves from a thread,
    so that a client that blocks the test's event loop is answered too. A script function runs in
    the test's event loop; what it raises is answered with 400, and raised again when the context
    ends.

    Args:
        script: Replies in order, or a function from the request to its reply, sync or async.
            A request beyond the last reply is answered with 400.
        strict: `refuse` answers a request that breaks a rule with 400, as the most demanding
            provider does, and takes no reply from the script; `record` answers it all the same.
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
        self._given: list[tuple[str, JSONObject]] = []
        self._error: BaseException | None = None
        self._changed = asyncio.Event()
        self._closing = False
        self._port = 0
        # A handler still open at the end (a reply that hangs) is cancelled at once.
        self._runner = web.AppRunner(
            self._application(), access_log=None, handler_cancellation=True, shutdown_timeout=0.01
        )

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._background = BackgroundLoop()
        await self._background.run(self._serve())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._closing = True
        await self._background.run(self._runner.cleanup())
        self._background.close()
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

    async def received(self, number: int) -> Request:
        """Wait for the request of that number (bound it with `asyncio.timeout`)."""
        await self._until(lambda: len(self.requests) >= number)
        return self.requests[number - 1]

    async def disconnected(self, number: int) -> Request:
        """Wait until the client of that request went away before it had its answer."""
        request = await self.received(number)
        await self._until(lambda: request.disconnected)
        return request

    def assert_strict(self) -> None:
        """Raise AssertionError with every request that broke a strict rule, and the rule."""
        broken = [
            f"request {request.number} (POST {request.path}): {violation}"
            for request in self.requests
            for violation in request.violations
        ]
        if broken:
            raise AssertionError("\n".join(broken))

    async def _serve(self) -> None:
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self._port = self._runner.addresses[0][1]

    async def _until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            self._changed.clear()
            await self._changed.wait()

    def _notify(self) -> None:
        self._loop.call_soon_threadsafe(self._changed.set)

    def _application(self) -> web.Application:
        app = web.Application(client_max_size=_MAX_REQUEST_BYTES)
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_post(ollama.PATH, self._chat)
        app.router.add_get("/v1/models", fixed(wire.OPENAI_MODELS))
        app.router.add_get("/api/tags", fixed(wire.OLLAMA_MODELS))
        app.router.add_post("/api/show", fixed(wire.OLLAMA_SHOW))
        return app

    async def _chat(self, http: web.Request) -> web.StreamResponse:
        raw = await http.read()
        number = len(self.requests) + 1
        request = Request(number=number, path=http.path, raw=raw, headers=http.headers)
        given = [
            message if path == http.path else without_reasoning(message)
            for path, message in self._given
        ]
        request.check(self._system_prompt, given)
        self.requests.append(request)
        self._notify()
        try:
            return await self._answer(http, request)
        except (asyncio.CancelledError, ConnectionError):
            request.disconnected = not self._closing
            self._notify()
            raise

    async def _answer(self, http: web.Request, request: Request) -> web.StreamResponse:
        try:
            reply = await self._reply(request)
            body = wire.body(reply, request)
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # pytest's own failures are no Exception
            self._error = self._error or error
            data = json.dumps({"error": {"message": f"the script failed: {error!r}"}}).encode()
            return await deliver(http, fail(400), data)
        message = wire.given_message(body, request.path)
        if message is not None and reply.status < 400:
            self._given.append((request.path, message))
        in_pieces = wants_pieces(request) and reply.status < 400
        if in_pieces and (message is not None or reply.chunks is not None):
            return await deliver_pieces(http, reply, request, body)
        return await deliver(http, reply, data)

    async def _reply(self, request: Request) -> Reply:
        if request.violations and self._refuse:
            return fail(400, "; ".join(request.violations))
        if self._function is not None:
            return await run_in(self._loop, self._call(self._function, request))
        if self._replies:
            return self._replies.popleft()
        return fail(400, f"the script has no reply for request {request.number}")

    @staticmethod
    async def _call(function: Script, request: Request) -> Reply:
        answer = function(request)
        return await answer if inspect.isawaitable(answer) else answer
