"""The first schema: facts with a history and evidence, transcripts, dreams.

A step is frozen once it is released: it names its columns itself and takes nothing from `schema`,
which moves on.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_EXACT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_TIME = sa.DateTime(timezone=True)


def _table(name: str, keys: str, *columns: sa.Column[Any], numbered: str = "") -> None:
    names = [sa.Column(key, _EXACT, nullable=False) for key in keys.split()]
    numbers = [sa.Column(key, sa.BigInteger, nullable=False) for key in numbered.split()]
    primary = sa.PrimaryKeyConstraint(*keys.split(), *numbered.split())
    op.create_table(f"agentmem_{name}", *names, *numbers, *columns, primary)


def _columns(
    kind: sa.types.TypeEngine[Any], names: str, *, nullable: bool = False
) -> list[sa.Column[Any]]:
    return [sa.Column(name, kind, nullable=nullable) for name in names.split()]


def _said_of_a_fact() -> list[sa.Column[Any]]:
    return [
        *_columns(sa.Text(), "trust kind writer valid_from valid_to"),
        *_columns(sa.Integer(), "importance"),
        *_columns(sa.Boolean(), "pinned"),
        *_columns(_TIME, "recorded_at"),
        *_columns(_TIME, "said_at expires_at", nullable=True),
    ]


def upgrade() -> None:
    """Create every table."""
    _facts()
    _transcripts()
    _dreams()


def _facts() -> None:
    _table(
        "facts",
        "agent scope key",
        *_columns(sa.Text(), "value"),
        *_columns(sa.BigInteger(), "version"),
        *_said_of_a_fact(),
    )
    _table(
        "fact_versions",
        "agent scope key",
        *_columns(sa.Text(), "value", nullable=True),
        *_said_of_a_fact(),
        *_columns(sa.Text(), "op reason"),
        *_columns(_EXACT, "replaced_by dream change_id idempotency"),
        numbered="version",
    )
    _table(
        "fact_evidence",
        "agent scope key",
        *_columns(_EXACT, "session memory message"),
        *_columns(sa.Text(), "role quote"),
        *_columns(_TIME, "said_at", nullable=True),
        numbered="version place",
    )
    op.create_index(
        "agentmem_evidence_of_message",
        "agentmem_fact_evidence",
        ["agent", "scope", "session", "memory", "message"],
    )
    _table("fact_usage", "agent scope key", *_columns(sa.Date(), "last_used_on"))
    _table(
        "calls",
        "agent scope name",
        *_columns(sa.Text(), "versions"),
        *_columns(_TIME, "at"),
    )


def _transcripts() -> None:
    _table(
        "transcript",
        "agent scope session memory",
        *_columns(_EXACT, "message"),
        *_columns(sa.Text(), "role text name"),
        *_columns(sa.BigInteger(), "bytes turn"),
        *_columns(sa.Integer(), "at_offset"),
        *_columns(sa.Boolean(), "recalled forgotten"),
        *_columns(_TIME, "at"),
        *_columns(_TIME, "consumed_at", nullable=True),
        numbered="seq",
    )
    _table(
        "cursors",
        "agent scope session memory",
        *_columns(sa.BigInteger(), "seq"),
        *_columns(_EXACT, "dream"),
        *_columns(_TIME, "moved_at"),
    )


def _dreams() -> None:
    _table(
        "dreams",
        "agent scope id",
        *_columns(sa.Text(), "status model prompt_version ranges snapshot data applied conflicts"),
        *_columns(_TIME, "opened_at"),
        *_columns(_TIME, "ended_at previous_attempt", nullable=True),
    )
    _table(
        "dream_steps",
        "agent scope dream phase",
        *_columns(sa.Text(), "digest reply"),
        *_columns(_TIME, "saved_at"),
        numbered="step",
    )
    _table(
        "scope_state",
        "agent scope",
        *_columns(sa.BigInteger(), "failures"),
        *_columns(_TIME, "last_attempt", nullable=True),
    )
