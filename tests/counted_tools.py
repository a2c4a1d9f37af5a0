"""Tools that say how many of them run at a time; apart, for the sandbox imports their module."""

import asyncio
from collections import Counter

from agentmem import tool

now: Counter[str] = Counter()
most: Counter[str] = Counter()


async def _busy(name: str) -> str:
    now[name] += 1
    most[name] = max(most[name], now[name])
    most["all"] = max(most["all"], now.total())
    await asyncio.sleep(0.3)
    now[name] -= 1
    return name


@tool(concurrency=2)
async def paged() -> str:
    """Ask an API that takes two callers."""
    return await _busy("paged")


@tool
async def free() -> str:
    """Ask one that takes any number."""
    return await _busy("free")


@tool
async def get_temp(city: str) -> str:
    """Tell a city's temperature; slowly for Oslo."""
    most["together"] += 1
    await asyncio.sleep(3 if city == "Oslo" else 0)
    return f"{city}: 20"


@tool
def unlucky() -> str:
    """Fail, always."""
    most["unlucky"] += 1
    raise RuntimeError("no luck")
