"""Where activities run: model calls and dreams may have task queues, and so slots, of their own.

The worker whose workflow code issues a command says where the activity runs, by its own settings of
that moment. A history holds the answer and a replay does not compare it, as with timeouts, so a
change of the settings holds from a session's next call on.
"""

from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from typing import Any, TypeVar

from temporalio import workflow
from temporalio.exceptions import ActivityError, TimeoutError, TimeoutType
from temporalio.worker import (
    Interceptor,
    StartActivityInput,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
    WorkflowOutboundInterceptor,
)

from agentmem.policies import FREE_SLOT

MODEL_ACTIVITIES = ("agentmem.model", "agentmem.compact")
DREAM_ACTIVITIES = (
    "dream.begin",
    "dream.orient",
    "dream.gather_signal",
    "dream.consolidate",
    "dream.prune",
    "dream.commit",
)

FIRST_LOOK = timedelta(minutes=1)
"""The time after which a call that no worker took is scheduled anew; doubled each time."""

LONGEST_LOOK = timedelta(minutes=10)

_PATCH = "call-that-no-worker-took"

Result = TypeVar("Result")


async def until_taken(
    call: Callable[[timedelta], Awaitable[Result]],
    waited: Callable[[timedelta], None] = lambda _: None,
) -> Result:
    """Run an activity, and schedule it anew if no worker takes it, for a day at most.

    A queue of its own may be gone: its last worker stopped, or a setting changed. Scheduled anew,
    the activity goes where the settings say now.

    Args:
        call: Executes the activity with this schedule-to-start timeout, which also says that the
            activity may go to another queue than the workflow's own.
        waited: Told how long each call was scheduled that no worker took.

    Raises:
        ActivityError: It failed, was cancelled, or was not taken for a day.
    """
    began, look = workflow.now(), FIRST_LOOK
    while True:
        scheduled = workflow.now()
        try:
            return await call(look)
        except ActivityError as error:
            if not _is_untaken(error) or not workflow.patched(_PATCH):
                raise
            if workflow.now() - began >= FREE_SLOT:
                raise
        waited(workflow.now() - scheduled)
        look = min(2 * look, LONGEST_LOOK)


def _is_untaken(error: ActivityError) -> bool:
    return (
        isinstance(error.cause, TimeoutError) and error.cause.type is TimeoutType.SCHEDULE_TO_START
    )


class Routes(Interceptor):
    """Sends the activities of a worker's workflows to their queues.

    Args:
        queues: The queue of an activity, by its name; others stay on their workflow's own queue.
    """

    def __init__(self, queues: Mapping[str, str]) -> None:
        self._queues = dict(queues)

    def workflow_interceptor_class(
        self, input: WorkflowInterceptorClassInput
    ) -> type[WorkflowInboundInterceptor]:
        """Return the interceptor that each workflow gets."""
        queues = self._queues

        class _Routed(WorkflowInboundInterceptor):
            def init(self, outbound: WorkflowOutboundInterceptor) -> None:
                super().init(_Outbound(outbound, queues))

        return _Routed


class _Outbound(WorkflowOutboundInterceptor):
    def __init__(self, next: WorkflowOutboundInterceptor, queues: Mapping[str, str]) -> None:
        super().__init__(next)
        self._queues = queues

    def start_activity(self, input: StartActivityInput) -> workflow.ActivityHandle[Any]:
        # Without the timeout nobody would look again whether another queue is polled. On the
        # workflow's own queue there is no need to: who runs the workflow polls it.
        if input.task_queue is None and input.schedule_to_start_timeout is not None:
            input.task_queue = self._queues.get(input.activity)
            if input.task_queue is None:
                input.schedule_to_start_timeout = None
        return super().start_activity(input)
