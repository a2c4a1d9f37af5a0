"""Settings come from the environment; the connection comes from the CLI's own variables."""

from pathlib import Path

import pytest

from agentmem.client import connect, connection
from agentmem.errors import ConfigurationError
from agentmem.settings import Settings, load_settings


def test_every_setting_has_a_default_that_needs_nothing() -> None:
    """Without any variable: SQLite and the server's files in ./.agentmem, the queue agentmem."""
    settings = load_settings()
    assert settings.data_directory == Path.cwd() / ".agentmem"
    assert settings.task_queue == "agentmem"
    assert (settings.app, settings.model, settings.database) == ("", "", None)


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each field is the variable AGENTMEM_<FIELD>; an empty variable counts as not set."""
    monkeypatch.setenv("AGENTMEM_AGENTS", "my.toml")
    monkeypatch.setenv("AGENTMEM_APP", "my_app.py")
    monkeypatch.setenv("AGENTMEM_MODEL", "openai/gpt-5")
    monkeypatch.setenv("AGENTMEM_DATABASE_URL", "postgresql://me:secret@db/facts")
    monkeypatch.setenv("AGENTMEM_DATA", "/data")
    monkeypatch.setenv("AGENTMEM_TASK_QUEUE", "")
    settings = load_settings()
    assert settings.agents_file == Path("my.toml")
    assert settings.app == "my_app.py"
    assert settings.model == "openai/gpt-5"
    assert settings.database == "postgresql://me:secret@db/facts"
    assert settings.data_directory == Path("/data")
    assert settings.task_queue == "agentmem"


def test_settings_show_no_password(monkeypatch: pytest.MonkeyPatch) -> None:
    """Printing or logging the settings shows no database password."""
    monkeypatch.setenv("AGENTMEM_DATABASE_URL", "postgresql://me:secret@db/facts")
    settings = load_settings()
    assert "secret" not in repr(settings)
    assert "secret" not in settings.model_dump_json()


def test_the_agents_file_beside_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """agentmem.toml in the working directory is read where AGENTMEM_AGENTS is not set."""
    monkeypatch.chdir(tmp_path)
    assert load_settings().agents_file is None
    (tmp_path / "agentmem.toml").touch()
    assert load_settings().agents_file == Path("agentmem.toml")


@pytest.mark.parametrize(
    ("model", "dev", "expected"),
    [
        ("openai/gpt-5", True, "openai/gpt-5"),
        ("", True, "agentmem/offline"),
        ("", False, "ollama/llama3.2"),
    ],
)
def test_the_offline_model_is_chosen_in_development_only(
    model: str, dev: bool, expected: str
) -> None:
    """A worker never falls back to the offline model by itself."""
    assert Settings(model=model).default_model(dev=dev) == expected


def test_the_connection_is_the_clis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """TEMPORAL_* variables and the chosen profile of the CLI's file name server and namespace."""
    assert connection().get("target_host") == "localhost:7233"
    assert connection().get("namespace") == "default"
    profiles = tmp_path / "temporal.toml"
    profiles.write_text('[profile.prod]\naddress = "prod:7233"\nnamespace = "orders"\n')
    monkeypatch.setenv("TEMPORAL_CONFIG_FILE", str(profiles))
    monkeypatch.setenv("TEMPORAL_PROFILE", "prod")
    assert connection().get("target_host") == "prod:7233"
    assert connection().get("namespace") == "orders"
    monkeypatch.setenv("TEMPORAL_ADDRESS", "other:7233")
    assert connection().get("target_host") == "other:7233"


def test_an_unknown_profile_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A profile that the file does not have is the caller's mistake, named in the message."""
    monkeypatch.setenv("TEMPORAL_PROFILE", "nowhere")
    with pytest.raises(ConfigurationError, match="nowhere"):
        connection()


async def test_no_server_is_said_with_its_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no server answers, the message has the address and how to start one."""
    monkeypatch.setenv("TEMPORAL_ADDRESS", "localhost:1")
    with pytest.raises(ConfigurationError, match=r"localhost:1.*worker\.py --dev"):
        await connect()


def test_every_setting_is_documented_in_one_place() -> None:
    """The reference has a row for each setting, and none for what is none."""
    text = Path("docs/reference.md").read_text()
    rows = [line.split("`")[1] for line in text.splitlines() if line.startswith("| `AGENTMEM_")]
    assert rows == [f"AGENTMEM_{name.upper()}" for name in Settings.model_fields]


def test_model_calls_share_the_queue_and_dreams_have_slots_of_their_own() -> None:
    """Without any variable: one queue for all but dreams, whose steps have 100 slots beside it."""
    assert Settings().slots_of_queues == {"agentmem": 500, "agentmem-dreams": 100}
    apart = Settings(task_queue="q", model_queue="m", model_slots=7, dream_queue="d", slots=3)
    assert apart.slots_of_queues == {"q": 3, "m": 7, "d": 100}
    assert Settings(dream_queue="agentmem").slots_of_queues == {"agentmem": 500}


@pytest.mark.parametrize(
    ("name", "value", "other"),
    [
        ("AGENTMEM_MODEL_SLOTS", "5", {}),
        ("AGENTMEM_DREAM_SLOTS", "5", {"AGENTMEM_DREAM_QUEUE": "agentmem"}),
        ("AGENTMEM_MODEL_QUEUE", "both", {"AGENTMEM_DREAM_QUEUE": "both"}),
    ],
)
def test_slots_that_would_count_nothing_are_refused(
    name: str, value: str, other: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slots that no queue has, and one queue for model calls and dreams, are mistakes."""
    for variable, text in {name: value, **other}.items():
        monkeypatch.setenv(variable, text)
    with pytest.raises(ConfigurationError, match=name):
        load_settings()
