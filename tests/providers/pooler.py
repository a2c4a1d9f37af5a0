"""A pooler in transaction mode, as strict as can be: each transaction gets another connection."""

import asyncio
import itertools
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

BACKENDS = 3
_SSL_REQUEST = 80877103


class _Backend:
    """A server connection; what it answers goes to the client at once."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.ready: asyncio.Queue[bytes] = asyncio.Queue()
        self.client: asyncio.StreamWriter | None = None
        self._reader = reader
        self._writer = writer
        self._answers = asyncio.create_task(self._answer())

    def send(self, message: bytes) -> None:
        self._writer.write(message)

    async def close(self) -> None:
        self._answers.cancel()
        self._writer.close()
        await self._writer.wait_closed()

    async def _answer(self) -> None:
        while message := await _message(self._reader):
            if self.client:
                self.client.write(message)
            if message[:1] == b"Z":
                self.ready.put_nowait(message[5:6])


@asynccontextmanager
async def transaction_pooler(socket: str) -> AsyncGenerator[int]:
    """Serve a PostgreSQL server's Unix socket on a free port, and say which.

    Whoever prepares a statement in one transaction does not find it in the next.
    """
    backends: list[_Backend] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            own = await _connect(socket, reader, writer)
            backends.extend(own)
            await _relay(reader, own)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the client has gone
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for backend in backends:
            await backend.close()


async def _connect(
    socket: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> list[_Backend]:
    startup = await _startup(reader)
    if int.from_bytes(startup[4:8]) == _SSL_REQUEST:
        writer.write(b"N")
        startup = await _startup(reader)
    backends: list[_Backend] = []
    for number in range(BACKENDS):
        backend = _Backend(*await asyncio.open_unix_connection(socket))
        backend.client = None if number else writer  # one greeting is enough
        backend.send(startup)
        await backend.ready.get()
        backend.client = writer
        backends.append(backend)
    return backends


async def _relay(reader: asyncio.StreamReader, backends: list[_Backend]) -> None:
    for backend in itertools.cycle(backends):
        status = b""
        while status != b"I":  # until the transaction has ended
            message = await _message(reader)
            if message[:1] == b"X":
                return
            backend.send(message)
            if message[:1] in (b"S", b"Q"):
                status = await backend.ready.get()


async def _startup(reader: asyncio.StreamReader) -> bytes:
    length = await reader.readexactly(4)
    return length + await reader.readexactly(int.from_bytes(length) - 4)


async def _message(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readexactly(5)
    return head + await reader.readexactly(int.from_bytes(head[1:]) - 4)
