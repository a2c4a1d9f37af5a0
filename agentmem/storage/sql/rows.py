"""Between rows and models: what goes into a column, and what comes out of it."""

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import RowMapping

from agentmem.facts import Fact, Write
from agentmem.records import TranscriptRow
from agentmem.wire import JSONValue, Wire

SAID = (
    *("trust", "importance", "kind", "writer", "said_at", "valid_from", "valid_to", "expires_at"),
    *("state", "unconfirmed", "was", "author"),
)
"""The fields of a write that describe its fact, besides the value; columns have the same names."""

Item = TypeVar("Item")


class Place(NamedTuple):
    """An agent's scope, both in their stored form."""

    agent: str
    scope: str


def now() -> datetime:
    """Return this process's clock, in UTC."""
    return datetime.now(UTC)


def dump(value: object) -> str:
    """Write agentmem's own JSON, escaped so that every database can hold it."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def value_of(text: str | None) -> JSONValue:
    """Read a value back as it was stored."""
    return None if text is None else json.loads(text)


def said_by(write: Write) -> dict[str, Any]:
    """Return the columns of what a write says of its fact."""
    said = {name: getattr(write, name) for name in SAID}
    said |= {name: _wire_text(said[name]) for name in ("unconfirmed", "was")}
    return said | {"trust": str(write.trust)}


def fact_fields(row: RowMapping) -> dict[str, Any]:
    """Return a row of `facts` or `fact_versions` with its JSON columns read."""
    return {**row, **{name: value_of(row[name]) for name in ("value", "unconfirmed", "was")}}


def fact_of(row: RowMapping) -> Fact:
    """Make a fact of a row of `facts` or `fact_versions`."""
    return Fact.model_validate(fact_fields(row))


def message_of(row: RowMapping) -> TranscriptRow:
    """Make a transcript's row, its time in the zone that it was said in."""
    zone = timezone(timedelta(seconds=row["at_offset"]))
    return TranscriptRow.model_validate({**row, "at": row["at"].astimezone(zone)})


def _wire_text(value: Wire | None) -> str | None:
    return None if value is None else dump(value.model_dump(mode="json"))


def chunks(items: Iterable[Item], size: int = 500) -> list[Sequence[Item]]:
    """Cut items into runs that one statement's parameters can name."""
    listed = list(items)
    return [listed[start : start + size] for start in range(0, len(listed), size)]
