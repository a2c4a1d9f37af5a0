"""Pins: a fact that no dream may change, each pin a version of its own in the history."""

from sqlalchemy import Connection

from agentmem.memory.providers.locks import hold
from agentmem.memory.providers.rows import Place, now
from agentmem.memory.providers.sql_heads import heads
from agentmem.memory.providers.sql_restore import Deed, copy_version
from agentmem.memory.providers.sql_tombstones import PINS
from agentmem.memory.providers.sql_versions import KEEPS, Versions


def pin(connection: Connection, place: Place, key: str, pinned: bool, by: str = "") -> int:
    """Pin a fact or unpin it; return the version that stands, 0 if there is no such fact."""
    hold(connection, place)
    head = heads(connection, place, [key])[key]
    if head.current is None:
        return 0
    if bool(head.current["pinned"]) == pinned:
        return head.version
    versions = Versions(connection, place)
    kept = f"{KEEPS}{versions.held(key, head.version)}"
    deed = Deed(PINS[pinned], kept, pinned=pinned, by=by)
    return copy_version(versions, key, head, head.version, deed, now())
