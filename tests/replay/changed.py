"""Changed `agent` workflows: what the replay tests must catch."""

import time
from typing import Any

from temporalio import workflow

from workflows.agent import AgentWorkflow


@workflow.defn(name="agent")
class Changed(AgentWorkflow):
    """Waits a moment before anything else."""

    @workflow.init
    def __init__(self, *args: Any) -> None:
        super().__init__(*args)

    @workflow.run
    async def run(self, *args: Any) -> Any:
        """Wait, then do what the original does."""
        await workflow.sleep(1)
        return await super().run(*args)


@workflow.defn(name="agent", sandboxed=False)
class Clocked(AgentWorkflow):
    """Looks at the clock, which is another one in a replay."""

    @workflow.init
    def __init__(self, *args: Any) -> None:
        super().__init__(*args)

    @workflow.run
    async def run(self, *args: Any) -> Any:
        """Do what the original does, and say when."""
        return f"{await super().run(*args)} at {time.time()}"
