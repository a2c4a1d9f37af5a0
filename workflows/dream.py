"""The `agent_dream` workflow: four phases and a commit, one dream a scope at a time."""

from collections.abc import Sequence
from typing import Any

from temporalio import workflow
from temporalio.common import SearchAttributeKey
from temporalio.exceptions import ActivityError

from agentmem import contracts
from agentmem.contracts import Begun, DreamInput, DreamReport, Phase, PhaseResult
from agentmem.dreaming.hook import start_dream
from agentmem.dreaming.tools import PHASES, PhaseName
from agentmem.errors import DreamFailed
from agentmem.facts import checked_name
from agentmem.failures import describe
from agentmem.inputs import parse_input
from agentmem.policies import BEGIN, COMMIT, DREAM_RUN_TIMEOUT, PHASE, TASK_TIMEOUT

ROUNDS = 5
"""After so many rounds in a row, what is left waits for the next trigger."""

_ACTIVITIES = {
    "orient": contracts.orient,
    "gather_signal": contracts.gather_signal,
    "consolidate": contracts.consolidate,
    "prune": contracts.prune,
}


@workflow.defn(name="agent_dream")
class AgentDream:
    """Turns a scope's new messages into facts; the store is before the dream or after it.

    Each run is one round with its own draft and commit. A phase that fails fails the workflow and
    leaves the store unchanged; the messages wait for the next dream.
    """

    def __init__(self) -> None:
        self._more = False
        self._lines: dict[str, str] = dict.fromkeys(PHASES, "waiting")

    @workflow.run
    async def run(self, *args: Any) -> DreamReport:
        """Dream, and go round again while there is more, five times at most.

        Args:
            args: One `DreamInput` as JSON; checked here, so that a wrong one fails the workflow
                with a message instead of leaving it running.

        Raises:
            InvalidInput: The input is not that; the message names the field.
            DreamFailed: A phase or the commit failed; the store is unchanged.
        """
        request = _checked(args)
        # Before the evidence is read: whoever appends later says so by the signal.
        self._more = False
        begun = await self._begin(request)
        if begun.status == "delegated":
            there = request.replace(provider=begun.store.provider)
            return DreamReport(status="delegated", dream=await start_dream(there))
        if begun.status == "ready":
            report = await self._dream(request, begun)
        else:
            report = DreamReport(status=begun.status, reason=begun.reason, keys_before=begun.facts)
            report = report.replace(keys_after=begun.facts)
        report = _of_all_rounds(request, report)
        self._show_outcome(report, begun)
        # No await from here on: a signal that comes now makes the server refuse the completion.
        again = self._more or (begun.status == "ready" and begun.more_evidence)
        if again and request.rounds + 1 < ROUNDS:
            workflow.continue_as_new(
                request.replace(rounds=request.rounds + 1, before=report),
                run_timeout=DREAM_RUN_TIMEOUT,
                task_timeout=TASK_TIMEOUT,
            )
        return report

    @workflow.signal
    def more(self, *args: Any) -> None:
        """Say that messages were appended: the dream goes round again."""
        self._more = True

    async def _begin(self, request: DreamInput) -> Begun:
        try:
            begun = await workflow.execute_activity(contracts.begin, request, **BEGIN)
        except ActivityError as error:
            raise _failed("begin", error) from error
        if begun.status == "ready":
            self._set_attributes(
                begun, AgentMemAgent=begun.store.agent, AgentMemScope=begun.store.scope
            )
        return begun

    async def _dream(self, request: DreamInput, begun: Begun) -> DreamReport:
        phase = Phase(
            dream=begun.dream,
            store=begun.store,
            model=begun.model,
            limit=request.limits.orient,
            keys=request.limits.keys,
        )
        summary = f"{_count(begun.facts, 'fact')}, {_count(begun.messages, 'new message')}"
        for name in PHASES:
            limited = phase.replace(limit=getattr(request.limits, name))
            result = await self._phase(name, limited, f"{name}: {summary}")
            summary = result.summary
        try:
            return await workflow.execute_activity(
                contracts.commit, phase, summary=f"commit: {summary}", **COMMIT
            )
        except ActivityError as error:
            raise _failed("commit", error) from error

    async def _phase(self, name: PhaseName, phase: Phase, summary: str) -> PhaseResult:
        self._show(name, "running")
        try:
            result = await workflow.execute_activity(
                _ACTIVITIES[name], phase, summary=summary, **PHASE
            )
        except ActivityError as error:
            self._show(name, "failed")
            workflow.upsert_memo({"outcome": "failed", "phase": name})
            raise _failed(name, error) from error
        self._show(name, f"done: {result.summary}")
        return result

    def _show(self, name: str, state: str) -> None:
        self._lines[name] = state
        lines = [f"- {phase}: {line}" for phase, line in self._lines.items()]
        workflow.set_current_details("\n".join(lines))

    def _show_outcome(self, report: DreamReport, begun: Begun) -> None:
        workflow.upsert_memo({"outcome": report.status, "summary": report.summary})
        self._set_attributes(begun, AgentMemOutcome=report.status)

    def _set_attributes(self, begun: Begun, **values: str) -> None:
        # One that the server does not know would fail the workflow task again and again.
        known = [
            SearchAttributeKey.for_keyword(name).value_set(value)
            for name, value in values.items()
            if name in begun.search_attributes
        ]
        if known:
            workflow.upsert_search_attributes(known)


def _checked(args: Sequence[Any]) -> DreamInput:
    request = parse_input(DreamInput, args, "the input of agent_dream")
    return request.replace(
        agent=checked_name(request.agent, "agent"), scope=checked_name(request.scope, "scope")
    )


def _failed(what: str, error: ActivityError) -> DreamFailed:
    return DreamFailed(f"{what} failed, the store is unchanged: {describe(error)}")


def _of_all_rounds(request: DreamInput, report: DreamReport) -> DreamReport:
    """Report the chain of runs: a last round that found nothing new does not hide the others."""
    if request.before is not None and report.status == "nothing_new":
        report = request.before
    return report.replace(rounds=request.rounds + 1)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
