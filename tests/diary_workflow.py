"""A workflow of a user's own that dreams after each answer; what it imports is light."""

from temporalio import workflow

from agentmem import agent, dream, long_term_memory, sqlite, working_memory
from agentmem.memory.references import ProviderReference


@workflow.defn
class Diary:
    """Asks several questions, and says how long each answer took."""

    @workflow.run
    async def run(
        self, scope: str, questions: list[str], store: str = "sqlite:memory.db"
    ) -> list[float]:
        """Return the seconds of each answer, its hooks included."""
        memory = working_memory()
        facts = long_term_memory(ProviderReference(identity=store), "assistant", scope)
        hook = dream(working_memory=memory, long_term_memory=facts)
        assistant = await agent("Be brief.", working_memory=memory, on_complete=[hook])
        took: list[float] = []
        for question in questions:
            began = workflow.now()
            await assistant(question)
            took.append((workflow.now() - began).total_seconds())
        return took


@workflow.defn
class Shared:
    """Answers one question, and dreams of it for several scopes."""

    @workflow.run
    async def run(self, scopes: list[str], question: str) -> None:
        """Answer; each scope has a hook of its own."""
        memory = working_memory()
        hooks = [
            dream(
                working_memory=memory,
                long_term_memory=long_term_memory(sqlite("memory.db"), "assistant", scope),
            )
            for scope in scopes
        ]
        assistant = await agent("Be brief.", working_memory=memory, on_complete=hooks)
        await assistant(question)
