"""Agents: what one is, what starts its workflow, what a turn gives."""

from typing import Annotated

from pydantic import Field
from temporalio import activity

from agentmem.contracts.calls import ScopeRef, ToolSpec, Usage
from agentmem.contracts.dream_settings import YEAR, DreamSettings
from agentmem.facts import KEY_BYTES
from agentmem.wire import JSONObject, JSONValue, Wire

# Longer ones would stand in an error, and one that the server refuses hangs the workflow.
Name = Annotated[str, Field(max_length=KEY_BYTES)]


class MemorySettings(Wire):
    """The five settings of a working memory; see `WorkingMemory`."""

    window: int | None = None
    max_tokens: int | None = None
    compact_model: str | None = None
    compact_threshold: float = 0.70
    compact_preserve: int = 4


class RunLimits(Wire):
    """When a session goes on in a new run, whichever comes first; always between two turns.

    The defaults keep a run at what a worker replays in a few seconds, far from Temporal's ends
    (51,200 events, 50 MB, 2,000 updates).

    Attributes:
        events: Events of its history.
        history_bytes: Bytes of its history.
        updates: Messages, approvals and other updates that it took.
    """

    events: int = Field(default=2_000, ge=1, le=20_000)
    history_bytes: int = Field(default=2_000_000, ge=1, le=20_000_000)
    updates: int = Field(default=1_500, ge=1, le=1_900)


class Definition(Wire):
    """An agent, resolved at a session's start and at each change of its run.

    Attributes:
        schema_tokens: What the schemas of the worker's tools take in each request, estimated.
        approve: Tools whose calls need a person's approval, besides those that say so themselves;
            `*` stands for all.
        approval_minutes: How long a call waits for a person.
        turn_minutes: How long the model calls of a turn may take together, retries included.
        reply_minutes: How long a model may take for a reply; with `stream`, for each piece.
        stream: Whether replies are read piece by piece.
        budget: Tokens that all turns may take together.
        turn_budget: Tokens that one turn may take.
        long_term_memory: The provider's identity; empty without long-term memory.
    """

    name: str
    system_prompt: str = ""
    model: str
    tools: list[ToolSpec] = []
    schema_tokens: int = 0
    max_tool_calls: int = 10
    max_concurrent_tools: int | None = None
    max_tokens: int = 4096
    reasoning_effort: str = ""
    response_format: JSONObject | None = None
    budget: int | None = None
    turn_budget: int | None = None
    approve: list[str] = []
    approval_minutes: float = 1_440
    turn_minutes: float = 15
    reply_minutes: float = 9
    stream: bool = False
    working_memory: MemorySettings = MemorySettings(max_tokens=50_000)
    long_term_memory: str = ""
    dream: DreamSettings | None = None
    run_limits: RunLimits = RunLimits()

    def asks_before(self, spec: ToolSpec) -> bool:
        """Tell whether calls of a tool need a person's approval."""
        return spec.approval or spec.name in self.approve or "*" in self.approve


class SessionNote(Wire):
    """A conversation that begins, for the store of its words to take note of.

    Attributes:
        store: Where its words are to go; the provider may be `default`.
        session: The run in which it began, by which transcripts know it.
        memory: The working memory, `wm0`, ...
    """

    store: ScopeRef
    session: str
    memory: str


class Resolve(Wire):
    """Ask the worker what an agent is.

    Attributes:
        agent: An agent of the worker's configuration; empty for one defined in code.
        model: The model that code names; empty for the worker's default.
        tools: The tools that code names.
        provider: The provider that code names, by identity.
        response_format: The JSON schema that code gives, to be checked.
        at_once: Ask one worker only: nobody waits for another one that knows more.
        scope: The scope of the session that begins, for its store to take note of.
        notes: The conversations that begin with an agent defined in code, of which it dreams.
    """

    agent: str = ""
    model: str = ""
    tools: list[str] = []
    provider: str = ""
    response_format: JSONObject | None = None
    at_once: bool = False
    scope: str = ""
    notes: list[SessionNote] = []


class AgentInput(Wire):
    """The input that starts the `agent` workflow.

    Attributes:
        agent: An agent of the worker's configuration.
        scope: Whose facts; required with long-term memory.
        message: The first message; required unless `session` is set.
        session: Stay for more turns, until `end`.
        end_after_minutes: End a session that was quiet for so long, a year at most; 0 means never.
    """

    agent: Name = "assistant"
    scope: Name = ""
    message: str = ""
    session: bool = False
    end_after_minutes: float = Field(default=0, ge=0, le=YEAR, allow_inf_nan=False)


class Answer(Wire):
    """The result of a turn, as the update `ask` returns it.

    Attributes:
        turn: The turn's number, from 1.
        text: The answer.
        finish: stop, length (cut off), content_filter (refused), or tool_limit.
        data: The answer as data, for an agent with a response format.
        usage: Of all model calls of the turn.
    """

    turn: int
    text: str
    finish: str = "stop"
    data: JSONValue = None
    usage: Usage = Usage()


@activity.defn(name="agentmem.resolve")
async def resolve(request: Resolve) -> Definition:
    """Say what an agent is: its definition, model and tools."""
    raise NotImplementedError
