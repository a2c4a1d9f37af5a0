"""The stores of a worker or a script, each opened on first use and shared from then on."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from threading import Lock
from typing import cast
from weakref import WeakKeyDictionary

from agentmem.errors import AgentMemError, ConfigurationError
from agentmem.guest_loop import GuestLoop
from agentmem.settings import load_settings
from agentmem.storage import in_memory
from agentmem.storage.database import Database
from agentmem.storage.driver_errors import may_travel, store_error
from agentmem.storage.identities import DATABASE_URL, DEFAULT, Identities
from agentmem.storage.plain import PlainProvider, missing_methods
from agentmem.storage.protocol import MemoryProvider, TransactionalProvider
from agentmem.storage.sql.provider import SqlProvider
from agentmem.storage.sqlite import SqliteDatabase

_Openings = dict[str, asyncio.Task[TransactionalProvider]]


class Providers:
    """The stores of a worker or a script.

    Args:
        data: The directory that SQLite files lie in; `sqlite()` references cannot leave it.
        database_url: The default store: a PostgreSQL URL, or one of SQLite
            (`sqlite:////var/lib/memory.db`). Without one it is `memory.db` in `data`.
        registered: What makes each store of the user's own, by the name in `named(name)`: called
            once an event loop, without arguments; may be async.
        said_by: Where `database_url` was given, for messages.

    Raises:
        ConfigurationError: `database_url` is neither PostgreSQL's nor SQLite's.
    """

    def __init__(
        self,
        data: Path,
        database_url: str | None = None,
        registered: Mapping[str, Callable[[], object]] | None = None,
        said_by: str = DATABASE_URL,
    ) -> None:
        self._identities = Identities(data, database_url, registered or {}, said_by)
        self._stores: dict[str, SqlProvider] = {}
        self._lock = Lock()
        self._opened: WeakKeyDictionary[asyncio.AbstractEventLoop, _Openings] = WeakKeyDictionary()

    def resolve(self, identity: str) -> str:
        """Return the identity that stands for good: `default` becomes the store behind it.

        Raises:
            ConfigurationError: There is no such store; the message lists what exists.
        """
        return self._identities.resolve(identity)

    def describe(self, identity: str) -> str:
        """Return for people where a store is: a path, a host and database, never credentials.

        Raises:
            ConfigurationError: There is no such store, or its settings are wrong.
        """
        return self._identities.describe(identity)

    async def get(self, identity: str) -> TransactionalProvider:
        """Return the store, opened; the same one each time on the same event loop.

        Raises:
            ConfigurationError: There is no such store, or its settings are wrong.
            ProviderError: It cannot be opened now; the next call tries again.
        """
        identity = self.resolve(identity)
        openings = self._opened.setdefault(asyncio.get_running_loop(), {})
        opening = openings.get(identity)
        if opening is None or _failed(opening):
            opening = openings[identity] = asyncio.create_task(self._open(identity))
        # One caller that gives up does not take the store away from the others.
        return await asyncio.shield(opening)

    def opened(self) -> list[TransactionalProvider]:
        """Return the stores that are open on this event loop."""
        openings = self._opened.get(asyncio.get_running_loop(), {})
        return [one.result() for one in openings.values() if one.done() and not _failed(one)]

    async def close(self) -> None:
        """Close every store but those in memory, which live as long as the process."""
        for opening in self._opened.pop(asyncio.get_running_loop(), {}).values():
            await asyncio.wait([opening])
            if not _failed(opening) and not isinstance(opening.result(), SqlProvider):
                await opening.result().close()
        with self._lock:
            stores, self._stores = list(self._stores.values()), {}
        for store in stores:
            await store.close()

    async def _open(self, identity: str) -> TransactionalProvider:
        kind, _, name = identity.partition(":")
        if kind == "named":
            return await self._open_named(name)
        if kind == "in_memory":
            store = in_memory.store(name)
        else:
            store = await asyncio.to_thread(self._store, identity)  # drivers take long to import
        await store.open()
        return store

    async def _open_named(self, name: str) -> TransactionalProvider:
        # The user's code, which may block, never runs in the loop that heartbeats.
        loop = GuestLoop(f"agentmem-provider-{name}")
        made = await loop.run(lambda: _made(self._identities.factory(name), name))
        if isinstance(made, TransactionalProvider):
            return cast("TransactionalProvider", _Guest(made, loop))
        if isinstance(made, MemoryProvider):
            return PlainProvider(made, await self.get(DEFAULT), name, loop)
        loop.close()
        lacking = ", ".join(missing_methods(made))
        raise ConfigurationError(
            f"provider {name!r} is a {type(made).__name__} without {lacking}; "
            "agentmem.MemoryProvider says what a store needs"
        )

    def _store(self, identity: str) -> SqlProvider:
        sqlite = identity.startswith("sqlite:")
        where = str(self._identities.path(identity)) if sqlite else identity
        with self._lock:
            if where not in self._stores:
                self._stores[where] = SqlProvider(self._database(identity))
            return self._stores[where]

    def _database(self, identity: str) -> Database:
        if identity.startswith("sqlite:"):
            return SqliteDatabase(self._identities.path(identity))
        # Imported here: who stays with SQLite does not load asyncpg.
        from agentmem.storage.postgresql import PostgresDatabase

        return PostgresDatabase(self._identities.address(identity))


_defaults: dict[tuple[Path, str | None], Providers] = {}


def default_providers() -> Providers:
    """Return the stores of a script, outside any worker, as the environment names them.

    `AGENTMEM_DATA` (`./.agentmem`) and `AGENTMEM_DATABASE_URL`, as on a worker. A script need not
    close them: connections end with their event loop, and the process ends without waiting.

    Raises:
        ConfigurationError: The environment holds what it cannot.
    """
    settings = load_settings()
    where = (settings.data_directory, settings.database)
    return _defaults.setdefault(where, Providers(*where))


class _Guest:
    """A whole store of the user's own, whose methods run in a loop of their own."""

    def __init__(self, store: TransactionalProvider, loop: GuestLoop) -> None:
        self._store = store
        self._loop = loop

    def __getattr__(self, name: str) -> Callable[..., Awaitable[object]]:
        method: Callable[..., Awaitable[object]] = getattr(self._store, name)

        async def called(*args: object, **kwargs: object) -> object:
            return await self._loop.run(lambda: method(*args, **kwargs))

        return called

    async def close(self) -> None:
        """Close the store, then its loop."""
        await self._loop.run(self._store.close)
        self._loop.close()


def _failed(opening: "asyncio.Task[TransactionalProvider]") -> bool:
    return opening.done() and (opening.cancelled() or opening.exception() is not None)


async def _made(factory: Callable[[], object], name: str) -> object:
    try:
        made = factory()
        return await made if inspect.isawaitable(made) else made
    except AgentMemError:
        raise
    except Exception as error:
        said = f"provider {name!r} could not be made: {type(error).__name__}"
        raise store_error(said, error) from may_travel(error)
