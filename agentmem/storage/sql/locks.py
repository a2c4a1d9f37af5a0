"""Who waits for whom when facts are written.

A write of one key locks that key, and the scope shared; anything larger locks the scope. Always
the scope before the key, so nobody waits in a circle; keys that do not exist yet are covered too,
which row locks could not do. On SQLite the transaction holds the only write lock already.
"""

import hashlib
from collections.abc import Sequence

from sqlalchemy import Connection, text

from agentmem.storage.sql.rows import Place

_ONE_KEY = text("SELECT pg_advisory_xact_lock_shared(:scope), pg_advisory_xact_lock(:key)")
_SCOPE = text("SELECT pg_advisory_xact_lock(:scope)")


def hold(connection: Connection, place: Place, keys: Sequence[str] | None = None) -> None:
    """Wait for the right to write these keys, until the transaction ends; None is the scope."""
    if connection.dialect.name != "postgresql":
        return
    if keys is not None and len(set(keys)) == 1:
        scope, key = numbers(place, keys[0])
        connection.execute(_ONE_KEY, {"scope": scope, "key": key})
    else:
        connection.execute(_SCOPE, {"scope": _number("scope", *place)})


def numbers(place: Place, key: str) -> tuple[int, int]:
    """Return the numbers of a scope's lock and of a key's, for PostgreSQL."""
    return _number("scope", *place), _number("key", *place, key)


def _number(*names: str) -> int:
    digest = hashlib.blake2b("\x00".join(("agentmem", *names)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, signed=True)
