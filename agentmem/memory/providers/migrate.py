"""Bring a database to the newest schema, whoever else is doing the same."""

from pathlib import Path
from threading import Lock

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text

from agentmem.errors import ConfigurationError

VERSION_TABLE = "agentmem_schema"
LOCK = 0x61676E746D656D  # "agntmem"

_one_at_a_time = Lock()  # Alembic's `op` and `context` are globals of the process


def upgrade(connection: Connection) -> None:
    """Run the steps that are missing, in the transaction that is open on the connection.

    On SQLite that transaction holds the write lock already; on PostgreSQL an advisory lock keeps
    workers that start at once in line. Call it from a thread that may wait.

    Raises:
        ConfigurationError: A newer agentmem has written this database.
    """
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    scripts = ScriptDirectory.from_config(config)
    known = {script.revision for script in scripts.walk_revisions()}
    context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
    current = set(context.get_current_heads())
    if current - known:
        raise ConfigurationError(
            f"the memory store has the schema {', '.join(sorted(current))}, which this agentmem "
            "does not know: a newer one has written it; update this one"
        )
    if current == set(scripts.get_heads()):
        return
    config.attributes["connection"] = connection
    with _one_at_a_time:
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": LOCK})
        command.upgrade(config, "head")
