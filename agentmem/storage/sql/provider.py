"""`SqlProvider`: the whole contract of a memory store, on either database."""

from collections.abc import Callable, Sequence
from datetime import date, datetime
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar

from sqlalchemy import Connection

from agentmem.facts import Fact, FactVersion, Step, Tombstone, Undone, Write, checked_name
from agentmem.records import DreamRecord, MessageId, Range, ReplyRecord, ScopeState, TranscriptRow
from agentmem.storage.checks import (
    aware,
    checked_dream,
    checked_message,
    checked_ranges,
    checked_reply,
    checked_rows,
    checked_step,
    checked_text,
    checked_write,
    fact_place,
    session_place,
    storable,
)
from agentmem.storage.database import Database
from agentmem.storage.sql import (
    dreams as sql_dreams,
)
from agentmem.storage.sql import (
    facts as sql_facts,
)
from agentmem.storage.sql import (
    facts as sql_usage,
)
from agentmem.storage.sql import (
    retention as sql_retention,
)
from agentmem.storage.sql import (
    rights as sql_rights,
)
from agentmem.storage.sql import (
    set as sql_set,
)
from agentmem.storage.sql import (
    transcripts as sql_transcript,
)
from agentmem.storage.sql import (
    writes as sql_writes,
)
from agentmem.storage.sql.commit import commit
from agentmem.storage.sql.history import history, tombstones
from agentmem.storage.sql.rows import now
from agentmem.storage.sql.statements import Driver
from agentmem.storage.sql.undo import pin, undo
from agentmem.wire import JSONObject, JSONValue

P = ParamSpec("P")
Result = TypeVar("Result")


class SqlBase:
    """A part of a store.

    Args:
        database: Where the tables are.
    """

    def __init__(self, database: Database) -> None:
        self.database = database

    async def _read(
        self, work: Callable[Concatenate[Connection, P], Result], *args: P.args, **kwargs: P.kwargs
    ) -> Result:
        return await self.database.read(lambda connection: work(connection, *args, **kwargs))

    async def _write(
        self, work: Callable[Concatenate[Connection, P], Result], *args: P.args, **kwargs: P.kwargs
    ) -> Result:
        return await self.database.write(lambda connection: work(connection, *args, **kwargs))

    async def _write_unrepeatable(
        self, work: Callable[Concatenate[Connection, P], Result], *args: P.args, **kwargs: P.kwargs
    ) -> Result:
        """Write what would do more if it were run again after its commit."""
        run: Callable[[Connection], Result] = lambda connection: work(connection, *args, **kwargs)  # noqa: E731
        return await self.database.write(run, repeatable=False)

    async def _read_once(
        self, work: Callable[Concatenate[Driver, P], Result], *args: P.args, **kwargs: P.kwargs
    ) -> Result:
        return await self.database.read_once(lambda driver: work(driver, *args, **kwargs))


class SqlAccountable(SqlBase):
    """The part of a `TransactionalProvider` that is `Accountable`, over a database."""

    async def history(self, agent: str, scope: str, key: str) -> list[FactVersion]:
        """Return every version that a key ever had, oldest first, with evidence."""
        return await self._read(history, fact_place(agent, scope), checked_name(key, "key"))

    async def undo(self, agent: str, scope: str, change: str, by: str = "") -> Undone:
        """Take back a dream, one of its changes, or one version, in one transaction."""
        place, name = fact_place(agent, scope), checked_text(change, "change")
        return await self._write(undo, place, name, storable(by))

    async def pin(
        self, agent: str, scope: str, key: str, pinned: bool = True, by: str = ""
    ) -> bool:
        """Pin a fact or unpin it; return whether there is such a fact."""
        place, name = fact_place(agent, scope), checked_name(key, "key")
        return await self._write(pin, place, name, pinned, storable(by)) > 0

    async def use(self, agent: str, scope: str, keys: Sequence[str], day: date) -> None:
        """Note on which day facts were asked for by key."""
        named = [checked_name(key, "key") for key in keys]
        await self._write(sql_usage.use, session_place(agent, scope), named, day)

    async def used(self, agent: str, scope: str) -> dict[str, date]:
        """Return the last day that each key was asked for."""
        return await self._read(sql_usage.used, session_place(agent, scope))

    async def forget_message(self, agent: str, scope: str, message: MessageId) -> int:
        """Blank a message's text and its quotes; return how many rows held some of it."""
        place = session_place(agent, scope)
        return await self._write(sql_retention.forget_message, place, checked_message(message))

    async def expire(self, before: datetime) -> int:
        """Delete what dreams had read before a time, in every scope; return how many rows."""
        aware(before, "the time")
        return await self._write(sql_retention.expire, before)

    async def erase(self, agent: str, scope: str) -> dict[str, int]:
        """Delete everything of a scope; return how many rows of what went."""
        return await self._write_unrepeatable(sql_rights.erase, session_place(agent, scope))

    async def export(self, agent: str, scope: str) -> list[JSONObject]:
        """Return everything of a scope as JSON objects."""
        return await self._write(sql_rights.export, session_place(agent, scope))

    async def restore(self, agent: str, scope: str, rows: Sequence[JSONObject]) -> int:
        """Put exported rows into an empty scope; return how many."""
        return await self._write_unrepeatable(sql_rights.restore, session_place(agent, scope), rows)


class SqlProvider(SqlAccountable):
    """A `TransactionalProvider` over a database.

    Names and values are checked before the database is touched; what its driver raises comes out
    as `ProviderError`. Usable from any task, thread and event loop.

    Args:
        database: Where the tables are.
    """

    async def open(self) -> None:
        """Bring the schema up to date; safe when several workers do it at once."""
        await self.database.open()

    async def close(self) -> None:
        """Give back connections; the provider is not used afterwards."""
        await self.database.close()

    async def memorize(self, agent: str, scope: str, key: str, value: JSONValue) -> None:
        """Store a value under a key, in place of what was there."""
        # Checked by `write`, whose errors say what a store can hold; pydantic's would not.
        await self.write(agent, scope, [Write.model_construct(key=key, value=value)])

    async def recall(self, agent: str, scope: str, key: str | None = None) -> Any:
        """Return a key's value, None if it is missing; without a key, all as a dict by key."""
        place = fact_place(agent, scope)
        if key is None:
            return await self._read_once(sql_facts.recall_all, place)
        return await self._read_once(sql_facts.recall_one, place, checked_name(key, "key"))

    async def forget(
        self, agent: str, scope: str, key: str | None = None, *, idempotency: str = ""
    ) -> None:
        """Remove a key; no error if it is missing. Without a key, remove the whole scope."""
        if key is None:
            name = checked_name(idempotency, "idempotency") if idempotency else ""
            once = self._write if name else self._write_unrepeatable
            await once(sql_writes.clear, fact_place(agent, scope), name)
        else:
            remove = Write.model_construct(op="remove", key=key)
            await self.write(agent, scope, [remove], idempotency)

    async def keys(self, agent: str, scope: str) -> list[str]:
        """Return the scope's keys, sorted; empty for a scope that does not exist."""
        return await self._read_once(sql_facts.keys, fact_place(agent, scope))

    async def scopes(self, agent: str) -> list[str]:
        """Return the agent's scopes that hold a fact, sorted."""
        return await self._read(sql_facts.scopes, checked_name(agent, "agent"))

    async def entries(
        self, agent: str, scope: str, keys: Sequence[str] | None = None
    ) -> list[Fact]:
        """Return the current facts, those that have expired too, ordered by key."""
        named = None if keys is None else [checked_name(key, "key") for key in keys]
        return await self._read(sql_facts.entries, fact_place(agent, scope), named)

    async def facts_at(self, agent: str, scope: str, versions: dict[str, int]) -> list[Fact]:
        """Return facts as they stood at these versions, with their evidence."""
        wanted = {checked_name(key, "key"): version for key, version in versions.items()}
        return await self._read(sql_facts.facts_at, fact_place(agent, scope), wanted)

    async def tombstones(self, agent: str, scope: str) -> list[Tombstone]:
        """Return what was forgotten or taken back and not stored again, the newest 1,000 first."""
        return await self._read(tombstones, fact_place(agent, scope))

    async def write(
        self, agent: str, scope: str, writes: Sequence[Write], idempotency: str = ""
    ) -> list[int]:
        """Apply writes in one transaction and append a version row for each."""
        place = fact_place(agent, scope)
        name = checked_name(idempotency, "idempotency") if idempotency else ""
        checked = [checked_write(write, idempotency=name) for write in writes]
        if len(checked) == 1 and sql_set.may_set(checked[0]):
            at = now()
            return await self.database.write_once(
                lambda driver: [sql_set.set_one(driver, place, checked[0], at)],
                lambda connection: [sql_set.set_if_missing(connection, place, checked[0], at)],
            )
        once = self._write if name else self._write_unrepeatable
        return await once(sql_writes.write, place, checked, name)

    async def append(self, agent: str, scope: str, rows: Sequence[TranscriptRow]) -> int:
        """Append rows of one session's memory; rows that are there already stay as they are."""
        place, checked = session_place(agent, scope), checked_rows(rows)
        return await self._write(sql_transcript.append, place, checked) if checked else 0

    async def open_session(self, agent: str, scope: str, session: str, memory: str) -> None:
        """Note that a session has begun, once."""
        place = session_place(agent, scope)
        await self._write(sql_transcript.open_session, place, session, memory)

    async def knows_session(self, agent: str, scope: str, session: str, memory: str) -> bool:
        """Tell whether the scope has anything of a session, a note of its beginning included."""
        place = session_place(agent, scope)
        return await self._read(sql_transcript.knows_session, place, session, memory)

    async def unread(self, agent: str, scope: str, max_bytes: int) -> list[TranscriptRow]:
        """Return the rows after each session's cursor, oldest session first."""
        place = session_place(agent, scope)
        return await self._read(sql_transcript.unread, place, max_bytes)

    async def transcript(
        self, agent: str, scope: str, ranges: Sequence[Range]
    ) -> list[TranscriptRow]:
        """Return the rows of these ranges, in the ranges' order."""
        return await self._read(
            sql_transcript.read, session_place(agent, scope), checked_ranges(ranges)
        )

    async def scope_state(self, agent: str, scope: str) -> ScopeState:
        """Return what the failure gate knows of the scope."""
        return await self._read(sql_dreams.state, session_place(agent, scope))

    async def open_dream(self, agent: str, scope: str, record: DreamRecord) -> DreamRecord:
        """Register a dream and count its attempt, once by its id, in one transaction."""
        place = session_place(agent, scope)
        return await self._write(sql_dreams.open_dream, place, checked_dream(record))

    async def dream(self, agent: str, scope: str, dream_id: str) -> DreamRecord | None:
        """Return a dream's record, None if there is none."""
        place = session_place(agent, scope)
        return await self._read(sql_dreams.dream, place, checked_text(dream_id, "dream"))

    async def dreams(self, agent: str, scope: str, most: int = 50) -> list[DreamRecord]:
        """Return the scope's dreams, the newest first, at most so many."""
        return await self._read(sql_dreams.dreams_of, session_place(agent, scope), most)

    async def save_dream(self, agent: str, scope: str, record: DreamRecord) -> None:
        """Replace a running dream's record; one that has ended stays as it is."""
        place = session_place(agent, scope)
        await self._write(sql_dreams.save_dream, place, checked_dream(record))

    async def end_dream(
        self, agent: str, scope: str, dream_id: str, status: str, failures: Literal["zero", "undo"]
    ) -> None:
        """End a dream that commits nothing, once; the same status again changes nothing."""
        place, name = session_place(agent, scope), checked_text(dream_id, "dream")
        ended = checked_text(status, "status")
        await self._write(sql_dreams.end_dream, place, name, ended, failures)

    async def replies(self, agent: str, scope: str, dream_id: str) -> list[ReplyRecord]:
        """Return the dream's paid model replies, in order of phase and step."""
        place = session_place(agent, scope)
        return await self._read(sql_dreams.replies, place, checked_text(dream_id, "dream"))

    async def save_reply(self, agent: str, scope: str, dream_id: str, reply: ReplyRecord) -> None:
        """Keep a model reply before it is used, in place of one of the same phase and step."""
        place, name = session_place(agent, scope), checked_text(dream_id, "dream")
        await self._write(sql_dreams.save_reply, place, name, checked_reply(reply))

    async def commit(
        self, agent: str, scope: str, record: DreamRecord, steps: Sequence[Step]
    ) -> DreamRecord:
        """Commit a dream in one transaction, once by its id."""
        place = session_place(agent, scope)
        checked = [checked_step(record.id, step) for step in steps]
        return await self._write(commit, place, checked_dream(record), checked)
