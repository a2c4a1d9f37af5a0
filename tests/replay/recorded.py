"""The recorded histories, and their replay: `python -m tests.replay.recorded` replays them all.

The command needs nothing but temporalio and pydantic, so that each supported Python can run it. It
replays without the sandbox, which takes a second for each history and is the same on all of them.
"""

import asyncio
import os
import sys
from pathlib import Path

from temporalio.client import WorkflowHistory

from tests.replay.own import OWN_WORKFLOWS
from tests.replayer import our_workflows, replayer

FOLDER = Path(__file__).with_name("histories")
RECORDED = sorted(FOLDER.glob("*.json"))


def read(path: Path) -> WorkflowHistory:
    """Read a history with the id of its workflow: ids of children derive from it."""
    workflow_id = path.with_suffix(".id").read_text().strip()
    return WorkflowHistory.from_json(workflow_id, path.read_text())


async def failure(path: Path, *, strict: bool = True) -> Exception | None:
    """Replay a history with the code of today, and return why it does not replay."""
    result = await replayer(*our_workflows(), *OWN_WORKFLOWS, strict=strict).replay_workflow(
        read(path), raise_on_replay_failure=False
    )
    return result.replay_failure


async def main() -> int:
    """Replay every history, name those that do not replay, and return the exit code."""
    failed = 0
    for path in RECORDED:
        if (error := await failure(path, strict=False)) is not None:
            failed += 1
            sys.stdout.write(f"{path.stem} does not replay: {error}\n")
    sys.stdout.write(f"{len(RECORDED) - failed} of {len(RECORDED)} histories replay\n")
    return 1 if failed or not RECORDED else 0


if __name__ == "__main__":
    code = asyncio.run(main())
    sys.stdout.flush()
    os._exit(code)  # a thread of the SDK may abort a process that takes its time to end
