"""The agents' file: TOML in, validated definitions out, errors with file, line and field."""

import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

from pydantic import ValidationError

from agentmem.configuration.agents_tables import AgentsTable, AgentTable, fields_at, identify
from agentmem.configuration.toml_lines import line_of
from agentmem.contracts import STEPS, Definition, DreamSettings, ToolSpec
from agentmem.contracts.dream_settings import PHASES_ERROR
from agentmem.errors import ConfigurationError
from agentmem.memory.tools import MEMORY_TOOLS
from agentmem.models.structured import check_schema

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
