"""What people set of dreams: when, by which model, within which bounds."""

from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, Field, NonNegativeInt, PositiveInt, ValidationError
from pydantic_core import PydanticCustomError

from agentmem.errors import ConfigurationError
from agentmem.values import Wire

YEAR = 525_600
"""Minutes of the longest quiet time that a session may wait for."""

PHASES_MINUTES = 70
"""What the four phases of a dream may take together; its run ends after 75 minutes."""

TOO_LONG = "phases_too_long"
"""The type of the error of phases that would take longer."""

Mode = Literal["commit", "propose"]
ModelName = Annotated[str, Field(max_length=512)]
PhaseName = Literal["orient", "gather_signal", "consolidate", "prune"]
PHASES: tuple[PhaseName, ...] = get_args(PhaseName)


class Setting(Wire):
    """Settings that code writes, too: what is wrong there is the caller's mistake."""

    def __init__(self, **fields: Any) -> None:
        """Set fields by name.

        Raises:
            ConfigurationError: There is no such field, or its value is out of bounds; in workflow
                code that fails the workflow.
        """
        name, known = type(self).__name__, type(self).model_fields
        for field in fields:
            if field not in known:
                there = ", ".join(known)
                raise ConfigurationError(f"{name}: no field {field!r}; there are {there}")
        try:
            super().__init__(**fields)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            raise ConfigurationError(f"{name}: {first['loc'][0]}: {first['msg']}") from error

    # What is decoded goes past it and keeps pydantic's own errors, which name the whole path.
    __init__.__pydantic_base_init__ = True  # pyright: ignore[reportFunctionMemberAccess]


class DreamLimits(Setting):
    """Bounds of a dream: tool calls a phase, facts a scope, failures before the gate shuts.

    `context` is the size of the model's context in tokens; 0: what litellm knows of it, the
    smallest where phases have models of their own. The numbers of tool calls are those of the
    architecture that agentmem implements.
    """

    orient: PositiveInt = 20
    gather_signal: PositiveInt = 10
    consolidate: PositiveInt = 30
    prune: PositiveInt = 20
    keys: PositiveInt = 100
    failures: PositiveInt = 3
    context: NonNegativeInt = 0


class PhaseSettings(Setting):
    """By which model a phase of a dream works, how often it is tried, and for how long.

    Attributes:
        model: The phase's model, the dream's own if empty.
        attempts: How often it is tried before the dream fails; no recorded reply is asked for
            again.
        minutes: How long an attempt may take. All of them may take `attempts` x `minutes`, the
            wait for a worker included.
    """

    model: ModelName = ""
    attempts: int = Field(default=3, ge=1, le=100)
    minutes: float = Field(default=5, ge=0.01, allow_inf_nan=False)


def fitting(phases: dict[PhaseName, PhaseSettings]) -> dict[PhaseName, PhaseSettings]:
    """Return the settings of phases, if a dream has the time for them.

    Raises:
        PydanticCustomError: The four phases may take too long together.
    """
    every = [phases.get(name, PhaseSettings()) for name in PHASES]
    minutes = sum(phase.attempts * phase.minutes for phase in every)
    if minutes > PHASES_MINUTES:
        raise PydanticCustomError(
            TOO_LONG,
            "The four phases may take {minutes} minutes, a dream has {most} for them: lower "
            "attempts or minutes, whose products are summed (15 for a phase without settings)",
            {"minutes": f"{minutes:g}", "most": PHASES_MINUTES},
        )
    return phases


Phases = Annotated[dict[PhaseName, PhaseSettings], AfterValidator(fitting)]


class DreamSettings(Wire):
    """When and how sessions of an agent dream.

    Attributes:
        on: `end`, `idle`, `complete` (each answer), `pause`; `schedule` for none of them: sessions
            hand over at their end, and a Temporal Schedule starts the dreams.
        every: For `complete`: dream after so many answers, and at the end what is left.
        idle_minutes: How long a session is quiet before `idle` fires; it does not end. A year at
            most.
        model: The dream's model, the agent's own if empty.
        workflow: The workflow type.
        limits: Its bounds.
        phases: Model, attempts and time of single phases.
        mode: `commit`, or `propose`: nothing is stored until people apply it.
    """

    on: list[Literal["end", "idle", "complete", "pause", "schedule"]] = ["end", "idle"]
    every: PositiveInt = 1
    idle_minutes: float = Field(default=10, gt=0, le=YEAR, allow_inf_nan=False)
    model: str = ""
    workflow: str = "agent_dream"
    limits: DreamLimits = DreamLimits()
    phases: Phases = {}
    mode: Mode = "commit"
