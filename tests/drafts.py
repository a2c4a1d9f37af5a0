"""Drafts for tests: messages by alias, facts, and one proposal at a time."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from agentmem.dreaming.changes import Change
from agentmem.dreaming.draft import Draft
from agentmem.facts import Fact
from agentmem.records import TranscriptRow

SAID = datetime(2026, 3, 10, 12, tzinfo=UTC)
"""When the messages of these tests are said: a Tuesday."""
BEFORE = SAID - timedelta(days=30)
"""When their facts were said."""


def row(text: str, role: str = "user", *, at: datetime = SAID, **fields: Any) -> TranscriptRow:
    """A message of the transcript."""
    place: dict[str, Any] = {"session": "s1", "memory": "wm0", "seq": 1, "message": "m1"}
    return TranscriptRow(role=role, text=text, at=at, **(place | fields))


def rows(*said: str | TranscriptRow) -> dict[str, TranscriptRow]:
    """Messages by alias, `a1` first; a text alone is a user's, a minute after the one before."""
    return {
        f"a{number}": (
            row(
                one,
                at=SAID + timedelta(minutes=number - 1),
                seq=number,
                message=f"m{number}",
            )
            if isinstance(one, str)
            else one
        )
        for number, one in enumerate(said, 1)
    }


def fact(key: str, value: Any, **fields: Any) -> Fact:
    """A fact that a dream wrote a month before."""
    told: dict[str, Any] = {
        "version": 3,
        "writer": "dream",
        "said_at": BEFORE,
        "recorded_at": BEFORE,
    }
    return Fact(key=key, value=value, **(told | fields))


def draft(
    facts: Iterable[Fact] = (), said: Iterable[str | TranscriptRow] = (), **settings: Any
) -> Draft:
    """A draft over these facts and messages, opened a fortnight after they were said."""
    settings = {"opened_at": SAID + timedelta(days=15)} | settings
    return Draft(facts, rows(*said), **settings)


def propose(on: Draft, op: str, key: str, value: Any = None, **fields: Any) -> Change:
    """Propose one change in consolidate; its quote is the first cited message, unless given."""
    again = fields.pop("again", False)
    cited = [name for name in fields.get("evidence", ()) if name in on.rows]
    if cited and "quote" not in fields:
        fields["quote"] = on.rows[cited[0]].text[:200]
    change = Change.model_validate({"op": op, "key": key, "value": value} | fields)
    return on.propose(change, "consolidate", again=again)
