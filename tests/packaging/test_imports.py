"""What importing costs: no database driver and no model library in workflow code."""

import subprocess
import sys

import pytest

HEAVY = ("sqlalchemy", "litellm", "asyncpg", "aiosqlite", "alembic", "aiohttp", "openai")


@pytest.mark.parametrize("module", ["agentmem", "workflows.agent", "workflows.dream"])
def test_workflow_code_loads_nothing_heavy(module: str) -> None:
    """F-09: the sandbox imports these again for each workflow: they stay light."""
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
