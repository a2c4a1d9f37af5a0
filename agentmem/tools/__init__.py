"""Tools: functions that a model may call, each run as a Temporal activity under its own name."""

import inspect
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar, overload

from pydantic import ValidationError

from agentmem.contracts.calls import MOST_RESULT_BYTES, RESULT_BYTES, ToolSpec
from agentmem.errors import ConfigurationError
from agentmem.memory.tools import MEMORY_TOOLS
from agentmem.tools.asking import ASK_USER

F = TypeVar("F", bound=Callable[..., Any])

TOOL_MARK = "__agentmem_tool__"
"""The attribute by which a worker finds the tools of a module; it holds the `ToolSpec`."""

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_TIMEOUT = timedelta(minutes=5)
_LONGEST = timedelta(days=7)
_MOST_RETRIES = 100  # Temporal's number of attempts and its durations have ends too, far from here
_LEAST_RESULT = 200  # room for the notice that says the full size


@overload
def tool(function: F, /) -> F: ...


@overload
def tool(
    *,
    name: str | None = None,
    approval: bool = False,
    writes: bool = False,
    retries: int = 0,
    timeout: timedelta = _TIMEOUT,
    concurrency: int | None = None,
    recalled: bool = False,
    result_bytes: int = RESULT_BYTES,
) -> Callable[[F], F]: ...


def tool(
    function: F | None = None,
    /,
    *,
    name: str | None = None,
    approval: bool = False,
    writes: bool = False,
    retries: int = 0,
    timeout: timedelta = _TIMEOUT,
    concurrency: int | None = None,
    recalled: bool = False,
    result_bytes: int = RESULT_BYTES,
) -> F | Callable[[F], F]:
    """Mark a function as a tool; it stays what it is and can still be called.

    A worker that loads the function's module (`AGENTMEM_APP`) runs it as an activity. What a
    model sees comes from the signature, the docstring's first paragraph and its `Args:` section.
    A sync function runs in a thread, and cannot be stopped when a turn is cancelled.

    Args:
        function: The function, sync or async, with a name and a type for each parameter.
        name: Its name for models and in the Temporal UI, the function's own by default.
        approval: Whether a person must agree to each call.
        writes: Whether calls of a batch run alone and in order, not together.
        retries: Attempts after the first, 100 at most. Only for what may safely happen twice: by
            default an error goes to the model at once, as a `ToolError` always does.
        timeout: Of one attempt, a week at most.
        concurrency: The most calls of one reply that run at a time; None for no bound of its own.
        recalled: Whether its results show what memory knows already, so that no dream learns
            them again.
        result_bytes: The longest result, encoded, 1 MiB at most; a longer one is cut at a
            character and says its full size.

    Raises:
        ConfigurationError: The name is not 1 to 64 letters, digits, `_` or `-`, or is one of
            agentmem's own; a parameter has no name; an option is of a wrong type or out of range.
    """

    def mark(function: F) -> F:
        spec = _spec(
            function,
            name=name or getattr(function, "__name__", ""),
            approval=approval,
            writes=writes,
            retries=retries,
            timeout=timeout,
            concurrency=concurrency,
            recalled=recalled,
            result_bytes=result_bytes,
        )
        _check(spec, function)
        setattr(function, TOOL_MARK, spec)
        return function

    return mark if function is None else mark(function)


def tool_spec(obj: object) -> ToolSpec:
    """Return what workflow code must know of a tool: of a `@tool` function, or a spec itself.

    Raises:
        ConfigurationError: It is neither.
    """
    spec = obj if isinstance(obj, ToolSpec) else getattr(obj, TOOL_MARK, None)
    if not isinstance(spec, ToolSpec):
        shown = getattr(obj, "__name__", repr(obj))
        raise ConfigurationError(f"{shown} is not a tool: decorate the function with @tool")
    return spec


def _where(function: Callable[..., Any]) -> str:
    return f"@tool on {getattr(function, '__qualname__', repr(function))}"


def _spec(function: Callable[..., Any], **given: Any) -> ToolSpec:
    try:
        return ToolSpec.model_validate(given, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        option = str(first["loc"][0])
        raise ConfigurationError(
            f"{_where(function)}: {option} is {given[option]!r:.100}: {first['msg']}"
        ) from error


def _check(spec: ToolSpec, function: Callable[..., Any]) -> None:
    where = _where(function)
    generator = inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)
    if not inspect.isfunction(function) or generator:
        raise ConfigurationError(f"{where}: a tool is a function, sync or async, no generator")
    if not _NAME.fullmatch(spec.name):
        raise ConfigurationError(
            f"{where}: the name {spec.name!r} must be 1 to 64 letters, digits, '_' or '-'"
        )
    if spec.name in MEMORY_TOOLS or spec.name == ASK_USER.name:
        raise ConfigurationError(f"{where}: the name {spec.name!r} is one of agentmem's own tools")
    if not 0 <= spec.retries <= _MOST_RETRIES:
        raise ConfigurationError(f"{where}: retries must be 0 to {_MOST_RETRIES}")
    if not timedelta(0) < spec.timeout <= _LONGEST:
        raise ConfigurationError(
            f"{where}: timeout must be above zero, and {_LONGEST.days} days at most"
        )
    if not _LEAST_RESULT <= spec.result_bytes <= MOST_RESULT_BYTES:
        raise ConfigurationError(
            f"{where}: result_bytes must be {_LEAST_RESULT} to {MOST_RESULT_BYTES}"
        )
    if spec.concurrency is not None and spec.concurrency < 1:
        raise ConfigurationError(f"{where}: concurrency must be 1 or more")
    unnamed = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
    unnamed.add(inspect.Parameter.POSITIONAL_ONLY)
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in unnamed:
            raise ConfigurationError(
                f"{where}: {parameter} has no name that a model could use; write each parameter "
                "out, without *, ** and /"
            )
