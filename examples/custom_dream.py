"""A dream of your own: other limits, and a phase more that writes a portrait of the user.

`dream(workflow="my_dream")` starts it in place of `agent_dream`, with the same input. Its four
phases and its commit are agentmem's own activities; the portrait is written after the commit, by an
agent.

Let a worker have it: `AGENTMEM_APP=examples/custom_dream.py`. Then, once `diary` has run:
`temporal workflow show --workflow-id dream/sqlite%3Adiary.db/diary/ada`.
"""

import json
from typing import Any

from temporalio import workflow

from agentmem import (
    DreamInput,
    DreamLimits,
    DreamReport,
    agent,
    contracts,
    dream,
    long_term_memory,
    sqlite,
    working_memory,
)
from agentmem.contracts import Begun, Phase
from agentmem.policies import BEGIN, COMMIT, DREAM_ROUNDS, phase_options

LIMITS = DreamLimits(gather_signal=5, consolidate=15, keys=50)
ACTIVITIES: dict[contracts.PhaseName, Any] = {
    "orient": contracts.orient,
    "gather_signal": contracts.gather_signal,
    "consolidate": contracts.consolidate,
    "prune": contracts.prune,
}


@workflow.defn(name="my_dream")
class MyDream:
    """Dreams within other limits, then writes a portrait."""

    def __init__(self) -> None:
        self._more = False

    @workflow.run
    async def run(self, request: DreamInput) -> DreamReport:
        """Dream once, and again if more was said meanwhile, five times at most."""
        self._more = False
        request = request.replace(limits=LIMITS)
        begun = await workflow.execute_activity(contracts.begin, request, **BEGIN)
        report = DreamReport(status=begun.status, reason=begun.reason)
        if begun.status == "ready":
            report = await self._dream(request, begun)
        if report.applied:
            await self._portray(request)
        # Whatever this round found: who appended meanwhile has said so, or not all fitted in.
        if (self._more or begun.more_evidence) and request.rounds + 1 < DREAM_ROUNDS:
            workflow.continue_as_new(request.replace(rounds=request.rounds + 1))
        return report

    async def _dream(self, request: DreamInput, begun: Begun) -> DreamReport:
        """Run the four phases and commit."""
        phase = Phase(
            dream=begun.dream, store=begun.store, model=begun.model, limit=1, keys=LIMITS.keys
        )
        for name, activity in ACTIVITIES.items():
            settings = request.phase(name)
            own = phase.replace(limit=getattr(LIMITS, name), model=settings.model or begun.model)
            options = phase_options(settings)
            await workflow.execute_activity(activity, own, summary=name, **options)
        return await workflow.execute_activity(contracts.commit, phase, **COMMIT)

    async def _portray(self, request: DreamInput) -> None:
        """Write what is known in two sentences, beside the facts and not among them."""
        facts = long_term_memory(sqlite("diary.db"), request.agent, request.scope)
        portraits = long_term_memory(sqlite("diary.db"), "portraits", request.scope)
        painter = await agent("Say in two sentences who this is.", model=request.model or None)
        known = json.dumps(await facts.recall(), ensure_ascii=False)
        await portraits.memorize("portrait", await painter("Go by these notes.", context=known))

    @workflow.signal
    def more(self, *args: Any) -> None:
        """Say that messages were appended: the dream goes round again."""
        self._more = True


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
