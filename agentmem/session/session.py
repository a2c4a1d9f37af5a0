"""The parts of a session: its state, its details in the UI, and its change to a new run."""

from dataclasses import dataclass

from temporalio import workflow

from agentmem.agent.api import Assistant, equip, resolve
from agentmem.agent.approvals import Approvals
from agentmem.contracts import AgentInput, Definition, DreamSettings, Resolve, ScopeRef
from agentmem.dreaming.hand_over import END_PATIENCE
from agentmem.dreaming.hook import dream
from agentmem.errors import ConfigurationError, InvalidInput
from agentmem.memory.carried_state import CarriedMemory
from agentmem.memory.compaction import Compaction, tokens
from agentmem.memory.long_term import LongTermMemory
from agentmem.memory.references import ProviderReference
from agentmem.memory.working import WorkingMemory
from agentmem.session.background import Background
from agentmem.session.continue_as_new import PATCH, SessionState
from agentmem.session.turns import Turns
from agentmem.wire import PACKED_BYTES, pack

RESOLVED_AGAIN = "agent-of-each-run"
"""The patch of runs that ask what their agent is now; earlier ones keep what they were handed."""

SUMMARIES = 8
"""The most summaries that one change of runs asks for, where a conversation does not fit."""


@dataclass(kw_only=True)
class Session:
    """An agent in conversation.

    Attributes:
        definition: The agent as the worker resolved it when the session began.
        assistant: Answers.
        memory: The conversation.
        background: What goes on beside the turns.
    """

    definition: Definition
    assistant: Assistant
    memory: WorkingMemory
    background: Background

    async def prepare_change(self) -> None:
        """Make ready for a new run while messages are taken as ever.

        The transcript gets every message before it leaves this run; where its store does not take
        them, they go along. No hook begins from here on: what is queued goes along too.
        """
        self.background.hold()
        await workflow.wait_condition(lambda: not self.background.busy)
        self.background.continued = True
        await self.background.append_transcript(END_PATIENCE)
        if self._is_large():
            async with self.memory.lock:  # between two turns
                await self._compact()

    async def settle(self) -> None:
        """Wait for what goes on beside the turns, as runs of earlier versions did for a change."""
        await self.background.settle()
        self.background.continued = True
        await self.background.append_transcript()
        await self._compact()

    def pack(self, turns: Turns) -> bytes | None:
        """Return what the next run needs.

        Returns:
            At most 1 MiB; None if what must go along is more than that.
        """
        # A hook that is not done by now is given up with this run.
        undreamt = self.background.undreamt or self.background.working

        def packed(memory: CarriedMemory) -> bytes:
            return pack(
                SessionState(
                    definition=self.definition,
                    turns=turns.count,
                    usage=self.assistant.usage,
                    outcomes=turns.outcomes(),
                    answers=self.background.answers,
                    undreamt=undreamt,
                    queued=self.background.queued,
                    last_dream=self.background.last_dream,
                    memory=memory,
                )
            )

        return self.memory.pack(packed)

    def _is_large(self) -> bool:
        # Not the packed size: how well bytes pack is no ground for a decision of a workflow.
        return tokens(self.memory.log.groups) * 4 > 3 * PACKED_BYTES

    async def _compact(self) -> None:
        """Summarise what will not fit, where there is a model for that."""
        for _ in range(SUMMARIES):
            if not self._is_large():
                return
            compaction = Compaction(
                self.memory, self.assistant.spend, priority=self.assistant.priority
            )
            if not await compaction.run(overflow=True):
                return


async def prepare(request: AgentInput, state: SessionState | None, approvals: Approvals) -> Session:
    """Make the session, or what a single answer needs.

    Args:
        request: What the workflow was started with.
        state: What the run before handed on; None in the first.
        approvals: Where tool calls wait for people.

    Raises:
        ConfigurationError: The worker knows no such agent; the message lists what exists.
        InvalidInput: No agent is named, or it has long-term memory and no scope was given.
    """
    if not request.agent.strip():
        raise InvalidInput("field 'agent' is empty; name one of the worker's agents")
    continued = state is not None
    if state is None:
        workflow.set_current_details(
            f"Asks the workers of the queue {workflow.info().task_queue} for the agent "
            f"{request.agent!r}. The pending activity shows what they know."
        )
        asked = Resolve(agent=request.agent, scope=request.scope)
        state = SessionState(definition=await resolve(asked))
    elif workflow.patched(RESOLVED_AGAIN):
        workflow.set_current_details(f"Turns: {state.turns}\n\nThe session begins its next run.")
        state = state.replace(definition=await _resolved_again(state.definition))
    definition = state.definition
    settings = definition.working_memory.model_dump()
    memory = WorkingMemory(**settings, restore=state.memory if continued else None)
    long_term = _long_term(definition, request.scope)
    background = _background(definition, memory, long_term)
    background.continued, background.answers = continued, state.answers
    background.undreamt, background.last_dream = state.undreamt, state.last_dream
    if state.queued and workflow.patched(PATCH):  # an older worker may have begun this run
        background.queue()

    async def paused(_: str, __: object) -> None:
        await background.paused()

    assistant = Assistant(
        equip(definition, long_term) if long_term else definition,
        memory=memory,
        scope=request.scope,
        on_pause=[paused],
    )
    assistant.usage = state.usage
    return Session(definition=definition, assistant=assistant, memory=memory, background=background)


async def _resolved_again(before: Definition) -> Definition:
    """Return an agent as its worker knows it now; facts stay where the session has them.

    Where this worker does not know it any more, or not yet, it stays as it was.
    """
    try:
        resolved = await resolve(Resolve(agent=before.name, at_once=True))
    except ConfigurationError as error:
        workflow.logger.warning("the agent %s stays as it was: %s", before.name, error.message)
        return before
    return resolved.replace(long_term_memory=before.long_term_memory)


def _background(
    definition: Definition, memory: WorkingMemory, long_term: LongTermMemory | None
) -> Background:
    settings = definition.dream
    if long_term is None or settings is None:
        # The worker's own store keeps what leaves the run where there is no other.
        store = long_term.store if long_term else ScopeRef(agent=definition.name, scope="")
        return Background(definition.name, memory, None, DreamSettings(on=[]), store)
    memory.expect_transcript(long_term.store)
    hook = dream(
        working_memory=memory,
        long_term_memory=long_term,
        model=settings.model or definition.model,
        workflow=settings.workflow,
        limits=settings.limits,
        phases=settings.phases,
        mode=settings.mode,
    )
    return Background(definition.name, memory, hook, settings, long_term.store)


def _long_term(definition: Definition, scope: str) -> LongTermMemory | None:
    if not definition.long_term_memory:
        return None
    if not scope:
        raise InvalidInput(
            f"field 'scope' is missing: agent {definition.name!r} has long-term memory; give a "
            'name for whose facts these are, like "user-1"'
        )
    provider = ProviderReference(identity=definition.long_term_memory)
    return LongTermMemory(provider, definition.name, scope)


def session_details(session: Session, turns: int) -> str:
    """Return a session's state for people, as a list in Markdown; adds nothing to history."""
    memory, usage = session.memory, session.assistant.usage
    dream = session.background.last_dream
    lines = [
        f"Agent: {session.definition.name}, model {session.definition.model}",
        f"Turns: {turns}",
        f"Tokens in view at the last call: {memory.prompt_tokens or 'not known'}",
        f"Tokens in all: {usage.prompt} in, {usage.completion} out, {usage.requests} model calls",
        f"Cost: {usage.cost:.4f} US dollars" if usage.cost else "Cost: no price known",
        f"Summaries: {memory.summaries}",
        f"Last dream: started {dream:%Y-%m-%d %H:%M} UTC" if dream else "Last dream: none yet",
    ]
    lines += [f"Waits for a person: {line}" for line in session.assistant.approvals.lines()]
    return "\n".join(f"- {line}" for line in lines)
