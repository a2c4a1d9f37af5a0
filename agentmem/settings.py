"""Settings of a worker and of scripts, from the environment."""

from pathlib import Path

from pydantic import Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from agentmem.contracts import TASK_QUEUE
from agentmem.errors import ConfigurationError

AGENTS_FILE = Path("agentmem.toml")
OFFLINE_MODEL = "agentmem/offline"
DEFAULT_MODEL = "ollama/llama3.2"
MESSAGE_CACHE_BYTES = 64 * 1024 * 1024


class Settings(BaseSettings):
    """What a worker runs with; each field is the variable `AGENTMEM_<FIELD>`.

    The connection to Temporal is not here: it comes from the standard `TEMPORAL_*` variables and
    profiles. Models' keys are read by litellm under the names that their vendors gave them.

    Attributes:
        agents: The agents' file; `agentmem.toml` in the working directory if that is there.
        app: A module, or the path of a .py file, with tools, providers, workflows, activities.
        model: The model of agents that name none.
        database_url: The PostgreSQL database of the default provider; without one it is SQLite.
        data: The directory of SQLite files and of the embedded server.
        task_queue: The task queue that the worker polls.
        message_cache_bytes: The most that the worker keeps of conversations' messages in memory.
        metrics: Where the worker's metrics can be read by Prometheus, as `host:port`; empty for
            nowhere.
        hand_over_hours: For how long what a session said waits for a store that is away; less than
            Temporal keeps workflows that have ended.
        transcript_days: For how many days what dreams have read stays in the transcript.
    """

    model_config = SettingsConfigDict(
        env_prefix="AGENTMEM_", env_ignore_empty=True, extra="ignore", frozen=True
    )

    agents: Path | None = None
    app: str = ""
    model: str = ""
    database_url: SecretStr | None = None
    data: Path = Path(".agentmem")
    task_queue: str = Field(default=TASK_QUEUE, min_length=1)
    message_cache_bytes: int = Field(default=MESSAGE_CACHE_BYTES, ge=0)
    metrics: str = ""
    hand_over_hours: float = Field(default=24, gt=0, le=720, allow_inf_nan=False)
    transcript_days: int = Field(default=30, ge=0, le=36_500)

    @property
    def agents_file(self) -> Path | None:
        """The agents' file to read, None if none is set and `agentmem.toml` is not there."""
        if self.agents is not None:
            return self.agents
        return AGENTS_FILE if AGENTS_FILE.is_file() else None

    @property
    def data_directory(self) -> Path:
        """The data directory as an absolute path."""
        return self.data.expanduser().absolute()

    @property
    def database(self) -> str | None:
        """The database's URL with its password, for the provider alone."""
        return self.database_url.get_secret_value() if self.database_url else None

    def default_model(self, *, dev: bool = False) -> str:
        """Return the model of agents that name none.

        Args:
            dev: Whether the offline model stands in where no model is set; never otherwise.
        """
        return self.model or (OFFLINE_MODEL if dev else DEFAULT_MODEL)


def load_settings() -> Settings:
    """Read the settings from the environment.

    Raises:
        ConfigurationError: A variable holds what it cannot; the message names it.
    """
    try:
        return Settings()
    except ValidationError as error:
        raise ConfigurationError("; ".join(_in_words(error))) from error


def _in_words(error: ValidationError) -> list[str]:
    return [
        f"AGENTMEM_{'_'.join(map(str, one['loc'])).upper()}: {one['msg']}" for one in error.errors()
    ]
