"""Which evidence was taken away on request: what rests on nothing else is looked at again."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the column."""
    forgotten = sa.Column("forgotten", sa.Boolean(), nullable=False, server_default=sa.false())
    op.add_column("agentmem_fact_evidence", forgotten)
