"""The function `agent()` for workflow code, and the checks of its arguments."""

from collections.abc import Callable, Sequence
from typing import Any, Generic, Literal, TypedDict, TypeVar, Unpack, cast, overload

from pydantic import BaseModel, ValidationError
from temporalio import workflow
from temporalio.exceptions import ActivityError

from agentmem import contracts
from agentmem.agent.approvals import Approvals, approvals
from agentmem.agent.hooks import Hook, run_hooks
from agentmem.agent.loop import Loop
from agentmem.agent.response_format import Given, ResponseFormat, T
from agentmem.contracts import Answer, Definition, Resolve, ToolSpec, Usage
from agentmem.contracts.dream_settings import YEAR
from agentmem.dreaming.hook import DreamHook
from agentmem.error_text import describe, raise_cancellation
from agentmem.errors import ConfigurationError, TurnFailed
from agentmem.facts import KEY_BYTES
from agentmem.inputs import MESSAGE_BYTES, parse_text
from agentmem.memory.compaction import warn_of_overhead
from agentmem.memory.long_term import LongTermMemory
from agentmem.memory.working import WorkingMemory
from agentmem.policies import RESOLVE
from agentmem.priorities import of_turn
from agentmem.tools import tool_spec
from agentmem.wire import JSONObject, JSONValue, encoded_size


class Options(TypedDict, total=False):
    """The keywords of `agent()` that do not change the type of its answers."""

    model: str | None
    name: str | None
    tools: Sequence[Callable[..., Any] | ToolSpec | str]
    working_memory: WorkingMemory | None
    long_term_memory: LongTermMemory | None
    max_tool_calls: int
    max_concurrent_tools: int | None
    max_tokens: int
    reasoning_effort: str | None
    budget: int | None
    turn_budget: int | None
    approve: Sequence[str] | Literal["all"]
    approval_minutes: float
    turn_minutes: float
    reply_minutes: float
    stream: bool
    on_complete: Sequence[Hook]
    on_pause: Sequence[Hook]


EFFORTS = ("low", "medium", "high")

_LEAST = {
    "max_tool_calls": 0,
    "max_concurrent_tools": 1,
    "max_tokens": 1,
    "budget": 0,
    "turn_budget": 0,
}
_MINUTES = ("approval_minutes", "turn_minutes", "reply_minutes")
_LONGEST = {"name": KEY_BYTES, "model": KEY_BYTES, "system_prompt": MESSAGE_BYTES}


def checked_definition(**given: Any) -> Definition:
    """Return an agent of these fields.

    Raises:
        ConfigurationError: One is of a wrong type, too long or out of range; the message names it.
    """
    try:
        asked = Definition.model_validate(given, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = str(first["loc"][0])
        raise ConfigurationError(f"{name} is {given[name]!r:.100}: {first['msg']}") from error
    for name, least in _LEAST.items():
        if given[name] is not None and given[name] < least:
            raise ConfigurationError(f"{name} is {given[name]}; use {least} or more")
    for name in _MINUTES:
        if not 0 < given[name] <= YEAR:
            raise ConfigurationError(f"{name} is {given[name]}; use more than 0, {YEAR} at most")
    for name, most in _LONGEST.items():
        size = encoded_size(given[name])
        if size > most:
            raise ConfigurationError(f"{name} takes {size} bytes encoded, the limit is {most}")
    if asked.reasoning_effort not in ("", *EFFORTS):
        raise ConfigurationError(
            f"reasoning_effort is {asked.reasoning_effort!r:.100}; use low, medium, high"
        )
    return asked


def checked_lists(**given: object) -> None:
    """Refuse what is no list or tuple.

    Raises:
        ConfigurationError: One is not; the message names it.
    """
    for name, value in given.items():
        if not isinstance(value, list | tuple):
            raise ConfigurationError(f"{name} is {value!r:.100}; use a list")


def checked_kind(kind: type, **given: object) -> None:
    """Refuse what is neither None nor of this class.

    Raises:
        ConfigurationError: One is not; the message names it.
    """
    for name, value in given.items():
        if value is not None and not isinstance(value, kind):
            raise ConfigurationError(f"{name} is {value!r:.100}; use a {kind.__name__}")


def checked_approve(approve: object) -> list[str]:
    """Return the tools that need approval, as a definition names them.

    Raises:
        ConfigurationError: It is neither `all` nor a list of names.
    """
    if approve == "all":
        return ["*"]
    checked_lists(approve=approve)
    names = list(cast("Sequence[object]", approve))
    for name in names:
        if not isinstance(name, str):
            raise ConfigurationError(f"approve holds {name!r:.100}; use names of tools, or 'all'")
    return cast("list[str]", names)


def check_approved(definition: Definition) -> None:
    """Refuse an approval of a tool that the agent does not have.

    Raises:
        ConfigurationError: There is one; the message lists the agent's tools.
    """
    tools = [spec.name for spec in definition.tools]
    for name in definition.approve:
        if name != "*" and name not in tools:
            known = ", ".join(tools) or "none"
            raise ConfigurationError(f"approve: the agent has no tool {name!r}; it has {known}")


M = TypeVar("M", bound=BaseModel)


class Assistant(Generic[T]):
    """An agent ready to answer; `agent()` makes it.

    Its answers are text, or what its `response_format` says.

    Attributes:
        definition: What it is, as the worker resolved it.
        approvals: Its tool calls that wait for a person.
        priority: Of its calls where they wait for a worker.
        usage: Of all its model calls so far.
    """

    def __init__(
        self,
        definition: Definition,
        *,
        memory: WorkingMemory | None,
        scope: str = "",
        response_format: ResponseFormat[T] | None = None,
        on_complete: Sequence[Hook] = (),
        on_pause: Sequence[Hook] = (),
    ) -> None:
        self.definition = definition
        self.approvals: Approvals = approvals()
        self.usage = Usage()
        self._memory = memory
        self.priority = of_turn(definition.name, scope)
        self._format = response_format or ResponseFormat[T](definition.response_format)
        self._on_complete = on_complete
        self._on_pause = on_pause
        if memory is not None:
            warn_of_overhead(definition, memory.settings)

    async def __call__(self, instruction: str, *, context: str = "") -> T:
        """Answer an instruction and run the `on_complete` hooks.

        Args:
            instruction: What to do, from the user.
            context: What earlier work gave, put under the instruction.

        Returns:
            The answer's text; with a response format its value: an instance of the pydantic
            model, or JSON.

        Raises:
            InvalidInput: The instruction is blank, or with its context over 1 MiB.
            TurnFailed: There is no answer, or none that keeps the response format; the message
                says why.
        """
        answer = await self.ask(instruction, context=context)
        if self._format.schema is not None and answer.finish == "content_filter":
            raise TurnFailed(f"the model's provider refused or filtered the answer: {answer.text}")
        value = self._format.value(answer.text)
        await run_hooks(self._on_complete, self.definition.name, value)
        return value

    async def ask(self, instruction: str, *, context: str = "") -> Answer:
        """Answer an instruction, with its finish and usage; runs no `on_complete` hooks."""
        text = parse_text([instruction], "the instruction")
        if context:
            joined = f"{text}\n\nContext from previous work:\n\n{context}"
            text = parse_text([joined], "the instruction with its context")
        # Without a working memory each call is a conversation of its own.
        memory = self._memory if self._memory is not None else WorkingMemory()
        async with memory.lock:
            loop = Loop(
                self.definition,
                memory,
                approvals=self.approvals,
                on_pause=self._pause,
                spent=self.usage,
                response_format=self._format,
                priority=self.priority,
            )
            try:
                return await loop.turn(text)
            finally:
                self.usage = self.usage.plus(loop.usage)

    def spend(self, usage: Usage) -> None:
        """Count what was spent beside the turns."""
        self.usage = self.usage.plus(usage)

    async def _pause(self) -> None:
        await run_hooks(self._on_pause, self.definition.name, None)


@overload
async def agent(
    system_prompt: str, *, response_format: type[M], **options: Unpack[Options]
) -> Assistant[M]: ...


@overload
async def agent(
    system_prompt: str, *, response_format: JSONObject, **options: Unpack[Options]
) -> Assistant[JSONValue]: ...


@overload
async def agent(
    system_prompt: str, *, response_format: None = None, **options: Unpack[Options]
) -> Assistant[str]: ...


async def agent(
    system_prompt: str,
    *,
    model: str | None = None,
    name: str | None = None,
    tools: Sequence[Callable[..., Any] | ToolSpec | str] = (),
    working_memory: WorkingMemory | None = None,
    long_term_memory: LongTermMemory | None = None,
    max_tool_calls: int = 10,
    max_concurrent_tools: int | None = None,
    max_tokens: int = 4096,
    response_format: Given = None,
    reasoning_effort: str | None = None,
    budget: int | None = None,
    turn_budget: int | None = None,
    approve: Sequence[str] | Literal["all"] = (),
    approval_minutes: float = 1_440,
    turn_minutes: float = 15,
    reply_minutes: float = 9,
    stream: bool = False,
    on_complete: Sequence[Hook] = (),
    on_pause: Sequence[Hook] = (),
) -> Assistant[Any]:
    """Make an agent, in workflow code.

    Args:
        system_prompt: Its instructions.
        model: As litellm names it; the worker's default (`AGENTMEM_MODEL`) if None.
        name: For people and hooks, at most 512 bytes; the long-term memory's agent, else `agent`,
            if None.
        tools: Functions marked `@tool` that the worker has, or their names.
        working_memory: The conversation; without one each call is a conversation of its own.
        long_term_memory: Adds its four tools and its hint to the system prompt.
        max_tool_calls: Tool calls in a turn, never exceeded.
        max_concurrent_tools: Tool calls at a time; None for no bound.
        max_tokens: The most tokens of one reply.
        response_format: A pydantic model, or a JSON schema as a dict: answers are JSON that keeps
            it. One that does not is asked for again, twice at most.
        reasoning_effort: low, medium or high; None for the model's default.
        budget: The most tokens that all turns may take together: over it, a turn fails.
        turn_budget: The most tokens that one turn may take.
        approve: Tools whose calls need a person's approval, or `all`, besides those that say so
            themselves.
        approval_minutes: How long a call waits for a person; then it is not approved.
        turn_minutes: How long the model calls of a turn may take together, retries included.
        reply_minutes: How long a model may take for a reply; with `stream`, for each piece.
        stream: Read replies piece by piece: a slow model that keeps sending is not given up.
        on_complete: Run after each answer: `hook(agent_name, answer)`, with what the call returns.
            A `dream()` that names no model dreams with the agent's, here and in `on_pause`.
        on_pause: Run when a turn waits for a person: `hook(agent_name, None)`.

    Returns:
        The agent: `await assistant("...")` gives its answer.

    Raises:
        ConfigurationError: An argument makes no sense, or the worker knows no such tool.
    """
    checked_kind(WorkingMemory, working_memory=working_memory)
    checked_kind(LongTermMemory, long_term_memory=long_term_memory)
    form: ResponseFormat[Any] = ResponseFormat(response_format)
    asked = checked_definition(
        name=(long_term_memory.agent if long_term_memory else "agent") if name is None else name,
        system_prompt=system_prompt,
        model=model or "",
        max_tool_calls=max_tool_calls,
        max_concurrent_tools=max_concurrent_tools,
        max_tokens=max_tokens,
        reasoning_effort=reasoning_effort or "",
        response_format=form.schema,
        budget=budget,
        turn_budget=turn_budget,
        approve=checked_approve(approve),
        approval_minutes=approval_minutes,
        turn_minutes=turn_minutes,
        reply_minutes=reply_minutes,
        stream=stream,
    )
    checked_lists(tools=tools, on_complete=on_complete, on_pause=on_pause)
    entries = [entry if isinstance(entry, str) else tool_spec(entry) for entry in tools]
    specs = [entry for entry in entries if isinstance(entry, ToolSpec) and entry.store]
    names = [e if isinstance(e, str) else e.name for e in entries if e not in specs]
    hooks = [hook for hook in (*on_complete, *on_pause) if isinstance(hook, DreamHook)]
    hooks = list(dict.fromkeys(hooks))
    for hook in hooks:
        hook.expect()
    request = Resolve(
        model=asked.model,
        tools=list(dict.fromkeys(names)),
        response_format=form.schema,
        notes=[hook.note() for hook in hooks],
    )
    resolved = await resolve(request)
    definition = asked.replace(
        model=resolved.model,
        tools=resolved.tools + specs,
        schema_tokens=resolved.schema_tokens,
    )
    if long_term_memory is not None:
        definition = equip(definition, long_term_memory)
    check_approved(definition)
    for hook in hooks:
        hook.use_model(definition.model)
    return Assistant(
        definition,
        memory=working_memory,
        scope=long_term_memory.store.scope if long_term_memory is not None else "",
        response_format=form,
        on_complete=on_complete,
        on_pause=on_pause,
    )


def equip(definition: Definition, memory: LongTermMemory) -> Definition:
    """Return an agent with long-term memory: its tools, each once, and its hint."""
    present = {spec.name for spec in definition.tools}
    added = [spec for spec in memory.as_tools() if spec.name not in present]
    prompt = f"{definition.system_prompt}\n\n{memory.system_prompt_hint()}"
    return definition.replace(tools=definition.tools + added, system_prompt=prompt)


async def resolve(request: Resolve) -> Definition:
    """Ask the worker what an agent is.

    Raises:
        ConfigurationError: The worker knows no such agent, tool or provider; lists what exists.
    """
    try:
        return await workflow.execute_activity(
            contracts.resolve,
            request,
            priority=of_turn(request.agent, request.scope),
            **RESOLVE,
        )
    except ActivityError as error:
        raise_cancellation(error)
        raise ConfigurationError(describe(error)) from error
