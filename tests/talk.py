"""A workflow of a test's own that talks and dreams; apart, for the sandbox imports its module."""

from typing import Any

from temporalio import workflow

from agentmem.agent.api import agent
from agentmem.dreaming.hook import dream
from agentmem.memory.long_term import long_term_memory
from agentmem.memory.references import ProviderReference
from agentmem.memory.working import working_memory


@workflow.defn
class Talk:
    """Says some things, dreams as its last act, and completes."""

    @workflow.run
    async def run(self, scope: str, said: list[str], options: dict[str, Any]) -> str:
        """Memorize what was said, run the hook, and return.

        Args:
            scope: The scope of the facts.
            said: What the user says.
            options: What `dream()` is given, and `provider`, by its identity.
        """
        identity = options.pop("provider", "sqlite:memory.db")
        memory = working_memory()
        facts = long_term_memory(ProviderReference(identity=identity), "assistant", scope)
        hook: Any = dream(working_memory=memory, long_term_memory=facts, **options)
        for text in said:
            await memory.memorize("user", text)
        await hook("assistant", "done")
        return "done"


@workflow.defn
class Chat:
    """Answers one question with an agent of a model of its own, and dreams."""

    @workflow.run
    async def run(self, scope: str, model: str, options: dict[str, Any]) -> str:
        """Answer; `options` are what `dream()` is given."""
        memory = working_memory()
        store = ProviderReference(identity="sqlite:memory.db")
        facts = long_term_memory(store, "assistant", scope)
        dreams = dream(working_memory=memory, long_term_memory=facts, **options)
        assistant = await agent(
            "Be brief.", model=model, working_memory=memory, on_complete=[dreams]
        )
        return await assistant("My cat is named Momo.")
