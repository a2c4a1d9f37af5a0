"""An agent's definition: resolved once from a worker's configuration, then kept in the history."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from temporalio import activity

from agentmem.contracts import Definition, Resolve, ScopeRef, SessionNote
from agentmem.error_text import describe
from agentmem.errors import AgentMemError, ConfigurationError
from agentmem.llm.structured_output import check_schema
from agentmem.llm.vendors import fitting_tokens, is_ollama
from agentmem.memory.tools import HINT, MEMORY_TOOLS
from agentmem.storage.protocol import SessionLedger
from agentmem.storage.registry import Providers
from agentmem.tools.toolbox import ToolBox
from agentmem.wire import dump_json, encoded_size

logger = logging.getLogger(__name__)

NOTE_SECONDS = 1.0
"""The number of seconds that the beginning of a session waits for its store to take note of it."""


class AgentActivities:
    """Answers for the agents of a worker."""

    def __init__(
        self,
        *,
        agents: Mapping[str, Definition],
        toolbox: ToolBox,
        providers: Providers,
        model: str,
        patience: timedelta = timedelta(0),
        ollama_context: int = 0,
    ) -> None:
        """Answer from this configuration.

        Args:
            agents: The agents by name, as the agents' file defines them.
            toolbox: The worker's tools.
            providers: The worker's stores.
            model: The model of agents that name none.
            patience: For how long a name that this worker does not know may be asked of others.
            ollama_context: Tokens of the context that Ollama's models get; 0 if Ollama decides.
        """
        self._patience = patience
        self._agents = agents
        self._toolbox = toolbox
        self._providers = providers
        self._model = model
        self._ollama_context = ollama_context

    @property
    def activities(self) -> list[Callable[..., Awaitable[Any]]]:
        """All of them, to register."""
        return [self.resolve]

    @activity.defn(name="agentmem.resolve")
    async def resolve(self, request: Resolve) -> Definition:
        """Return an agent with its model, tools and provider settled for the whole session.

        Raises:
            ConfigurationError: The worker has no such agent, tool or provider; the message lists
                those it has. In a deployment another worker may know it already: within the
                patience the error is retried. Or the response format is no JSON schema.
        """
        if request.response_format is not None:
            check_schema(request.response_format)
        settled = self._settled(request)
        for note in (*_of_session(settled, request.scope), *request.notes):
            await self._take_note(note)
        return settled

    def _settled(self, request: Resolve) -> Definition:
        try:
            return self._resolved(request)
        except ConfigurationError as error:
            if request.at_once or not self._patience:
                raise
            left = self._patience - (datetime.now(UTC) - activity.info().scheduled_time)
            if left <= timedelta(0):
                raise
            raise ConfigurationError(
                f"{error.message}. Other workers are asked for {left.total_seconds():.0f} more "
                "seconds (AGENTMEM_RESOLVE_SECONDS)",
                non_retryable=False,
            ) from None

    def _resolved(self, request: Resolve) -> Definition:
        found = self._named(request) if request.agent else self._in_code(request)
        provider = found.long_term_memory
        schemas = self._toolbox.schemas([spec.name for spec in found.tools])
        return self._fitting(
            found.replace(
                schema_tokens=sum(len(dump_json(schema)) for schema in schemas) // 4,
                model=request.model or found.model or self._model,
                long_term_memory=self._providers.resolve(provider) if provider else "",
            )
        )

    async def _take_note(self, note: SessionNote) -> None:
        """Let the store know that a session begins, so that its words can be found if it dies.

        The session does not depend on it: a store that is away is one line in the log.
        """
        store = note.store
        try:
            async with asyncio.timeout(NOTE_SECONDS):
                provider = await self._providers.get(store.provider)
                if isinstance(provider, SessionLedger):
                    await provider.open_session(store.agent, store.scope, note.session, note.memory)
        except (AgentMemError, TimeoutError) as error:
            logger.warning(
                "the store %s took no note of a session that begins: %s; what it says is lost for "
                "memory if it is terminated",
                *(store.provider, describe(error)),
            )

    def _fitting(self, agent: Definition) -> Definition:
        """Return an agent whose view of the conversation fits the context that Ollama gives it."""
        if not (self._ollama_context and is_ollama(agent.model.partition("/")[0])):
            return agent
        names = [spec.name for spec in agent.tools]
        if agent.long_term_memory:
            names += MEMORY_TOOLS
        texts = f"{agent.system_prompt} {HINT} {dump_json(self._toolbox.schemas(names))}"
        fixed = encoded_size(texts) // 4 + agent.max_tokens
        room = fitting_tokens(self._ollama_context, fixed)
        asked = agent.working_memory.max_tokens
        if asked is not None and asked <= room:
            return agent
        memory = agent.working_memory.replace(max_tokens=room)
        return agent.replace(working_memory=memory)

    def _named(self, request: Resolve) -> Definition:
        if request.agent not in self._agents:
            raise ConfigurationError(
                f"no agent is named {request.agent!r}; this worker has "
                f"{', '.join(sorted(self._agents))}. Agents come from the file of AGENTMEM_AGENTS"
            )
        return self._agents[request.agent]

    def _in_code(self, request: Resolve) -> Definition:
        return Definition(
            name="agent",
            model=request.model,
            tools=self._toolbox.specs(request.tools),
            long_term_memory=request.provider,
        )


def _of_session(agent: Definition, scope: str) -> list[SessionNote]:
    """Return what the store is to know of a session of the `agent` workflow that begins."""
    if not (scope and agent.long_term_memory and agent.dream is not None):
        return []
    store = ScopeRef(provider=agent.long_term_memory, agent=agent.name, scope=scope)
    session = activity.info().workflow_run_id or ""
    return [SessionNote(store=store, session=session, memory="wm0")]
