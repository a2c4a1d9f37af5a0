"""Plain providers: a user's five methods made into a whole store.

Facts are in the user's store. Their metadata, the transcripts and the dreams are in the worker's
own store, which holds a fact of the same key whose value is a digest of the real one. If the real
value was changed by somebody else, the digest differs, and the metadata no longer applies.
"""

import hashlib
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import date, datetime
from typing import Any, Literal, ParamSpec, TypeVar

from agentmem.errors import AgentMemError, ConfigurationError, ProviderError
from agentmem.facts import (
    KEY_BYTES,
    Fact,
    FactVersion,
    Step,
    Tombstone,
    Trust,
    Undone,
    Write,
    checked_name,
)
from agentmem.guest_loop import GuestLoop
from agentmem.memory.recalled_facts import expired
from agentmem.records import DreamRecord, MessageId, Range, ReplyRecord, ScopeState, TranscriptRow
from agentmem.storage.checks import (
    RESERVED,
    CheckedStep,
    OwnAgent,
    checked_step,
    checked_write,
    fact_place,
)
from agentmem.storage.conflicts import standing_steps
from agentmem.storage.driver_errors import may_travel, store_error
from agentmem.storage.exports import exported_writes
from agentmem.storage.protocol import MemoryProvider, TransactionalProvider
from agentmem.storage.sql.rows import now
from agentmem.wire import JSONObject, JSONValue, dump_json


class Origins:
    """The known metadata of the facts of one scope.

    Args:
        own: The worker's own store.
        agent: The agent of our own that stands for the user's.
        scope: The scope.
    """

    def __init__(self, own: TransactionalProvider, agent: OwnAgent, scope: str) -> None:
        self._own = own
        self._at = (agent, scope)

    async def tell(self, values: Mapping[str, JSONValue], digests: Mapping[str, int]) -> list[Fact]:
        """Return facts with what is known of them; of unknown origin where nothing is.

        Args:
            values: Their values, by key.
            digests: The digest of each value, by key; it is the fact's version too.
        """
        known = await self._known(digests)
        return [
            known.get(key, Fact(key=key, writer="unknown")).replace(value=value, version=digest)
            for (key, value), digest in zip(values.items(), digests.values(), strict=True)
        ]

    async def witnesses(self, facts: Sequence[Fact]) -> list[Fact]:
        """Return these facts with the messages that they rest on."""
        known = await self._known({fact.key: fact.version for fact in facts})
        versions = {key: fact.version for key, fact in known.items()}
        whole = {fact.key: fact.evidence for fact in await self._own.facts_at(*self._at, versions)}
        return [fact.replace(evidence=whole.get(fact.key, [])) for fact in facts]

    async def note(self, write: Write, digest: int) -> None:
        """Keep what a write says of a fact, before its value is stored."""
        await self._own.write(*self._at, [write.replace(value=digest)])

    async def confirm(self, write: Write, digest: int) -> None:
        """Add the evidence of a confirmation to a fact that is there with this digest."""
        known = await self._known({write.key: digest})
        if not known or known[write.key].version != await self._newest(write.key):
            fact = known.get(write.key, Fact(key=write.key, trust=Trust.USER, writer="unknown"))
            said = {name: getattr(fact, name) for name in Fact.model_fields}
            await self.note(Write.model_validate(said), digest)
        await self._own.write(*self._at, [write])

    async def drop(self, keys: Sequence[str]) -> None:
        """Let go of what is known of keys whose values have gone."""
        await self._own.write(*self._at, [Write(op="remove", key=key) for key in keys])

    async def _known(self, digests: Mapping[str, int]) -> dict[str, Fact]:
        """Return what is kept of these keys, where it is about the value with that digest."""
        kept = {fact.key: fact for fact in await self._own.entries(*self._at, list(digests))}
        # Of a write whose value never reached the other store, what was known before applies.
        other = {key: fact.version - 1 for key, fact in kept.items() if fact.value != digests[key]}
        before = await self._own.facts_at(*self._at, other) if other else []
        kept |= {fact.key: fact for fact in before}
        return {key: fact for key, fact in kept.items() if fact.value == digests[key]}

    async def _newest(self, key: str) -> int:
        return next((one.version for one in await self._own.entries(*self._at, [key])), 0)


class OwnRecords:
    """The part of `TransactionalProvider` that is no fact, kept in another store.

    It lies there under agents whose names no user's agent can have.

    Args:
        own: The store.
        name: Whose records these are.
    """

    def __init__(self, own: TransactionalProvider, name: str) -> None:
        self._own = own
        self._prefix = f"{RESERVED}{name}/"

    def own_agent(self, agent: str) -> OwnAgent:
        """Return the agent that an agent's records lie under; a long name becomes its digest."""
        name = checked_name(agent, "agent")
        if len((self._prefix + name).encode()) > KEY_BYTES:
            name = hashlib.sha256(name.encode()).hexdigest()
        return OwnAgent(self._prefix + name)

    async def append(self, agent: str, scope: str, rows: Sequence[TranscriptRow]) -> int:
        """Append rows of one session's memory; rows that are there already stay as they are."""
        return await self._own.append(self.own_agent(agent), scope, rows)

    async def unread(self, agent: str, scope: str, max_bytes: int) -> list[TranscriptRow]:
        """Return the rows after each session's cursor, oldest session first."""
        return await self._own.unread(self.own_agent(agent), scope, max_bytes)

    async def transcript(
        self, agent: str, scope: str, ranges: Sequence[Range]
    ) -> list[TranscriptRow]:
        """Return the rows of these ranges, in the ranges' order."""
        return await self._own.transcript(self.own_agent(agent), scope, ranges)

    async def scope_state(self, agent: str, scope: str) -> ScopeState:
        """Return what the failure gate knows of the scope."""
        return await self._own.scope_state(self.own_agent(agent), scope)

    async def open_dream(self, agent: str, scope: str, record: DreamRecord) -> DreamRecord:
        """Register a dream and count its attempt, once by its id, in one transaction."""
        return await self._own.open_dream(self.own_agent(agent), scope, record)

    async def dream(self, agent: str, scope: str, dream_id: str) -> DreamRecord | None:
        """Return a dream's record, None if there is none."""
        return await self._own.dream(self.own_agent(agent), scope, dream_id)

    async def dreams(self, agent: str, scope: str, most: int = 50) -> list[DreamRecord]:
        """Return the scope's dreams, the newest first, at most so many."""
        return await self._own.dreams(self.own_agent(agent), scope, most)

    async def save_dream(self, agent: str, scope: str, record: DreamRecord) -> None:
        """Replace a running dream's record; one that has ended stays as it is."""
        await self._own.save_dream(self.own_agent(agent), scope, record)

    async def end_dream(
        self, agent: str, scope: str, dream_id: str, status: str, failures: Literal["zero", "undo"]
    ) -> None:
        """End a dream that commits nothing, once."""
        await self._own.end_dream(self.own_agent(agent), scope, dream_id, status, failures)

    async def replies(self, agent: str, scope: str, dream_id: str) -> list[ReplyRecord]:
        """Return the dream's paid model replies, in order of phase and step."""
        return await self._own.replies(self.own_agent(agent), scope, dream_id)

    async def save_reply(self, agent: str, scope: str, dream_id: str, reply: ReplyRecord) -> None:
        """Keep a model reply before it is used, in place of one of the same phase and step."""
        await self._own.save_reply(self.own_agent(agent), scope, dream_id, reply)

    async def use(self, agent: str, scope: str, keys: Sequence[str], day: date) -> None:
        """Note on which day facts were asked for by key."""
        await self._own.use(self.own_agent(agent), scope, keys, day)

    async def used(self, agent: str, scope: str) -> dict[str, date]:
        """Return the last day that each key was asked for."""
        return await self._own.used(self.own_agent(agent), scope)

    async def forget_message(self, agent: str, scope: str, message: MessageId) -> int:
        """Blank a message's text in the transcript; return how many rows held it."""
        return await self._own.forget_message(self.own_agent(agent), scope, message)

    async def expire(self, before: datetime) -> int:
        """Delete nothing: the other store does that for all that lies in it."""
        return 0


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
