"""The composition root: settings in, a Temporal worker out. See `python worker.py --help`."""

import asyncio
import importlib.util
import logging
from collections.abc import AsyncGenerator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Self

from pydantic import ValidationError
from temporalio.client import Client
from temporalio.common import VersioningBehavior, WorkerDeploymentVersion
from temporalio.worker import UnsandboxedWorkflowRunner, Worker, WorkerDeploymentConfig
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from activities.agents import AgentActivities
from activities.compact import CompactActivity
from activities.dream import DreamActivities
from activities.llm import ModelActivity, Models
from activities.memory import MemoryActivities
from activities.messages import MessageCache
from activities.tools import tool_activities
from activities.transcripts import Collector, HandOverActivity, TranscriptActivities
from agentmem.cli.logs import log_to_stderr
from agentmem.cli.worker import OnFatal, command, say
from agentmem.client import require_namespace, retention_days, running_dreams, running_hand_overs
from agentmem.config import Configuration, configure
from agentmem.dev_server import dev_server
from agentmem.errors import ConfigurationError
from agentmem.memory.redaction import redactor
from agentmem.queues import DREAM_ACTIVITIES, MODEL_ACTIVITIES, Routes
from agentmem.session.update_limit import UpdateLimit
from agentmem.settings import Settings, load_settings
from agentmem.storage.retention import retention

logger = logging.getLogger(__name__)

HERE = Path(__file__).resolve().parent

GRACE = timedelta(seconds=10)
"""The time that running activities may take to end once the worker is told to stop."""

DREAMS = timedelta(seconds=60)
"""The time that `local()` waits for dreams on leaving."""

SANDBOX = SandboxRestrictions.default.with_passthrough_modules("agentmem")
"""For the app's workflows: their modules are imported anew for each run, and what they do is
checked; the library under them is imported once. Importing it anew too takes each run 0.15 s of
processor time and 2.3 MB. It keeps no state in its modules. Our own workflows run outside of the
sandbox; the replay tests run them, and the library, inside a strict one."""


class Workers:
    """A worker for each task queue that this process polls; they run and end together.

    Args:
        workers: The workers, that of the process's own queue first.
    """

    def __init__(self, workers: Sequence[Worker]) -> None:
        self._workers = workers

    @property
    def is_running(self) -> bool:
        """Tell if all of them run."""
        return all(worker.is_running for worker in self._workers)

    @property
    def is_shutdown(self) -> bool:
        """Tell if one of them has ended."""
        return any(worker.is_shutdown for worker in self._workers)

    async def __aenter__(self) -> Self:
        """Start them; one that fails cancels the body."""
        for worker in self._workers:
            await worker.__aenter__()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *more: Any) -> None:
        """Stop them at the same time: their activities have one time to end, not one each."""
        ends = (worker.__aexit__(kind, *more) for worker in self._workers)
        errors = await asyncio.gather(*ends, return_exceptions=True)
        if error := next((one for one in errors if one is not None), None):
            raise error


def build_worker(
    client: Client,
    configuration: Configuration,
    models: Models,
    *,
    strict: bool = False,
    on_fatal: OnFatal | None = None,
) -> Workers:
    """Return a worker that is ready to run, on the settings' task queues.

    Args:
        client: Of the server.
        configuration: What it runs, and how.
        models: What its model calls go through.
        strict: Whether our own workflows run in the sandbox too, as the tests have it.
        on_fatal: Told of an error after which the worker does nothing any more.

    Raises:
        ConfigurationError: A workflow of the app cannot run in Temporal's sandbox.
    """
    app, providers, model = configuration.app, configuration.providers, configuration.model
    toolbox, settings = configuration.toolbox, configuration.settings
    cache = MessageCache(settings.message_cache_bytes)
    redact = redactor(app.redact)
    patience = timedelta(hours=settings.hand_over_hours)
    sandbox = UpdateLimit(SandboxedWorkflowRunner(restrictions=SANDBOX))
    agents = AgentActivities(
        agents=configuration.agents,
        toolbox=toolbox,
        providers=providers,
        model=model,
        patience=configuration.patience,
        ollama_context=configuration.settings.ollama_context,
    )
    activities = [
        *agents.activities,
        ModelActivity(models, cache, toolbox.schemas, toolbox.checked).model,
        CompactActivity(models, cache).compact,
        TranscriptActivities(providers, cache, redact).append,
        HandOverActivity(providers, patience, redact).hand_over,
        *MemoryActivities(providers, cache, redact).activities,
        *DreamActivities(
            providers,
            models.ask,
            model=model,
            context=models.context,
            collector=Collector(redact, providers.resolve),
            stores={
                name: agent.long_term_memory
                for name, agent in configuration.agents.items()
                if agent.long_term_memory
            },
        ).activities,
        *tool_activities(toolbox, cache.remember),
        *app.activities.values(),
    ]
    # For sync activities of the app; its threads start as they are needed.
    most = max(settings.slots_of_queues.values())
    executor = ThreadPoolExecutor(most) if app.activities else None

    def polling(queue: str, **workflows: Any) -> Worker:
        return Worker(
            client,
            task_queue=queue,
            # All of them on each queue: another worker may have this queue as its own.
            activities=activities,
            activity_executor=executor,
            # Most activities wait for a model: they cost memory, hardly any processor time.
            max_concurrent_activities=settings.slots_of_queues[queue],
            graceful_shutdown_timeout=GRACE,
            deployment_config=_version(settings),
            on_fatal_error=on_fatal,
            # Heartbeats say how far a phase of a dream is; a cancellation comes back on them.
            max_heartbeat_throttle_interval=timedelta(seconds=1),
            default_heartbeat_throttle_interval=timedelta(seconds=1),
            **workflows,
        )

    own, *others = settings.slots_of_queues
    try:
        worker = polling(
            own,
            workflows=[*_our_workflows(), *app.workflows.values()],
            interceptors=[Routes(_routes(settings))],
            # A value that a model of ours does not take fails the workflow that made it; as any
            # other bug it would leave it running with failing tasks.
            workflow_failure_exception_types=[ValidationError],
            workflow_runner=sandbox,
            unsandboxed_workflow_runner=(
                sandbox if strict else UpdateLimit(UnsandboxedWorkflowRunner())
            ),
            # How long the server keeps a task for a worker that may be dead: after a crash a
            # session goes on within 3 to 5 s, not 11 to 13 s as by default. Under a load that
            # makes tasks wait longer than this, sessions are replayed more often.
            sticky_queue_schedule_to_start_timeout=timedelta(seconds=2),
        )
    except RuntimeError as error:
        raise ConfigurationError(f"AGENTMEM_APP: {error}: {error.__cause__}") from error
    return Workers([worker, *(polling(queue) for queue in others)])


def _routes(settings: Settings) -> dict[str, str]:
    """Return the queues of the activities that do not stay on the worker's own."""
    models = dict.fromkeys(MODEL_ACTIVITIES, settings.queue_of_models)
    dreams = dict.fromkeys(DREAM_ACTIVITIES, settings.queue_of_dreams)
    found = (models | dreams).items()
    return {name: queue for name, queue in found if queue != settings.task_queue}


def _version(settings: Settings) -> WorkerDeploymentConfig | None:
    if not settings.deployment:
        return None
    return WorkerDeploymentConfig(
        version=WorkerDeploymentVersion(settings.deployment, settings.build_id),
        use_worker_versioning=True,
        default_versioning_behavior=VersioningBehavior[settings.versioning.upper()],
    )


def _our_workflows() -> list[type]:
    # Another project installs a package of this name.
    spec = importlib.util.find_spec("workflows")
    if spec is None or spec.origin is None or Path(spec.origin).parent != HERE / "workflows":
        raise ConfigurationError(
            f"the package `workflows` comes from {spec.origin if spec else 'nowhere'}, not from "
            f"{HERE}: run the worker from its own checkout, in an environment of its own"
        )
    from workflows.agent import AgentWorkflow
    from workflows.dream import AgentDream
    from workflows.hand_over import AgentHandOver

    return [AgentWorkflow, AgentDream, AgentHandOver]


@asynccontextmanager
async def running(
    client: Client,
    configuration: Configuration,
    *,
    strict: bool = False,
    on_fatal: OnFatal | None = None,
) -> AsyncGenerator[Workers, None]:
    """Run a worker in this process; on leaving, activities may end and stores close.

    `strict` and `on_fatal` are those of `build_worker`.

    Raises:
        ConfigurationError: The namespace does not exist, or a workflow cannot run.
        ProviderError: A memory store cannot be opened.
    """
    await require_namespace(client)
    settings = configuration.settings
    await _check_patience(client, settings.hand_over_hours)
    models = Models(
        ollama_context=settings.ollama_context,
        rate=settings.model_rate,
        dream_rate=settings.dream_rate,
    )
    try:
        # The agents' own stores: a broken one shows now, not in the middle of a turn.
        for identity in configuration.own_stores():
            await configuration.providers.get(identity)
        async with (
            retention(configuration.providers, configuration.settings.transcript_days),
            build_worker(client, configuration, models, strict=strict, on_fatal=on_fatal) as worker,
        ):
            models.start_loading()
            yield worker
    finally:
        await models.close()
        await configuration.providers.close()


async def _check_patience(client: Client, hours: float) -> None:
    """Warn if hand-overs would wait for longer than the server keeps what they read."""
    kept = 24 * await retention_days(client)
    if hours > kept:
        logger.warning(
            "AGENTMEM_HAND_OVER_HOURS is %g, but the namespace %s keeps workflows that have ended "
            "for %g hours: words that wait for a store for longer are lost; set it lower, or the "
            "retention higher",
            *(hours, client.namespace, kept),
        )


@dataclass(frozen=True, kw_only=True)
class Local:
    """A server and a worker in this process.

    Attributes:
        client: Connected to the server.
        task_queue: What the worker polls.
        ui: The address of the server's web page, empty without one.
    """

    client: Client
    task_queue: str
    ui: str


@asynccontextmanager
async def local(
    app: str | None = None,
    agents: Path | None = None,
    model: str | None = None,
    ui: bool = False,
    *,
    workflows: Sequence[type] = (),
    tools: Sequence[object] = (),
) -> AsyncGenerator[Local, None]:
    """Start a Temporal server and a worker in this process, for scripts that run alone.

    The server takes free ports and forgets its workflows at the end; facts stay where their
    providers keep them. Without an exception, leaving waits until no dream and no hand-over is
    running, 60 seconds at most.

    Args:
        app: A module or a .py file with tools and workflows, as in AGENTMEM_APP.
        agents: The agents' file, as in AGENTMEM_AGENTS.
        model: The model of agents that name none, as in AGENTMEM_MODEL.
        ui: Whether the server has its web page.
        workflows: Workflow classes to register besides. They may stand in the script itself, if
            it starts nothing when it is imported (`if __name__ == "__main__":`).
        tools: `@tool` functions to register besides.

    Raises:
        ConfigurationError: A setting or an argument is wrong, or the server does not start.
    """
    log_to_stderr()  # nothing where the script has set up its log
    given = {"app": app, "agents": agents, "model": model}
    changes = {name: value for name, value in given.items() if value is not None}
    # Nobody makes a version of this worker the current one of a server that begins empty.
    changes |= {"deployment": "", "build_id": ""}
    configuration = configure(
        load_settings().model_copy(update=changes), alone=True, extra=[*workflows, *tools]
    )
    settings = configuration.settings
    async with (
        dev_server(settings.data_directory, ui=ui) as server,
        running(server.client, configuration),
    ):
        yield Local(client=server.client, task_queue=settings.task_queue, ui=server.ui)
        await _dreams_to_end(server.client)


async def _dreams_to_end(client: Client) -> None:
    deadline = asyncio.get_running_loop().time() + DREAMS.total_seconds()
    await asyncio.sleep(0.3)  # a dream that just began is listed a moment later
    dreams, words = await running_dreams(client), await running_hand_overs(client)
    if dreams:
        say(f"Waiting for {len(dreams)} dream(s) to end, 60 s at most.", error=True)
    if words:
        say(f"Waiting for {len(words)} session(s) to reach memory, 60 s at most.", error=True)
    while (dreams or words) and asyncio.get_running_loop().time() < deadline:
        await asyncio.sleep(0.2)
        words = await running_hand_overs(client)  # first: it starts a dream before it ends
        dreams = await running_dreams(client)
    for dream in dreams:
        say(f"{dream} did not end; its messages wait for the next dream.", error=True)
    for one in words:
        say(f"{one} did not end: its store took nothing, and what was said is lost.", error=True)


if __name__ == "__main__":
    command(running)
