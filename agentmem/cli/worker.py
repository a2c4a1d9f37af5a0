"""The worker's command line: options, what is said at the start, how it ends."""

import argparse
import asyncio
import logging
import os
import sys
import traceback
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from datetime import timedelta
from typing import NoReturn, Protocol

from temporalio.client import Client
from temporalio.runtime import PrometheusConfig, Runtime, TelemetryConfig

from agentmem.cli.health import Polling, serving
from agentmem.cli.logs import log_to_stderr
from agentmem.cli.signals import end_in_time, live_on, run_until_stopped
from agentmem.cli.tables import replace_what_cannot_be_shown
from agentmem.client import connect
from agentmem.config import Configuration, configure
from agentmem.dev_server import dev_server
from agentmem.errors import AgentMemError, ConfigurationError
from agentmem.settings import load_settings

CHECK_SECONDS = 10
"""Seconds between two looks at the SDK's runtime."""

OnFatal = Callable[[BaseException], Awaitable[None]]


class Running(Protocol):
    """Runs a worker while its context lasts."""

    def __call__(
        self, client: Client, configuration: Configuration, *, on_fatal: OnFatal
    ) -> AbstractAsyncContextManager[Polling]:
        """Return the context; `on_fatal` is told what stops the worker for good."""
        ...


def command(running: Running) -> NoReturn:
    """Run a worker by the command line until it is told to stop, then exit the process.

    Exits with 0 after a graceful stop, 1 after a mistake of the caller's, said in one line, and 1
    after an error of the SDK that ends the worker, or a stop that takes longer than 25 seconds.

    Args:
        running: Runs the worker.
    """
    replace_what_cannot_be_shown()
    code = _run(running)
    logging.shutdown()
    # Threads of the SDK may still touch the interpreter while it shuts down, which aborts it; and
    # it would wait for a tool that hangs in a thread.
    os._exit(code)


def _run(running: Running) -> int:
    options = _options()
    log_to_stderr()
    work = _serve(options, running)
    try:
        run_until_stopped(work, lambda: say("Stopping; Ctrl-C again stops at once."))
    except AgentMemError as error:
        say(f"worker: {error.message}", error=True)
        return 1
    except Exception:
        say(traceback.format_exc(), error=True)
        return 1
    return 0


async def _serve(options: argparse.Namespace, running: Running) -> None:
    configuration = configure(load_settings(), dev=options.dev)
    data = configuration.settings.data_directory
    _serve_metrics(configuration.settings.metrics)
    async with AsyncExitStack() as stack:
        if not options.dev:  # there people may stop it for longer, by Ctrl-Z or in a debugger
            living = asyncio.create_task(live_on())
            stack.callback(living.cancel)
        health = await stack.enter_async_context(serving(configuration.settings.health))

        async def failed(error: BaseException) -> None:
            # The SDK shuts down what is left of it, and may wait for ever.
            say(f"The worker failed and ends: {type(error).__name__}: {error}", error=True)
            health.fail(error)
            end_in_time()

        if options.dev:
            port, ui_port = options.port or 7233, options.ui_port or 0
            started = dev_server(data, port=port, ui_port=ui_port, keep=True)
            server = await stack.enter_async_context(started)
            client, ui = server.client, server.ui
        else:
            client, ui = await connect(), ""
        worker = await stack.enter_async_context(running(client, configuration, on_fatal=failed))
        health.watch(client, worker)
        for line in configuration.lines(client, ui=ui):
            say(line)
        say("The worker is running; Ctrl-C stops it.")
        error = await sdk_hangs(client)
        await failed(error)
        raise error


class SdkHangs(Exception):
    """The SDK's runtime does nothing any more, and will not say so."""

    def __init__(self) -> None:
        super().__init__("a request to Temporal did not even time out")


async def sdk_hangs(client: Client) -> SdkHangs:
    """Wait until the SDK's runtime is dead, and return the error to end with.

    A server that does not answer is none: the request to it times out. After a panic in the
    runtime, for lack of memory or threads say, requests neither fail nor time out.
    """
    while True:
        await asyncio.sleep(CHECK_SECONDS)
        request = client.service_client.check_health(timeout=timedelta(seconds=CHECK_SECONDS / 2))
        asking = asyncio.ensure_future(request)
        done, _ = await asyncio.wait([asking], timeout=2 * CHECK_SECONDS)
        if not done:
            return SdkHangs()
        asking.exception()  # of a server that is away


def _serve_metrics(address: str) -> None:
    """Let Prometheus read this process's metrics at an address, if one is set."""
    if not address:
        return
    metrics = PrometheusConfig(bind_address=address)
    try:
        Runtime.set_default(Runtime(telemetry=TelemetryConfig(metrics=metrics)))
    except (RuntimeError, ValueError) as error:
        raise ConfigurationError(
            f"AGENTMEM_METRICS: metrics cannot be read at {address!r}; use an IP address and a "
            f"free port, like 127.0.0.1:9464 ({error})"
        ) from error


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python worker.py",
        description="Run a Temporal worker for agentmem. Settings are environment variables "
        "(AGENTMEM_*, TEMPORAL_*); docs/reference.md lists them.",
    )
    dev = (
        "start the embedded Temporal server too; without AGENTMEM_MODEL answers then come from "
        "the offline model"
    )
    parser.add_argument("--dev", action="store_true", help=dev)
    parser.add_argument("--port", type=_port, help="with --dev: the server's port (default: 7233)")
    ui_port = "with --dev: the port of its web UI (default: 1000 above the server's)"
    parser.add_argument("--ui-port", type=_port, help=ui_port)
    options = parser.parse_args()
    if (options.port or options.ui_port) and not options.dev:
        parser.error("--port and --ui-port go with --dev; TEMPORAL_ADDRESS names another server")
    return options


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 65_536):
        raise argparse.ArgumentTypeError(f"{text!r} is no port: give a number from 1 to 65535")
    return int(text)


def say(line: str, *, error: bool = False) -> None:
    """Write a line for people, at once.

    Args:
        line: What to say.
        error: Whether it goes to standard error.
    """
    stream = sys.stderr if error else sys.stdout
    stream.write(f"{line}\n")
    stream.flush()
