"""The ways an answer leaves the scripted endpoint: whole, held back for ever, or cut by a reset."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable

from aiohttp import web

from agentmem.testing.replies import Reply


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
