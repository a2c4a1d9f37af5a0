"""The operations that let people trust a store: history, undo, pins, forget, erase, export."""

from collections.abc import Sequence
from datetime import date, datetime
from typing import Protocol, runtime_checkable

from agentmem.journal import FactVersion, Undone
from agentmem.memory.providers.records import MessageId
from agentmem.values import JSONObject


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
