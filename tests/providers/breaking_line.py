"""A line to a PostgreSQL server that breaks where a test says."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Literal

How = Literal["before", "after"]

_ASKS = b"SQH"  # Sync, Query, Flush: the client waits for an answer
_FAREWELL = b"SFATAL\0VFATAL\0C57P01\0Mterminating connection due to administrator command\0\0"


@dataclass
class Line:
    """A line of many connections.

    Attributes:
        port: The port of 127.0.0.1 that clients connect to.
        closed: Whether it takes no new connection.
        ended: The connections whose server answers no more.
        asked: How many requests came since the line was made or `cut_at` was called.
    """

    port: int = 0
    closed: bool = False
    ended: set[asyncio.StreamWriter] = field(default_factory=set[asyncio.StreamWriter])
    asked: int = 0
    _cut: tuple[int, How] | None = None
    _clients: set[asyncio.StreamWriter] = field(default_factory=set[asyncio.StreamWriter])

    def cut_at(self, request: int, how: How) -> None:
        """Break one connection at a request that is to come, counted from 1 over all of them.

        Args:
            request: Its number.
            how: Whether the server gets it before the line breaks. What it answers gets lost.
        """
        self.asked = 0
        self._cut = (request, how)

    def say_farewell(self, close_after: float) -> None:
        """Have all connections that are open now read that the server ends them.

        Args:
            close_after: The seconds after which they are closed. Until then nothing is answered.
        """
        message = b"E" + (len(_FAREWELL) + 4).to_bytes(4) + _FAREWELL
        for client in self._clients:
            client.write(message)
            asyncio.get_running_loop().call_later(close_after, client.close)
        self.ended |= self._clients

    def due(self) -> How | None:
        """Count a request, and return how it is to be cut."""
        self.asked += 1
        if self._cut and self._cut[0] == self.asked:
            return self._cut[1]
        return None

    def add(self, client: asyncio.StreamWriter) -> None:
        """Note a connection."""
        self._clients.add(client)

    def remove(self, client: asyncio.StreamWriter) -> None:
        """Forget a connection that was closed."""
        self._clients.discard(client)


@asynccontextmanager
async def breaking_line(socket: str) -> AsyncGenerator[Line]:
    """Lead to a PostgreSQL server's Unix socket."""
    line = Line()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if line.closed:
            writer.close()
            return
        server_reader, server = await asyncio.open_unix_connection(socket)
        answers = asyncio.create_task(_answer(server_reader, writer))
        line.add(writer)
        try:
            server.write(await _start(reader))
            while (message := await _message(reader))[:1] != b"X":
                if writer in line.ended:
                    continue
                how = line.due() if message[:1] in _ASKS else None
                if how == "after":
                    answers.cancel()
                    server.write(message)
                    await _ready(server_reader)
                if how:
                    return
                server.write(message)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the client has gone
        finally:
            answers.cancel()
            line.remove(writer)
            server.close()
            writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    line.port = listening.sockets[0].getsockname()[1]
    try:
        yield line
    finally:
        listening.close()


async def _answer(server: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
    while data := await server.read(1 << 16):
        client.write(data)
    client.close()


async def _ready(server: asyncio.StreamReader) -> None:
    """Wait until the server has done what it was asked for."""
    async with asyncio.timeout(10):
        while (await _message(server))[:1] != b"Z":
            pass


async def _start(client: asyncio.StreamReader) -> bytes:
    length = await client.readexactly(4)
    return length + await client.readexactly(int.from_bytes(length) - 4)


async def _message(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readexactly(5)
    return head + await reader.readexactly(int.from_bytes(head[1:]) - 4)
