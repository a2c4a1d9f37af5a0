"""Tools for tests, in a module of their own: the sandbox may import it."""

import asyncio
import time
from datetime import timedelta

from pydantic import BaseModel

from agentmem import tool


class Wiping(BaseModel):
    """How to wipe."""

    shred: bool = False
    passes: int = 1


runs: list[str] = []
"""The tool calls that ran, in order."""


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


@tool(approval=True)
def wipe(path: str, recursive: bool = True, how: Wiping | None = None) -> str:
    """Wipe a directory."""
    runs.append(f"wipe {path} {recursive} {how}")
    return f"wiped {path}"


@tool
async def sleepy() -> str:
    """Block for longer than a heartbeat may be late."""
    runs.append("sleepy")
    time.sleep(12)  # noqa: ASYNC251 - what is tested
    return "awake"


@tool(timeout=timedelta(seconds=1))
async def dawdle() -> str:
    """Take longer than it may."""
    await asyncio.sleep(30)
    return "done"
