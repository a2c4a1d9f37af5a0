"""Transcripts: what was said, without gaps, and how far dreams have read it."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, func, insert, or_, select, update

from agentmem.errors import ProviderError
from agentmem.memory.providers.locks import hold
from agentmem.memory.providers.protocol import Range, TranscriptRow
from agentmem.memory.providers.rows import Place, message_of, now
from agentmem.memory.providers.schema import cursors, transcript
from agentmem.memory.providers.sql_branches import first_of_another_branch, leave_branch


def append(connection: Connection, place: Place, rows: Sequence[TranscriptRow]) -> int:
    """Append the rows that are not there yet; return the last number that is there.

    A memory that the store knows nothing of begins where its rows begin: its scope was erased.
    Where other messages are there under the rows' numbers, the session was reset: those leave it.

    Raises:
        ProviderError: The rows would leave a gap.
    """
    session, memory = rows[0].session, rows[0].memory
    hold(connection, place, [f"transcript\x00{session}\x00{memory}"])
    held = _last(connection, place, session, memory)
    if not held and (held := rows[0].seq - 1):
        memory_of = place._asdict() | {"session": session, "memory": memory}
        begun = memory_of | {"seq": held, "dream": "", "moved_at": now()}
        connection.execute(insert(cursors), begun)
    other = first_of_another_branch(connection, place, rows, held)
    if other is not None:
        leave_branch(connection, place, rows[other - rows[0].seq])
        held = other - 1
    new = [row for row in rows if row.seq > held]
    for expected, row in enumerate(new, start=held + 1):
        if row.seq != expected:
            raise ProviderError(
                f"transcript of {session} {memory}: row {row.seq} would leave a gap, the store "
                f"needs {expected} first"
            )
    if new:
        connection.execute(insert(transcript), [_columns(place, row) for row in new])
    return held + len(new)


def open_session(connection: Connection, place: Place, session: str, memory: str) -> None:
    """Note that a session has begun, by a cursor that has read nothing."""
    if not knows_session(connection, place, session, memory):
        memory_of = place._asdict() | {"session": session, "memory": memory}
        connection.execute(insert(cursors), memory_of | {"seq": 0, "dream": "", "moved_at": now()})


def knows_session(connection: Connection, place: Place, session: str, memory: str) -> bool:
    """Tell whether there is anything of a session's memory."""
    of_memory = place._asdict() | {"session": session, "memory": memory}
    return any(
        connection.execute(select(table.c.seq).filter_by(**of_memory).limit(1)).first() is not None
        for table in (cursors, transcript)
    )


def unread(connection: Connection, place: Place, max_bytes: int) -> list[TranscriptRow]:
    """Return the rows after the cursors, the session with the oldest such row first.

    Stops before `max_bytes` of text are passed, after the first row.
    """
    rows = connection.execute(_UNREAD, place._asdict() | {"max_bytes": max_bytes})
    return [message_of(row) for row in rows.mappings()]


def read(connection: Connection, place: Place, ranges: Sequence[Range]) -> list[TranscriptRow]:
    """Return the rows of these ranges, in the ranges' order."""
    found: list[TranscriptRow] = []
    for some in ranges:
        wanted = select(transcript).where(*_rows_of(place, some)).order_by(transcript.c.seq)
        found += [message_of(row) for row in connection.execute(wanted).mappings()]
    return found


def consume(connection: Connection, place: Place, ranges: Sequence[Range], dream: str) -> None:
    """Move the cursors over these ranges.

    Raises:
        ProviderError: A cursor does not stand where a range begins.
    """
    for some in ranges:
        memory = place._asdict() | {"session": some.session, "memory": some.memory}
        stands = connection.execute(select(cursors.c.seq).filter_by(**memory)).scalar_one_or_none()
        if (stands or 0) != some.first - 1 or some.last < some.first:
            raise ProviderError(
                f"the evidence of dream {dream} begins at {some.first} of {some.session} "
                f"{some.memory}, but the cursor stands at {stands or 0}: another dream has read it"
            )
        moved = {"seq": some.last, "dream": dream, "moved_at": now()}
        if stands is None:
            connection.execute(insert(cursors), memory | moved)
        else:
            connection.execute(update(cursors).filter_by(**memory).values(moved))
        read_rows = update(transcript).where(*_rows_of(place, some))
        connection.execute(read_rows.values(consumed_at=moved["moved_at"]))


def _last(connection: Connection, place: Place, session: str, memory: str) -> int:
    # Rows that dreams have read may be deleted in time; the cursor remembers that they were there.
    of_memory = place._asdict() | {"session": session, "memory": memory}
    newest = select(func.max(transcript.c.seq)).filter_by(**of_memory)
    read_to = select(cursors.c.seq).filter_by(**of_memory)
    found = connection.execute(select(newest.scalar_subquery(), read_to.scalar_subquery())).one()
    return max(found[0] or 0, found[1] or 0)


def _columns(place: Place, row: TranscriptRow) -> dict[str, Any]:
    offset = row.at.utcoffset()
    return {
        **place._asdict(),
        **{name: getattr(row, name) for name in TranscriptRow.model_fields},
        "bytes": len(row.text.encode()),
        "at_offset": int(offset.total_seconds()) if offset else 0,
    }


def _rows_of(place: Place, some: Range) -> tuple[Any, ...]:
    table = transcript.c
    return (
        *(table.agent == place.agent, table.scope == place.scope),
        *(table.session == some.session, table.memory == some.memory),
        table.seq.between(some.first, some.last),
    )


def _unread_statement() -> Any:
    table, cursor = transcript.c, cursors.c
    shared = [getattr(table, name) for name in ("agent", "scope", "session", "memory")]
    same_memory = [column == getattr(cursor, column.name) for column in shared]
    rows = (
        select(
            transcript,
            func.min(table.at).over(partition_by=[table.session, table.memory]).label("begun"),
        )
        .outerjoin(cursors, *[same_memory[0] & same_memory[1] & same_memory[2] & same_memory[3]])
        .where(table.agent == bindparam("agent"), table.scope == bindparam("scope"))
        .where(or_(cursor.seq.is_(None), table.seq > cursor.seq))
        .subquery()
    )
    order = [rows.c.begun, rows.c.session, rows.c.memory, rows.c.seq]
    counted = select(
        rows,
        func.sum(rows.c.bytes).over(order_by=order, rows=(None, 0)).label("so_far"),
        func.row_number().over(order_by=order).label("number"),
    ).subquery()
    return (
        select(counted)
        .where(or_(counted.c.so_far <= bindparam("max_bytes"), counted.c.number == 1))
        .order_by(counted.c.number)
    )


_UNREAD = _unread_statement()
