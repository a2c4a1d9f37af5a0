"""A user's five methods made a whole store: facts in theirs, the rest in the worker's own."""

import hashlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, ParamSpec, TypeVar

from agentmem.errors import AgentMemError, ConfigurationError, ProviderError
from agentmem.facts import Fact, Step, Tombstone, Write, checked_name
from agentmem.guests import GuestLoop
from agentmem.journal import FactVersion, Undone
from agentmem.memory.fact_details import expired
from agentmem.memory.providers.causes import may_travel, store_error
from agentmem.memory.providers.checks import CheckedStep, checked_step, checked_write, fact_place
from agentmem.memory.providers.exports import exported_writes
from agentmem.memory.providers.origins import Origins
from agentmem.memory.providers.own_records import OwnRecords
from agentmem.memory.providers.protocol import DreamRecord, MemoryProvider, TransactionalProvider
from agentmem.memory.providers.rows import now
from agentmem.memory.providers.standing import standing_steps
from agentmem.values import JSONObject, JSONValue, dump_json

logger = logging.getLogger(__name__)

P = ParamSpec("P")
Result = TypeVar("Result")


class PlainProvider(OwnRecords):
    """A `TransactionalProvider` over a store that has the five methods only.

    The store holds keys and values. What else is known of a fact (its state, whose word it is,
    until when it is of use, a value that is not confirmed, an earlier value, who wrote it and
    when, the messages that it rests on) is kept in the worker's own store, by the key and a digest
    of the value. A fact that somebody else wrote, or changed, is of unknown origin: settled, by the
    writer `unknown`, and with a user's trust, so that no weaker word replaces it. The cap does not
    protect it.

    What is lost: a dream's writes are made one by one, and a crash between two is repaired by the
    retry. Within a change the new values are written before anything is removed, so that a merge
    loses nothing. The version of a fact is a digest of its value, so one that changed and changed
    back has not moved. A write or a `forget` that is repeated because its answer was lost takes
    effect again, on what was stored in between too. There is no history, so no undo, no pins and no
    tombstones (a dream over older messages may learn again what was forgotten), and a dream sees
    facts as they are now.

    Args:
        provider: The user's store, for facts.
        own: The worker's store, for transcripts, dreams and the failure gate.
        name: The name that the user's store is registered under.
        loop: Where the user's methods run, which may block; the caller's loop if None.
    """

    def __init__(
        self,
        provider: MemoryProvider,
        own: TransactionalProvider,
        name: str,
        loop: GuestLoop | None = None,
    ) -> None:
        super().__init__(own, name)
        self._theirs = provider
        self._loop = loop
        self._name = name
        logger.warning(
            "provider %r has the five methods of MemoryProvider only: dreams write to it change by "
            "change, without versions, pins or undo; transcripts, and the evidence of each fact, "
            "are in the worker's own store",
            name,
        )

    async def memorize(self, agent: str, scope: str, key: str, value: JSONValue) -> None:
        """Store a value under a key, in place of what was there."""
        await self.write(agent, scope, [Write.model_construct(key=key, value=value)])

    async def recall(self, agent: str, scope: str, key: str | None = None) -> Any:
        """Return a key's value, None if it is missing; without a key, all as a dict by key."""
        place = fact_place(agent, scope)
        if key is not None:
            name = checked_name(key, "key")
            value = await self._ask(self._theirs.recall, *place, name)
            live = value is None or await self._live(agent, scope, {name: value})
            return value if live else None
        return await self._live(agent, scope, await self._values(agent, scope))

    async def forget(
        self, agent: str, scope: str, key: str | None = None, *, idempotency: str = ""
    ) -> None:
        """Remove a key; no error if it is missing. Without a key, remove the whole scope.

        A repeat removes again what was stored in between: this store keeps no names of calls.
        """
        place, key = fact_place(agent, scope), None if key is None else checked_name(key, "key")
        await self._ask(self._theirs.forget, *place, key)
        if key is None:
            await self._own.forget(self.own_agent(agent), scope)
        else:
            await self._origins(agent, scope).drop([key])

    async def keys(self, agent: str, scope: str) -> list[str]:
        """Return the scope's keys, sorted."""
        place = fact_place(agent, scope)
        known = await self._own.entries(self.own_agent(agent), scope)
        if any(expired(fact, now()) for fact in known):
            return list(await self.recall(agent, scope))  # whether it is that value has to be seen
        return sorted(await self._ask(self._theirs.keys, *place))

    async def scopes(self, agent: str) -> list[str]:
        """Return the agent's scopes that hold a fact, sorted."""
        return sorted(await self._ask(self._theirs.scopes, checked_name(agent, "agent")))

    async def entries(
        self, agent: str, scope: str, keys: Sequence[str] | None = None
    ) -> list[Fact]:
        """Return the current facts; each one's version is a digest of its value."""
        values = await self._values(agent, scope)
        if keys is not None:
            wanted = {checked_name(key, "key") for key in keys}
            values = {key: value for key, value in values.items() if key in wanted}
        return await self._told(agent, scope, values)

    async def facts_at(self, agent: str, scope: str, versions: dict[str, int]) -> list[Fact]:
        """Return these facts as they are now: this store has no history."""
        found = await self.entries(agent, scope, list(versions))
        facts = await self._origins(agent, scope).witnesses(found)
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
        current = {fact.key: fact.version for fact in await self.entries(agent, scope)}
        made = self._written(checked)
        moved = {step.id for step in checked if _moved(step, current, made)}
        standing = standing_steps(checked, moved)
        for write in [write for step in standing for write in _values_first(step)]:
            await self._make(agent, scope, write)
        applied = [step.id for step in standing]
        conflicts = [step.id for step in steps if step.id not in set(applied)]
        done = record.replace(applied=applied, conflicts=conflicts)
        return await self._own.commit(self.own_agent(agent), scope, done, [])

    async def history(self, agent: str, scope: str, key: str) -> list[FactVersion]:
        """Return nothing: this store has no history."""
        return []

    async def undo(self, agent: str, scope: str, change: str, by: str = "") -> Undone:
        """Refuse: without a history nothing can be taken back."""
        raise self._cannot("keeps no history: there is nothing to undo from")

    async def pin(
        self, agent: str, scope: str, key: str, pinned: bool = True, by: str = ""
    ) -> bool:
        """Refuse: there is no place to say that a fact is pinned."""
        raise self._cannot("cannot pin facts")

    async def erase(self, agent: str, scope: str) -> dict[str, int]:
        """Forget the scope's facts, and delete what lies of it in the worker's own store."""
        gone = len(await self._values(agent, scope))
        await self._ask(self._theirs.forget, *fact_place(agent, scope), None)
        return await self._own.erase(self.own_agent(agent), scope) | {"facts": gone}

    async def export(self, agent: str, scope: str) -> list[JSONObject]:
        """Return the facts with what is known of them, and the scope's rows in the own store."""
        entries = await self.entries(agent, scope)
        facts = await self._origins(agent, scope).witnesses(entries)
        rest = await self._own.export(self.own_agent(agent), scope)
        return [{"table": "facts", **fact.full()} for fact in facts] + _not_of_facts(rest)

    async def restore(self, agent: str, scope: str, rows: Sequence[JSONObject]) -> int:
        """Store the facts and put the rest into the own store; their history is lost."""
        if await self._values(agent, scope):
            raise self._cannot(f"holds facts of {agent!r}, {scope!r}: erase them first")
        checked = [checked_write(write).write for write in exported_writes(rows)]  # first of all
        done = await self._own.restore(self.own_agent(agent), scope, _not_of_facts(rows))
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
        if self._loop is not None:
            self._loop.close()

    async def _make(self, agent: str, scope: str, write: Write) -> int:
        place = fact_place(agent, scope)
        if write.op == "confirm":
            there = await self.entries(agent, scope, [write.key])
            if not there:
                return 0
            await self._origins(agent, scope).confirm(write, there[0].version)
            return there[0].version
        if write.op == "set":
            digest = self._digest(write.key, write.value)
            await self._origins(agent, scope).note(write, digest)
            await self._ask(self._theirs.memorize, *place, write.key, write.value)
            return digest
        there = write.key in await self._ask(self._theirs.keys, *place)
        if there:
            await self._ask(self._theirs.forget, *place, write.key)
        await self._origins(agent, scope).drop([write.key])
        return int(there)

    def _origins(self, agent: str, scope: str) -> Origins:
        return Origins(self._own, self.own_agent(agent), scope)

    async def _values(self, agent: str, scope: str) -> dict[str, Any]:
        found = await self._ask(self._theirs.recall, *fact_place(agent, scope))
        return dict(sorted(dict(found or {}).items()))

    async def _told(self, agent: str, scope: str, values: dict[str, Any]) -> list[Fact]:
        digests = {key: self._digest(key, value) for key, value in values.items()}
        return await self._origins(agent, scope).tell(values, digests)

    async def _live(self, agent: str, scope: str, values: dict[str, Any]) -> dict[str, Any]:
        """Return these values without those whose facts have expired."""
        facts = await self._told(agent, scope, values)
        return {fact.key: values[fact.key] for fact in facts if not expired(fact, now())}

    def _written(self, steps: Sequence[CheckedStep]) -> dict[str, set[int]]:
        """Return the versions that steps leave, by key; 0 where they remove it."""
        found: dict[str, set[int]] = {}
        for write in [one.write for step in steps for one in step.writes]:
            if write.op != "confirm":
                left = self._digest(write.key, write.value) if write.op == "set" else 0
                found.setdefault(write.key, set()).add(left)
        return found

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
            if self._loop is None:
                return await method(*args, **kwargs)
            return await self._loop.run(lambda: method(*args, **kwargs))
        except AgentMemError:
            raise
        except Exception as error:
            kind = type(error).__name__
            said = f"provider {self._name!r} failed: {kind}"
            raise store_error(said, error) from may_travel(error)


def _moved(step: CheckedStep, current: dict[str, int], made: dict[str, set[int]]) -> bool:
    # A key that holds what this commit writes was written by an attempt that crashed.
    return any(
        current.get(read.key, 0) not in {read.version, *made.get(read.key, ())}
        for read in step.reads
    )


def _values_first(step: CheckedStep) -> list[Write]:
    """Return a step's writes, each key's last one, so that nothing goes before what replaces it."""
    writes = [one.write for one in step.writes]
    last = {write.key: write for write in writes if write.op != "confirm"}
    kept = [write for write in writes if write.op == "confirm" or last[write.key] is write]
    return sorted(kept, key=lambda write: write.op == "remove")


def _not_of_facts(rows: Sequence[JSONObject]) -> list[JSONObject]:
    kinds = ("facts", "fact_versions", "fact_evidence", "fact_confirmations", "calls")
    return [row for row in rows if row.get("table") not in kinds]


def missing_methods(made: object) -> list[str]:
    """Return the methods of `MemoryProvider` that an object lacks."""
    methods = ("memorize", "recall", "forget", "keys", "scopes")
    return [name for name in methods if not callable(getattr(made, name, None))]
