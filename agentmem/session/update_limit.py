"""A worker's answer to updates that are too large to be answered.

The answer to an update, a rejection too, carries the update itself. Over the server's limit for
payloads (2 MiB by default) the SDK fails the workflow task again and again, and the workflow is
silent for most of a minute. So such an update never reaches the workflow: the worker completes the
task without it, and the server tells the sender at once that the update was not processed.
"""

import logging
from collections.abc import Sequence
from typing import Any

from temporalio.worker import WorkflowInstance, WorkflowInstanceDetails, WorkflowRunner

from agentmem.wire import clip

UPDATE_BYTES = 2 * 1024 * 1024 - 64 * 1024
"""The largest update, its arguments, headers and name together: Temporal's default limit, less what
else an answer holds."""

UPDATES_BYTES = 3 * 1024 * 1024
"""All new updates of one workflow task: the server takes 4 MiB, with everything else in it."""

_NAME_BYTES = 100

_log = logging.getLogger(__name__)


class UpdateLimit(WorkflowRunner):
    """Runs workflows by another runner, without the updates that are too large to be answered."""

    def __init__(self, runner: WorkflowRunner) -> None:
        self._runner = runner

    def prepare_workflow(self, defn: Any) -> None:
        """Prepare a workflow, as the other runner does."""
        self._runner.prepare_workflow(defn)

    def set_worker_level_failure_exception_types(
        self, types: Sequence[type[BaseException]]
    ) -> None:
        """Pass the worker's failure types on."""
        self._runner.set_worker_level_failure_exception_types(types)

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        """Return the other runner's instance, which does not see what is too large."""
        instance = self._runner.create_instance(det)
        activate = instance.activate

        def without_large_updates(act: Any) -> Any:
            _drop_large_updates(act.jobs, det)
            return activate(act)

        setattr(instance, "activate", without_large_updates)  # noqa: B010 - a method's type is fixed
        return instance


def _drop_large_updates(jobs: Any, details: WorkflowInstanceDetails) -> None:
    """Remove new updates over the limits; those of a history were accepted, and stay."""
    taken = 0
    dropped: list[Any] = []
    for job in jobs:
        if not (job.HasField("do_update") and job.do_update.run_validator):
            continue
        update = job.do_update
        # An answer carries all of it, and the name a second time if nothing has that name.
        size = update.ByteSize() + len(update.name.encode())
        if size > UPDATE_BYTES or taken + size > UPDATES_BYTES:
            dropped.append(job)
            _log.warning(
                "workflow %s: the update %s of %d bytes was refused; the most is %d bytes, and %d "
                "for updates that come at the same time",
                details.info.workflow_id,
                clip(update.name, _NAME_BYTES),
                size,
                UPDATE_BYTES,
                UPDATES_BYTES,
            )
        else:
            taken += size
    for job in dropped:
        jobs.remove(job)
