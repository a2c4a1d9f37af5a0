"""Unchanged code replays the histories of every session that may still run."""

from pathlib import Path

import pytest
from temporalio import workflow
from temporalio.client import WorkflowHistory

from tests.replay.changed import Changed, Clocked
from tests.replayer import replayer
from workflows.agent import AgentWorkflow
from workflows.dream import AgentDream
from workflows.hand_over import AgentHandOver

HISTORIES = sorted(Path(__file__).with_name("histories").glob("*.json"))

WHAT_TO_DO = (
    "{name} no longer replays: a session recorded by an earlier version would be stuck. Guard the "
    "change with workflow.patched (docs: how-to/change-workflow-code), or take it back. Never "
    "record the history anew."
)


def recorded(path: Path) -> WorkflowHistory:
    """Read a history with the id of its workflow: ids of children derive from it."""
    workflow_id = path.with_suffix(".id").read_text().strip()
    return WorkflowHistory.from_json(workflow_id, path.read_text())


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: path.stem)
async def test_recorded_histories_replay(path: Path) -> None:
    """F-08: each recorded history replays with today's code."""
    result = await replayer(AgentWorkflow, AgentDream, AgentHandOver).replay_workflow(
        recorded(path), raise_on_replay_failure=False
    )
    assert result.replay_failure is None, WHAT_TO_DO.format(name=path.stem)


def test_there_are_histories_of_each_kind() -> None:
    """Turns that went well and that did not, people, compaction, dreams, runs of a long session."""
    assert {path.stem for path in HISTORIES} >= {
        "plain_turn",
        "tool_turn",
        "approval",
        "session_with_dream",
        "dream",
        "run_that_goes_on",
        "run_that_was_handed_on",
        "structured_output",
        "cancelled_turn",
        "people",
        "compaction",
        "interrupted_tool",
        "answer_that_is_handed_over",
        "hand_over",
        "session_that_hands_over",
        "run_that_changes_under_load",
    }


async def test_a_changed_workflow_is_caught() -> None:
    """F-08: a workflow that does one more thing before its first activity does not replay."""
    (path,) = (path for path in HISTORIES if path.stem == "plain_turn")
    with pytest.raises(workflow.NondeterminismError):
        await replayer(Changed).replay_workflow(recorded(path))


async def test_what_is_not_deterministic_is_refused() -> None:
    """F-09: a replay here forbids the clock, also to a workflow that opts out of the sandbox."""
    (path,) = (path for path in HISTORIES if path.stem == "plain_turn")
    with pytest.raises(RuntimeError, match=r"Cannot access time\.time"):
        await replayer(Clocked).replay_workflow(recorded(path))
