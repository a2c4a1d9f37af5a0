"""The turns that a reset left: `temporal workflow reset` takes turns out of a session and goes on.

The session's transcript then holds other words under the numbers, and the ids, of the messages that
follow. They leave for a session of their own, which no dream reads, and so does what refers to
them: it shows what was learned from words that are no part of the conversation any more.
"""

import logging
from collections.abc import Sequence
from typing import Any, cast

from sqlalchemy import Connection, delete, func, insert, select, update

from agentmem.memory.providers.locks import hold
from agentmem.memory.providers.records import BRANCH_MARK, TranscriptRow
from agentmem.memory.providers.rows import Place, chunks, dump, now, value_of
from agentmem.memory.providers.schema import (
    cursors,
    dream_steps,
    dreams,
    fact_evidence,
    transcript,
)
from agentmem.memory.providers.sql_dreams import record_of
from agentmem.values import JSONValue

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
