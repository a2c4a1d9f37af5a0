"""Dreams: what each has seen and proposed, its paid replies, and how the failure gate counts."""

from typing import Any, Literal

from sqlalchemy import Connection, RowMapping, insert, select, update

from agentmem.errors import ProviderError
from agentmem.records import DreamRecord, ReplyRecord, ScopeState
from agentmem.storage.sql.locks import hold
from agentmem.storage.sql.rows import Place, dump, now, value_of
from agentmem.storage.sql.schema import dream_steps, dreams, scope_state

_AS_JSON = ("ranges", "snapshot", "data", "applied", "conflicts")


def state(connection: Connection, place: Place) -> ScopeState:
    """Return what the failure gate knows of the scope."""
    found = connection.execute(select(scope_state).filter_by(**place._asdict())).one_or_none()
    if found is None:
        return ScopeState()
    return ScopeState(failures=found.failures, last_attempt=found.last_attempt)


def open_dream(connection: Connection, place: Place, record: DreamRecord) -> DreamRecord:
    """Register a dream and count its attempt; one that is there already is returned as it is."""
    hold(connection, place)
    if there := dream(connection, place, record.id):
        return there
    before = state(connection, place)
    columns = _columns(place, record) | {"previous_attempt": before.last_attempt}
    connection.execute(insert(dreams), columns)
    opened = ScopeState(failures=before.failures + 1, last_attempt=record.opened_at)
    set_state(connection, place, opened)
    return record


def dream(connection: Connection, place: Place, dream_id: str) -> DreamRecord | None:
    """Return a dream's record."""
    row = _row(connection, place, dream_id)
    return None if row is None else record_of(row)


def dreams_of(connection: Connection, place: Place, most: int) -> list[DreamRecord]:
    """Return the scope's dreams, the newest first."""
    newest = select(dreams).filter_by(**place._asdict()).order_by(dreams.c.opened_at.desc())
    rows = connection.execute(newest.order_by(dreams.c.id).limit(most)).mappings()
    return [record_of(row) for row in rows]


def save_dream(connection: Connection, place: Place, record: DreamRecord) -> None:
    """Replace a running dream's record; one that has ended stays as it is.

    Raises:
        ProviderError: The dream was never opened, or a message that it read was forgotten.
    """
    hold(connection, place)
    there = require(connection, place, record.id)
    if there.status == "running":
        refuse_forgotten(there, record.data.get("forgets", 0))
        replace(connection, place, record)


def end_dream(
    connection: Connection,
    place: Place,
    dream_id: str,
    status: str,
    failures: Literal["zero", "undo"],
) -> None:
    """End a running dream, and zero the count of failures or take its own attempt back."""
    hold(connection, place)
    there = require(connection, place, dream_id)
    if there.status != "running":
        return
    replace(connection, place, there.replace(status=status))
    known = state(connection, place)
    if failures == "zero":
        set_state(connection, place, known.replace(failures=0))
        return
    undone = known.replace(failures=max(0, known.failures - 1))
    if known.last_attempt == there.opened_at and (row := _row(connection, place, dream_id)):
        undone = undone.replace(last_attempt=row["previous_attempt"])
    set_state(connection, place, undone)


def replies(connection: Connection, place: Place, dream_id: str) -> list[ReplyRecord]:
    """Return the dream's paid replies, in order of phase and step."""
    of_dream = place._asdict() | {"dream": dream_id}
    order = (dream_steps.c.phase, dream_steps.c.step)
    rows = connection.execute(select(dream_steps).filter_by(**of_dream).order_by(*order))
    return [reply_of(row) for row in rows.mappings()]


def save_reply(connection: Connection, place: Place, dream_id: str, reply: ReplyRecord) -> None:
    """Keep a paid reply, in place of one of the same phase and step.

    Raises:
        ProviderError: The dream was never opened, or a message that it read was forgotten.
    """
    hold(connection, place)
    refuse_forgotten(require(connection, place, dream_id), reply.forgets)
    which = place._asdict() | {"dream": dream_id, "phase": reply.phase, "step": reply.step}
    said = {"digest": reply.digest, "reply": dump(reply.reply), "saved_at": now()}
    replaced = connection.execute(update(dream_steps).filter_by(**which).values(said))
    if replaced.rowcount == 0:
        connection.execute(insert(dream_steps), which | said)


def require(connection: Connection, place: Place, dream_id: str) -> DreamRecord:
    """Return a dream's record.

    Raises:
        ProviderError: There is none.
    """
    found = dream(connection, place, dream_id)
    if found is None:
        raise ProviderError(f"dream {dream_id} was never opened in this store")
    return found


def refuse_forgotten(there: DreamRecord, forgets: int) -> None:
    """Refuse what was made of a message that was forgotten while it was made.

    Raises:
        ProviderError: One was. Trying again helps: what is read then is without it.
    """
    if there.data.get("forgets", 0) != forgets:
        raise ProviderError(
            f"a message that dream {there.id} was reading was forgotten: it must be read again"
        )


def replace(connection: Connection, place: Place, record: DreamRecord) -> None:
    """Store a record in place of what is there under its id."""
    columns = _columns(place, record)
    of_dream = place._asdict() | {"id": record.id}
    connection.execute(update(dreams).filter_by(**of_dream).values(columns))


def set_state(connection: Connection, place: Place, known: ScopeState) -> None:
    """Store what the failure gate knows."""
    columns = {"failures": known.failures, "last_attempt": known.last_attempt}
    in_place = place._asdict()
    replaced = connection.execute(update(scope_state).filter_by(**in_place).values(columns))
    if replaced.rowcount == 0:
        connection.execute(insert(scope_state), in_place | columns)


def _row(connection: Connection, place: Place, dream_id: str) -> RowMapping | None:
    of_dream = place._asdict() | {"id": dream_id}
    return connection.execute(select(dreams).filter_by(**of_dream)).mappings().one_or_none()


def record_of(row: RowMapping) -> DreamRecord:
    """Make a dream's record of a row."""
    return DreamRecord.model_validate({**row, **{name: value_of(row[name]) for name in _AS_JSON}})


def reply_of(row: RowMapping) -> ReplyRecord:
    """Make a paid reply of a row."""
    return ReplyRecord.model_validate({**row, "reply": value_of(row["reply"])})


def _columns(place: Place, record: DreamRecord) -> dict[str, Any]:
    kept = record.model_dump(mode="json")
    return {
        **place._asdict(),
        "id": record.id,
        "status": record.status,
        "opened_at": record.opened_at,
        "ended_at": None if record.status == "running" else now(),
        "model": str(record.data.get("model", "")),
        "prompt_version": str(record.data.get("prompt_version", "")),
        **{name: dump(kept.get(name, _empty(name))) for name in _AS_JSON},
    }


def _empty(name: str) -> Any:
    return DreamRecord.model_fields[name].get_default()
