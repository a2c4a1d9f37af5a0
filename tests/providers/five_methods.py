"""The smallest store that a user may bring: five methods over a dict."""

from typing import Any


class FiveMethods:
    """A store as somebody writes it from `MemoryProvider`'s docstring; fails when told to."""

    def __init__(self) -> None:
        self.facts: dict[tuple[str, str], dict[str, Any]] = {}
        self.fail: Exception | None = None
        self.writes = 0
        self.closed = False

    async def memorize(self, agent: str, scope: str, key: str, value: Any) -> None:
        """Store a value."""
        if self.fail:
            raise self.fail
        self.writes += 1
        self.facts.setdefault((agent, scope), {})[key] = value

    async def recall(self, agent: str, scope: str, key: str | None = None) -> Any:
        """Return a value, or all."""
        if self.fail:
            raise self.fail
        facts = self.facts.get((agent, scope), {})
        return dict(facts) if key is None else facts.get(key)

    async def forget(self, agent: str, scope: str, key: str | None = None) -> None:
        """Remove a value, or all."""
        self.writes += 1
        if key is None:
            self.facts.pop((agent, scope), None)
        else:
            self.facts.get((agent, scope), {}).pop(key, None)

    async def keys(self, agent: str, scope: str) -> list[str]:
        """Return the keys, in no order."""
        return list(self.facts.get((agent, scope), {}))

    async def scopes(self, agent: str) -> list[str]:
        """Return the scopes, in no order."""
        return [scope for owner, scope in self.facts if owner == agent]

    async def close(self) -> None:
        """Note that it was closed."""
        self.closed = True
