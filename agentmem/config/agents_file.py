"""The agents' file: TOML in, validated definitions out, errors with file, line and field."""

import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, ConfigDict, Field, ValidationError

from agentmem.contracts import (
    STEPS,
    Definition,
    DreamLimits,
    DreamSettings,
    MemorySettings,
    PhaseSettings,
    RunLimits,
    StepName,
    ToolSpec,
)
from agentmem.contracts.dream_settings import PHASES_ERROR, YEAR, fitting
from agentmem.errors import ConfigurationError
from agentmem.llm.structured_output import check_schema
from agentmem.memory.references import named, postgresql, sqlite
from agentmem.memory.tools import MEMORY_TOOLS
from agentmem.wire import JSONObject, Wire


def line_of(text: str, path: Sequence[str]) -> int:
    """Return the line, from 1, of the statement that names most of a field's path.

    Args:
        text: A file that parses as TOML.
        path: The field's keys from the top: `("agents", "assistant", "model")`.
    """
    line, most = 1, 0
    for start, keys, value in _statements(text):
        depth = _shared(keys, path)
        if depth == len(keys):
            depth += _inside(value, path[depth:])
        if depth > most:
            line, most = start, depth
    return line


def _statements(text: str) -> Iterator[tuple[int, list[str], Any]]:
    """Yield each statement's first line, its full key and its value; {} for a header.

    A statement is the fewest lines that parse alone: an open string or array does not.
    """
    lines = text.splitlines(keepends=True)
    table: list[str] = []
    start = 0
    for end in range(1, len(lines) + 1):
        statement = "".join(lines[start:end])
        try:
            parsed = tomllib.loads(statement)
        except tomllib.TOMLDecodeError:
            continue
        if parsed:
            keys, value = _only_key(parsed)
            header = statement.lstrip().startswith("[")
            table = keys if header else table
            yield start + 1, keys if header else [*table, *keys], {} if header else value
        start = end


def _only_key(parsed: dict[str, Any]) -> tuple[list[str], Any]:
    keys: list[str] = []
    value: Any = parsed
    while isinstance(value, dict) and len(value) == 1:  # pyright: ignore[reportUnknownArgumentType]
        [(key, value)] = value.items()  # pyright: ignore[reportUnknownVariableType]
        keys.append(str(key))  # pyright: ignore[reportUnknownArgumentType]
    return keys, value  # pyright: ignore[reportUnknownVariableType]


def _shared(keys: Sequence[str], path: Sequence[str]) -> int:
    shared = 0
    while shared < min(len(keys), len(path)) and keys[shared] == path[shared]:
        shared += 1
    return shared


def _inside(value: Any, path: Sequence[str]) -> int:
    depth = 0
    while depth < len(path) and isinstance(value, dict) and path[depth] in value:
        value = value[path[depth]]  # pyright: ignore[reportUnknownVariableType]
        depth += 1
    return depth


_STRICT = ConfigDict(extra="forbid", strict=True)

PROVIDER_KINDS = ("default", "in_memory", "sqlite", "postgresql", "named")

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]

Minutes = Annotated[float, Field(gt=0, le=YEAR, allow_inf_nan=False)]


class WorkingMemoryTable(MemorySettings):
    """`[agents.NAME.working_memory]`: the five settings of a working memory."""

    model_config = _STRICT
    window: int | None = Field(default=None, ge=1)
    max_tokens: int | None = Field(default=50_000, ge=1)
    compact_threshold: float = Field(default=0.70, gt=0, le=1)
    compact_preserve: int = Field(default=4, ge=0)


class LongTermMemoryTable(Wire):
    """`[agents.NAME.long_term_memory]`: where the agent's facts live."""

    model_config = _STRICT
    provider: str = "default"


class DreamLimitsTable(DreamLimits):
    """`[agents.NAME.dream.limits]`: tool calls a phase, facts and failures a scope."""

    model_config = _STRICT


class PhaseTable(PhaseSettings):
    """`[agents.NAME.dream.phases.PHASE]`: model, attempts and time of a phase of its dreams."""

    model_config = _STRICT


class DreamTable(DreamSettings):
    """`[agents.NAME.dream]`: when and how the agent's sessions dream."""

    model_config = _STRICT
    workflow: str = Field(default="agent_dream", min_length=1)
    limits: DreamLimitsTable = (  # pyright: ignore[reportIncompatibleVariableOverride] # frozen
        DreamLimitsTable()
    )
    phases: Annotated[  # pyright: ignore[reportIncompatibleVariableOverride] # frozen
        dict[StepName, PhaseTable], AfterValidator(fitting)
    ] = {}


class RunLimitsTable(RunLimits):
    """`[agents.NAME.run_limits]`: when the agent's sessions go on in a new run."""

    model_config = _STRICT


class AgentTable(Wire):
    """`[agents.NAME]`."""

    model_config = _STRICT
    system_prompt: str = ""
    model: str = ""
    tools: list[str] = []
    max_tool_calls: int = Field(default=10, ge=0)
    max_concurrent_tools: int | None = Field(default=None, ge=1)
    max_tokens: int = Field(default=4096, ge=1)
    reasoning_effort: Literal["", "low", "medium", "high"] = ""
    response_format: JSONObject | None = None
    budget: int | None = Field(default=None, ge=1)
    turn_budget: int | None = Field(default=None, ge=1)
    approve: Literal["all"] | list[str] = []
    approval_minutes: Minutes = 1_440
    turn_minutes: Minutes = 15
    reply_minutes: Minutes = 9
    stream: bool = False
    working_memory: WorkingMemoryTable = WorkingMemoryTable()
    long_term_memory: LongTermMemoryTable | None = None
    dream: DreamTable | None = None
    run_limits: RunLimitsTable = RunLimitsTable()

    def definition(
        self, name: str, tools: Mapping[str, ToolSpec], providers: Collection[str]
    ) -> Definition:
        """Return the agent that this table defines; an empty model is the worker's default."""
        memory, dream = self.long_term_memory, self.dream
        return Definition(
            name=name,
            system_prompt=self.system_prompt,
            model=self.model,
            tools=[tools[tool] for tool in dict.fromkeys(self.tools)],
            max_tool_calls=self.max_tool_calls,
            max_concurrent_tools=self.max_concurrent_tools,
            max_tokens=self.max_tokens,
            reasoning_effort=self.reasoning_effort,
            response_format=self.response_format,
            budget=self.budget,
            turn_budget=self.turn_budget,
            approve=["*"] if self.approve == "all" else self.approve,
            approval_minutes=self.approval_minutes,
            turn_minutes=self.turn_minutes,
            reply_minutes=self.reply_minutes,
            stream=self.stream,
            working_memory=MemorySettings(**dict(self.working_memory)),
            long_term_memory=identify(memory.provider, providers) if memory else "",
            dream=DreamSettings.model_validate(dream.model_dump()) if dream else None,
            run_limits=RunLimits(**dict(self.run_limits)),
        )


class AgentsTable(Wire):
    """The whole file."""

    model_config = _STRICT
    agents: dict[Name, AgentTable] = {}


def fields_at(path: tuple[str, ...]) -> list[str]:
    """Return the fields of the table that a path's last key stands in."""
    tables: dict[str, type[Wire]] = {
        "working_memory": WorkingMemoryTable,
        "long_term_memory": LongTermMemoryTable,
        "dream": DreamTable,
        "limits": DreamLimitsTable,
        "run_limits": RunLimitsTable,
    }
    if len(path) == 1:
        return list(AgentsTable.model_fields)
    return list((AgentTable if len(path) == 3 else tables.get(path[-2], PhaseTable)).model_fields)


def identify(provider: str, registered: Collection[str]) -> str:
    """Return the identity of a provider as the agents' file writes it.

    Args:
        provider: `default`, `in_memory`, `sqlite:PATH`, `postgresql`, or a registered name.
        registered: The names under which `@provider` registered stores on this worker.

    Raises:
        ConfigurationError: There is no such provider; the message lists those there are.
    """
    kind, _, rest = provider.partition(":")
    if provider == "default":
        return "default"
    if provider in registered or (kind == "named" and rest in registered):
        return named(rest or provider).identity
    if kind == "in_memory":  # in_memory() would make a store of its own: no workflow runs here
        return f"in_memory:{rest or 'default'}"
    if kind == "sqlite":
        return sqlite(rest).identity
    if kind == "postgresql":
        return postgresql(rest or None).identity
    known = ["default", "in_memory", "sqlite:PATH", "postgresql", "postgresql:env:NAME"]
    raise ConfigurationError(
        f"no provider {provider!r}; there are {', '.join([*known, *sorted(registered)])}"
    )


ASSISTANT = Definition(
    name="assistant",
    system_prompt=(
        "You are a helpful assistant. Answer briefly and directly, in the user's language. "
        "When an answer may rest on something the user told you before, look in long-term memory "
        "first. Store lasting facts about the user and their wishes as soon as you learn them, "
        "and correct them when they change. Say so when you do not know."
    ),
    model="",
    long_term_memory="default",
    dream=DreamSettings(),
)
"""The agent that is there without a file; a file's own `assistant` takes its place."""

_A_TABLE = re.compile(r"a valid dictionary( or .*)?$")
"""The pattern of pydantic's words for a table."""

_Mistake: TypeAlias = tuple[tuple[str, ...], str]
"""A field's path and what is wrong with it."""


def read_agents(
    path: Path | None, *, tools: Mapping[str, ToolSpec], providers: Collection[str]
) -> dict[str, Definition]:
    """Read the agents' file and check it against what the worker has.

    Args:
        path: The file, None for the built-in `assistant` alone.
        tools: The tools that agents may name.
        providers: The names of the registered providers.

    Returns:
        Every agent by its name. An empty model stands for the worker's default.

    Raises:
        ConfigurationError: The file cannot be read or is wrong: a line for each mistake, with
            file, line, field, and what exists.
    """
    if path is None:
        return {ASSISTANT.name: ASSISTANT}
    try:
        text = path.read_text(encoding="utf-8")
        parsed = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{path}: {error}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"AGENTMEM_AGENTS: cannot read {path}: {error}") from error
    try:
        tables = AgentsTable.model_validate(parsed).agents
    except ValidationError as error:
        raise _wrong(path, text, _mistakes(error)) from error
    unknown = [one for each in tables.items() for one in _unknown(*each, tools, providers)]
    if unknown:
        raise _wrong(path, text, unknown)
    found = {name: table.definition(name, tools, providers) for name, table in tables.items()}
    return {ASSISTANT.name: ASSISTANT} | found


def _mistakes(error: ValidationError) -> Iterator[_Mistake]:
    for one in error.errors():
        path = tuple(str(key) for key in one["loc"])
        if one["type"] == PHASES_ERROR:
            yield path, one["msg"]
        elif path[-1] == "[key]" and path[3:4] == ("phases",):
            yield path[:-1], f"no such phase; there are {', '.join(STEPS)}"
        elif path[-1] == "[key]":
            yield path[:-1], "an agent's name is 1 to 64 letters, digits, '_', '-' or '.'"
        elif one["type"] == "extra_forbidden":
            yield path, f"unknown field; there are {', '.join(fields_at(path))}"
        elif path[-1] == "list[str]":  # "all" is the other choice, told once
            yield path[:-1], f"give a list of tools or 'all', not {one['input']!r}"
        elif path[-1] != "literal['all']":
            yield path, f"{_A_TABLE.sub('a table', one['msg'].lower())}, not {one['input']!r}"


def _unknown(
    name: str, table: AgentTable, tools: Mapping[str, ToolSpec], providers: Collection[str]
) -> Iterator[_Mistake]:
    here = ("agents", name)
    for tool in table.tools:
        if tool not in tools:
            known = ", ".join(sorted(tools))
            where = "AGENTMEM_APP names the module whose @tool functions an agent may have"
            yield (*here, "tools"), f"no tool {tool!r}; there are {known}; {where}"
    mine = {*table.tools, *(MEMORY_TOOLS if table.long_term_memory else ())}
    for tool in table.approve if isinstance(table.approve, list) else ():
        if tool not in mine:
            known = ", ".join(sorted(mine)) or "none"
            yield (*here, "approve"), f"the agent has no tool {tool!r}; it has {known}"
    if table.response_format is not None:
        try:
            check_schema(table.response_format)
        except (ConfigurationError, TypeError) as error:
            yield (*here, "response_format"), getattr(error, "message", str(error))
    if table.dream and not table.long_term_memory:
        yield (*here, "dream"), f"a dream needs [agents.{name}.long_term_memory] to write to"
    if table.long_term_memory:
        try:
            identify(table.long_term_memory.provider, providers)
        except ConfigurationError as error:
            yield (*here, "long_term_memory", "provider"), error.message


def _wrong(path: Path, text: str, mistakes: Iterable[_Mistake]) -> ConfigurationError:
    lines = sorted((line_of(text, keys), ".".join(keys), why) for keys, why in mistakes)
    return ConfigurationError(
        "\n".join(f"{path}:{line}: {keys}: {why}" for line, keys, why in lines)
    )
