"""The replayer of all tests: as strict as Temporal's sandbox can be."""

from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import Replayer
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner


def replayer(*workflows: type) -> Replayer:
    """Return a replayer with the worker's data converter, and the strict sandbox for all of them.

    A worker in use runs ours outside of the sandbox. Here it refuses what is not deterministic, and
    the library too is inside.
    """
    return Replayer(
        workflows=list(workflows),
        data_converter=pydantic_data_converter,
        unsandboxed_workflow_runner=SandboxedWorkflowRunner(),
    )
