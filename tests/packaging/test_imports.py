"""The cost of imports: workflow code loads no database driver and no model library."""

import subprocess
import sys
import time

import pytest
from temporalio import workflow
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from tests.own_workflows import Own
from worker import SANDBOX

HEAVY = (
    "sqlalchemy",
    "litellm",
    "asyncpg",
    "aiosqlite",
    "alembic",
    "aiohttp",
    "openai",
    "jsonschema",
    "cachetools",
)


@pytest.mark.parametrize("module", ["agentmem", "workflows.agent", "workflows.dream"])
def test_workflow_code_loads_nothing_heavy(module: str) -> None:
    """A worker imports these first, and a sandbox for each workflow: they stay light."""
    code = f"import {module}, sys; print([m for m in {HEAVY!r} if m in sys.modules])"
    found = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], check=True, capture_output=True, text=True
    )
    assert found.stdout.strip() == "[]"


def test_importing_the_worker_does_not_load_the_model_library() -> None:
    """The model library takes seconds to import: the worker polls first."""
    code = "import worker, sys; print('litellm' in sys.modules)"
    found = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], check=True, capture_output=True, text=True
    )
    assert found.stdout.strip() == "False"


async def test_a_run_of_an_apps_workflow_does_not_import_the_library_anew() -> None:
    """Each start and each replay would pay for it in time, and each run in memory."""

    def seconds(restrictions: SandboxRestrictions) -> float:
        """Processor time, the least of some: what a run takes besides is nothing's fault."""
        runner = SandboxedWorkflowRunner(restrictions=restrictions)
        taken: list[float] = []
        for _ in range(5):
            began = time.thread_time()
            runner.prepare_workflow(definition)
            taken.append(time.thread_time() - began)
        return min(taken)

    definition = workflow._Definition.must_from_class(Own)  # pyright: ignore[reportPrivateUsage]
    assert seconds(SANDBOX) < seconds(SandboxRestrictions.default) / 5
