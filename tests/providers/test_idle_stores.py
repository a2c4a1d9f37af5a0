"""Stores that are not used any more give up their threads and files, and are there again."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from agentmem.storage import connection_thread as lane
from agentmem.storage import in_memory
from agentmem.storage.registry import Providers


def threads() -> int:
    """Count the threads that stores have."""
    return sum(thread.name == "agentmem-sqlite" for thread in threading.enumerate())


def files(folder: Path) -> list[str]:
    """The files of a folder that this process has open."""
    found = [Path(f"/proc/self/fd/{fd.name}") for fd in Path("/proc/self/fd").iterdir()]
    names = [str(one.readlink()) for one in found if one.is_symlink()]
    return [name for name in names if name.startswith(str(folder))]


async def until(holds: Callable[[], bool], seconds: float = 10) -> None:
    """Wait until a condition holds."""
    async with asyncio.timeout(seconds):
        while not holds():  # noqa: ASYNC110 - threads end by themselves
            await asyncio.sleep(0.05)


async def test_sixty_names_leave_no_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All threads and files go once the stores are idle; each store then works as before."""
    before = threads()
    monkeypatch.setattr(lane, "IDLE_SECONDS", 0.3)
    providers = Providers(tmp_path)
    names = [*(f"sqlite:{number}.db" for number in range(60)), "in_memory:idle"]
    for name in names:
        store = await providers.get(name)
        await store.memorize("a", "s", "k", name)
        assert await store.recall("a", "s", "k") == name
    assert threads() > before
    await until(lambda: threads() == before)
    assert await asyncio.to_thread(files, tmp_path) == []
    for name in names:
        assert await (await providers.get(name)).recall("a", "s", "k") == name
    await providers.close()
    await in_memory.store("idle").close()
    await until(lambda: threads() == before)


async def test_no_operation_is_lost_where_a_thread_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """2,000 writes by 20 tasks, with threads that end after every pause of a tenth of a ms."""
    monkeypatch.setattr(lane, "IDLE_SECONDS", 0.0001)
    providers = Providers(tmp_path)
    store = await providers.get("sqlite:busy.db")

    async def write(task: int) -> None:
        for turn in range(100):
            await store.memorize("a", "s", f"k{task}", turn)
            await asyncio.sleep(0.0002 * (task % 3))

    async with asyncio.timeout(50):
        await asyncio.gather(*map(write, range(20)))
    assert await store.recall("a", "s") == {f"k{task}": 99 for task in range(20)}
    await providers.close()
