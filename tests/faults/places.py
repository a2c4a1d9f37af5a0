"""The places at which a fault strikes: whoever reaches one waits there until the fault is done."""

import asyncio
from collections import Counter
from types import TracebackType
from typing import Self

from aiohttp import web


class Halt:
    """One place, and what happened there.

    Attributes:
        place: Its name.
        pid: The process that waits there; 0 if it is none of a worker.
    """

    def __init__(self, place: str, number: int = 1) -> None:
        self.place = place
        self.pid = 0
        self._left = number
        self._reached = asyncio.Event()
        self._go = asyncio.Event()

    @property
    def is_reached(self) -> bool:
        """Whether somebody has been there."""
        return self._reached.is_set()

    async def reached(self) -> None:
        """Wait until somebody is there."""
        await self._reached.wait()

    def release(self) -> None:
        """Let whoever waits there go on, and whoever comes later."""
        self._go.set()

    async def arrive(self, place: str, pid: int = 0) -> bool:
        """Come to a place; if it is this one, wait. Returns whether it was."""
        if place != self.place or self.is_reached:
            return False
        self._left -= 1
        if self._left > 0:
            return False
        self.pid = pid
        self._reached.set()
        await self._go.wait()
        return True


class Control:
    """A small HTTP server that the workers of a cell ask; use it as a context manager.

    Args:
        halt: The place of the cell.

    Attributes:
        notes: How often the tool with a side effect had each.
    """

    def __init__(self, halt: Halt) -> None:
        self.notes: Counter[str] = Counter()
        self._halt = halt
        app = web.Application()
        app.router.add_post("/at", self._at)
        app.router.add_post("/note", self._note)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.01)

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._halt.release()
        await self._runner.cleanup()

    @property
    def address(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def _at(self, request: web.Request) -> web.Response:
        said = await request.json()
        await self._halt.arrive(said["place"], said["pid"])
        return web.Response()

    async def _note(self, request: web.Request) -> web.Response:
        said = await request.json()
        self.notes[said["text"]] += 1
        await self._halt.arrive("during note")
        return web.Response()
