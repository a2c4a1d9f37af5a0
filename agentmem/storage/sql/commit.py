"""The commit of a dream: in one transaction, what still holds is applied and the rest dropped."""

from collections.abc import Sequence

from sqlalchemy import Connection

from agentmem.records import DreamRecord
from agentmem.storage.checks import CheckedStep, CheckedWrite, Message
from agentmem.storage.conflicts import standing_steps
from agentmem.storage.sql import dreams as sql_dreams
from agentmem.storage.sql import transcripts as sql_transcript
from agentmem.storage.sql.history import Head, heads
from agentmem.storage.sql.locks import hold
from agentmem.storage.sql.retention import forgotten_among
from agentmem.storage.sql.rows import Place
from agentmem.storage.sql.writes import apply


def commit(
    connection: Connection, place: Place, record: DreamRecord, steps: Sequence[CheckedStep]
) -> DreamRecord:
    """Commit a dream, once.

    Raises:
        ProviderError: The dream was never opened, another one has read its evidence, or a message
            of it was forgotten since the record was read.
    """
    hold(connection, place)
    there = sql_dreams.require(connection, place, record.id)
    if there.status != "running":
        return there
    sql_dreams.refuse_forgotten(there, record.data.get("forgets", 0))
    sql_transcript.consume(connection, place, record.ranges, record.id)
    stand = heads(connection, place, {key for step in steps for key in step.touched})
    standing = standing_steps(steps, {step.id for step in steps if _moved(step, stand)})
    apply(connection, place, _unquoted(connection, place, standing))
    applied = [step.id for step in standing]
    dropped = [step.id for step in steps if step.id not in set(applied)]
    done = record.replace(
        status="completed" if record.status == "running" else record.status,
        applied=[*record.applied, *applied],
        conflicts=[*record.conflicts, *dropped],
    )
    sql_dreams.replace(connection, place, done)
    state = sql_dreams.state(connection, place)
    sql_dreams.set_state(connection, place, state.replace(failures=0))
    return done


def _unquoted(
    connection: Connection, place: Place, steps: Sequence[CheckedStep]
) -> list[CheckedWrite]:
    """Return what these steps write, without quoting what was forgotten since they were made."""
    writes = [checked for step in steps for checked in step.writes]
    cited = [item for checked in writes for item in checked.cited]
    gone = forgotten_among(connection, place, cited) if cited else set[Message]()
    return [checked.without(gone) for checked in writes] if gone else writes


def _moved(step: CheckedStep, stand: dict[str, Head]) -> bool:
    # A fact that was pinned meanwhile is out of a dream's reach.
    written = [stand[key].current for key in step.written]
    pinned = any(current and current["pinned"] for current in written)
    return pinned or any(_version(stand[read.key]) != read.version for read in step.reads)


def _version(head: Head) -> int:
    return head.version if head.current else 0
