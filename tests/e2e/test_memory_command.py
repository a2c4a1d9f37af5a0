"""`agentmem memory` as a process, beside a Temporal server."""

import asyncio
import sys
from pathlib import Path

from temporalio.testing import WorkflowEnvironment


async def test_erasing_says_how_long_temporal_keeps_the_rest(
    env: WorkflowEnvironment, tmp_path: Path
) -> None:
    """It asks the server and ends well each time: no thread of the SDK aborts the process."""
    command = [sys.executable, "-m", "agentmem", "memory", "erase", "-a", "a", "-s", "s", "--yes"]
    for _ in range(3):
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=Path(__file__).parents[2],
            env={
                "AGENTMEM_DATA": str(tmp_path),
                "TEMPORAL_ADDRESS": env.client.service_client.config.target_host,
                "PATH": "",
            },
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, error = await process.communicate()
        assert process.returncode == 0, error.decode()
        assert b"days, its namespace's retention time" in out
