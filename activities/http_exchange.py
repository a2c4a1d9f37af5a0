"""The actual HTTP exchange of one model call: whether a request left, and what came back.

A client library maps failures to classes of its own, by words that it looks for. The status and
the body that the provider sent are evidence; so is that nothing was sent at all.
"""

import contextlib
import importlib
import importlib.util
import json
import re
from collections.abc import AsyncIterator, Generator
from contextvars import ContextVar
from typing import Any

from agentmem.wire import JSONObject, as_mapping, objects

BODY_BYTES = 1024 * 1024
"""The largest size of a response that is read for evidence; a longer one is no error."""

TAIL_BYTES = 16 * 1024
"""The size of a stream's end that is kept for evidence: an error in a stream is its last event."""

# litellm sends by httpx, and OpenAI's client by a copy of it under another name.
_CLIENTS = ("httpx", "httpx2")
_MARK = "__agentmem_watched__"


class HttpExchange:
    """One call's requests and responses.

    Attributes:
        went_out: Whether a request was handed to the network.
        unfinished: What came of a streamed reply that broke, in OpenAI's form; empty if none did.
    """

    def __init__(self) -> None:
        self.went_out = False
        self.unfinished: JSONObject = {}
        self._response: Any = None
        self._tail = b""

    def sent(self) -> None:
        """Take note of a request."""
        self.went_out = True
        self._response = None
        self._tail = b""

    def received(self, response: Any) -> None:
        """Take note of a response, whose body nobody has read yet."""
        self._response = response

    def read(self, piece: bytes) -> None:
        """Take note of a piece of the response's body, as it came over the wire."""
        self._tail = (self._tail + piece)[-TAIL_BYTES:]

    def is_done(self) -> bool:
        """Tell whether a stream's last line is `[DONE]`, which no blank line need follow."""
        last = self._tail.rstrip().rpartition(b"\n")[2]
        return last.startswith(b"data:") and last.endswith(b"[DONE]")

    def ended_with(self, word: bytes) -> bool | None:
        """Tell whether a word stands in the end of a stream; None where it cannot be read."""
        if self._response is None or "content-encoding" in self._response.headers:
            return None
        return word in self._tail

    @property
    def status(self) -> int:
        """HTTP status of the last response; 0 if there was none."""
        return 0 if self._response is None else int(self._response.status_code)

    @property
    def body(self) -> JSONObject:
        """The last response's JSON object, of a stream the error in it; empty if there is none."""
        content = getattr(self._response, "_content", None)
        if isinstance(content, bytes):
            return _as_error(_parsed(content)) if len(content) <= BODY_BYTES else {}
        return self.error

    @property
    def error(self) -> JSONObject:
        """The error among a stream's last events, in the field `error`; empty if there is none."""
        for line in self._tail.splitlines()[::-1]:
            field, _, text = line.partition(b":")
            event = _as_error(_parsed(text if field in (b"data", b"error") else line))
            if event and field == b"error":
                return event if event.get("error") else {"error": event}
            if event.get("error"):
                return event
        return {}

    @property
    def whole(self) -> JSONObject:
        """The reply of a server that was asked for a stream and sent none; empty for a stream."""
        found = _parsed(self._tail)
        return found if any("message" in one for one in objects(found.get("choices"))) else {}

    def last_value(self, field: str) -> str:
        """Return the last word that a field has in the end of a stream; empty if there is none."""
        found = re.findall(rb'"%s"\s*:\s*"(\w+)"' % field.encode(), self._tail)
        return found[-1].decode() if found else ""

    @property
    def headers(self) -> dict[str, str]:
        """The last response's headers, names in lower case."""
        if self._response is None:
            return {}
        return {str(name).lower(): str(value) for name, value in self._response.headers.items()}


def _parsed(text: bytes) -> JSONObject:
    try:
        found: Any = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return next(iter(objects(found)), as_mapping(found))


def _as_error(body: JSONObject) -> JSONObject:
    """Return a body with its error in the field `error`.

    Some servers name the body's `object` so, or give a message and nothing else.
    """
    is_bare = isinstance(body.get("message"), str) and "choices" not in body
    if not body.get("error") and (body.get("object") == "error" or is_bare):
        return {**body, "error": dict(body)}
    return body


_running: ContextVar[HttpExchange | None] = ContextVar("agentmem_exchange", default=None)


def running_exchange() -> HttpExchange | None:
    """Return the exchange that takes note of what is sent here; None outside of any."""
    return _running.get()


@contextlib.contextmanager
def exchanging() -> Generator[HttpExchange]:
    """Take note of what the body sends and receives."""
    exchange = HttpExchange()
    token = _running.set(exchange)
    try:
        yield exchange
    finally:
        _running.reset(token)


def watch_clients() -> None:
    """Have the HTTP clients of this process report to the running exchange, and send once.

    Clients that are made within an exchange open as many connections as there are calls.

    Outside of an exchange they are what they were; to call it again changes nothing.
    """
    for name in _CLIENTS:
        if importlib.util.find_spec(name) is not None:
            _watch(importlib.import_module(name))
    _send_once(importlib.import_module("openai._models").FinalRequestOptions)


def _watch(client: Any) -> None:
    transport: Any = client.AsyncHTTPTransport
    send = transport.handle_async_request
    noting = _noting(client.AsyncByteStream)
    if getattr(send, _MARK, False):
        return
    blocking: Any = client.HTTPTransport
    send_blocking = blocking.handle_request
    begin = transport.__init__

    def __init__(self: Any, *args: Any, **options: Any) -> None:
        # A pool of 100 connections, as by default, would make the hundred-and-first call wait in
        # the client, where nobody sees it, and behind dreams too: the worker's slots are the bound.
        if _running.get() is not None:
            options["limits"] = client.Limits(max_connections=None, max_keepalive_connections=100)
        begin(self, *args, **options)

    def handle_request(self: Any, request: Any) -> Any:  # of vendors that are asked in a thread
        exchange = _running.get()
        if exchange is None:
            return send_blocking(self, request)
        exchange.sent()
        response = send_blocking(self, request)
        exchange.received(response)
        return response

    async def handle_async_request(self: Any, request: Any) -> Any:
        exchange = _running.get()
        if exchange is None:
            return await send(self, request)
        exchange.sent()
        response = await send(self, request)
        exchange.received(response)
        response.stream = noting(response.stream, exchange)
        return response

    setattr(handle_async_request, _MARK, True)
    transport.__init__ = __init__
    transport.handle_async_request = handle_async_request
    blocking.handle_request = handle_request


def _noting(stream_class: Any) -> Any:
    class Noting(stream_class):
        """A response's stream that an exchange takes note of."""

        def __init__(self, stream: Any, exchange: HttpExchange) -> None:
            self._stream = stream
            self._exchange = exchange

        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for piece in self._stream:
                self._exchange.read(piece)
                yield piece

        async def aclose(self) -> None:
            await self._stream.aclose()

    return Noting


def _send_once(options: Any) -> None:
    # Retries are Temporal's. litellm tells OpenAI's client so only for the vendors of which it
    # knows that they take a setting of that name; for the others the client sends three times.
    count = options.get_max_retries
    if getattr(count, _MARK, False):
        return

    def get_max_retries(self: Any, max_retries: int) -> int:
        return int(count(self, max_retries)) if _running.get() is None else 0

    setattr(get_max_retries, _MARK, True)
    options.get_max_retries = get_max_retries
