"""Workflows of a user's own whose histories are recorded, in a light module for the sandbox."""

import asyncio
from datetime import timedelta
from typing import Any

from temporalio import workflow

from agentmem import agent, dream, long_term_memory, sqlite, working_memory


@workflow.defn
class Pair:
    """Two agents answer at the same time; both have hooks that take a while, and dreams."""

    @workflow.run
    async def run(self, scope: str) -> list[str]:
        """Return both answers to the second question."""

        async def note(name: str, value: Any) -> None:
            await workflow.sleep(timedelta(milliseconds=10))

        async def answers(name: str) -> str:
            memory = working_memory()
            facts = long_term_memory(sqlite("facts.db"), agent=name, scope=scope)
            hook = dream(working_memory=memory, long_term_memory=facts, model="agentmem/offline")
            one = await agent(
                "Be brief.",
                name=name,
                working_memory=memory,
                long_term_memory=facts,
                on_complete=[note, hook],
            )
            await one("My name is Ada.")
            return await one("Who am I?")

        return list(await asyncio.gather(answers("first"), answers("second")))


OWN_WORKFLOWS: list[type] = [Pair]
