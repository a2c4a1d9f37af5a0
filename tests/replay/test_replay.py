"""Unchanged code replays the histories of every session that may still run."""

from pathlib import Path

import pytest
from temporalio import workflow

from tests.replay import pythons
from tests.replay.changed import Changed, Clocked
from tests.replay.record import RECORDS
from tests.replay.recorded import FOLDER, RECORDED, failure, read
from tests.replayer import replayer

WHAT_TO_DO = (
    "{name} no longer replays: a session recorded by an earlier version would be stuck. Guard the "
    "change with workflow.patched (docs: how-to/change-workflow-code), or take it back. Never "
    "record the history anew."
)


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
async def test_recorded_histories_replay(path: Path) -> None:
    """Each recorded history replays with today's code."""
    assert await failure(path) is None, WHAT_TO_DO.format(name=path.stem)


def test_there_are_histories_of_each_kind() -> None:
    """Each kind of history that can be recorded was recorded."""
    assert {path.stem for path in RECORDED} >= set(RECORDS)


@pytest.mark.slow
@pytest.mark.parametrize("version", pythons.supported())
async def test_histories_replay_on_every_supported_python(version: str) -> None:
    """Each history replays on each supported Python, whichever Python it was recorded on."""
    python = pythons.interpreters().get(version)
    if python is None:
        pytest.skip(f"Python {version} is not on this machine: not on PATH, in pyenv or in uv")
    code, said = await pythons.replay(python)
    assert not code, said
    assert f"{len(RECORDED)} of {len(RECORDED)} histories replay" in said


async def test_a_changed_workflow_is_caught() -> None:
    """A workflow that does one more thing before its first activity does not replay."""
    with pytest.raises(workflow.NondeterminismError):
        await replayer(Changed).replay_workflow(read(FOLDER / "plain_turn.json"))


async def test_what_is_not_deterministic_is_refused() -> None:
    """A replay here forbids the clock, also to a workflow that opts out of the sandbox."""
    with pytest.raises(RuntimeError, match=r"Cannot access time\.time"):
        await replayer(Clocked).replay_workflow(read(FOLDER / "plain_turn.json"))
