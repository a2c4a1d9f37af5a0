"""What the demo plays on: a Temporal server, a worker, and the store behind it."""

import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from demo_screen import Screen
from demo_worker import DemoWorker
from temporalio.client import WorkflowHandle

from agentmem import TransactionalProvider
from agentmem.dev_server import DevServer, dev_server
from agentmem.storage.registry import Providers

PORTS = (7233, 8233)
"""Temporal's own, of the server and its web page; for who looks around."""


@dataclass(frozen=True, kw_only=True)
class Stage:
    """What the demo plays on.

    Attributes:
        screen: Where it shows.
        server: The Temporal server.
        worker: The worker.
        store: The facts, as the worker has them.
    """

    screen: Screen
    server: DevServer
    worker: DemoWorker
    store: TransactionalProvider

    async def address(self, handle: WorkflowHandle[Any, Any]) -> str:
        """Return the address of a workflow's page."""
        run = (await handle.describe()).run_id
        return f"{self.server.ui}/namespaces/default/workflows/{quote(handle.id, safe='')}/{run}"


@asynccontextmanager
async def stage(
    folder: Path, model: str, screen: Screen, *, keep: bool
) -> AsyncGenerator[Stage, None]:
    """Start server and worker, and stop them on leaving.

    Args:
        folder: An empty directory for all their data.
        model: The model that answers.
        screen: Where the demo shows.
        keep: Take Temporal's own ports, if they are free.

    Raises:
        AgentMemError: The server does not start.
        DemoFailed: The worker does not start.
    """
    port, ui_port = PORTS if keep and all(map(_free, PORTS)) else (0, 0)
    async with dev_server(folder, port=port, ui_port=ui_port) as server:
        screen.row("server", f"Temporal at {server.address}, its UI at {server.ui}")
        worker = DemoWorker(folder, server.address, model)
        providers = Providers(folder)
        try:
            await worker.start()
            screen.row("worker", f"python worker.py, process {worker.pid}")
            store = await providers.get("default")
            yield Stage(screen=screen, server=server, worker=worker, store=store)
        finally:
            await worker.stop()
            await providers.close()


def _free(port: int) -> bool:
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True
