"""Letting go of what was said: messages on request, and in time all that dreams have read."""

from datetime import datetime

from sqlalchemy import Connection, delete, exists, select, update

from agentmem.memory.providers.records import MessageId
from agentmem.memory.providers.rows import Place
from agentmem.memory.providers.schema import dream_steps, dreams, fact_evidence, transcript


def forget_message(connection: Connection, place: Place, message: MessageId) -> int:
    """Blank a message's text in the transcript and its quotes; return how many rows held it."""
    which = place._asdict() | message.model_dump()
    row = update(transcript).filter_by(**which).where(~transcript.c.forgotten)
    blanked = connection.execute(row.values(text="", bytes=0, forgotten=True)).rowcount
    quotes = update(fact_evidence).filter_by(**which).where(fact_evidence.c.quote != "")
    return blanked + connection.execute(quotes.values(quote="")).rowcount


def expire(connection: Connection, before: datetime) -> int:
    """Delete what dreams had read, and what models replied to them, before a time; in all scopes.

    A row's number is not given again: the cursor remembers how far its session was.
    """
    rows = delete(transcript).where(transcript.c.consumed_at < before)
    table, step = dreams.c, dream_steps.c
    ended = select(table.id).where(
        *(table.agent == step.agent, table.scope == step.scope, table.id == step.dream),
        *(table.status != "running", table.ended_at < before),
    )
    steps = delete(dream_steps).where(exists(ended))
    return connection.execute(rows).rowcount + connection.execute(steps).rowcount
