"""The real Temporal server in a process of our own, for development, demos and examples."""

import asyncio
import fcntl
import os
import shutil
import signal
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest
from temporalio.client import Client
from temporalio.service import RPCError

from agentmem.client import connect
from agentmem.contracts import SEARCH_ATTRIBUTES
from agentmem.errors import ConfigurationError

# Runs a command until it ends or its standard input does: that pipe closes when we die, too.
_WITH_US = 'exec 3<&0; "$@" & server=$!; { read -r _ <&3; kill $server; } & wait $server'

_READY_SECONDS = 30
_STOP_SECONDS = 10


@dataclass(frozen=True, kw_only=True)
class DevServer:
    """A running server.

    Attributes:
        client: Connected to it.
        address: Where it answers, like `localhost:7233`.
        ui: The address of its web page, empty without one.
    """

    client: Client
    address: str
    ui: str


@asynccontextmanager
async def dev_server(
    data: Path, *, port: int = 0, ui_port: int = 0, ui: bool = True, keep: bool = False
) -> AsyncGenerator[DevServer, None]:
    """Start the server of the `temporal` binary and stop it on leaving.

    It stops too when this process ends in any other way, by SIGKILL for example.

    Args:
        data: The directory for its log and its database.
        port: Where it listens, 0 for a free port.
        ui_port: Where its web page is, 0 for the port 1,000 above `port` or a free one.
        ui: Whether it has a web page.
        keep: Whether workflows outlive it, in `temporal.db`; else they are held in memory.

    Raises:
        ConfigurationError: The binary is missing, a port or the database is taken, or the server
            does not start.
    """
    log, lock = _open_files(data)
    try:
        if keep:
            await _lock(lock, data)
        ui_port = (ui_port or (port + 1000 if port else _free_port())) if ui else 0
        port = port or _free_port()
        process = await _start(_command(port, ui_port, data if keep else None), log, lock)
    finally:
        os.close(log)
        os.close(lock)
    try:
        address = f"localhost:{port}"
        client = await _ready(process, address, data)
        ui_address = f"http://localhost:{ui_port}" if ui else ""
        yield DevServer(client=client, address=address, ui=ui_address)
    finally:
        await _stop(process)


def _open_files(data: Path) -> tuple[int, int]:
    try:
        data.mkdir(parents=True, exist_ok=True)
        return (
            os.open(data / "temporal.log", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600),
            os.open(data / "temporal.lock", os.O_CREAT | os.O_RDWR, 0o600),
        )
    except OSError as error:
        raise ConfigurationError(f"AGENTMEM_DATA: cannot write to {data}: {error}") from error


async def _lock(lock: int, data: Path) -> None:
    # Two servers on one database file do not stop: they fail at everything, for ever. The one of
    # a worker that was killed a moment ago is still shutting down.
    deadline = asyncio.get_running_loop().time() + _STOP_SECONDS
    while True:
        try:
            return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if asyncio.get_running_loop().time() > deadline:
                raise ConfigurationError(
                    f"another Temporal server is running on {data / 'temporal.db'}: stop it, or "
                    "set AGENTMEM_DATA to another directory"
                ) from error
        await asyncio.sleep(0.1)


def _command(port: int, ui_port: int, data: Path | None) -> list[str]:
    _require_free(port, "--port")
    command = [_binary(), "server", "start-dev", "--port", str(port), "--log-level", "warn"]
    if ui_port:
        _require_free(ui_port, "--ui-port")
    command += ["--ui-port", str(ui_port)] if ui_port else ["--headless"]
    # Scopes share a full worker by their keys; without it the server takes what came first.
    command += ["--dynamic-config-value", "matching.enableFairness=true"]
    return command + (["--db-filename", str(data / "temporal.db")] if data else [])


async def _start(command: list[str], log: int, lock: int) -> asyncio.subprocess.Process:
    # The server inherits the lock, and so holds it as long as it lives. A session of its own
    # keeps Ctrl-C from it until the worker has shut down.
    return await asyncio.create_subprocess_exec(
        *("sh", "-c", _WITH_US, "sh", *command),
        stdin=asyncio.subprocess.PIPE,
        stdout=log,
        stderr=log,
        pass_fds=(lock,),
        start_new_session=True,
    )


async def _ready(process: asyncio.subprocess.Process, address: str, data: Path) -> Client:
    deadline = asyncio.get_running_loop().time() + _READY_SECONDS
    while process.returncode is None and asyncio.get_running_loop().time() < deadline:
        try:
            client = await connect(address)
            await _register_search_attributes(client)
        except (ConfigurationError, RPCError):
            await asyncio.sleep(0.05)
        else:
            return client
    raise ConfigurationError(
        f"the Temporal server did not start at {address}; its log is {data / 'temporal.log'}"
    )


async def _register_search_attributes(client: Client) -> None:
    # By request: the binary's own option does nothing for a database that is there already.
    keyword = IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD
    await client.operator_service.add_search_attributes(
        AddSearchAttributesRequest(
            namespace=client.namespace,
            search_attributes=dict.fromkeys(SEARCH_ATTRIBUTES, keyword),
        )
    )


async def _stop(process: asyncio.subprocess.Process) -> None:
    assert process.stdin
    process.stdin.close()
    try:
        async with asyncio.timeout(_STOP_SECONDS):
            await process.wait()
    except TimeoutError:
        os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


def _binary() -> str:
    beside = Path(sys.executable).with_name("temporal")
    found = str(beside) if beside.exists() else shutil.which("temporal")
    if not found:
        raise ConfigurationError(
            "the `temporal` binary is missing: run `make install`, or install the Temporal CLI"
        )
    return found


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def _require_free(port: int, option: str) -> None:
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError as error:
        raise ConfigurationError(f"port {port} is taken: choose another with {option}") from error
