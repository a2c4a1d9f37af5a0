"""Long-term memory as activities: methods for workflow code, tools for models."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from temporalio import activity

from activities.messages import MessageCache
from activities.tools import answer
from agentmem.contracts import FactRequest, ScopeRef, ToolRun
from agentmem.errors import AgentMemError, ProviderError, ToolError
from agentmem.facts import Evidence, Fact, Trust, Write, checked_name, until_end
from agentmem.memory.quotes import find_quote, quote_of
from agentmem.memory.recalled_facts import (
    expired,
    facts_text,
    keys_text,
    recall_details,
    recalled_facts,
)
from agentmem.memory.redaction import Redactor, redacted, secret_shape
from agentmem.memory.tools import (
    MEMORY_TOOLS,
    asked_keys,
    one_key,
    sent_quote,
    sent_until,
    sent_value,
)
from agentmem.messages import Message, Role
from agentmem.storage.protocol import TransactionalProvider
from agentmem.storage.registry import Providers
from agentmem.storage.usage import UsageNotes
from agentmem.wire import JSONValue, dump_json

QUOTE_SECONDS = 3
"""The seconds that a fact waits for messages that this worker lacks; then it goes without them."""

_QUOTE_THEM = "give the user's words of this turn that say so as quote, copied exactly"
_NOT_QUOTED = (
    "The quote is not a piece of the user's message of this turn, so this counts as your own word."
)


class MemoryActivities:
    """The activities that a worker runs for long-term memory.

    Every write carries the run and the activity as its idempotency key, so that a retry after a
    lost answer writes no second version.
    """

    def __init__(
        self,
        providers: Providers,
        cache: MessageCache | None = None,
        redact: Redactor = redacted,
        *,
        zone: str = "UTC",
    ) -> None:
        """Serve the facts of these providers.

        Args:
            providers: The worker's stores.
            cache: The worker's messages: keeps a tool's result for the next prompt, and has what
                evidence quotes.
            redact: Takes out of a quote what must not be kept.
            zone: The time zone whose days count in `until`.
        """
        self._providers = providers
        self._cache = cache
        self._redact = redact
        self._zone = zone
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
    async def memorize(self, request: FactRequest) -> None:
        """Store a value, as the user's own word."""
        key = checked_name(request.key, "key")
        ends = until_end(request.until, self._zone) if request.until else None
        provider = await self._open(request.store)
        await _write(provider, request.store, Write(key=key, value=request.value, expires_at=ends))

    @activity.defn(name="memory.recall")
    async def recall(self, request: FactRequest) -> JSONValue:
        """Return a value, or all as an object; with details, what is known of each fact."""
        provider = await self._open(request.store)
        place = (request.store.agent, request.store.scope, request.key)
        if request.details:
            value = await recall_details(provider, *place, datetime.now(UTC))
        else:
            value = await provider.recall(*place)
        if request.key is not None and value is not None:
            self.usage.note(provider, request.store, [request.key])
        return value

    @activity.defn(name="memory.forget")
    async def forget(self, request: FactRequest) -> None:
        """Remove a key, or the whole scope without one."""
        provider = await self._open(request.store)
        if request.key is None:
            store = request.store
            await provider.forget(store.agent, store.scope, idempotency=_call_name())
        else:
            await _write(provider, request.store, Write(op="remove", key=request.key))

    @activity.defn(name="memory.keys")
    async def keys(self, request: FactRequest) -> list[str]:
        """Return the scope's keys."""
        provider = await self._open(request.store)
        return await provider.keys(request.store.agent, request.store.scope)

    @activity.defn(name="memory.scopes")
    async def scopes(self, request: FactRequest) -> list[str]:
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
        now = datetime.now(UTC)
        facts = await recalled_facts(
            provider, store.agent, store.scope, keys, now, quoting=_is_tentative
        )
        found = {fact.key for fact in facts}
        missing = [key for key in keys or [] if key not in found]
        known = await provider.keys(store.agent, store.scope) if missing else []
        if keys:
            self.usage.note(provider, store, found)
        return facts_text(facts, missing, known, now=now, zone=self._zone)

    async def _store(self, run: ToolRun) -> str:
        key, value = one_key(run.call.arguments), sent_value(run.call.arguments)
        if shape := secret_shape(f"{key}={value if isinstance(value, str) else dump_json(value)}"):
            raise ToolError(
                f"Nothing was stored: that looks like {shape}, and long-term memory keeps no "
                "secrets. Store where it can be found instead."
            )
        ends = sent_until(run.call.arguments, self._zone)
        store, provider = await self._of(run)
        cited = await self._cited(run)
        write = Write(
            key=key,
            value=value,
            writer="agent",
            trust=cited.trust,
            said_at=_newest(cited.evidence),
            expires_at=ends,
            evidence=cited.evidence,
        )
        standing = await _standing(provider, store, key)
        if standing and _says_no_more(write, standing):
            return f"{dump_json(key)} is stored so already, by the user's word."
        _refuse_replacing(standing, write)
        await _write(provider, store, write)
        return " ".join([f"Stored {dump_json(key)}.", *cited.remarks, *_over(ends)])

    async def _forget(self, run: ToolRun) -> str:
        key = one_key(run.call.arguments)
        store, provider = await self._of(run)
        cited = await self._cited(run)
        asked = cited.trust is Trust.USER
        write = Write(
            op="remove",
            key=key,
            reason="asked_to_forget" if asked else "",
            writer="agent",
            trust=cited.trust,
            said_at=_newest(cited.evidence),
            evidence=cited.evidence,
        )
        standing = await _standing(provider, store, key)
        if standing and standing.pinned and not asked:
            raise ToolError(
                f"Nothing was changed: {dump_json(key)} is pinned. Only the user can ask to forget "
                f"it; {_QUOTE_THEM}"
            )
        if await _write(provider, store, write):
            return " ".join([f"Forgot {dump_json(key)}.", *cited.remarks])
        raise ToolError(f"Nothing was changed: there is no key {dump_json(key)}.")

    async def _list(self, run: ToolRun) -> str:
        store, provider = await self._of(run)
        return keys_text(await provider.keys(store.agent, store.scope))

    async def _cited(self, run: ToolRun) -> "_Cited":
        """Return what a call rests on: the user's own words if it quotes them, else the turn."""
        messages = await self._turn(run)
        quote = sent_quote(run.call.arguments)
        if not quote:
            return _Cited(await self._quoted(run, messages))
        user = next((item for item in run.evidence if item.role == Role.USER.value), None)
        text = next((one.text for one in messages if user and one.id == user.message), "")
        if user and await asyncio.to_thread(find_quote, quote, text):
            words = await asyncio.to_thread(self._redact, quote)
            return _Cited([user.replace(quote=quote_of(words))], Trust.USER)
        return _Cited(await self._quoted(run, messages), remarks=[_NOT_QUOTED])

    async def _turn(self, run: ToolRun) -> Sequence[Message]:
        """Return the turn's messages; none where they cannot be had."""
        if run.said is None or self._cache is None:
            return []
        try:
            async with asyncio.timeout(QUOTE_SECONDS):
                return await self._cache.resolve_prompt(run.said)
        except (AgentMemError, TimeoutError) as error:
            activity.logger.warning("a fact without quotes: %s", type(error).__name__)
            return []

    async def _quoted(self, run: ToolRun, messages: Sequence[Message]) -> list[Evidence]:
        """Return the call's evidence with its quotes, as far as there are messages."""
        texts = await asyncio.to_thread(self._texts, messages)
        return [item.replace(quote=quote_of(texts.get(item.message, ""))) for item in run.evidence]

    def _texts(self, messages: Sequence[Message]) -> dict[str, str]:
        return {message.id: self._redact(message.text) for message in messages}

    async def _of(self, run: ToolRun) -> tuple[ScopeRef, TransactionalProvider]:
        if run.store is None:
            raise ToolError("This agent has no long-term memory.")
        return run.store, await self._open(run.store)

    async def _open(self, store: ScopeRef) -> TransactionalProvider:
        return await self._providers.get(store.provider)


@dataclass(frozen=True)
class _Cited:
    """The evidence that a call rests on.

    Attributes:
        evidence: Messages of the turn, quoted.
        trust: Whose word it is: the user's if the call quotes the user, else the assistant's.
        remarks: What the model should know of that.
    """

    evidence: list[Evidence]
    trust: Trust = Trust.ASSISTANT
    remarks: Sequence[str] = ()


async def _told(work: Awaitable[str]) -> str:
    try:
        return await work
    except ProviderError as error:
        raise ProviderError(
            f"long-term memory does not answer; go on without it ({error.message})"
        ) from error


async def _write(provider: TransactionalProvider, store: ScopeRef, write: Write) -> bool:
    """Write once however often the activity runs; say whether there was something to do."""
    [version] = await provider.write(store.agent, store.scope, [write], _call_name())
    return version > 0


def _call_name() -> str:
    """Return a name that all attempts of the running activity share."""
    info = activity.info()
    return f"{info.workflow_run_id or info.activity_run_id}/{info.activity_id}"


async def _standing(provider: TransactionalProvider, store: ScopeRef, key: str) -> Fact | None:
    """Return the fact of a key, None if there is none that is recalled."""
    found = await provider.entries(store.agent, store.scope, [key])
    return next((fact for fact in found if not expired(fact, datetime.now(UTC))), None)


def _refuse_replacing(fact: Fact | None, write: Write) -> None:
    """Refuse to replace what a person pinned, or what a user said without a user's words.

    Raises:
        ToolError: It is one of these; the model learns what it may do.
    """
    if fact is None:
        return
    key = dump_json(fact.key)
    if fact.pinned:
        raise ToolError(
            f"Nothing was stored: {key} is pinned by a person and cannot be replaced here. Tell "
            "the user so, or store what is new under another key."
        )
    if fact.trust is Trust.USER is not write.trust:
        raise ToolError(
            f"Nothing was stored: {key} is what the user said. To replace it, {_QUOTE_THEM}; "
            "if the user did not say it, ask, or store it under another key."
        )


def _says_no_more(write: Write, fact: Fact) -> bool:
    """Tell if an agent stores by its own word what a user has said already."""
    weaker = fact.trust is Trust.USER is not write.trust
    same = dump_json(fact.value) == dump_json(write.value)
    return weaker and same and write.expires_at in (None, fact.expires_at)


def _is_tentative(fact: Fact) -> bool:
    return fact.state == "tentative"


def _over(ends: datetime | None) -> list[str]:
    over = ends is not None and ends <= datetime.now(UTC)
    return ["It is over already, so it will not be recalled."] if over else []


def _newest(evidence: Sequence[Evidence]) -> datetime | None:
    return max((item.said_at for item in evidence if item.said_at), default=None)
