"""The replayer of all tests: as strict as Temporal's sandbox can be."""

import importlib
import inspect
import pkgutil

from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner

import workflows

WORKFLOW_MARK = "__temporal_workflow_definition"


def our_workflows() -> list[type]:
    """Return every workflow class of the package `workflows`."""
    return [
        value
        for module in pkgutil.iter_modules(workflows.__path__, "workflows.")
        for value in vars(importlib.import_module(module.name)).values()
        if inspect.isclass(value) and WORKFLOW_MARK in vars(value)
    ]


def replayer(*replayed: type, strict: bool = True) -> Replayer:
    """Return a replayer with the worker's data converter.

    Args:
        replayed: The workflow classes.
        strict: Whether all of them run in the strict sandbox. A worker in use runs ours outside of
            the sandbox. Here it refuses what is not deterministic, and the library too is inside.
    """
    return Replayer(
        workflows=list(replayed),
        data_converter=pydantic_data_converter,
        workflow_runner=SandboxedWorkflowRunner() if strict else UnsandboxedWorkflowRunner(),
        unsandboxed_workflow_runner=(
            SandboxedWorkflowRunner() if strict else UnsandboxedWorkflowRunner()
        ),
    )
