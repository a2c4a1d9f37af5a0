"""A user's five methods made a whole store: facts in theirs, the rest in the worker's own."""

import hashlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, ParamSpec, TypeVar

from agentmem.errors import AgentMemError, ConfigurationError, ProviderError
from agentmem.facts import Fact, Step, Tombstone, Write, checked_name
from agentmem.journal import FactVersion, Undone
from agentmem.memory.providers.causes import may_travel
from agentmem.memory.providers.checks import CheckedStep, checked_step, checked_write, fact_place
from agentmem.memory.providers.own_records import OwnRecords
from agentmem.memory.providers.protocol import DreamRecord, MemoryProvider, TransactionalProvider
from agentmem.memory.providers.standing import standing_steps
from agentmem.values import JSONObject, JSONValue, dump_json

logger = logging.getLogger(__name__)

P = ParamSpec("P")
Result = TypeVar("Result")


class PlainProvider(OwnRecords):
    """A `TransactionalProvider` over a store that has the five methods only.

    What is lost: a dream's writes are made one by one, and a crash between two is mended by the
    retry; the version of a fact is a digest of its value, so one that changed and changed back
    has not moved; a write or a `forget` that is repeated because its answer was lost takes effect
    again, on what was stored in between too; there is no history, so no evidence, no undo and no
    tombstones (a dream over older messages may learn again what was forgotten), a confirmation
    leaves no trace, and a dream sees facts as they are now.

    Args:
        provider: The user's store, for facts.
        own: The worker's store, for transcripts, dreams and the failure gate.
        name: The name that the user's store is registered under.
    """

    def __init__(self, provider: MemoryProvider, own: TransactionalProvider, name: str) -> None:
        super().__init__(own, name)
        self._theirs = provider
        self._name = name
        logger.warning(
            "provider %r has the five methods of MemoryProvider only: dreams write to it change by "
            "change, without versions, evidence or undo; transcripts are in the worker's own store",
            name,
        )

    async def memorize(self, agent: str, scope: str, key: str, value: JSONValue) -> None:
        """Store a value under a key, in place of what was there."""
        await self.write(agent, scope, [Write.model_construct(key=key, value=value)])

    async def recall(self, agent: str, scope: str, key: str | None = None) -> Any:
        """Return a key's value, None if it is missing; without a key, all as a dict by key."""
        place = fact_place(agent, scope)
        if key is not None:
            return await self._ask(self._theirs.recall, *place, checked_name(key, "key"))
        found = await self._ask(self._theirs.recall, *place)
        return dict(sorted(dict(found or {}).items()))

    async def forget(
        self, agent: str, scope: str, key: str | None = None, *, idempotency: str = ""
    ) -> None:
        """Remove a key; no error if it is missing. Without a key, remove the whole scope.

        A repeat removes again what was stored in between: this store keeps no names of calls.
        """
        key = None if key is None else checked_name(key, "key")
        await self._ask(self._theirs.forget, *fact_place(agent, scope), key)

    async def keys(self, agent: str, scope: str) -> list[str]:
        """Return the scope's keys, sorted."""
        return sorted(await self._ask(self._theirs.keys, *fact_place(agent, scope)))

    async def scopes(self, agent: str) -> list[str]:
        """Return the agent's scopes that hold a fact, sorted."""
        return sorted(await self._ask(self._theirs.scopes, checked_name(agent, "agent")))

    async def entries(
        self, agent: str, scope: str, keys: Sequence[str] | None = None
    ) -> list[Fact]:
        """Return the current facts; each one's version is a digest of its value."""
        values: dict[str, Any] = await self.recall(agent, scope)
        wanted = set(values) if keys is None else {checked_name(key, "key") for key in keys}
        return [
            Fact(key=key, value=value, version=self._digest(key, value))
            for key, value in values.items()
            if key in wanted
        ]

    async def facts_at(self, agent: str, scope: str, versions: dict[str, int]) -> list[Fact]:
        """Return these facts as they are now: this store has no history."""
        facts = await self.entries(agent, scope, list(versions))
        return [fact.replace(version=versions.get(fact.key, fact.version)) for fact in facts]

    async def tombstones(self, agent: str, scope: str) -> list[Tombstone]:
        """Return none: this store does not remember what it forgot."""
        return []

    async def write(
        self, agent: str, scope: str, writes: Sequence[Write], idempotency: str = ""
    ) -> list[int]:
        """Make the writes in order; a repeat stores the same values again."""
        fact_place(agent, scope)
        checked = [checked_write(write).write for write in writes]  # all, before any is made
        return [await self._make(agent, scope, write) for write in checked]

    async def commit(
        self, agent: str, scope: str, record: DreamRecord, steps: Sequence[Step]
    ) -> DreamRecord:
        """Commit a dream once by its id, write by write, then move the cursors."""
        there = await self.dream(agent, scope, record.id)
        if there is not None and there.status != "running":
            return there
        checked = [checked_step(record.id, step) for step in steps]
        now = {fact.key: fact.version for fact in await self.entries(agent, scope)}
        standing = standing_steps(checked, {one.id for one in checked if self._moved(one, now)})
        for write in [one.write for step in standing for one in step.writes]:
            await self._make(agent, scope, write)
        applied = [step.id for step in standing]
        conflicts = [step.id for step in steps if step.id not in set(applied)]
        done = record.replace(applied=applied, conflicts=conflicts)
        return await self._own.commit(self.own_agent(agent), scope, done, [])

    async def history(self, agent: str, scope: str, key: str) -> list[FactVersion]:
        """Return nothing: this store has no history."""
        return []

    async def undo(self, agent: str, scope: str, change: str) -> Undone:
        """Refuse: without a history nothing can be taken back."""
        raise self._cannot("keeps no history: there is nothing to undo from")

    async def pin(self, agent: str, scope: str, key: str, pinned: bool = True) -> bool:
        """Refuse: there is no place to say that a fact is pinned."""
        raise self._cannot("cannot pin facts")

    async def erase(self, agent: str, scope: str) -> dict[str, int]:
        """Forget the scope's facts, and delete what lies of it in the worker's own store."""
        gone = len(await self.keys(agent, scope))
        await self.forget(agent, scope)
        return await self._own.erase(self.own_agent(agent), scope) | {"facts": gone}

    async def export(self, agent: str, scope: str) -> list[JSONObject]:
        """Return the facts' keys and values, and what lies of the scope in the own store."""
        values: dict[str, Any] = await self.recall(agent, scope)
        rows = [{"table": "facts", "key": key, "value": value} for key, value in values.items()]
        return rows + await self._own.export(self.own_agent(agent), scope)

    async def restore(self, agent: str, scope: str, rows: Sequence[JSONObject]) -> int:
        """Store the facts' values and put the rest into the own store; their history is lost."""
        if await self.keys(agent, scope):
            raise self._cannot(f"holds facts of {agent!r}, {scope!r}: erase them first")
        facts = [row for row in rows if row.get("table") == "facts"]
        writes = [
            Write.model_construct(key=row.get("key"), value=row.get("value")) for row in facts
        ]
        checked = [checked_write(write).write for write in writes]  # before anything is stored
        rest = [row for row in rows if not str(row.get("table")).startswith(("fact", "calls"))]
        done = await self._own.restore(self.own_agent(agent), scope, rest)
        return done + len(await self.write(agent, scope, checked))

    def _cannot(self, what: str) -> ConfigurationError:
        return ConfigurationError(
            f"provider {self._name!r} {what}; agentmem.TransactionalProvider says what it lacks"
        )

    async def close(self) -> None:
        """Close the user's store if it can be closed; the worker's own stays open."""
        close = getattr(self._theirs, "close", None)
        if close is not None:
            await self._ask(close)

    async def _make(self, agent: str, scope: str, write: Write) -> int:
        place = fact_place(agent, scope)
        if write.op == "confirm":
            there = await self.entries(agent, scope, [write.key])
            return there[0].version if there else 0
        if write.op == "set":
            await self._ask(self._theirs.memorize, *place, write.key, write.value)
            return self._digest(write.key, write.value)
        if write.key not in await self.keys(agent, scope):
            return 0
        await self._ask(self._theirs.forget, *place, write.key)
        return 1

    def _moved(self, step: CheckedStep, now: dict[str, int]) -> bool:
        # A key that holds what this step writes was written by an attempt that crashed.
        written = {
            one.write.key: self._digest(one.write.key, one.write.value)
            if one.write.op == "set"
            else 0
            for one in step.writes
            if one.write.op != "confirm"
        }
        return any(
            now.get(read.key, 0) not in {read.version, written.get(read.key, read.version)}
            for read in step.reads
        )

    def _digest(self, key: str, value: Any) -> int:
        try:
            text = dump_json(value)
        except (TypeError, ValueError) as error:
            raise ProviderError(f"provider {self._name!r} holds no JSON under {key!r}") from error
        # 53 bits: a number that JSON carries exactly; 0 is a key that is not there.
        digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        return 1 + int.from_bytes(digest) % (2**53 - 1)

    async def _ask(
        self, method: Callable[P, Awaitable[Result]], *args: P.args, **kwargs: P.kwargs
    ) -> Result:
        try:
            return await method(*args, **kwargs)
        except AgentMemError:
            raise
        except Exception as error:
            kind = type(error).__name__
            raise ProviderError(f"provider {self._name!r} failed: {kind}") from may_travel(error)


def missing_methods(made: object) -> list[str]:
    """Return the methods of `MemoryProvider` that an object lacks."""
    methods = ("memorize", "recall", "forget", "keys", "scopes")
    return [name for name in methods if not callable(getattr(made, name, None))]
