"""Starting a child workflow whose id is a lock, or telling the one that runs that there is more."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import Priority
from temporalio.exceptions import ApplicationError, WorkflowAlreadyStartedError

from agentmem.policies import TASK_TIMEOUT
from agentmem.wire import Wire

_ATTEMPTS = 5


async def start_or_tell(
    kind: str,
    request: Wire,
    *,
    name: str,
    task_queue: str | None,
    run_timeout: timedelta,
    summary: str,
    priority: Priority = Priority.default,
) -> bool:
    """Start an abandoned child, or send the signal `more` to the workflow that has its id already.

    Args:
        kind: The workflow type.
        request: Its input.
        name: Its id.
        task_queue: Where it runs; the caller's own task queue if None.
        run_timeout: How long a run may take.
        summary: What the Temporal UI shows, at most 400 bytes.
        priority: Of its tasks.

    Returns:
        Whether it was started or told. False if a workflow was there at each start and gone at
        each signal, five times over.

    Raises:
        temporalio.exceptions.FailureError: The server refused.
    """
    for _ in range(_ATTEMPTS):
        # Awaited: a parent that closes before the start is acknowledged loses its child. No search
        # attributes here: one that the server does not know would hang the parent.
        try:
            child = await workflow.start_child_workflow(
                kind,
                request,
                id=name,
                task_queue=task_queue or workflow.info().task_queue,
                run_timeout=run_timeout,
                task_timeout=TASK_TIMEOUT,
                parent_close_policy=workflow.ParentClosePolicy.ABANDON,
                cancellation_type=workflow.ChildWorkflowCancellationType.ABANDON,
                static_summary=summary,
                priority=priority,
            )
        except WorkflowAlreadyStartedError:
            if await tell(name):
                return True
        else:
            # Nobody waits for its result. A failure that nobody looks at would be logged as a
            # traceback when the parent leaves the worker's memory.
            child.add_done_callback(_look_at)
            return True
    return False


async def tell(name: str, args: Sequence[Any] = ()) -> bool:
    """Send the signal `more` to a workflow; returns False if it has closed."""
    try:
        await workflow.get_external_workflow_handle(name).signal("more", args=args)
    except ApplicationError as error:
        if error.type == "ExternalWorkflowExecutionNotFound":
            return False
        raise
    return True


def _look_at(child: "asyncio.Task[Any]") -> None:
    if not child.cancelled():
        child.exception()
