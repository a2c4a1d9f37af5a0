"""Stores that live in this process and are gone with it: a SQLite database in memory."""

from threading import Lock

from agentmem.storage.sql.provider import SqlProvider
from agentmem.storage.sqlite import SqliteDatabase

_stores: dict[str, SqlProvider] = {}
_lock = Lock()


def store(name: str) -> SqlProvider:
    """Return this process's store of that name; every caller of a name gets the same one."""
    with _lock:
        if name not in _stores:
            _stores[name] = SqlProvider(SqliteDatabase(None))
        return _stores[name]
