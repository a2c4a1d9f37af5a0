"""Asking a workflow for messages of its own, from within its activity."""

import asyncio
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from temporalio import activity
from temporalio.client import WorkflowHandle, WorkflowQueryFailedError, WorkflowQueryRejectedError
from temporalio.service import RPCError, RPCStatusCode

from agentmem.contracts import MESSAGES_QUERY, Page
from agentmem.errors import AgentMemError
from agentmem.messages import Message, to_ranges

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
    handle = activity.client().get_workflow_handle(
        info.workflow_id or "", run_id=info.workflow_run_id
    )
    found: list[Message] = []
    while len(found) < len(ids):
        asked = ids[len(found) :]
        page = (await _page(handle, memory, asked)).messages
        if not page or [message.id for message in page] != list(asked[: len(page)]):
            raise AgentMemError(f"the workflow gave other messages of {memory} than were asked for")
        found += page
    return found


async def _page(handle: WorkflowHandle[Any, Any], memory: str, ids: Sequence[str]) -> Page:
    deadline = time.monotonic() + READY_WITHIN
    pause = 0.05
    while True:
        try:
            return await handle.query(
                MESSAGES_QUERY,
                args=[memory, to_ranges(ids)],
                result_type=Page,
                rpc_timeout=_RPC_TIMEOUT,
            )
        except (WorkflowQueryFailedError, WorkflowQueryRejectedError) as error:
            raise AgentMemError(f"the workflow does not give its messages: {error}") from error
        except RPCError as error:
            waits = error.status in _NOT_READY and time.monotonic() + pause < deadline
            if not waits:
                raise AgentMemError(
                    f"messages of {memory} could not be read from the workflow: {error}",
                    non_retryable=error.status is RPCStatusCode.NOT_FOUND,
                ) from error
        await asyncio.sleep(pause)
        pause = min(pause * 2, 2.0)
