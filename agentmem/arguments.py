"""The arguments of `agent()`, checked before any of them reaches a workflow's history."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypedDict, cast

from pydantic import ValidationError

from agentmem.contracts import Definition, ToolSpec
from agentmem.contracts.dream_settings import YEAR
from agentmem.errors import ConfigurationError
from agentmem.facts import KEY_BYTES
from agentmem.hooks import Hook
from agentmem.inputs import MESSAGE_BYTES
from agentmem.memory.long_term import LongTermMemory
from agentmem.memory.working import WorkingMemory
from agentmem.values import encoded_size


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
