"""Pins: a fact that no dream may change, each pin a version of its own in the history."""

from sqlalchemy import Connection

from agentmem.memory.providers.locks import hold
from agentmem.memory.providers.rows import Place, now
from agentmem.memory.providers.sql_heads import heads
from agentmem.memory.providers.sql_restore import copy_version


def pin(connection: Connection, place: Place, key: str, pinned: bool) -> int:
    """Pin a fact or unpin it; return the version that stands, 0 if there is no such fact."""
    hold(connection, place)
    head = heads(connection, place, [key])[key]
    if head.current is None:
        return 0
    if bool(head.current["pinned"]) == pinned:
        return head.version
    changed = {"pinned": pinned, "reason": "pinned" if pinned else "unpinned", "change_id": ""}
    return copy_version(connection, place, key, head, head.version, changed, now())
