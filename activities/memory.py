"""Long-term memory as activities: methods for workflow code, tools for models."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from temporalio import activity

from activities.tools import Remember, answer
from agentmem.contracts import Fetch, Store, ToolRun
from agentmem.errors import ProviderError, ToolError
from agentmem.facts import Evidence, Fact, Trust, Write, checked_name
from agentmem.memory.notes import facts_text, keys_text
from agentmem.memory.providers.protocol import TransactionalProvider
from agentmem.memory.providers.registry import Providers
from agentmem.memory.tools import MEMORY_TOOLS, asked_keys, one_key, sent_value
from agentmem.messages import Message
from agentmem.values import JSONValue, dump_json


class MemoryActivities:
    """What a worker does for long-term memory.

    Every write carries the run and the activity as its idempotency key, so that a retry after a
    lost answer writes no second version.
    """

    def __init__(self, providers: Providers, remember: Remember | None = None) -> None:
        """Serve the facts of these providers.

        Args:
            providers: The worker's stores.
            remember: Keeps a tool's result for the next prompt that this worker writes.
        """
        self._providers = providers
        self._remember = remember

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
        return await provider.recall(request.store.agent, request.store.scope, request.key)

    @activity.defn(name="memory.forget")
    async def forget(self, request: Fetch) -> None:
        """Remove a key, or the whole scope without one."""
        provider = await self._open(request.store)
        if request.key is None:
            await provider.forget(request.store.agent, request.store.scope)
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
        return await answer(run, MEMORY_TOOLS[tool][0], _told(work), self._remember)

    async def _recall(self, run: ToolRun) -> str:
        store, provider = await self._of(run)
        keys = asked_keys(run.call.arguments)
        entries = await provider.entries(store.agent, store.scope, keys)
        facts = [fact for fact in entries if _is_live(fact)]
        found = {fact.key for fact in facts}
        missing = [key for key in keys or [] if key not in found]
        known = await provider.keys(store.agent, store.scope) if missing else []
        return facts_text(facts, missing, known)

    async def _store(self, run: ToolRun) -> str:
        key, value = one_key(run.call.arguments), sent_value(run.call.arguments)
        store, provider = await self._of(run)
        write = Write(
            key=key,
            value=value,
            writer="agent",
            trust=Trust.ASSISTANT,
            said_at=_newest(run.evidence),
            evidence=run.evidence,
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
    info = activity.info()
    name = f"{info.workflow_run_id or info.activity_run_id}/{info.activity_id}"
    [version] = await provider.write(store.agent, store.scope, [write], name)
    return version > 0


def _is_live(fact: Fact) -> bool:
    return fact.expires_at is None or fact.expires_at > datetime.now(UTC)


def _newest(evidence: Sequence[Evidence]) -> datetime | None:
    return max((item.said_at for item in evidence if item.said_at), default=None)
