"""Facts have a state, a value that is not confirmed, an earlier value and an author.

Facts that are stored already are settled, with the trust that they have.
"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the columns."""
    for table in ("agentmem_facts", "agentmem_fact_versions"):
        for name, default in (("state", "settled"), ("author", "")):
            op.add_column(table, sa.Column(name, sa.Text(), nullable=False, server_default=default))
        for name in ("unconfirmed", "was"):
            op.add_column(table, sa.Column(name, sa.Text(), nullable=True))
