"""The tools of a worker: what models are told of them, and what runs when they are called."""

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

from agentmem.contracts.calls import ToolSpec
from agentmem.errors import ConfigurationError, ToolError
from agentmem.memory.tools import MEMORY_TOOLS, check_arguments
from agentmem.messages import ToolCall
from agentmem.tools import docstrings, tool_spec
from agentmem.tools.asking import ASK_USER, ASK_USER_SCHEMA
from agentmem.tools.signature import Signature
from agentmem.wire import JSONObject


def tool_schema(obj: object) -> JSONObject:
    """Return how a `@tool` function is offered to a model, in OpenAI's function form.

    Raises:
        ConfigurationError: It is no `@tool` function, or a parameter's type has no JSON schema.
    """
    return Tool(cast("Callable[..., Any]", obj)).schema


class Tool:
    """A tool on the worker: its function, what it is called with, how models see it.

    Attributes:
        function: The function.
        spec: What workflow code knows of it.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.spec = tool_spec(function)
        self.function = function

    @functools.cached_property
    def signature(self) -> Signature:
        """Its parameters; raises `ConfigurationError` for a type without a JSON schema."""
        return Signature(self.function)

    @property
    def schema(self) -> JSONObject:
        """The tool in OpenAI's function form."""
        text = docstrings.summary(self.function)
        function: JSONObject = {
            "name": self.spec.name,
            **({"description": text} if text else {}),
            "parameters": self.signature.schema,
        }
        return {"type": "function", "function": function}


class ToolBox:
    """The tools of a worker by name: the user's, the four of long-term memory, and `ask_user`.

    Attributes:
        tools: The user's tools, in order of their names.
    """

    def __init__(self, functions: Iterable[Callable[..., Any]] = ()) -> None:
        """Register tools, and build their schemas: a wrong one shows when the worker starts.

        Args:
            functions: `@tool` functions; the same one may come twice.

        Raises:
            ConfigurationError: Two functions have one name, or one cannot be offered to a model.
        """
        found: dict[str, Tool] = {}
        for function in functions:
            made = Tool(function)
            other = found.setdefault(made.spec.name, made)
            if other.function is not function:
                raise ConfigurationError(
                    f"two tools are named {made.spec.name!r}: in {other.function.__module__} and "
                    f"in {function.__module__}; give one another name: @tool(name=...)"
                )
        self.tools = tuple(found[name] for name in sorted(found))
        self._tools = {t.spec.name: t for t in self.tools}
        self._specs = {t.spec.name: t.spec for t in self.tools}
        self._schemas = {t.spec.name: t.schema for t in self.tools}
        for spec, schema in [*MEMORY_TOOLS.values(), (ASK_USER, ASK_USER_SCHEMA)]:
            self._specs[spec.name], self._schemas[spec.name] = spec, schema

    def specs(self, names: Sequence[str]) -> list[ToolSpec]:
        """Return what workflow code must know of these tools, in this order.

        Raises:
            ConfigurationError: A name is unknown; the message lists those that exist.
        """
        return [self._specs[name] for name in self._known(names)]

    def schemas(self, names: Sequence[str]) -> list[JSONObject]:
        """Return a request's `tools`: the same names give the same bytes on every worker.

        A name that the worker does not know has no schema: an older session may have such a tool.
        """
        return [self._schemas[name] for name in dict.fromkeys(names) if name in self._schemas]

    def checked(self, call: ToolCall) -> ToolCall:
        """Return a call as a person may be asked about it, with the arguments that it runs with.

        A call that cannot run as it was sent has a `problem`: its arguments do not fit, or hold a
        field that the tool does not take.
        """
        try:
            if call.name in self._tools:
                bound = self._tools[call.name].signature.bind_exactly(call.arguments)
                return call if bound == call.arguments else call.replace(bound=bound)
            if call.name in MEMORY_TOOLS:
                check_arguments(call.name, call.arguments)
        except ToolError as error:
            return call.replace(problem=error.message.removeprefix("The tool was not run, "))
        return call

    def _known(self, names: Sequence[str]) -> list[str]:
        unknown = [name for name in names if name not in self._specs]
        if unknown:
            raise ConfigurationError(
                f"no tool is named {', '.join(map(repr, unknown))}; this worker has "
                f"{', '.join(sorted(self._specs))}. Tools come from the module of AGENTMEM_APP"
            )
        return list(dict.fromkeys(names))
