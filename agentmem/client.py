"""Connecting to Temporal the way its CLI does, and sending messages to sessions."""

import asyncio
import atexit
import time
from datetime import timedelta
from typing import Any
from uuid import uuid4

from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client, WorkflowHandle, WorkflowUpdateFailedError
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.envconfig import ClientConfig, ClientConnectConfig
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from agentmem.contracts import Answer
from agentmem.errors import ConfigurationError, SessionBusy
from agentmem.inputs import MESSAGE_BYTES, parse_text
from agentmem.wire import encoded_size

DEFAULT_ADDRESS = "localhost:7233"

PATIENCE = timedelta(seconds=10)
"""The time to wait for a server."""

SEND_PATIENCE = timedelta(seconds=60)
"""The time to wait for a session that is changing to a new run, or has many messages waiting."""

# RollingOver is what sessions of earlier versions say. The last is the server's own: a worker ended
# a task without a word on a message that came with it.
_LATER = {SessionBusy.__name__, "RollingOver", "UnprocessedUpdate"}

# What came in the very moment of a change is taken back; a server or a session is overloaded, or
# closing; a server is being restarted. The turn's id makes a second try safe.
_RETRYABLE = {
    RPCStatusCode.FAILED_PRECONDITION,
    RPCStatusCode.RESOURCE_EXHAUSTED,
    RPCStatusCode.UNAVAILABLE,
}


def connection() -> ClientConnectConfig:
    """Return the connection that the `TEMPORAL_*` variables and the chosen profile name.

    The same variables and the same file as the Temporal CLI's, so that Temporal Cloud, TLS and
    API keys work alike; `localhost:7233` and the namespace `default` where nothing is set.

    Raises:
        ConfigurationError: The profile or its file cannot be read.
    """
    try:
        found = ClientConfig.load_client_connect_config()
    except (RuntimeError, OSError, ValueError) as error:
        raise ConfigurationError(f"the TEMPORAL_* settings cannot be read: {error}") from error
    return {"target_host": DEFAULT_ADDRESS, "namespace": "default", **found}


async def connect(address: str | None = None) -> Client:
    """Connect to Temporal by the standard `TEMPORAL_*` settings.

    Args:
        address: A server to connect to in place of the settings, like `localhost:7234`.

    Returns:
        A client with the pydantic data converter, which agentmem's workflows need.

    Raises:
        ConfigurationError: No server answers there, or the settings cannot be read.
    """
    config: ClientConnectConfig = (
        {"target_host": address, "namespace": "default"} if address else connection()
    )
    # A process that exits right after an answer of the server is aborted (SIGABRT) while a thread
    # of the SDK still lets go of that answer.
    atexit.unregister(_let_go)  # once, however often this is called
    atexit.register(_let_go)
    try:
        async with asyncio.timeout(PATIENCE.total_seconds()):
            return await Client.connect(**config, data_converter=pydantic_data_converter)
    except (RuntimeError, OSError, ValueError) as error:
        raise ConfigurationError(
            f"no Temporal server answers at {config.get('target_host')}: set TEMPORAL_ADDRESS, or "
            f"start one with `python worker.py --dev` ({_reason(error)})"
        ) from error


async def require_namespace(client: Client) -> None:
    """Check that the client's namespace exists; a worker in one that does not gets no work.

    Raises:
        ConfigurationError: There is no such namespace on the server, or it cannot be read.
    """
    request = DescribeNamespaceRequest(namespace=client.namespace)
    try:
        await client.workflow_service.describe_namespace(request, timeout=PATIENCE)
    except RPCError as error:
        raise ConfigurationError(
            f"namespace {client.namespace!r} (TEMPORAL_NAMESPACE) on "
            f"{client.service_client.config.target_host}: {error.message}"
        ) from error


async def retention_days(client: Client) -> float:
    """Return for how many days the client's namespace keeps workflows that have ended.

    Raises:
        ConfigurationError: The namespace cannot be read.
    """
    request = DescribeNamespaceRequest(namespace=client.namespace)
    try:
        found = await client.workflow_service.describe_namespace(request, timeout=PATIENCE)
    except RPCError as error:
        raise ConfigurationError(f"namespace {client.namespace!r}: {error.message}") from error
    return found.config.workflow_execution_retention_ttl.ToSeconds() / 86_400


async def running_dreams(client: Client) -> list[str]:
    """Return the ids of the dreams that are running now, of all scopes.

    One that began in the last moments may be missing: the server lists workflows with a delay.
    """
    return await _running(client, "WorkflowId STARTS_WITH 'dream/'")


async def running_hand_overs(client: Client) -> list[str]:
    """Return the ids of the hand-overs that wait for their stores now.

    One that began in the last moments may be missing: the server lists workflows with a delay.
    """
    return await _running(client, "WorkflowType = 'agent_hand_over'")


async def _running(client: Client, which: str) -> list[str]:
    query = f"{which} AND ExecutionStatus = 'Running'"
    return [found.id async for found in client.list_workflows(query)]


async def ask(
    session: WorkflowHandle[Any, Any],
    message: str,
    *,
    turn: str | None = None,
    patience: timedelta = SEND_PATIENCE,
) -> Answer:
    """Send a message to a session and return the turn's answer with its usage.

    Args:
        session: The handle of an `agent` workflow; of any of its runs.
        message: What the user says.
        turn: The turn's id. Sending the same id again gives the same answer and asks no model,
            so choose it where a caller may retry; one is made up otherwise. A session remembers
            its last 32 turns.
        patience: How long to try again while the session does not take the message: four messages
            are waiting in it, or the server does not take it now.

    Raises:
        InvalidInput: The message is over 1 MiB encoded; nothing was sent.
        WorkflowUpdateFailedError: The turn failed, or the session did not take the message; the
            cause is an ApplicationError whose type says which. The session goes on.
        temporalio.service.RPCError: There is no such session, or it has ended.
    """
    if encoded_size(message) > MESSAGE_BYTES:
        parse_text([message], "the message")  # the server could not even answer it
    turn = turn or str(uuid4())
    deadline = asyncio.get_running_loop().time() + patience.total_seconds()
    pause = 0.05
    while True:
        try:
            return await session.execute_update(  # pyright: ignore[reportUnknownMemberType]
                "ask", message, id=turn, result_type=Answer
            )
        except WorkflowUpdateFailedError as error:
            cause = error.cause
            later = isinstance(cause, ApplicationError) and cause.type in _LATER
            if not later or asyncio.get_running_loop().time() > deadline:
                raise
        except RPCError as error:
            later = error.status in _RETRYABLE
            if not later or asyncio.get_running_loop().time() > deadline:
                raise
        await asyncio.sleep(pause)
        pause = min(pause * 2, 1.0)


def _let_go() -> None:
    time.sleep(0.1)


def _reason(error: BaseException) -> str:
    text = str(error)
    for known in ("Connection refused", "dns error", "timed out", "UnknownIssuer", "certificate"):
        if known in text:
            return known.lower()
    return text.splitlines()[0][:200] if text else type(error).__name__
