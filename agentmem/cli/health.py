"""A worker's health over HTTP, for what runs it: whether it lives, and whether it takes work.

It is served from a thread of its own: a process whose event loop hangs says so.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from concurrent.futures import TimeoutError as NoAnswer
from contextlib import asynccontextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, Protocol

from temporalio.client import Client
from temporalio.service import RPCError

from agentmem.errors import ConfigurationError

LOOP_SECONDS = 5.0
"""The seconds that the event loop may take to answer before the process counts as hanging."""

SERVER_SECONDS = 2.0
"""The seconds that Temporal may take to answer before the worker counts as not ready."""


class Polling(Protocol):
    """A worker that polls, or did."""

    @property
    def is_running(self) -> bool:
        """Tell if it runs."""
        ...

    @property
    def is_shutdown(self) -> bool:
        """Tell if it has ended."""
        ...


class Health:
    """The answers to a worker's probes; call `watch` with the worker once it runs."""

    def __init__(self) -> None:
        self._failure = ""
        self._client: Client | None = None
        self._worker: Polling | None = None

    def watch(self, client: Client, worker: Polling) -> None:
        """Take a worker that polls now."""
        self._client, self._worker = client, worker

    def fail(self, error: BaseException) -> None:
        """Take note of an error after which the worker does nothing any more."""
        self._failure = f"the worker failed: {type(error).__name__}"

    async def live(self) -> str:
        """Return why the process must be replaced, empty if it need not be."""
        return self._failure

    async def ready(self) -> str:
        """Return why it takes no work now, empty if it does."""
        if self._failure:
            return self._failure
        if self._client is None or self._worker is None:
            return "the worker is starting"
        if self._worker.is_shutdown or not self._worker.is_running:
            return "the worker is stopping"
        try:
            async with asyncio.timeout(SERVER_SECONDS):
                healthy = await self._client.service_client.check_health()
        except (RPCError, TimeoutError):
            healthy = False
        return "" if healthy else "Temporal does not answer"


@asynccontextmanager
async def serving(address: str) -> AsyncGenerator[Health]:
    """Serve `/live` and `/ready` at an address, `IP:port`; nothing where it is empty.

    Each answers 200, or 503 with the reason as its text.

    Raises:
        ConfigurationError: The address cannot be served.
    """
    health = Health()
    if not address:
        yield health
        return
    loop = asyncio.get_running_loop()

    def ask(path: str) -> str | None:
        probes = {"/live": health.live, "/ready": health.ready}
        return _asked(loop, probes[path]) if path in probes else None

    server = _server(address, ask)
    thread = Thread(target=server.serve_forever, name="agentmem-health", daemon=True)
    thread.start()
    try:
        yield health
    finally:
        await asyncio.to_thread(server.shutdown)
        server.server_close()


def _server(address: str, ask: Callable[[str], str | None]) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            why = ask(self.path)
            status = HTTPStatus.NOT_FOUND if why is None else HTTPStatus.OK
            status = HTTPStatus.SERVICE_UNAVAILABLE if why else status
            body = f"{why or status.phrase}\n".encode()
            self.send_response(status)
            self.send_header("Content-Type", "text/plain; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing: probes come every few seconds."""

    host, _, port = address.rpartition(":")
    try:
        server = ThreadingHTTPServer((host.strip("[]"), int(port)), Handler)
    except (OSError, OverflowError, ValueError) as error:
        raise ConfigurationError(
            f"AGENTMEM_HEALTH: {address!r} cannot be served; use an IP address and a free port, "
            f"like 127.0.0.1:8080 ({error})"
        ) from error
    server.daemon_threads = True
    return server


def _asked(loop: asyncio.AbstractEventLoop, probe: Callable[[], Awaitable[str]]) -> str:
    async def run() -> str:
        return await probe()

    asking = asyncio.run_coroutine_threadsafe(run(), loop)
    try:
        return asking.result(LOOP_SECONDS)
    except NoAnswer:
        asking.cancel()
        return "the event loop does not answer"
