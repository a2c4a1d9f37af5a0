"""Transcripts: messages without gaps, how far dreams have read, and what a reset leaves.

After `temporal workflow reset` a session's transcript holds other words under the same numbers and
ids. The old messages move to a session of their own, which no dream reads, and so does what refers
to them: it shows what was learned from words that are no longer part of the conversation.
"""

import logging
from collections.abc import Sequence
from typing import Any, cast

from sqlalchemy import Connection, bindparam, delete, func, insert, or_, select, update

from agentmem.errors import ProviderError
from agentmem.records import BRANCH_MARK, Range, TranscriptRow
from agentmem.storage.sql.dreams import record_of
from agentmem.storage.sql.locks import hold
from agentmem.storage.sql.rows import Place, chunks, dump, message_of, now, value_of
from agentmem.storage.sql.schema import cursors, dream_steps, dreams, fact_evidence, transcript
from agentmem.wire import JSONValue

logger = logging.getLogger(__name__)


def first_of_another_branch(
    connection: Connection, place: Place, rows: Sequence[TranscriptRow], held: int
) -> int | None:
    """Return the number of the first row that was said later than what the store has under it.

    An append that is repeated brings the same messages, with the same times. What a run before the
    reset still had on its way was said earlier than what came after it.

    Args:
        connection: In a transaction that holds the memory's lock.
        place: Agent and scope.
        rows: Of one memory, in order.
        held: The last number that the store knows of.
    """
    known = [row for row in rows if row.seq <= held]
    if not known:
        return None
    memory = place._asdict() | {"session": rows[0].session, "memory": rows[0].memory}
    wanted = select(transcript.c.seq, transcript.c.at).filter_by(**memory)
    wanted = wanted.where(transcript.c.seq.between(known[0].seq, known[-1].seq))
    said = {row.seq: row.at for row in connection.execute(wanted)}
    # What is not there any more a dream has read.
    read_at = connection.scalar(select(cursors.c.moved_at).filter_by(**memory))
    for row in known:
        there = said.get(row.seq, read_at)
        if there is not None and row.at > there:
            return row.seq
    return None


def leave_branch(connection: Connection, place: Place, first: TranscriptRow) -> None:
    """Move what a session's memory has from a row's number on into a session of its own.

    Evidence and drafts that cite those messages go along, dreams that read them now cannot commit,
    and the session's cursor moves back: what comes instead is new.

    Args:
        connection: In a transaction that holds the memory's lock.
        place: Agent and scope.
        first: The first row of the new branch.
    """
    hold(connection, place)
    memory = place._asdict() | {"session": first.session, "memory": first.memory}
    branch = _free_name(connection, place, first)
    moved = update(transcript).filter_by(**memory).where(transcript.c.seq >= first.seq)
    of_old = select(transcript.c.message, transcript.c.seq).filter_by(**memory)
    old = connection.execute(of_old.where(transcript.c.seq >= first.seq)).all()
    messages = {row.message for row in old}
    at = now()
    read_at = func.coalesce(transcript.c.consumed_at, at)
    connection.execute(moved.values(session=branch, consumed_at=read_at))
    last = max((row.seq for row in old), default=first.seq - 1)
    end = {"session": branch, "seq": last, "dream": "", "moved_at": at}
    connection.execute(insert(cursors), memory | end)
    back = update(cursors).filter_by(**memory).where(cursors.c.seq >= first.seq)
    connection.execute(back.values(seq=first.seq - 1, moved_at=at))
    cited = select(fact_evidence.c.message).filter_by(**memory).distinct()
    messages |= {message for message in connection.scalars(cited) if _is_of(message, first.message)}
    keys = _move_evidence(connection, memory, branch, sorted(messages))
    _move_drafts(connection, place, first, branch, messages)
    logger.warning(
        "session %s was reset: %d messages of its transcript (%s, from %s on) are set aside as %s; "
        "facts that rest on them: %d (`agentmem memory resets -a %s -s %s` lists them)",
        *(first.session, len(old), first.memory, first.message, branch, keys),
        *(place.agent, place.scope),
    )


def _free_name(connection: Connection, place: Place, first: TranscriptRow) -> str:
    number = 1
    while True:
        name = f"{first.session}{BRANCH_MARK}{number}"
        taken = place._asdict() | {"session": name, "memory": first.memory}
        if connection.scalar(select(cursors.c.seq).filter_by(**taken)) is None:
            return name
        number += 1


def _is_of(message: str, first: str) -> bool:
    """Tell whether a message has the first one's number or a later one."""
    numbers = message[1:], first[1:]
    return all(map(str.isdecimal, numbers)) and int(numbers[0]) >= int(numbers[1])


def _move_evidence(
    connection: Connection, memory: dict[str, Any], branch: str, messages: Sequence[str]
) -> int:
    """Have evidence cite the branch; return how many facts rest on it."""
    keys: set[str] = set()
    for some in chunks(messages):
        of_them = fact_evidence.c.message.in_(some)
        named = select(fact_evidence.c.key).filter_by(**memory).where(of_them)
        keys.update(connection.scalars(named))
        cited = update(fact_evidence).filter_by(**memory).where(of_them)
        connection.execute(cited.values(session=branch))
    return len(keys)


def _move_drafts(
    connection: Connection, place: Place, first: TranscriptRow, branch: str, messages: set[str]
) -> None:
    for dream in connection.execute(select(dreams).filter_by(**place._asdict())).mappings().all():
        which = (first.session, first.memory)
        reads = any(
            (some.session, some.memory) == which and some.last >= first.seq
            for some in record_of(dream).ranges
        )
        data = cast("dict[str, Any]", value_of(dream["data"]))
        kept = cast("dict[str, Any]", _citing(data, which, branch, messages))
        if reads and dream["status"] == "running":
            # What its phases have read is not what was said any more: they cannot save it.
            kept = {**kept, "forgets": kept.get("forgets", 0) + 1}
            steps = delete(dream_steps).filter_by(**place._asdict(), dream=dream["id"])
            connection.execute(steps)
        if kept != data:
            own = update(dreams).filter_by(**place._asdict(), id=dream["id"])
            connection.execute(own.values(data=dump(kept)))


def _citing(
    value: JSONValue, memory: tuple[str, str], branch: str, messages: set[str]
) -> JSONValue:
    """Return what a dream has kept, with citations of these messages leading to the branch."""
    if isinstance(value, list):
        return [_citing(item, memory, branch, messages) for item in value]
    if not isinstance(value, dict):
        return value
    kept = {name: _citing(item, memory, branch, messages) for name, item in value.items()}
    if (kept.get("session"), kept.get("memory")) == memory and kept.get("message") in messages:
        kept["session"] = branch
    return kept


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
