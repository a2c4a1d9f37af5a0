"""Appending conversations to the transcript of long-term memory."""

from temporalio import activity

from activities.messages import MessageCache
from agentmem.contracts import Append
from agentmem.memory.providers.registry import Providers
from agentmem.memory.transcript_rows import transcript_rows


class TranscriptActivities:
    """The activity `agentmem.append`."""

    def __init__(self, providers: Providers, cache: MessageCache) -> None:
        """Append to these stores, with the worker's messages."""
        self._providers = providers
        self._cache = cache

    @activity.defn(name="agentmem.append")
    async def append(self, request: Append) -> int:
        """Append messages to the transcript; returns the last sequence number held.

        Raises:
            ProviderError: The store failed.
        """
        provider = await self._providers.get(request.store.provider)
        messages = await self._cache.resolve_prompt(request.prompt, timed=True)
        rows = transcript_rows(
            messages,
            session=request.session,
            memory=request.prompt.memory,
            first=request.first,
            forgotten=request.forgotten,
        )
        return await provider.append(request.store.agent, request.store.scope, rows)
