"""A workflow with a large backlog, in a light module: the sandbox imports it for each run."""

from temporalio import workflow

from agentmem import working_memory
from agentmem.contracts import ScopeRef


@workflow.defn
class Backlog:
    """Carries many large messages to a transcript at once."""

    @workflow.run
    async def run(self, messages: int, size: int, scope: str) -> int:
        """Return the last sequence number that the store has."""
        conversation = working_memory()
        for _ in range(messages):
            await conversation.memorize("user", "x" * size)
        return await conversation.append_transcript(
            ScopeRef(provider="in_memory:backlog", agent="own", scope=scope)
        )
