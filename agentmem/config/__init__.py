"""The parts of a worker, put together: settings, the app, the agents' file and the stores."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta

from temporalio.client import Client

from agentmem.config.agents_file import read_agents
from agentmem.config.app import App, load_app
from agentmem.contracts import Definition
from agentmem.llm.vendors import is_ollama
from agentmem.settings import OFFLINE_MODEL, Settings
from agentmem.storage.registry import Providers
from agentmem.tools.asking import ASK_USER
from agentmem.tools.toolbox import ToolBox


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """The checked parts of a worker; `configure` makes it.

    Attributes:
        settings: The settings.
        model: The model of agents that name none.
        patience: For how long other workers are asked for a name that this one does not know.
        app: The user's own code.
        toolbox: The tools.
        agents: The agents by name.
        providers: The memory stores; not opened yet.
    """

    settings: Settings
    model: str
    patience: timedelta
    app: App
    toolbox: ToolBox
    agents: dict[str, Definition]
    providers: Providers

    def _asks_ollama(self) -> bool:
        models = [self.model, *(agent.model for agent in self.agents.values())]
        return any(is_ollama(model.partition("/")[0]) for model in models)

    def own_stores(self) -> list[str]:
        """Return the identities of the stores that the agents need."""
        named = [agent.long_term_memory for agent in self.agents.values()]
        return list(dict.fromkeys(self.providers.resolve(name) for name in named if name))

    def lines(self, client: Client, *, ui: str = "") -> Iterator[str]:
        """Yield what people should know of a worker that starts, a line each.

        Args:
            client: Its client.
            ui: The address of the server's web page, if it is known.
        """
        settings, file = self.settings, self.settings.agents_file
        if self.model == OFFLINE_MODEL:
            why = "" if settings.model else ", because AGENTMEM_MODEL is not set"
            yield f"Answers come from {OFFLINE_MODEL}{why}: rules, no language model."
        server = client.service_client.config.target_host
        yield f"server      {server}, namespace {client.namespace}, queue {settings.task_queue}"
        others = [f"{queue} ({n} slots)" for queue, n in settings.slots_of_queues.items()][1:]
        if others:
            yield f"queues      {', '.join(others)}"
        if settings.deployment:
            version = f"{settings.deployment}, build {settings.build_id}"
            yield f"version     {version}, {settings.versioning}: it gets work once it is current"
        if ui:
            yield f"UI          {ui}"
        yield f"model       {self.model}"
        if self.settings.ollama_context and self._asks_ollama():
            tokens = f"{self.settings.ollama_context} tokens (AGENTMEM_OLLAMA_CONTEXT)"
            yield f"ollama      a context of {tokens}; views of conversations are kept within it"
        yield f"agents      {', '.join(self.agents)} ({file.absolute() if file else 'built in'})"
        for kind in ("tools", "workflows", "activities", "providers"):
            if names := getattr(self.app, kind):
                yield f"{kind:<11} {', '.join(names)} ({self.app.origin or 'given in code'})"
        for identity in self.own_stores():
            yield f"memory      {identity}: {self.providers.describe(identity)}"


def configure(
    settings: Settings,
    *,
    dev: bool = False,
    alone: bool = False,
    extra: Iterable[object] = (),
) -> Configuration:
    """Read the app and the agents' file, and check them against each other.

    Args:
        settings: The settings.
        dev: Whether the offline model stands in where no model is set.
        alone: Whether there is no other worker, as with `dev`.
        extra: Tools, providers, workflows and activities beside the app's.

    Raises:
        ConfigurationError: A setting, the app or the agents' file is wrong.
    """
    app = load_app(settings.app, extra)
    toolbox = ToolBox(app.tools.values())
    agents = read_agents(
        settings.agents_file,
        tools={spec.name: spec for spec in (ASK_USER, *(tool.spec for tool in toolbox.tools))},
        providers=app.providers,
    )
    return Configuration(
        settings=settings,
        model=settings.default_model(dev=dev),
        patience=settings.resolve_patience(dev=dev or alone),
        app=app,
        toolbox=toolbox,
        agents=agents,
        providers=Providers(settings.data_directory, settings.database, app.providers),
    )
