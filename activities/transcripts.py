"""Appending conversations to the transcript of long-term memory."""

from collections.abc import Awaitable, Callable

from temporalio import activity

from agentmem.contracts import Append, Prompt
from agentmem.memory.providers.registry import Providers
from agentmem.memory.transcript_rows import transcript_rows
from agentmem.messages import Message


class TranscriptActivities:
    """The activity `agentmem.append`."""

    def __init__(
        self, providers: Providers, resolve: Callable[[Prompt], Awaitable[list[Message]]]
    ) -> None:
        """Take what it needs.

        Args:
            providers: The memory stores.
            resolve: Finds the messages of a prompt, in the cache or by asking the workflow.
        """
        self._providers = providers
        self._resolve = resolve

    @activity.defn(name="agentmem.append")
    async def append(self, request: Append) -> int:
        """Append messages to the transcript; returns the last sequence number held.

        Raises:
            ProviderError: The store failed.
        """
        provider = await self._providers.get(request.store.provider)
        messages = await self._resolve(request.prompt)
        rows = transcript_rows(
            messages,
            session=request.session,
            memory=request.prompt.memory,
            first=request.first,
            forgotten=request.forgotten,
        )
        return await provider.append(request.store.agent, request.store.scope, rows)
