"""Asking a workflow for its messages, from within an activity of its own or of its hand-over."""

import asyncio
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, TypeAlias, TypeVar

from temporalio import activity
from temporalio.client import WorkflowHandle, WorkflowQueryFailedError, WorkflowQueryRejectedError
from temporalio.service import RPCError, RPCStatusCode

from agentmem.contracts import LACKING_QUERY, MESSAGES_QUERY, Lacking, Page, ScopeRef
from agentmem.errors import AgentMemError
from agentmem.messages import Message, to_ranges
from agentmem.values import Wire

Handle: TypeAlias = WorkflowHandle[Any, Any]
Model = TypeVar("Model", bound=Wire)

READY_WITHIN = 60.0
"""Seconds in which a workflow must come to answer: a worker may have to replay it first."""

_RPC_TIMEOUT = timedelta(seconds=10)

# What the server says while a workflow cannot answer yet, or while another query waits there.
_NOT_READY = {
    RPCStatusCode.CANCELLED,
    RPCStatusCode.DEADLINE_EXCEEDED,
    RPCStatusCode.RESOURCE_EXHAUSTED,
    RPCStatusCode.FAILED_PRECONDITION,
    RPCStatusCode.UNAVAILABLE,
}


async def fetch_messages(memory: str, ids: Sequence[str]) -> list[Message]:
    """Return messages of the activity's own run, in this order, page by page.

    A query adds nothing to the history. Waiting for an answer is no attempt of the activity; the
    caller heartbeats meanwhile.

    Args:
        memory: The working memory's name.
        ids: Message ids.

    Raises:
        AgentMemError: The workflow does not have them (not retryable), or did not answer within
            60 seconds.
    """
    info = activity.info()
    handle = run_of(info.workflow_id or "", info.workflow_run_id)
    found: list[Message] = []
    while len(found) < len(ids):
        found += await fetch_page(handle, memory, ids[len(found) :])
    return found


def run_of(workflow_id: str, run_id: str | None) -> Handle:
    """Return the handle of a run, pinned: a later run of its id has other messages."""
    return activity.client().get_workflow_handle(workflow_id, run_id=run_id)


async def fetch_page(handle: Handle, memory: str, ids: Sequence[str]) -> list[Message]:
    """Return the first of these messages of a run, as many as fit in a page, one at least.

    Raises:
        AgentMemError: As in `fetch_messages`.
    """
    found = (await _asked(handle, MESSAGES_QUERY, [memory, to_ranges(ids)], Page)).messages
    if not found or [message.id for message in found] != list(ids[: len(found)]):
        raise AgentMemError(f"the workflow gave other messages of {memory} than were asked for")
    return found


async def fetch_lacking(handle: Handle, memory: str, store: ScopeRef, *, ended: bool) -> Lacking:
    """Return what a scope's transcript may lack of a run's working memory.

    Args:
        handle: The run's.
        memory: The working memory's name.
        store: The scope, by the name that the workflow knows it by.
        ended: Whether the run has ended, so that everything said is to be stored.

    Raises:
        AgentMemError: As in `fetch_messages`.
    """
    return await _asked(handle, LACKING_QUERY, [memory, store, ended], Lacking)


async def was_reset(handle: Handle) -> bool:
    """Tell whether a run was given up for another one by `temporal workflow reset`.

    Raises:
        AgentMemError: The server does not say.
    """
    try:
        found = await handle.describe(rpc_timeout=_RPC_TIMEOUT)
    except RPCError as error:
        raise AgentMemError(
            f"the workflow could not be looked at: {error}",
            non_retryable=error.status is RPCStatusCode.NOT_FOUND,
        ) from error
    return bool(found.raw_description.workflow_extended_info.reset_run_id)


def is_gone(error: AgentMemError) -> bool:
    """Tell whether a run could not be read because the server does not have it any more."""
    cause = error.__cause__
    return isinstance(cause, RPCError) and cause.status is RPCStatusCode.NOT_FOUND


async def _asked(handle: Handle, query: str, args: Sequence[Any], kind: type[Model]) -> Model:
    deadline = time.monotonic() + READY_WITHIN
    pause = 0.05
    while True:
        try:
            return await handle.query(query, args=args, result_type=kind, rpc_timeout=_RPC_TIMEOUT)
        except (WorkflowQueryFailedError, WorkflowQueryRejectedError) as error:
            raise AgentMemError(f"the workflow does not give its messages: {error}") from error
        except RPCError as error:
            waits = error.status in _NOT_READY and time.monotonic() + pause < deadline
            if not waits:
                raise AgentMemError(
                    f"messages could not be read from the workflow: {error}",
                    non_retryable=error.status is RPCStatusCode.NOT_FOUND,
                ) from error
        await asyncio.sleep(pause)
        pause = min(pause * 2, 2.0)
