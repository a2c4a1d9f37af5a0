"""The app of the workers in the fault cells: a tool with a side effect, and a workflow."""

import os

import httpx

from agentmem import tool
from tests.diary_workflow import Diary

__all__ = ["Diary", "note"]


@tool
async def note(text: str) -> str:
    """Write a note down, which must not happen twice."""
    async with httpx.AsyncClient(timeout=None, trust_env=False) as http:
        await http.post(f"{os.environ['FAULTS_CONTROL']}/note", json={"text": text})
    return "noted"
