"""A dream of your own: other limits, and a phase more that writes a portrait of the user.

`dream(workflow="my_dream")` starts it in place of `agent_dream`, with the same input. Rounds,
waiting, the signal `more` and the report come from `DreamWorkflow`; the portrait is written after
the commit, by an agent.

Let a worker have it: `AGENTMEM_APP=examples/custom_dream.py`. Then, once `diary` has run:
`temporal workflow show --workflow-id dream/sqlite%3Adiary.db/diary/ada`.
"""

import json
from typing import Any

from temporalio import workflow

from agentmem import (
    DreamLimits,
    DreamReport,
    DreamWorkflow,
    agent,
    dream,
    long_term_memory,
    sqlite,
    working_memory,
)


@workflow.defn(name="my_dream")
class MyDream(DreamWorkflow):
    """Dreams within other limits, then writes a portrait."""

    limits = DreamLimits(gather_signal=5, consolidate=15, keys=50)

    @workflow.run
    async def run(self, *args: Any) -> DreamReport:
        """Dream; takes what `agent_dream` takes."""
        return await self.dream(*args)

    async def steps(self) -> DreamReport:
        """Run the four phases and the commit, then write a portrait if facts changed."""
        report = await super().steps()
        if report.applied:
            await self._portray()
        return report

    async def _portray(self) -> None:
        """Write what is known in two sentences, apart from the facts."""
        scope, model = self.request.scope, self.begun.model
        facts = long_term_memory(sqlite("diary.db"), self.request.agent, scope)
        portraits = long_term_memory(sqlite("diary.db"), "portraits", scope)
        painter = await agent("Say in two sentences who this is.", model=model)
        known = json.dumps(await facts.recall(), ensure_ascii=False)
        await portraits.memorize("portrait", await painter("Use these notes.", context=known))


@workflow.defn(name="diary")
class Diary:
    """Takes one entry of a diary; a dream of its own kind remembers what matters."""

    @workflow.run
    async def run(self, scope: str, entry: str) -> str:
        """Answer an entry."""
        wm = working_memory(max_tokens=50_000)
        ltm = long_term_memory(provider=sqlite("diary.db"), agent="diary", scope=scope)
        listener = await agent(
            "You listen. Answer in a sentence.",
            working_memory=wm,
            long_term_memory=ltm,
            on_complete=[dream(working_memory=wm, long_term_memory=ltm, workflow="my_dream")],
        )
        return await listener(entry)
