"""Transcripts and dreams of a store that has no place for them, in the worker's own store."""

import hashlib
from collections.abc import Sequence
from datetime import date, datetime
from typing import Literal

from agentmem.facts import KEY_BYTES, checked_name
from agentmem.memory.providers.checks import RESERVED, OwnAgent
from agentmem.memory.providers.protocol import (
    DreamRecord,
    Range,
    ReplyRecord,
    ScopeState,
    TransactionalProvider,
    TranscriptRow,
)
from agentmem.memory.providers.records import MessageId


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
