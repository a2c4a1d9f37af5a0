"""A real PostgreSQL server for these tests."""

from tests.postgres import postgres_server, postgresql_url

__all__ = ["postgres_server", "postgresql_url"]
