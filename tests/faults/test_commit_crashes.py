"""A worker that dies in a dream's commit: the store is before the dream or after it."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agentmem.wire import JSONObject

ROOT = Path(__file__).parents[2]
BEFORE = {
    "facts": {"city": "Oslo", "job": "baker"},
    "unread": 3,
    "failures": 1,
    "versions": [1, 1],
}
AFTER = {
    "facts": {"city": "Bergen", "work": "nurse"},
    "unread": 0,
    "failures": 0,
    "versions": [2, 1],
}


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql)])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A store that processes share."""
    if request.param == "sqlite":
        return str(tmp_path / "facts.db")
    return request.getfixturevalue("postgresql_url")


@pytest.mark.slow
@pytest.mark.timeout(180)
async def test_a_commit_killed_at_any_statement_changed_nothing(where: str) -> None:
    """SIGKILL before each statement leaves all as it was; the try that lives applies it once.

    And a commit whose answer was lost, sent again and killed again, changes nothing more.
    """
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.faults.killed_commits", where),
        cwd=ROOT,
        stdout=subprocess.PIPE,
    )
    out, _ = await process.communicate()
    assert process.returncode == 0
    states: list[JSONObject] = [json.loads(line) for line in out.decode().splitlines()]
    *killed, done, again = states
    assert len(killed) >= 10, "the commit has at least so many statements"
    kept: dict[str, Any] = {"killed": True, **BEFORE}
    assert [state for state in killed if state != kept] == []
    assert done == {"killed": False, **AFTER}
    assert again == {"killed": True, **AFTER}
