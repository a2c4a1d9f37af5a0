"""A store of your own: five methods over a JSON file that you can read and edit.

Give the worker this module (`AGENTMEM_APP=examples/notebook.py`) and an agent the store:

    [agents.noter]
    system_prompt = "You keep notes."
    long_term_memory.provider = "notebook"
    dream = {}

In workflow code it is `named("notebook")`. One worker process may use the file at a time; a real
store would hold a client of a database, and leave concurrency to it.
"""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

from agentmem import provider

Facts = dict[str, dict[str, dict[str, Any]]]
"""Agent, scope, key: the value."""


@provider("notebook")
class Notebook:
    """Facts in a file: `notebook.json` in the worker's data directory, or at `NOTEBOOK`."""

    def __init__(self) -> None:
        data = Path(os.environ.get("AGENTMEM_DATA", ".agentmem"))
        self._file = Path(os.environ.get("NOTEBOOK", data / "notebook.json"))
        self._lock = asyncio.Lock()

    async def memorize(self, agent: str, scope: str, key: str, value: Any) -> None:
        """Store a value under a key, in place of what was there."""
        async with self._lock:
            facts = await asyncio.to_thread(self._read)
            facts.setdefault(agent, {}).setdefault(scope, {})[key] = value
            await asyncio.to_thread(self._write, facts)

    async def recall(self, agent: str, scope: str, key: str | None = None) -> Any:
        """Return a key's value, None if it is missing; without a key, all as a dict by key."""
        facts = await asyncio.to_thread(self._read)
        found = facts.get(agent, {}).get(scope, {})
        return found if key is None else found.get(key)

    async def forget(self, agent: str, scope: str, key: str | None = None) -> None:
        """Remove a key; no error if it is missing. Without a key, remove the whole scope."""
        async with self._lock:
            facts = await asyncio.to_thread(self._read)
            found = facts.get(agent, {}).get(scope, {})
            if key is None:
                found.clear()
            else:
                found.pop(key, None)
            await asyncio.to_thread(self._write, facts)

    async def keys(self, agent: str, scope: str) -> list[str]:
        """Return the scope's keys, sorted."""
        return sorted(await self.recall(agent, scope))

    async def scopes(self, agent: str) -> list[str]:
        """Return the agent's scopes that hold a fact, sorted."""
        facts = await asyncio.to_thread(self._read)
        return sorted(scope for scope, found in facts.get(agent, {}).items() if found)

    def _read(self) -> Facts:
        return json.loads(self._file.read_text("utf-8")) if self._file.exists() else {}

    def _write(self, facts: Facts) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        new = self._file.with_suffix(".new")
        new.write_text(json.dumps(facts, ensure_ascii=False, indent=2), "utf-8")
        new.replace(self._file)  # at once: a reader never sees half a file
