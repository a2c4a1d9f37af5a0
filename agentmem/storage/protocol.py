"""The contracts of a memory store: one of five methods, and one that makes dreams safe.

Implement `MemoryProvider` to bring a store of your own. Implement `TransactionalProvider` too, and
dreams on it commit in one transaction, can be undone, and keep their evidence beside the facts.
"""

from collections.abc import Sequence
from datetime import date, datetime
from typing import Any, Literal, Protocol, runtime_checkable

from agentmem.facts import Fact, FactVersion, Step, Tombstone, Undone, Write
from agentmem.records import DreamRecord, MessageId, Range, ReplyRecord, ScopeState, TranscriptRow
from agentmem.wire import JSONObject, JSONValue


@runtime_checkable
class Accountable(Protocol):
    """The part of a store by which people look after what is remembered of them."""

    async def history(self, agent: str, scope: str, key: str) -> list[FactVersion]:
        """Return every version that a key ever had, oldest first, removals too, with evidence.

        Empty for a key that never was, or was erased.
        """
        ...

    async def undo(self, agent: str, scope: str, change: str, by: str = "") -> Undone:
        """Take back a dream, one of its changes, or one version, in one transaction.

        A dream is taken back with what people applied of it. Each change is taken back whole or not
        at all: if one of its keys holds something else by now, it is a conflict and stays. What
        stood before is written again as a new version (reason `undone`), with its evidence; what
        did not exist is removed. Either way `tombstones` then tells of what was taken back.
        Confirmations of a dream are taken back too. What was undone before stays so, and is no
        error. Pinning and unpinning since then is no conflict, and the pin stays as it is; undoing
        a version that pins or unpins takes only that back.

        The fact that stands again has the writer that it had; the version that restores it has
        the writer `person` and the author `by`, or without `by` the fact's writer.

        Args:
            agent: Whose facts.
            scope: Which scope.
            change: A dream's id, `<dream>/<change>` or `<key>@<version>`.
            by: The person who does it; empty for code.

        Raises:
            ConfigurationError: There is no such change, or the store keeps no history.
        """
        ...

    async def pin(
        self, agent: str, scope: str, key: str, pinned: bool = True, by: str = ""
    ) -> bool:
        """Pin a fact, so that no dream changes it, or unpin it; a version says so.

        The fact keeps its writer; the version has the writer `person` and the author `by`, or
        without `by` the fact's writer.

        Returns:
            Whether there is such a fact. One that is pinned already is left as it is.

        Raises:
            ConfigurationError: The store cannot pin.
        """
        ...

    async def use(self, agent: str, scope: str, keys: Sequence[str], day: date) -> None:
        """Note on which day facts were asked for by key. No version changes."""
        ...

    async def used(self, agent: str, scope: str) -> dict[str, date]:
        """Return the last day that each key was asked for."""
        ...

    async def forget_message(self, agent: str, scope: str, message: MessageId) -> int:
        """Blank a message's text in the transcript and every quote of it, read or not.

        Returns:
            How many rows held some of it; 0 when it was gone already.
        """
        ...

    async def expire(self, before: datetime) -> int:
        """Delete transcript rows that dreams had read before a time, in every scope.

        Rows that no dream has read stay. Sequence numbers are not given again: `append` and
        `unread` go on as if the rows were there. Paid replies of dreams that ended before that
        time go too.

        Returns:
            How many rows went.
        """
        ...

    async def erase(self, agent: str, scope: str) -> dict[str, int]:
        """Delete everything of a scope: facts, history, evidence, usage, transcripts, dreams.

        Returns:
            How many rows of what went, by what they are.
        """
        ...

    async def export(self, agent: str, scope: str) -> list[JSONObject]:
        """Return everything of a scope, as of one moment, as JSON objects with a `table` each."""
        ...

    async def restore(self, agent: str, scope: str, rows: Sequence[JSONObject]) -> int:
        """Put exported rows into an empty scope, exactly as they were, in one transaction.

        Raises:
            ConfigurationError: The scope is not empty, or a row is none that an export gives.
            InvalidFact: A name or a value cannot be stored.
        """
        ...


TOMBSTONES = 1_000
"""The most tombstones that a store tells of."""


@runtime_checkable
class MemoryProvider(Protocol):
    """A store of facts: agent -> scope -> key -> value.

    Values are JSON. Names are compared exactly: no pattern, no prefix, no folding of case. Each
    method is one atomic operation, safe to call from many tasks and processes at once, and raises
    what the store raises; agentmem wraps it in `ProviderError`. `agent`, `scope` and `key` arrive
    checked: NFC, not empty, at most 512 bytes of UTF-8.
    """

    async def memorize(self, agent: str, scope: str, key: str, value: JSONValue) -> None:
        """Store a value under a key, in place of what was there."""
        ...

    async def recall(self, agent: str, scope: str, key: str | None = None) -> Any:
        """Return a key's value, None if it is missing; without a key, all as a dict by key."""
        ...

    async def forget(self, agent: str, scope: str, key: str | None = None) -> None:
        """Remove a key; no error if it is missing. Without a key, remove the whole scope."""
        ...

    async def keys(self, agent: str, scope: str) -> list[str]:
        """Return the scope's keys, sorted; empty for a scope that does not exist."""
        ...

    async def scopes(self, agent: str) -> list[str]:
        """Return the agent's scopes that hold a fact, sorted."""
        ...


@runtime_checkable
class SessionLedger(Protocol):
    """A store that knows which sessions began in a scope; a store may do without.

    What a terminated session said is collected from Temporal only if the scope still knows it: the
    words of an erased scope must not come back.
    """

    async def open_session(self, agent: str, scope: str, session: str, memory: str) -> None:
        """Note that a session has begun, once."""
        ...

    async def knows_session(self, agent: str, scope: str, session: str, memory: str) -> bool:
        """Tell whether the scope has anything of a session, a note of its beginning included."""
        ...


@runtime_checkable
class TransactionalProvider(MemoryProvider, Accountable, Protocol):
    """A store that keeps history and evidence, and commits a dream in one transaction."""

    async def forget(
        self, agent: str, scope: str, key: str | None = None, *, idempotency: str = ""
    ) -> None:
        """Remove a key; no error if it is missing. Without a key, remove the whole scope.

        `idempotency` is that of `write`: the same name again removes nothing, whatever was stored
        since.
        """
        ...

    async def entries(
        self, agent: str, scope: str, keys: Sequence[str] | None = None
    ) -> list[Fact]:
        """Return the current facts with their versions, ordered by key; only `keys` if given.

        A fact that holds null is in the list, a missing one is not.
        """
        ...

    async def facts_at(self, agent: str, scope: str, versions: dict[str, int]) -> list[Fact]:
        """Return facts as they stood at these versions (key to version), with their evidence."""
        ...

    async def tombstones(self, agent: str, scope: str) -> list[Tombstone]:
        """Return what was forgotten or taken back and not stored again, the newest 1,000 first.

        That is each key whose newest version removes it without a survivor (`replaced_by`): by
        code or by a person, whatever the reason, or by the agent or a dream for the reason
        `retracted` or `asked_to_forget`. Their housekeeping leaves none. A fact went when its
        removal was written; one that a dream took away, when its newest evidence asked for it. So
        is each key whose newest version undoes a value: that value was taken back when the undo was
        written. Versions that only pin or unpin a fact are not counted as newer.
        """
        ...

    async def write(
        self, agent: str, scope: str, writes: Sequence[Write], idempotency: str = ""
    ) -> list[int]:
        """Apply writes in one transaction and append a version row for each `set` and `remove`.

        A `confirm` adds the messages that its key's current version does not rest on yet. If its
        trust is not weaker than the fact's, the fact takes it, and `said_at` where that is later.

        Args:
            agent: Whose facts.
            scope: Which scope.
            writes: Applied in order. Removing or confirming a missing key writes nothing.
            idempotency: A name for this call. The same name again changes nothing and returns
                what the first call returned: an activity may run more than once.

        Returns:
            The version that each write left, 0 where there was nothing to remove or confirm.
        """
        ...

    async def append(self, agent: str, scope: str, rows: Sequence[TranscriptRow]) -> int:
        """Append rows of one session's memory; rows that are there already stay as they are.

        A session that goes on after its scope was erased begins anew: of a memory that the store
        knows nothing of, the rows' first number may be any, and counts as the one after its cursor.

        A session that was reset brings messages that were said later, under numbers (and ids)
        that are taken. From the first such number on, what is there moves to a session of
        the name `SESSION~1` (or 2, ...) that no dream reads, with the evidence that cites it; a
        running dream that reads it cannot commit; the cursor moves back to before that number.

        Returns:
            The last sequence number that the store now holds for that session and memory.

        Raises:
            ProviderError: The rows would leave a gap.
        """
        ...

    async def unread(self, agent: str, scope: str, max_bytes: int) -> list[TranscriptRow]:
        """Return the rows after each session's cursor, oldest session first.

        Stops before `max_bytes` of text (UTF-8) are passed, but returns one row at least.
        """
        ...

    async def transcript(
        self, agent: str, scope: str, ranges: Sequence[Range]
    ) -> list[TranscriptRow]:
        """Return the rows of these ranges, in the ranges' order."""
        ...

    async def scope_state(self, agent: str, scope: str) -> ScopeState:
        """Return what the failure gate knows of the scope."""
        ...

    async def open_dream(self, agent: str, scope: str, record: DreamRecord) -> DreamRecord:
        """Register a dream and count its attempt, once by its id, in one transaction.

        Returns:
            The stored record: `record`, or what is there already under its id.
        """
        ...

    async def dream(self, agent: str, scope: str, dream_id: str) -> DreamRecord | None:
        """Return a dream's record, None if there is none."""
        ...

    async def dreams(self, agent: str, scope: str, most: int = 50) -> list[DreamRecord]:
        """Return the scope's dreams, the newest first, at most so many."""
        ...

    async def save_dream(self, agent: str, scope: str, record: DreamRecord) -> None:
        """Replace a running dream's record; one that has ended stays as it is.

        Raises:
            ProviderError: A message that the dream reads was forgotten since the record was read:
                `forgets` in its `data` is not what the store has.
        """
        ...

    async def end_dream(
        self, agent: str, scope: str, dream_id: str, status: str, failures: Literal["zero", "undo"]
    ) -> None:
        """End a dream that commits nothing, once.

        Args:
            agent: Whose facts.
            scope: Which scope.
            dream_id: The dream.
            status: How it ended.
            failures: `zero` the count of failures, or `undo` this dream's count.
        """
        ...

    async def replies(self, agent: str, scope: str, dream_id: str) -> list[ReplyRecord]:
        """Return the dream's paid model replies, in order of phase and step."""
        ...

    async def save_reply(self, agent: str, scope: str, dream_id: str, reply: ReplyRecord) -> None:
        """Keep a model reply before it is used, in place of one of the same phase and step.

        Raises:
            ProviderError: A message that the dream reads was forgotten meanwhile.
        """
        ...

    async def commit(
        self, agent: str, scope: str, record: DreamRecord, steps: Sequence[Step]
    ) -> DreamRecord:
        """Commit a dream in one transaction, once by its id.

        Locks the touched keys in order, drops each step with a read that moved, then each step
        that reads a key that a dropped one would have set or removed, until nothing more drops.
        Applies the rest, moves the cursors over `record.ranges`, zeroes the count of failures, and
        stores the record with `applied` and `conflicts` filled in.

        Returns:
            The stored record; that of the first commit if this dream has committed before.

        Raises:
            ProviderError: A cursor does not stand where the ranges begin: another dream has
                consumed that evidence. Or a message of it was forgotten since the record was
                read. Nothing is changed.
        """
        ...

    async def close(self) -> None:
        """Give back connections; the provider is not used afterwards."""
        ...
