"""A changed `agent` workflow: what the replay tests must catch."""

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
