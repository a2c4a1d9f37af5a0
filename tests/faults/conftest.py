"""A real PostgreSQL server for these tests, and the look for stuck workflows after each."""

from tests.postgres import postgres_server, postgresql_url
from tests.workflow.conftest import client, model_library, no_stuck_workflow, started

__all__ = [
    "client",
    "model_library",
    "no_stuck_workflow",
    "postgres_server",
    "postgresql_url",
    "started",
]
