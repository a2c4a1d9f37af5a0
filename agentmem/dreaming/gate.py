"""The failure gate: whether a scope may dream, after dreams that went wrong."""

from datetime import datetime, timedelta

from agentmem.memory.providers.protocol import ScopeState
from agentmem.values import Wire

COOL_DOWNS = (timedelta(hours=1), timedelta(hours=6), timedelta(hours=24))
"""The time the gate stays shut after the failure that shut it, the next one, and all others."""


class Gate(Wire):
    """The gate's decision on whether a scope may dream.

    Attributes:
        open: Whether the scope may dream now.
        reason: Why not, in words.
        next_try: When one dream is let through.
    """

    open: bool = True
    reason: str = ""
    next_try: datetime | None = None


def gate(state: ScopeState, now: datetime, threshold: int = 3) -> Gate:
    """Say whether a scope may dream; ask before the new attempt is counted.

    After `threshold` attempts in a row that did not go well, one dream is let through after an
    hour, then after six, then every day. A dream that goes well opens the gate for good.

    Args:
        state: What the store knows of the scope.
        now: The time, aware.
        threshold: Failures in a row that shut the gate.
    """
    if state.failures < max(1, threshold) or state.last_attempt is None:
        return Gate()
    tries = state.failures - max(1, threshold)
    next_try = state.last_attempt + COOL_DOWNS[min(tries, len(COOL_DOWNS) - 1)]
    if now >= next_try:
        return Gate()
    return Gate(
        open=False,
        reason=f"{state.failures} dreams of this scope failed in a row; "
        f"the next one may try at {next_try.isoformat(timespec='minutes')}",
        next_try=next_try,
    )
