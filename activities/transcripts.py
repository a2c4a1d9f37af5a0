"""Appending conversations to the transcript of long-term memory."""

import asyncio

from temporalio import activity

from activities.messages import MessageCache
from agentmem.contracts import Append
from agentmem.memory.providers.records import MessageId
from agentmem.memory.providers.registry import Providers
from agentmem.memory.transcript_rows import transcript_rows
from agentmem.redaction import Redactor
from agentmem.secret_shapes import redacted


class TranscriptActivities:
    """The activity `agentmem.append`."""

    def __init__(
        self, providers: Providers, cache: MessageCache, redact: Redactor = redacted
    ) -> None:
        """Append to these stores, with the worker's messages, redacted."""
        self._providers = providers
        self._cache = cache
        self._redact = redact

    @activity.defn(name="agentmem.append")
    async def append(self, request: Append) -> int:
        """Append messages to the transcript, and blank what was forgotten.

        Returns:
            The last sequence number that the store holds; without new messages, 0.

        Raises:
            ProviderError: The store failed.
        """
        provider = await self._providers.get(request.store.provider)
        messages = await self._cache.resolve_prompt(request.prompt, timed=True)
        rows = await asyncio.to_thread(
            transcript_rows,
            messages,
            session=request.session,
            memory=request.prompt.memory,
            first=request.first,
            forgotten=request.forgotten,
            redact=self._redact,
        )
        agent, scope = request.store.agent, request.store.scope
        held = await provider.append(agent, scope, rows)
        for message in request.forgotten:  # a row may be there with its text, and be quoted
            which = MessageId(
                session=request.session, memory=request.prompt.memory, message=message
            )
            await provider.forget_message(agent, scope, which)
        return held
