"""The `agent_dream` workflow: four phases and a commit, one dream a scope at a time."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from temporalio import workflow
from temporalio.common import SearchAttributeKey
from temporalio.exceptions import ActivityError, is_cancelled_exception

from agentmem import contracts
from agentmem.contracts import PHASES, Begun, DreamInput, DreamReport, Phase, PhaseName, PhaseResult
from agentmem.dreaming.counts import in_words
from agentmem.dreaming.hook import DREAM_ID, start_dream
from agentmem.dreaming.rounds import added_up
from agentmem.errors import DreamFailed, InvalidInput
from agentmem.facts import checked_name
from agentmem.failures import describe
from agentmem.inputs import handed_on, parse_input
from agentmem.policies import (
    BEGIN,
    COMMIT,
    DREAM_ROUNDS,
    DREAM_RUN_TIMEOUT,
    TASK_TIMEOUT,
    ActivityOptions,
    phase_options,
)
from agentmem.values import clip

Request = TypeVar("Request")
Result = TypeVar("Result")

REASON_BYTES = 2_000
"""What an error says of its cause: the server bounds failures, and one over that hangs the run."""

MEMO_BYTES = 600
"""A memo stands in every listing of workflows."""

_ACTIVITIES: dict[PhaseName, Callable[[Phase], Awaitable[PhaseResult]]] = {
    "orient": contracts.orient,
    "gather_signal": contracts.gather_signal,
    "consolidate": contracts.consolidate,
    "prune": contracts.prune,
}
_SEES: dict[PhaseName, tuple[str, ...]] = {
    "orient": ("facts",),
    "gather_signal": ("messages", "facts"),
    "consolidate": ("findings", "facts"),
    "prune": ("changes", "facts"),
}
"""What a phase has to look at, for its summary."""


@workflow.defn(name="agent_dream", sandboxed=False)  # as `agent` is, and for the same reason
class AgentDream:
    """Turns a scope's new messages into facts; the store is before the dream or after it.

    Each run is one round with its own draft and commit. A phase that fails fails the workflow and
    leaves the store unchanged; the messages wait for the next dream.
    """

    def __init__(self) -> None:
        self._more = False
        self._lines: dict[str, str] = dict.fromkeys(PHASES, "waiting")
        self._attributes: frozenset[str] = frozenset()

    @workflow.run
    async def run(self, *args: Any) -> DreamReport:
        """Dream, and go round again while there is more, five times at most.

        Args:
            args: One `DreamInput` as JSON; checked here, so that a wrong one fails the workflow
                with a message instead of leaving it running.

        Raises:
            InvalidInput: The input is not that; the message names the field.
            NewerVersion: A newer version started the dream, or its round before.
            DreamFailed: A phase or the commit failed.
        """
        try:
            request = _checked(args)
        except InvalidInput as error:
            ours = workflow.info().workflow_id.startswith(DREAM_ID)
            raise handed_on(error, by_parent=ours) from None
        # Before the evidence is read: whoever appends later says so by the signal.
        self._more = False
        begun = await self._act("begin", contracts.begin, request, "", BEGIN)
        if begun.status == "delegated":
            there = request.replace(provider=begun.store.provider)
            return DreamReport(status="delegated", dream=await start_dream(there))
        self._attributes = frozenset(begun.search_attributes)
        report = _of_all_rounds(request, await self._round(request, begun))
        self._show_outcome(report.status, report.summary or report.reason)
        # No await from here on: a signal that comes now makes the server refuse the completion.
        if (self._more or begun.more_evidence) and request.rounds + 1 < DREAM_ROUNDS:
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

    async def _round(self, request: DreamInput, begun: Begun) -> DreamReport:
        if begun.status != "ready":
            return DreamReport(
                status=begun.status,
                reason=begun.reason,
                keys_before=begun.facts,
                keys_after=begun.facts,
            )
        self._upsert(AgentMemAgent=begun.store.agent, AgentMemScope=begun.store.scope)
        phase = Phase(
            dream=begun.dream,
            store=begun.store,
            model=begun.model,
            limit=request.limits.orient,
            keys=request.limits.keys,
        )
        counts = {"facts": begun.facts, "messages": begun.messages}
        for name in PHASES:
            settings = request.phase(name)
            own = phase.replace(
                limit=getattr(request.limits, name), model=settings.model or begun.model
            )
            sees = in_words(counts, *_SEES[name])
            result = await self._phase(name, own, sees, phase_options(settings))
            counts |= result.counts
        summary = in_words(counts, "changes", "facts")
        return await self._act("commit", contracts.commit, phase, summary, COMMIT)

    async def _phase(
        self, name: PhaseName, phase: Phase, sees: str, options: ActivityOptions
    ) -> PhaseResult:
        self._show(name, "running")
        try:
            result = await self._act(name, _ACTIVITIES[name], phase, sees, options)
        except DreamFailed:
            self._show(name, "failed")
            raise
        self._show(name, f"done: {result.summary}")
        return result

    async def _act(
        self,
        what: str,
        activity: Callable[[Request], Awaitable[Result]],
        request: Request,
        summary: str,
        options: ActivityOptions,
    ) -> Result:
        try:
            return await workflow.execute_activity(
                activity, request, summary=f"{what}: {summary}" if summary else None, **options
            )
        except ActivityError as error:
            if is_cancelled_exception(error):
                raise  # a person's wish, and shown as such
            reason = clip(describe(error), REASON_BYTES)
            self._show_outcome("failed", f"{what}: {reason}")
            unchanged = "" if what == "commit" else ", the store is unchanged"
            raise DreamFailed(f"{what} failed{unchanged}: {reason}") from error

    def _show(self, name: str, state: str) -> None:
        self._lines[name] = state
        lines = [f"- {phase}: {line}" for phase, line in self._lines.items()]
        workflow.set_current_details("\n".join(lines))

    def _show_outcome(self, outcome: str, summary: str) -> None:
        workflow.upsert_memo({"outcome": outcome, "summary": clip(summary, MEMO_BYTES)})
        self._upsert(AgentMemOutcome=outcome)

    def _upsert(self, **values: str) -> None:
        # One that the server does not know would fail the workflow task again and again.
        known = [
            SearchAttributeKey.for_keyword(name).value_set(value)
            for name, value in values.items()
            if name in self._attributes
        ]
        if known:
            workflow.upsert_search_attributes(known)


def _checked(args: Sequence[Any]) -> DreamInput:
    request = parse_input(DreamInput, args, "the input of agent_dream")
    return request.replace(
        agent=checked_name(request.agent, "agent"), scope=checked_name(request.scope, "scope")
    )


def _of_all_rounds(request: DreamInput, report: DreamReport) -> DreamReport:
    if request.before is not None:
        report = added_up(request.before, report)
    return report.replace(rounds=request.rounds + 1)
