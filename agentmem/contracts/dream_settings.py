"""The settings of dreams that people choose: when, by which model, within which bounds."""

from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, Field, NonNegativeInt, PositiveInt, ValidationError
from pydantic_core import PydanticCustomError

from agentmem.errors import ConfigurationError
from agentmem.wire import Wire

YEAR = 525_600
"""Minutes of the longest quiet time that a session may wait for."""

PHASES_MINUTES = 70
"""Minutes that the four phases of a dream may take together, without the time that it waits."""

LONGEST_PATIENCE = 168
"""Hours that a dream may wait at most: a try every ten minutes makes 11,000 events in a week, and a
history ends at 51,200."""

PHASES_ERROR = "phases"
"""The type of the errors of phases whose settings do not fit together."""

Mode = Literal["commit", "propose"]
ModelName = Annotated[str, Field(max_length=512)]
PhaseName = Literal["orient", "gather_signal", "consolidate", "prune"]
PHASES: tuple[PhaseName, ...] = get_args(PhaseName)
StepName = Literal["orient", "gather_signal", "consolidate", "prune", "verify"]
STEPS: tuple[StepName, ...] = get_args(StepName)
"""The steps that may have their own settings: the phases, and `verify`, which ends two of them."""


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

    # Decoding goes past it and keeps pydantic's errors, which name the path. No public way does
    # it: an `__init__` that pydantic calls loses the caller's `strict` and `extra` for its fields.
    __init__.__pydantic_base_init__ = True  # pyright: ignore[reportFunctionMemberAccess]


class DreamLimits(Setting):
    """Bounds of a dream: tool calls of each phase, facts of a scope, failures, waiting.

    The numbers of tool calls are those of the architecture that agentmem implements.

    Attributes:
        orient: Tool calls that the phase may make; the next three are the same for their phases.
        gather_signal: See `orient`.
        consolidate: See `orient`.
        prune: See `orient`.
        keys: The most facts that the scope may hold.
        failures: Failed dreams in a row that shut the scope's gate.
        context: The size of the model's context in tokens; 0 for what litellm knows of it, the
            smallest one where phases have models of their own.
        patience_hours: How long a run of the dream may wait in all: for the model, the store or a
            worker that is away, and for a shut gate. A week at most; 0 to wait for nothing.
    """

    orient: PositiveInt = 20
    gather_signal: PositiveInt = 10
    consolidate: PositiveInt = 30
    prune: PositiveInt = 20
    keys: PositiveInt = 100
    failures: PositiveInt = 3
    context: NonNegativeInt = 0
    patience_hours: float = Field(default=24, ge=0, le=LONGEST_PATIENCE, allow_inf_nan=False)


class PhaseSettings(Setting):
    """By which model a phase of a dream works, how often it is tried, and for how long.

    The settings of `verify` have a model alone: it runs within the phases whose changes it reads.

    Attributes:
        model: The phase's model, the dream's own if empty.
        attempts: How often it may fail before the dream fails; no stored reply is asked for again.
            What is waited out (a model, store or worker that is away) is no failure.
        minutes: How long an attempt may take.
    """

    model: ModelName = ""
    attempts: int = Field(default=3, ge=1, le=100)
    minutes: float = Field(default=5, ge=0.01, allow_inf_nan=False)


def fitting(phases: dict[StepName, PhaseSettings]) -> dict[StepName, PhaseSettings]:
    """Return the settings of phases, if they make sense and a dream has the time for them.

    Raises:
        PydanticCustomError: `verify` has more than a model, or the four phases may take too long
            together.
    """
    if surplus := phases.get("verify", PhaseSettings()).model_fields_set - {"model"}:
        raise PydanticCustomError(
            PHASES_ERROR,
            "The verification runs within its phases, whose attempts and minutes bound it: "
            "remove {surplus} from verify, which takes a model alone",
            {"surplus": " and ".join(sorted(surplus))},
        )
    every = [phases.get(name, PhaseSettings()) for name in PHASES]
    minutes = sum(phase.attempts * phase.minutes for phase in every)
    if minutes > PHASES_MINUTES:
        raise PydanticCustomError(
            PHASES_ERROR,
            "The four phases may take {minutes} minutes, a dream has {most} for them: lower "
            "attempts or minutes, whose products are summed (15 for a phase without settings)",
            {"minutes": f"{minutes:g}", "most": PHASES_MINUTES},
        )
    return phases


Phases = Annotated[dict[StepName, PhaseSettings], AfterValidator(fitting)]


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
        phases: Model, attempts and time of single phases; the model of `verify`.
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
