"""Settings of a worker and of scripts, from the environment."""

from datetime import timedelta
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, SecretStr, ValidationError, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from agentmem.contracts import TASK_QUEUE
from agentmem.errors import ConfigurationError
from agentmem.llm.vendors import OLLAMA_CONTEXT

AGENTS_FILE = Path("agentmem.toml")
OFFLINE_MODEL = "agentmem/offline"
DEFAULT_MODEL = "ollama/llama3.2"
MESSAGE_CACHE_BYTES = 64 * 1024 * 1024
RESOLVE_SECONDS = 20
SLOTS = 500


class Settings(BaseSettings):
    """The settings that a worker runs with; each field is the variable `AGENTMEM_<FIELD>`.

    The connection to Temporal is not here: it comes from the standard `TEMPORAL_*` variables and
    profiles. Models' keys are read by litellm under the names that their vendors gave them.

    Attributes:
        agents: The agents' file; `agentmem.toml` in the working directory if that is there.
        app: A module, or the path of a .py file, with tools, providers, workflows, activities.
        model: The model of agents that name none.
        database_url: The PostgreSQL database of the default provider; without one it is SQLite.
        data: The directory of SQLite files and of the embedded server.
        task_queue: The task queue that the worker polls.
        model_queue: Another task queue for model calls, which the worker polls too; empty for the
            same.
        dream_queue: The task queue for the work of dreams, which the worker polls too; empty for
            the name of the worker's own queue with `-dreams`.
        resolve_seconds: For how long other workers are asked for an agent or a tool that this one
            does not know; 20 by default, with `--dev` and in `local()` 0.
        deployment: The name of the worker's deployment, for Worker Versioning; empty without it.
        build_id: The build of that deployment which this worker is.
        versioning: What a new version means for running workflows: `auto_upgrade`, they go on with
            it at their next task; `pinned`, sessions at their next change of runs, others never.
        model_rate: Requests per second to one model that the worker never exceeds; 0 for no such
            bound. What a provider allows is learned from its refusals in any case.
        dream_rate: The same for the requests of dreams, which count for `model_rate` too.
        slots: Activities of its own queue that the worker runs at a time: model calls, tools,
            memory.
        model_slots: Model calls that it runs at a time where they have a queue of their own.
        dream_slots: Steps of dreams that it runs at a time.
        message_cache_bytes: The most that the worker keeps of conversations' messages in memory.
        metrics: Where the worker's metrics can be read by Prometheus, as `host:port`; empty for
            nowhere.
        ollama_context: Tokens of the context that Ollama's models get, the same for every request,
            since another value would load the model again; 0 leaves it to Ollama.
        health: Where the worker tells whether it lives and takes work, as `host:port`; empty for
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
    model_queue: str = ""
    dream_queue: str = ""
    resolve_seconds: float | None = Field(default=None, ge=0, le=600, allow_inf_nan=False)
    deployment: str = ""
    build_id: str = ""
    versioning: Literal["auto_upgrade", "pinned"] = "auto_upgrade"
    model_rate: float = Field(default=0, ge=0, allow_inf_nan=False)
    dream_rate: float = Field(default=0, ge=0, allow_inf_nan=False)
    slots: int = Field(default=SLOTS, ge=1, le=10_000)
    model_slots: int = Field(default=SLOTS, ge=1, le=10_000)
    dream_slots: int = Field(default=100, ge=1, le=10_000)
    message_cache_bytes: int = Field(default=MESSAGE_CACHE_BYTES, ge=0)
    metrics: str = ""
    ollama_context: int = Field(default=OLLAMA_CONTEXT, ge=0)
    health: str = ""
    hand_over_hours: float = Field(default=24, gt=0, le=720, allow_inf_nan=False)
    transcript_days: int = Field(default=30, ge=0, le=36_500)

    @model_validator(mode="after")
    def _whole_version(self) -> Self:
        if bool(self.deployment) != bool(self.build_id):
            raise ValueError(
                "AGENTMEM_DEPLOYMENT and AGENTMEM_BUILD_ID together name the worker's version: set "
                "both or neither"
            )
        return self

    @model_validator(mode="after")
    def _queues_are_apart(self) -> Self:
        models, dreams = self.queue_of_models, self.queue_of_dreams
        if models == dreams and models != self.task_queue:
            raise ValueError(
                f"AGENTMEM_MODEL_QUEUE and AGENTMEM_DREAM_QUEUE are both {models!r}: dreams would "
                "take the slots of turns' model calls; name two queues"
            )
        own = self.task_queue
        for name, queue in (("MODEL", models), ("DREAM", dreams)):
            if queue == own and f"{name.lower()}_slots" in self.model_fields_set:
                raise ValueError(
                    f"AGENTMEM_{name}_SLOTS counts on another queue than {own!r} alone: set "
                    f"AGENTMEM_{name}_QUEUE to another name, or AGENTMEM_SLOTS"
                )
        return self

    @property
    def queue_of_models(self) -> str:
        """The task queue that model calls go to."""
        return self.model_queue or self.task_queue

    @property
    def queue_of_dreams(self) -> str:
        """The task queue that the work of dreams goes to."""
        return self.dream_queue or f"{self.task_queue}-dreams"

    @property
    def slots_of_queues(self) -> dict[str, int]:
        """The slots of each task queue that the worker polls, its own first."""
        own = {self.task_queue: self.slots}
        models = {self.queue_of_models: self.model_slots}
        dreams = {self.queue_of_dreams: self.dream_slots}
        return own | {
            queue: slots for queue, slots in (models | dreams).items() if queue not in own
        }

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

    def resolve_patience(self, *, dev: bool = False) -> timedelta:
        """Return for how long other workers are asked for a name that this one does not know.

        Args:
            dev: Whether there is no other worker, unless the setting says otherwise.
        """
        default = 0 if dev else RESOLVE_SECONDS
        return timedelta(seconds=default if self.resolve_seconds is None else self.resolve_seconds)

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
        f"AGENTMEM_{'_'.join(map(str, one['loc'])).upper()}: {one['msg']}"
        if one["loc"]
        else one["msg"].removeprefix("Value error, ")
        for one in error.errors()
    ]
