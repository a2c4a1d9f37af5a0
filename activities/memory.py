"""Long-term memory as activities: methods for workflow code, tools for models."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from temporalio import activity

from activities.messages import MessageCache
from activities.tools import answer
from agentmem.contracts import Fetch, Store, ToolRun
from agentmem.errors import AgentMemError, ProviderError, ToolError
from agentmem.facts import Evidence, Fact, Trust, Write, checked_name
from agentmem.memory.notes import facts_text, keys_text
from agentmem.memory.providers.protocol import TransactionalProvider
from agentmem.memory.providers.registry import Providers
from agentmem.memory.quotes import quote_of
from agentmem.memory.tools import MEMORY_TOOLS, asked_keys, one_key, sent_value
from agentmem.memory.usage import UsageNotes
from agentmem.messages import Message
from agentmem.redaction import Redactor
from agentmem.secret_shapes import redacted, secret_shape
from agentmem.values import JSONValue, dump_json

QUOTE_SECONDS = 3
"""How long a fact waits for what was said, when this worker does not have it: then without it."""


class MemoryActivities:
    """What a worker does for long-term memory.

    Every write carries the run and the activity as its idempotency key, so that a retry after a
    lost answer writes no second version.
    """

    def __init__(
        self,
        providers: Providers,
        cache: MessageCache | None = None,
        redact: Redactor = redacted,
    ) -> None:
        """Serve the facts of these providers.

        Args:
            providers: The worker's stores.
            cache: The worker's messages: keeps a tool's result for the next prompt, and has what
                evidence quotes.
            redact: Takes out of a quote what must not be kept.
        """
        self._providers = providers
        self._cache = cache
        self._redact = redact
        self.usage = UsageNotes()

    @property
    def activities(self) -> list[Callable[..., Awaitable[Any]]]:
        """All of them, to register."""
        methods = [self.memorize, self.recall, self.forget, self.keys, self.scopes]
        tools = [
            self.recall_memory,
            self.store_memory,
            self.forget_memory,
            self.list_memory_keys,
        ]
        return [*methods, *tools]

    @activity.defn(name="memory.memorize")
    async def memorize(self, request: Fetch) -> None:
        """Store a value, as the user's own word."""
        key = checked_name(request.key, "key")
        provider = await self._open(request.store)
        await _write(provider, request.store, Write(key=key, value=request.value))

    @activity.defn(name="memory.recall")
    async def recall(self, request: Fetch) -> JSONValue:
        """Return a value, or all as an object."""
        provider = await self._open(request.store)
        value = await provider.recall(request.store.agent, request.store.scope, request.key)
        if request.key is not None and value is not None:
            self.usage.note(provider, request.store, [request.key])
        return value

    @activity.defn(name="memory.forget")
    async def forget(self, request: Fetch) -> None:
        """Remove a key, or the whole scope without one."""
        provider = await self._open(request.store)
        if request.key is None:
            store = request.store
            await provider.forget(store.agent, store.scope, idempotency=_call_name())
        else:
            await _write(provider, request.store, Write(op="remove", key=request.key))

    @activity.defn(name="memory.keys")
    async def keys(self, request: Fetch) -> list[str]:
        """Return the scope's keys."""
        provider = await self._open(request.store)
        return await provider.keys(request.store.agent, request.store.scope)

    @activity.defn(name="memory.scopes")
    async def scopes(self, request: Fetch) -> list[str]:
        """Return the agent's scopes."""
        provider = await self._open(request.store)
        return await provider.scopes(request.store.agent)

    @activity.defn(name="recall_memory")
    async def recall_memory(self, run: ToolRun) -> Message:
        """Show a model one fact, several or all, as notes."""
        return await self._answer("recall_memory", run, self._recall(run))

    @activity.defn(name="store_memory")
    async def store_memory(self, run: ToolRun) -> Message:
        """Store a fact that a model sends, with the messages that it rests on."""
        return await self._answer("store_memory", run, self._store(run))

    @activity.defn(name="forget_memory")
    async def forget_memory(self, run: ToolRun) -> Message:
        """Remove the one fact that a model names."""
        return await self._answer("forget_memory", run, self._forget(run))

    @activity.defn(name="list_memory_keys")
    async def list_memory_keys(self, run: ToolRun) -> Message:
        """Show a model which keys there are."""
        return await self._answer("list_memory_keys", run, self._list(run))

    async def _answer(self, tool: str, run: ToolRun, work: Awaitable[str]) -> Message:
        remember = self._cache.remember if self._cache else None
        return await answer(run, MEMORY_TOOLS[tool][0], _told(work), remember)

    async def _recall(self, run: ToolRun) -> str:
        store, provider = await self._of(run)
        keys = asked_keys(run.call.arguments)
        entries = await provider.entries(store.agent, store.scope, keys)
        facts = [fact for fact in entries if _is_live(fact)]
        found = {fact.key for fact in facts}
        missing = [key for key in keys or [] if key not in found]
        known = await provider.keys(store.agent, store.scope) if missing else []
        if keys:
            self.usage.note(provider, store, found)
        return facts_text(facts, missing, known)

    async def _store(self, run: ToolRun) -> str:
        key, value = one_key(run.call.arguments), sent_value(run.call.arguments)
        if shape := secret_shape(f"{key}={value if isinstance(value, str) else dump_json(value)}"):
            raise ToolError(
                f"Nothing was stored: that looks like {shape}, and long-term memory keeps no "
                "secrets. Store where it can be found instead."
            )
        store, provider = await self._of(run)
        evidence = await self._quoted(run)
        write = Write(
            key=key,
            value=value,
            writer="agent",
            trust=Trust.ASSISTANT,
            said_at=_newest(evidence),
            evidence=evidence,
        )
        await _write(provider, store, write)
        return f"Stored {dump_json(key)}."

    async def _forget(self, run: ToolRun) -> str:
        key = one_key(run.call.arguments)
        store, provider = await self._of(run)
        write = Write(op="remove", key=key, reason="asked_to_forget", writer="agent")
        if await _write(provider, store, write):
            return f"Forgot {dump_json(key)}."
        raise ToolError(f"Nothing was changed: there is no key {dump_json(key)}.")

    async def _list(self, run: ToolRun) -> str:
        store, provider = await self._of(run)
        return keys_text(await provider.keys(store.agent, store.scope))

    async def _quoted(self, run: ToolRun) -> list[Evidence]:
        """Return the call's evidence with its quotes; without them where none can be had."""
        if run.said is None or self._cache is None:
            return run.evidence
        try:
            async with asyncio.timeout(QUOTE_SECONDS):
                messages = await self._cache.resolve_prompt(run.said)
        except (AgentMemError, TimeoutError) as error:
            activity.logger.warning("a fact without quotes: %s", type(error).__name__)
            return run.evidence
        texts = await asyncio.to_thread(self._texts, messages)
        return [item.replace(quote=quote_of(texts.get(item.message, ""))) for item in run.evidence]

    def _texts(self, messages: Sequence[Message]) -> dict[str, str]:
        return {message.id: self._redact(message.text) for message in messages}

    async def _of(self, run: ToolRun) -> tuple[Store, TransactionalProvider]:
        if run.store is None:
            raise ToolError("This agent has no long-term memory.")
        return run.store, await self._open(run.store)

    async def _open(self, store: Store) -> TransactionalProvider:
        return await self._providers.get(store.provider)


async def _told(work: Awaitable[str]) -> str:
    try:
        return await work
    except ProviderError as error:
        raise ProviderError(
            f"long-term memory does not answer; go on without it ({error.message})"
        ) from error


async def _write(provider: TransactionalProvider, store: Store, write: Write) -> bool:
    """Write once however often the activity runs; say whether there was something to do."""
    [version] = await provider.write(store.agent, store.scope, [write], _call_name())
    return version > 0


def _call_name() -> str:
    """Return a name that all attempts of the running activity share."""
    info = activity.info()
    return f"{info.workflow_run_id or info.activity_run_id}/{info.activity_id}"


def _is_live(fact: Fact) -> bool:
    return fact.expires_at is None or fact.expires_at > datetime.now(UTC)


def _newest(evidence: Sequence[Evidence]) -> datetime | None:
    return max((item.said_at for item in evidence if item.said_at), default=None)
