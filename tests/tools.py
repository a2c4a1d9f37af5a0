"""Tools for tests, in a module of their own: the sandbox may import it."""

import asyncio
from datetime import timedelta

from agentmem import tool

runs: list[str] = []
"""What ran, in order."""


@tool
def ping() -> str:
    """Say pong."""
    runs.append("ping")
    return "pong"


@tool
def read_log() -> str:
    """Read a log of 4,000 characters."""
    return "line\n" * 800


@tool(approval=True)
def delete_file(path: str) -> str:
    """Delete a file."""
    runs.append(f"delete {path}")
    return f"deleted {path}"


@tool(timeout=timedelta(seconds=1))
async def dawdle() -> str:
    """Take longer than it may."""
    await asyncio.sleep(30)
    return "done"
