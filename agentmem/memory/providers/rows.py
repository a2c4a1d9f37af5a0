"""Between rows and models: what goes into a column, and what comes out of it."""

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta, timezone
from typing import NamedTuple, TypeVar

from sqlalchemy import RowMapping

from agentmem.facts import Fact
from agentmem.memory.providers.protocol import TranscriptRow
from agentmem.values import JSONValue

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


def fact_of(row: RowMapping) -> Fact:
    """Make a fact of a row of `facts` or `fact_versions`."""
    return Fact.model_validate({**row, "value": value_of(row["value"])})


def message_of(row: RowMapping) -> TranscriptRow:
    """Make a transcript's row, its time in the zone that it was said in."""
    zone = timezone(timedelta(seconds=row["at_offset"]))
    return TranscriptRow.model_validate({**row, "at": row["at"].astimezone(zone)})


def chunks(items: Iterable[Item], size: int = 500) -> list[Sequence[Item]]:
    """Cut items into runs that one statement's parameters can name."""
    listed = list(items)
    return [listed[start : start + size] for start in range(0, len(listed), size)]
