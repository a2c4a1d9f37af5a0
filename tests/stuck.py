"""No stuck workflow, ever: what a test left on its server, looked over after the test."""

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Any

from temporalio.api.enums.v1 import EventType, WorkflowTaskFailedCause
from temporalio.client import Client, Interceptor, OutboundInterceptor, WorkflowHandle
from temporalio.service import RPCError, RPCStatusCode

# The server's own doing: something arrived while the task was under way, so it is done once more;
# or the workflow was terminated meanwhile; or the test reset it.
_HARMLESS = {
    WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_FORCE_CLOSE_COMMAND,
    WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND,
    WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_UPDATE,
    WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW,
}


class Started(Interceptor):
    """Takes note of the workflows that a client starts: the server lists them with a delay.

    Attributes:
        ids: Workflow and run, in order.
    """

    def __init__(self) -> None:
        self.ids: list[tuple[str, str | None]] = []

    def intercept_client(self, next: OutboundInterceptor) -> OutboundInterceptor:
        """Stand before the client's calls."""
        return _Noting(next, self.ids)


class _Noting(OutboundInterceptor):
    def __init__(self, next: OutboundInterceptor, ids: list[tuple[str, str | None]]) -> None:
        super().__init__(next)
        self._ids = ids

    async def start_workflow(self, input: Any) -> WorkflowHandle[Any, Any]:
        """Take note of the run that began."""
        handle = await super().start_workflow(input)
        self._ids.append((handle.id, handle.first_execution_run_id))
        return handle


async def problems(
    client: Client, started: Sequence[tuple[str, str | None]], since: datetime
) -> list[str]:
    """Return what is wrong with the workflows of a test, a line each; empty if all is well.

    Stuck is one whose workflow task failed (the first failure stands in the history, later ones
    are the attempt of the pending task), or that the server reports a problem of.

    Args:
        client: Of the server.
        started: What the test's client started.
        since: When the test began; children and others are found by the time of their start.
    """
    runs = dict.fromkeys(started)
    async for run in _listed(client, since):
        runs[run] = None
    return [line for run in runs async for line in of_run(client, *run)]


async def _listed(client: Client, since: datetime) -> AsyncIterator[tuple[str, str | None]]:
    query = f"StartTime >= '{since.isoformat()}'"
    async for found in client.list_workflows(query):
        yield found.id, found.run_id


async def of_run(client: Client, workflow_id: str, run_id: str | None) -> AsyncIterator[str]:
    """Yield what is wrong with one run, a line each."""
    handle: WorkflowHandle[Any, Any] = client.get_workflow_handle(workflow_id, run_id=run_id)
    try:
        description = await handle.describe()
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return  # a test deleted it, and what is not there is not stuck
        raise
    attempt = description.raw_description.pending_workflow_task.attempt
    if attempt > 1:
        yield f"{workflow_id}: attempt {attempt} of its workflow task is pending"
    if reported := description.search_attributes.get("TemporalReportedProblems"):
        yield f"{workflow_id}: the server reports {reported}"
    async for event in handle.fetch_history_events():
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED:
            failed = event.workflow_task_failed_event_attributes
            if failed.cause not in _HARMLESS:
                yield f"{workflow_id}: a workflow task failed: {failed.failure.message}"
