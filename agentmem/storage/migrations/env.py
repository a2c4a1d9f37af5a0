"""Alembic's entry point: runs the steps on the connection that `migrate` hands over."""

from alembic import context
from sqlalchemy import Connection

from agentmem.storage.migrate import VERSION_TABLE
from agentmem.storage.sql.schema import metadata

connection: Connection = context.config.attributes["connection"]
context.configure(connection, target_metadata=metadata, version_table=VERSION_TABLE)
with context.begin_transaction():
    context.run_migrations()
