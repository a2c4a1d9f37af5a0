"""The `agent_dream` workflow: four phases and a commit, one dream per scope at a time."""

from typing import Any

from temporalio import workflow

from agentmem import DreamReport, DreamWorkflow


@workflow.defn(name="agent_dream", sandboxed=False)  # as `agent` is, and for the same reason
class AgentDream(DreamWorkflow):
    """Turns a scope's new messages into facts: the ready-made dream, with nothing changed."""

    @workflow.run
    async def run(self, *args: Any) -> DreamReport:
        """Dream; takes one `DreamInput` as JSON.

        Raises:
            InvalidInput: The input is not that; the message names the field.
            NewerVersion: A newer version started the dream, or its round before.
            DreamFailed: A phase or the commit failed, or the patience was used up.
        """
        return await self.dream(*args)
