"""`DreamWorkflow`: the base of dream workflows, the ready-made `agent_dream` among them."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, ClassVar, TypeVar

from temporalio import workflow
from temporalio.common import Priority, SearchAttributeKey
from temporalio.exceptions import ActivityError, is_cancelled_exception

from agentmem import contracts
from agentmem.contracts import (
    PHASES,
    Begun,
    DreamInput,
    DreamLimits,
    DreamReport,
    PhaseName,
    PhaseResult,
    PhaseRun,
)
from agentmem.dreaming.hook import DREAM_ID, start_dream
from agentmem.dreaming.patience import PATCH, Patience, what_is_away
from agentmem.dreaming.report import added_up, in_words
from agentmem.error_text import describe
from agentmem.errors import ConfigurationError, DreamFailed, InvalidInput
from agentmem.facts import checked_name
from agentmem.inputs import handed_on, parse_input
from agentmem.policies import (
    BEGIN,
    COMMIT,
    DREAM_ROUNDS,
    GIVE_UP,
    TASK_TIMEOUT,
    ActivityOptions,
    attempt_options,
    dream_run_timeout,
)
from agentmem.priorities import of_dream
from agentmem.queues import until_taken
from agentmem.wire import clip

Request = TypeVar("Request")
Result = TypeVar("Result")

REASON_BYTES = 2_000
"""The longest cause in an error: the server bounds failures, and one over that hangs the run."""

MEMO_BYTES = 600
"""The longest summary in the memo, which is part of every listing of workflows."""

_ACTIVITIES: dict[str, Callable[[PhaseRun], Awaitable[PhaseResult]]] = {
    "orient": contracts.orient,
    "gather_signal": contracts.gather_signal,
    "consolidate": contracts.consolidate,
    "prune": contracts.prune,
}
_SEES: dict[str, tuple[str, ...]] = {
    "orient": ("facts",),
    "gather_signal": ("messages", "facts"),
    "consolidate": ("findings", "facts"),
    "prune": ("changes", "facts"),
}
"""The counts that a phase's summary shows: what it has to look at."""


class DreamWorkflow:
    """The base of workflows that dream: turn a scope's new messages into facts.

    A subclass is a workflow of its own, which `dream(workflow="...")` starts with the scope's id:

        @workflow.defn(name="short_dream")
        class ShortDream(DreamWorkflow):
            limits = DreamLimits(keys=50)

            @workflow.run
            async def run(self, *args: Any) -> DreamReport:
                return await self.dream(*args)

    Override `limits` to set bounds, and `steps` to leave phases out or to work between them.
    The base takes the signal `more` and goes round again, five times at most; waits for a model, a
    store or a worker that is away, and at a shut failure gate; shows people how far it is; and
    reports all rounds as one. Each run is one round with its own draft and commit: the store is
    before the dream or after it.

    Attributes:
        limits: Bounds in place of those of the input; None to take the input's. Whoever starts the
            dream derives its run timeout from the input's `patience_hours`: to wait for longer,
            set it there.
        request: The input, from the time that `dream` has checked it.
        begun: How this round began, from the time that it is ready: counts, store and model.
    """

    limits: ClassVar[DreamLimits | None] = None
    request: DreamInput
    begun: Begun

    def __init__(self) -> None:
        self._more = False
        self._away = ""
        self._lines: dict[str, str] = dict.fromkeys(PHASES, "waiting")
        self._counts: dict[str, int] = {}
        self._attributes: frozenset[str] = frozenset()

    async def dream(self, *args: Any) -> DreamReport:
        """Dream, and go round again while there is more, five times at most.

        Args:
            args: One `DreamInput` as JSON; checked here, so that a wrong one fails the workflow
                with a message instead of leaving it running.

        Raises:
            InvalidInput: The input is not that; the message names the field.
            NewerVersion: A newer version started the dream, or its round before.
            DreamFailed: A phase or the commit failed, or the patience was used up.
        """
        request = _checked(args)
        self.request = request.replace(limits=self.limits or request.limits)
        self._patience = Patience(self.request.limits, self._show_away)
        self.begun = begun = await self._begin()
        if begun.status == "delegated":
            there = self.request.replace(provider=begun.store.provider)
            kind = workflow.info().workflow_type
            return DreamReport(status="delegated", dream=await start_dream(there, workflow=kind))
        self._attributes = frozenset(begun.search_attributes)
        report = self._of_all_rounds(await self._round())
        self._show_outcome(report.status, report.summary or report.reason)
        # No await from here on: a signal that comes now makes the server refuse the completion.
        if (self._more or begun.more_evidence) and self.request.rounds + 1 < DREAM_ROUNDS:
            workflow.continue_as_new(
                self.request.replace(rounds=self.request.rounds + 1, before=report),
                run_timeout=dream_run_timeout(self.request.limits),
                task_timeout=TASK_TIMEOUT,
            )
        return report

    async def steps(self) -> DreamReport:
        """Run one round: the four phases, then the commit. Override it for other steps.

        An override calls `phase` for each phase that it wants, in their order, and `commit` once;
        what it does in between is its own workflow code.

        Returns:
            The report of the round, as `commit` gives it.
        """
        for name in PHASES:
            await self.phase(name)
        return await self.commit()

    async def phase(self, name: PhaseName) -> PhaseResult:
        """Run one phase, with the attempts, the time and the model that the input sets for it.

        Raises:
            ConfigurationError: There is no such phase.
            DreamFailed: It failed, or the patience was used up; the store is unchanged.
        """
        if name not in _ACTIVITIES:
            raise ConfigurationError(f"no phase {name!r}; there are {', '.join(PHASES)}")
        settings = self.request.phase(name)
        limit: int = getattr(self.request.limits, name)
        phase = self._phase(limit).replace(model=settings.model or self.begun.model)
        sees = in_words(self._counts, *_SEES[name])
        self._show(name, "running")
        try:
            result = await self._act(
                name,
                *(_ACTIVITIES[name], phase, sees),
                attempt_options(settings),
                attempts=settings.attempts,
            )
        except DreamFailed:
            self._show(name, "failed")
            raise
        self._show(name, f"done: {result.summary}")
        self._counts |= result.counts
        return result

    async def commit(self) -> DreamReport:
        """Commit the draft in one transaction, against the present versions of the facts.

        Returns:
            The round's report.

        Raises:
            DreamFailed: It failed, or the patience was used up.
        """
        summary = in_words(self._counts, "changes", "facts")
        phase = self._phase(self.request.limits.orient)
        return await self._act("commit", contracts.commit, phase, summary, COMMIT)

    @workflow.signal
    def more(self, *args: Any) -> None:
        """Say that messages were appended: the dream goes round again."""
        self._more = True

    async def _begin(self) -> Begun:
        while True:
            # Before the evidence is read: whoever appends later says so by the signal.
            self._more = False
            begun = await self._act("begin", contracts.begin, self.request, "", BEGIN)
            if begun.next_try is None or not await self._patience.gate(
                begun.next_try, begun.reason, lambda: self._more
            ):
                return begun

    async def _round(self) -> DreamReport:
        begun = self.begun
        if begun.status != "ready":
            return DreamReport(
                status=begun.status,
                reason=begun.reason,
                keys_before=begun.facts,
                keys_after=begun.facts,
                notes=begun.notes,
            )
        self._upsert(AgentMemAgent=begun.store.agent, AgentMemScope=begun.store.scope)
        self._counts = {"facts": begun.facts, "messages": begun.messages}
        return await self.steps()

    def _phase(self, limit: int) -> PhaseRun:
        return PhaseRun(
            dream=self.begun.dream,
            store=self.begun.store,
            model=self.begun.model,
            limit=limit,
            keys=self.request.limits.keys,
            verifier=self.request.verifier,
        )

    async def _act(
        self,
        what: str,
        activity: Callable[[Request], Awaitable[Result]],
        request: Request,
        summary: str,
        options: ActivityOptions,
        attempts: int = 0,
    ) -> Result:
        """Run an activity with patience; `attempts` are those of a phase, which asks a model."""
        said = f"{what}: {summary}" if summary else None
        try:
            return await self._patience.outlast(
                lambda: until_taken(
                    lambda look: workflow.execute_activity(
                        activity,
                        request,
                        summary=said,
                        schedule_to_start_timeout=look,
                        priority=self._priority(),
                        **options,
                    )
                ),
                attempts=attempts,
                asks_model=attempts > 0,
            )
        except ActivityError as error:
            if is_cancelled_exception(error):
                raise  # a person's wish, and shown as such
            raise await self._failed(what, error, asks_model=attempts > 0) from error

    async def _failed(self, what: str, error: ActivityError, *, asks_model: bool) -> DreamFailed:
        reason = clip(describe(error), REASON_BYTES)
        self._show_outcome("failed", f"{what}: {reason}")
        away = what_is_away(error, asks_model=asks_model)
        if away and workflow.patched(PATCH):
            if what != "begin":
                await self._give_up()
            reason = f"no patience is left to wait for {away} ({reason})"
        unchanged = "" if what == "commit" else ", the store is unchanged"
        return DreamFailed(f"{what} failed{unchanged}: {reason}")

    async def _give_up(self) -> None:
        phase = self._phase(self.request.limits.orient)
        try:
            await workflow.execute_activity(
                contracts.give_up, phase, priority=self._priority(), **GIVE_UP
            )
        except ActivityError as error:
            if is_cancelled_exception(error):
                raise
            workflow.logger.warning("the dream counts as failed: %s", describe(error))

    def _priority(self) -> Priority:
        return of_dream(self.request.agent, self.request.scope)

    def _of_all_rounds(self, report: DreamReport) -> DreamReport:
        if self.request.before is not None:
            report = added_up(self.request.before, report)
        return report.replace(rounds=self.request.rounds + 1)

    def _show(self, name: str, state: str) -> None:
        self._lines[name] = state
        self._show_lines()

    def _show_away(self, line: str) -> None:
        if line != self._away:
            self._away = line
            self._show_lines()

    def _show_lines(self) -> None:
        lines = [f"- {phase}: {line}" for phase, line in self._lines.items()]
        workflow.set_current_details("\n".join([self._away, "", *lines] if self._away else lines))

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
    info = workflow.info()
    try:
        request = parse_input(DreamInput, args, f"the input of {info.workflow_type}")
        return request.replace(
            agent=checked_name(request.agent, "agent"), scope=checked_name(request.scope, "scope")
        )
    except InvalidInput as error:
        raise handed_on(error, by_parent=info.workflow_id.startswith(DREAM_ID)) from None
