"""A table and an index for undo and retention: what confirmations found, and what was read."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_EXACT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Create the table and the index."""
    names = ("agent", "scope", "key", "dream")
    op.create_table(
        "agentmem_fact_confirmations",
        *(sa.Column(name, _EXACT, nullable=False) for name in names),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("change_id", _EXACT, nullable=False),
        sa.Column("trust", sa.Text(), nullable=False),
        sa.Column("said_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("places", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint(*names, "version"),
    )
    read = sa.text("consumed_at IS NOT NULL")
    op.create_index(
        "agentmem_transcript_consumed",
        "agentmem_transcript",
        ["consumed_at"],
        postgresql_where=read,
        sqlite_where=read,
    )
