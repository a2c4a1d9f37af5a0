"""The settings of dreams in code: their bounds, and the errors for wrong ones."""

import math
from typing import Any, cast

import pytest

from agentmem.contracts import (
    DreamInput,
    DreamLimits,
    DreamSettings,
    PhaseName,
    PhaseSettings,
    ScopeRef,
)
from agentmem.dreaming.hand_over import HasTranscript
from agentmem.dreaming.hook import HasStore, dream
from agentmem.errors import ConfigurationError
from agentmem.memory.working import working_memory


class Facts:
    """A scope; nothing asks for it until the hook is called."""

    store = ScopeRef(provider="sqlite:x.db", agent="a", scope="s")


def hook(**options: Any) -> object:
    """Make a hook."""
    memory: HasTranscript = working_memory()
    facts: HasStore = Facts()
    return dream(working_memory=memory, long_term_memory=facts, **options)


def test_limits_are_refused_as_configuration() -> None:
    """A wrong value in code raises our own error; a decoded one is named with its whole path."""
    with pytest.raises(ConfigurationError, match="keys"):
        DreamLimits(keys=0)
    with pytest.raises(ConfigurationError, match=r"'orientt'.*orient, gather_signal"):
        DreamLimits(orientt=3)  # pyright: ignore[reportCallIssue]
    assert DreamLimits(keys=7).keys == 7
    with pytest.raises(ValueError, match=r"limits\.keys"):
        DreamSettings.model_validate({"limits": {"keys": 0}})


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"attempts": 0}, "PhaseSettings: attempts: "),
        ({"attempts": 101}, "PhaseSettings: attempts: "),
        ({"minutes": 0}, "PhaseSettings: minutes: "),
        ({"minutes": math.inf}, "PhaseSettings: minutes: "),
        ({"model": "m" * 513}, "PhaseSettings: model: "),
        ({"tries": 1}, "no field 'tries'; there are model, attempts, minutes"),
    ],
)
def test_settings_of_a_phase_are_refused_as_configuration(wrong: Any, says: str) -> None:
    """A wrong one is named with its field."""
    with pytest.raises(ConfigurationError, match=says):
        PhaseSettings(**wrong)


def test_a_hook_takes_the_four_phases_only() -> None:
    """A phase that does not exist is refused when the hook is made, with those that do."""
    wrong = cast("PhaseName", "gather")
    with pytest.raises(
        ConfigurationError, match=r"phases\.gather.*'gather_signal', 'cons"
    ) as found:
        hook(phases={wrong: PhaseSettings()})
    assert found.value.message.startswith("dream: ")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"mode": "propse"}, r"mode: .*'commit' or 'propose'"),
        ({"limits": {"keys": 0}}, r"limits\.keys: .*greater than 0"),
        ({"model": 3}, "model: .*string"),
        ({"workflow": ""}, "workflow: name a workflow type"),
    ],
)
def test_a_hook_refuses_at_once_what_no_dream_takes(options: dict[str, Any], says: str) -> None:
    """Later it would be a warning in a log, and no dream at all."""
    with pytest.raises(ConfigurationError, match=f"dream: {says}"):
        hook(**options)


def test_phases_must_fit_into_a_dreams_run() -> None:
    """70 minutes for all four; those without settings count with their 15."""
    most = {"prune": PhaseSettings(attempts=5)}  # 3 x 15 + 25
    hook(phases=most)
    over = {"prune": PhaseSettings(attempts=5), "orient": PhaseSettings(minutes=5.5)}
    with pytest.raises(ConfigurationError, match=r"phases: .* take 71\.5 minutes, .* has 70"):
        hook(phases=over)
    with pytest.raises(ValueError, match=r"phases\n.*71\.5 minutes"):
        DreamInput.model_validate({"agent": "a", "scope": "s", "phases": over})


def test_the_verification_has_a_model_and_nothing_else() -> None:
    """It runs within the phases whose changes it reads: their attempts and minutes bound it."""
    request = DreamInput(agent="a", scope="s", phases={"verify": PhaseSettings(model="judge")})
    assert request.verifier == "judge"
    assert DreamInput.model_validate_json(request.model_dump_json()) == request
    assert DreamInput(agent="a", scope="s").verifier == ""
    hook(phases={"verify": PhaseSettings(model="judge")})
    wrongs: list[Any] = [{"attempts": 3}, {"minutes": 5}, {"model": "m", "attempts": 1}]
    for wrong in wrongs:
        with pytest.raises(ConfigurationError, match=r"phases: .* remove \w+ from verify"):
            hook(phases={"verify": PhaseSettings(**wrong)})


def test_patience_is_bounded() -> None:
    """From nothing to a week: a history has room for that many tries."""
    assert DreamLimits().patience_hours == 24
    for wrong in (-1, 169, math.nan):
        with pytest.raises(ConfigurationError, match="patience_hours"):
            DreamLimits(patience_hours=wrong)


def test_phases_cost_a_history_nothing_unless_they_are_set() -> None:
    """The input of a dream with defaults is what it was; what is set comes back as it was."""
    plain = DreamInput(agent="a", scope="s")
    assert plain.model_dump() == {"agent": "a", "scope": "s"}
    assert plain.phase("orient") == PhaseSettings()
    own = plain.replace(phases={"orient": PhaseSettings(model="m", attempts=1)})
    assert own.model_dump()["phases"] == {"orient": {"model": "m", "attempts": 1}}
    assert DreamInput.model_validate_json(own.model_dump_json()) == own
