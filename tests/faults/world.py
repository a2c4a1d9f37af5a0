"""The servers that all cells share, and the run of one cell on them."""

import asyncio
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from temporalio.client import Client

from agentmem.dev_server import dev_server
from tests.faults.cells import Cell
from tests.faults.places import Halt
from tests.faults.site import Counts, Site, Zygote, site, zygote
from tests.pair import two_servers
from tests.postgres import PostgresServer, embedded

REACHED = 120.0
"""Seconds in which a cell must come to its place; else its fault did not strike."""

DONE = 240.0
"""Seconds in which the people of a cell must be done after the fault."""


@dataclass(frozen=True, kw_only=True)
class World:
    """The shared servers.

    Attributes:
        client: Of the Temporal server.
        fork: Starts workers.
        database: The PostgreSQL server.
    """

    client: Client
    fork: Zygote
    database: PostgresServer


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came of a cell.

    Attributes:
        cell: Its name.
        fault: The fault's.
        place: The place's.
        struck: Whether the fault struck.
        counts: What was counted.
        notes: What the cell saw, a line each.
    """

    cell: str
    fault: str
    place: str
    struck: bool
    counts: Counts
    notes: list[str]

    @property
    def is_sound(self) -> bool:
        """Whether the fault struck and did no harm."""
        return self.struck and not self.counts.harm


@asynccontextmanager
async def world() -> AsyncGenerator[World]:
    """Run the servers that cells share."""
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="agentmem-world-"))
        fork = await stack.enter_async_context(zygote())
        server = await stack.enter_async_context(dev_server(Path(folder), ui=False))
        database = PostgresServer(stack.enter_context(embedded()))
        yield World(client=server.client, fork=fork, database=database)


async def run(cell: Cell, world: World) -> Outcome:
    """Run a cell and count what came of it."""
    began = time.monotonic()
    halt = Halt(cell.place.halt, cell.place.number)
    async with AsyncExitStack() as stack:
        made = await _made(cell, world, halt, stack)
        for _ in range(cell.workers):
            await made.work(dies=cell.dies)
        people = asyncio.create_task(_people(cell, made))
        struck = await _strike(cell, made, people)
        halt.release()
        try:
            async with asyncio.timeout(DONE):
                await people
        except Exception as error:
            made.failed.append(f"the people of the cell: {type(error).__name__}: {error}")
        await asyncio.gather(*made.behind)
        if made.collects:
            await made.dreams()
        await made.settle()
        counts = await made.count()
        counts.seconds = round(time.monotonic() - began, 1)
        return Outcome(
            cell=cell.name,
            fault=cell.fault,
            place=cell.place.name,
            struck=struck,
            counts=counts,
            notes=made.notes,
        )


async def _people(cell: Cell, made: Site) -> None:
    await cell.place.work(made)


async def _strike(cell: Cell, made: Site, people: "asyncio.Task[None]") -> bool:
    """Do what the cell is about; returns whether it happened."""
    if cell.strike is None:
        await asyncio.wait([people], timeout=DONE)
        await made.settle()
        if cell.dies:
            return (made.folder / "died").exists()
        return not any(made.mischief.values())
    reached = asyncio.create_task(made.halt.reached())
    # The people may be done long before a place in the dream is reached.
    people.add_done_callback(lambda done: done.exception() and reached.cancel())
    await asyncio.wait([reached], timeout=REACHED)
    if not made.halt.is_reached:
        reached.cancel()
        return False
    try:
        await cell.strike(made)
    except Exception as error:
        made.failed.append(f"the fault could not be done: {type(error).__name__}: {error}")
        return False
    return True


async def _made(cell: Cell, world: World, halt: Halt, stack: AsyncExitStack) -> Site:
    client, identity, more = world.client, "sqlite:memory.db", dict[str, Any]()
    pair = None
    if cell.store == "postgresql":
        identity = "postgresql"
        name = await world.database.new(await world.database.migrated())
        stack.push_async_callback(world.database.drop, name)
        more |= {"database": world.database, "database_url": world.database.url(name)}
    elif cell.store == "pair":
        identity = "postgresql"
        pair = stack.enter_context(two_servers())
        more |= {"database_url": pair.url(str(pair.name))}
    restart = None
    if cell.own_server:
        client, restart = await _server(stack)
    kind, _, activity = halt.place.partition(" ")
    types = [activity] if kind in ("before", "after") else []
    made = await stack.enter_async_context(
        site(
            client,
            world.fork,
            halt,
            types=types,
            agent=cell.place.agent,
            mischief=cell.mischief(),
            identity=identity,
            **more,
        )
    )
    made.pair, made.restart = pair, restart
    return made


async def _server(stack: AsyncExitStack) -> tuple[Client, Any]:
    """Run a Temporal server that can be restarted; returns its client and what restarts it."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="agentmem-server-")))
    running = [dev_server(folder, ui=False, keep=True)]
    server = await running[0].__aenter__()
    port = int(server.address.rpartition(":")[2])

    async def stop(*_: object) -> None:
        await running[0].__aexit__(None, None, None)

    async def restart() -> None:
        await stop()
        await asyncio.sleep(5)
        running[0] = dev_server(folder, ui=False, keep=True, port=port)
        await running[0].__aenter__()

    stack.push_async_exit(stop)
    return server.client, restart
