"""What an agent is: resolved once from the worker's configuration, then kept in the history."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from temporalio import activity

from agentmem.contracts import Definition, Resolve
from agentmem.errors import ConfigurationError
from agentmem.memory.providers.registry import Providers
from agentmem.models.structured import check_schema
from agentmem.tools.box import ToolBox
from agentmem.values import dump_json


class AgentActivities:
    """Answers for the agents of a worker."""

    def __init__(
        self,
        *,
        agents: Mapping[str, Definition],
        toolbox: ToolBox,
        providers: Providers,
        model: str,
    ) -> None:
        """Answer from this configuration.

        Args:
            agents: The agents by name, as the agents' file defines them.
            toolbox: The worker's tools.
            providers: The worker's stores.
            model: The model of agents that name none.
        """
        self._agents = agents
        self._toolbox = toolbox
        self._providers = providers
        self._model = model

    @property
    def activities(self) -> list[Callable[..., Awaitable[Any]]]:
        """All of them, to register."""
        return [self.resolve]

    @activity.defn(name="agentmem.resolve")
    async def resolve(self, request: Resolve) -> Definition:
        """Return an agent with its model, tools and provider settled for the whole session.

        Raises:
            ConfigurationError: The worker has no such agent, tool or provider; the message lists
                those it has. Or the response format is no JSON schema. No retry mends that.
        """
        found = self._named(request) if request.agent else self._in_code(request)
        provider = found.long_term_memory
        schemas = self._toolbox.schemas([spec.name for spec in found.tools])
        return found.replace(
            schema_tokens=sum(len(dump_json(schema)) for schema in schemas) // 4,
            model=request.model or found.model or self._model,
            long_term_memory=self._providers.resolve(provider) if provider else "",
        )

    def _named(self, request: Resolve) -> Definition:
        if request.agent not in self._agents:
            raise ConfigurationError(
                f"no agent is named {request.agent!r}; this worker has "
                f"{', '.join(sorted(self._agents))}. Agents come from the file of AGENTMEM_AGENTS"
            )
        return self._agents[request.agent]

    def _in_code(self, request: Resolve) -> Definition:
        if request.response_format is not None:
            check_schema(request.response_format)
        return Definition(
            name="agent",
            model=request.model,
            tools=self._toolbox.specs(request.tools),
            long_term_memory=request.provider,
        )
