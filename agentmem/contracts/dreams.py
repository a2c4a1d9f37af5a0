"""Dreams: what starts one, what its phases take and give, how it ends."""

from typing import Annotated, Literal

from pydantic import AwareDatetime, Field, NonNegativeInt
from temporalio import activity

from agentmem.contracts.agents import Name
from agentmem.contracts.calls import ScopeRef, Usage
from agentmem.contracts.dream_settings import (
    DreamLimits,
    Mode,
    ModelName,
    PhaseName,
    Phases,
    PhaseSettings,
)
from agentmem.wire import Wire


class DreamInput(Wire):
    """The input of the `agent_dream` workflow; people may start it by hand with agent and scope.

    Attributes:
        agent: Whose facts: the agent of the long-term memory.
        scope: Which scope.
        provider: The provider's identity.
        model: The model of the phases that name none; the worker's default if empty.
        limits: Bounds.
        phases: Model, attempts and time of single phases; the model of `verify`.
        mode: `commit`, or `propose`: the changes are kept, and people apply or discard them.
        rounds: Rounds so far in this chain of runs, at most five; set by the dream itself.
        before: The report of those rounds; set by the dream itself.
    """

    agent: Name
    scope: Name
    provider: Annotated[str, Field(max_length=1024)] = "default"
    model: ModelName = ""
    limits: DreamLimits = DreamLimits()
    phases: Phases = {}
    mode: Mode = "commit"
    rounds: NonNegativeInt = 0
    before: "DreamReport | None" = None

    def phase(self, name: PhaseName) -> PhaseSettings:
        """Return the settings of a phase, the defaults where it has none."""
        return self.phases.get(name, PhaseSettings())

    @property
    def verifier(self) -> str:
        """The model that verifies changes; empty for the model of the phase."""
        return self.phases.get("verify", PhaseSettings()).model


class Begun(Wire):
    """The result of a dream's beginning.

    Attributes:
        status: `ready`, `nothing_new`, `skipped`, or `delegated` when the workflow does not run
            under its scope's id, which is the lock that lets one dream at a time in.
        reason: Why it was skipped, in words.
        next_try: When a dream that was skipped may try again.
        dream: The dream's id: the run that began it.
        store: The scope with its provider resolved.
        model: The model of the phases that name none, resolved.
        facts: Facts in the scope.
        messages: New messages to look at.
        more_evidence: Whether messages are left for the next round.
        search_attributes: Which of our search attributes the server knows.
        notes: What came of sessions that ended without handing over, where no draft keeps it.
    """

    status: Literal["ready", "nothing_new", "skipped", "delegated"] = "ready"
    reason: str = ""
    next_try: AwareDatetime | None = None
    dream: str = ""
    store: ScopeRef
    model: str = ""
    facts: int = 0
    messages: int = 0
    more_evidence: bool = False
    search_attributes: list[str] = []
    notes: list[str] = []


class PhaseRun(Wire):
    """One phase of a dream to run; everything else is in the store, under the dream's id.

    Attributes:
        dream: The dream's id, its run id.
        store: The scope.
        model: The model to ask.
        limit: Tool calls that the phase may make.
        keys: The most facts that the scope may hold.
        verifier: The model that verifies the phase's changes; empty for `model`.
    """

    dream: str
    store: ScopeRef
    model: str
    limit: int
    keys: int = 100
    verifier: str = ""


class Trace(Wire):
    """A tool call of a phase, without values: which tool, on which key, how it went."""

    tool: str
    key: str = ""
    outcome: str = ""


class PhaseResult(Wire):
    """The result of a phase: counts, no memories.

    Attributes:
        summary: One line for people, like `12 findings, 40 facts`.
        counts: Numbers by name.
        usage: Of its model calls.
        trace: Its tool calls.
    """

    summary: str
    counts: dict[str, int] = {}
    usage: Usage = Usage()
    trace: list[Trace] = []


class DreamReport(Wire):
    """A dream's result; at most 4 kB, since it lands in a running parent's history.

    Attributes:
        status: completed, completed_with_rejections, nothing_new, nothing_learned, skipped,
            proposed or delegated.
        summary: In words.
        reason: Why it was skipped, as the gate was shut for longer than the dream may wait.
        dream: The dream's id, its run id; for `delegated` the workflow id of the scope's dream.
        keys_before: Facts in the scope before.
        keys_after: And after.
        changes: Numbers of changes by their status: `accepted`, `tentative` (stored as not
            confirmed), `held` (waits for a person), `deferred` (waits for the next dream),
            `rejected`, `conflict`. Dreams of earlier versions also have `flagged`: accepted.
        applied: Lines like `update city: correction`, the first forty.
        proposed: Such lines of what a dream in the mode `propose` would do; nothing was applied.
        held: Lines of what was held back or rejected, with the reason, the first twenty.
        conflicts: Keys that the live agent changed meanwhile.
        waiting: How many changes wait for the next dream or for a person.
        notes: What else to know of how it went: a limit reached, code in place of a model's answer.
        usage: Of all its model calls.
        rounds: Rounds that this chain of runs has made. Of several, changes, lines and usage are
            added up, `keys_before` is the first one's, and `dream` the last one's.
    """

    status: str
    summary: str = ""
    reason: str = ""
    dream: str = ""
    keys_before: int = 0
    keys_after: int = 0
    changes: dict[str, int] = {}
    applied: list[str] = []
    proposed: list[str] = []
    held: list[str] = []
    conflicts: list[str] = []
    waiting: int = 0
    notes: list[str] = []
    usage: Usage = Usage()
    rounds: int = 1


@activity.defn(name="dream.begin")
async def begin(request: DreamInput) -> Begun:
    """Open a dream: gate, evidence, snapshot."""
    raise NotImplementedError


@activity.defn(name="dream.orient")
async def orient(phase: PhaseRun) -> PhaseResult:
    """Look over the scope: duplicates, contradictions, stale entries."""
    raise NotImplementedError


@activity.defn(name="dream.gather_signal")
async def gather_signal(phase: PhaseRun) -> PhaseResult:
    """Find what the new messages tell: findings with their evidence."""
    raise NotImplementedError


@activity.defn(name="dream.consolidate")
async def consolidate(phase: PhaseRun) -> PhaseResult:
    """Work the findings into the draft."""
    raise NotImplementedError


@activity.defn(name="dream.prune")
async def prune(phase: PhaseRun) -> PhaseResult:
    """Tidy the draft and bring it to its cap."""
    raise NotImplementedError


@activity.defn(name="dream.commit")
async def commit(phase: PhaseRun) -> DreamReport:
    """Commit the draft in one transaction."""
    raise NotImplementedError


@activity.defn(name="dream.give_up")
async def give_up(phase: PhaseRun) -> None:
    """End a dream whose patience was used up, and take back its attempt: it did not fail."""
    raise NotImplementedError
