"""Bring a database to the newest schema, whoever else is doing the same."""

from pathlib import Path
from threading import Lock

from sqlalchemy import Connection, inspect, text

from agentmem.errors import ConfigurationError

VERSION_TABLE = "agentmem_schema"
LOCK = 0x61676E746D656D  # "agntmem"

_STEPS = Path(__file__).parent / "migrations"

_one_at_a_time = Lock()  # Alembic's `op` and `context` are globals of the process


def revisions() -> list[str]:
    """Return every schema that there ever was, oldest first."""
    return sorted(path.stem[1:5] for path in _STEPS.glob("versions/v*_*.py"))


def upgrade(connection: Connection, revision: str = "head") -> None:
    """Run the steps that are missing, in the transaction that is open on the connection.

    On SQLite that transaction holds the write lock already; on PostgreSQL an advisory lock keeps
    workers that start at once in line. Call it from a thread that may wait.

    Args:
        connection: Where the tables are.
        revision: The schema to end with: the newest, but for tests.

    Raises:
        ConfigurationError: A newer agentmem has written this database.
    """
    known = revisions()
    current = _current(connection)
    if current - set(known):
        raise ConfigurationError(
            f"the memory store has the schema {', '.join(sorted(current))}, which this agentmem "
            "does not know: a newer one has written it; update this one"
        )
    if current == {known[-1]}:
        return
    # Only here: it takes half a second and 7 MB, and at most starts there is nothing to do.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_STEPS))
    config.attributes["connection"] = connection
    with _one_at_a_time:
        if connection.dialect.name == "postgresql":
            # Another worker's steps may take longer than a write ever does.
            connection.execute(text("SET LOCAL lock_timeout = 0"))
            connection.execute(text("SET LOCAL idle_in_transaction_session_timeout = '60s'"))
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": LOCK})
        command.upgrade(config, revision)


def _current(connection: Connection) -> set[str]:
    if not inspect(connection).has_table(VERSION_TABLE):
        return set()
    return set(connection.scalars(text(f"SELECT version_num FROM {VERSION_TABLE}")))
