"""The tables of the agents' file, field by field, and the definitions that they stand for."""

from collections.abc import Collection, Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, ConfigDict, Field

from agentmem.contracts import (
    Definition,
    DreamLimits,
    DreamSettings,
    MemorySettings,
    PhaseSettings,
    RunLimits,
    StepName,
    ToolSpec,
)
from agentmem.contracts.dream_settings import YEAR, fitting
from agentmem.errors import ConfigurationError
from agentmem.memory.references import named, postgresql, sqlite
from agentmem.values import JSONObject, Wire

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
