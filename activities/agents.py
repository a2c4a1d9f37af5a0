"""What an agent is: resolved once from the worker's configuration, then kept in the history."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from temporalio import activity

from agentmem.contracts import Definition, Resolve
from agentmem.errors import AgentMemError, ConfigurationError
from agentmem.failures import describe
from agentmem.memory.providers.protocol import SessionLedger
from agentmem.memory.providers.registry import Providers
from agentmem.models.structured import check_schema
from agentmem.tools.box import ToolBox

logger = logging.getLogger(__name__)

NOTE_SECONDS = 1.0
"""How long the beginning of a session waits for its store to take note of it."""


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
        settled = found.replace(
            model=request.model or found.model or self._model,
            long_term_memory=self._providers.resolve(provider) if provider else "",
        )
        if request.scope and settled.long_term_memory and settled.dream is not None:
            await self._note_session(settled, request.scope)
        return settled

    async def _note_session(self, agent: Definition, scope: str) -> None:
        """Let the store know that a session begins, so that its words can be found if it dies.

        The session does not depend on it: a store that is away is one line in the log.
        """
        session = activity.info().workflow_run_id or ""
        try:
            async with asyncio.timeout(NOTE_SECONDS):
                provider = await self._providers.get(agent.long_term_memory)
                if isinstance(provider, SessionLedger):
                    await provider.open_session(agent.name, scope, session, "wm0")
        except (AgentMemError, TimeoutError) as error:
            logger.warning(
                "the store %s took no note of a session that begins: %s; what it says is lost for "
                "memory if it is terminated",
                *(agent.long_term_memory, describe(error)),
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
