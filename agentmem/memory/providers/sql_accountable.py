"""`SqlAccountable`: looking after what is remembered, on any database that we know."""

from collections.abc import Sequence
from datetime import date, datetime

from agentmem.facts import checked_name
from agentmem.journal import FactVersion, Undone
from agentmem.memory.providers import sql_retention, sql_rights, sql_usage
from agentmem.memory.providers.checks import (
    aware,
    checked_message,
    checked_text,
    fact_place,
    session_place,
    storable,
)
from agentmem.memory.providers.records import MessageId
from agentmem.memory.providers.sql_base import SqlBase
from agentmem.memory.providers.sql_history import history
from agentmem.memory.providers.sql_pins import pin
from agentmem.memory.providers.sql_undo import undo
from agentmem.values import JSONObject


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
