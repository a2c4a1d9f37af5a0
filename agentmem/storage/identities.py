"""The meaning of a provider's identity on this worker: which file, which URL, whose function."""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from agentmem.errors import ConfigurationError
from agentmem.memory.references import sqlite
from agentmem.storage.urls import PostgresAddress, is_postgresql, postgresql_address, sqlite_file

DATABASE_URL = "AGENTMEM_DATABASE_URL"
DEFAULT = "default"
DEFAULT_FILE = "memory.db"

_KINDS = "default, sqlite:<path>, postgresql, postgresql:env:<NAME>, in_memory:<name>"


class Identities:
    """Reads identities.

    Args:
        data: The directory that SQLite files lie in.
        database_url: The default store's URL; without one it is `memory.db` in `data`.
        registered: What makes each store of the user's own, by name.
        said_by: Where the URL was given, for messages: the setting, or a command's option.

    Raises:
        ConfigurationError: `database_url` is neither PostgreSQL's nor SQLite's.
    """

    def __init__(
        self,
        data: Path,
        database_url: str | None,
        registered: Mapping[str, Callable[[], object]],
        said_by: str = DATABASE_URL,
    ) -> None:
        self._data = data.absolute()
        self._database_url = database_url
        self._registered = dict(registered)
        self._said_by = said_by
        self.default = _default(database_url, said_by)

    def resolve(self, identity: str) -> str:
        """Return the identity that stands for good: `default` becomes the store behind it.

        Raises:
            ConfigurationError: There is no such store; the message lists what exists.
        """
        if identity == DEFAULT:
            return self.default
        kind, _, name = identity.partition(":")
        if kind == "sqlite" and name:
            self.path(identity)
        elif kind == "named":
            self.factory(name)
        elif not re.fullmatch(r"postgresql(:env:[A-Za-z_]\w*)?|in_memory:[\w.-]+", identity, re.A):
            raise self._unknown(f"there is no provider {identity!r}")
        return identity

    def describe(self, identity: str) -> str:
        """Return for people where a store is.

        Raises:
            ConfigurationError: There is no such store, or its settings are wrong.
        """
        identity = self.resolve(identity)
        kind, _, name = identity.partition(":")
        if kind == "sqlite":
            return f"SQLite {self.path(identity)}"
        if kind == "postgresql":
            return f"PostgreSQL {self.address(identity).shown}"
        if kind == "in_memory":
            return f"the memory of this process, gone with it ({name})"
        return f"a store of your own, @provider({name!r})"

    def path(self, identity: str) -> Path:
        """Return the file of a SQLite store.

        Raises:
            ConfigurationError: It would lie outside the data directory.
        """
        text = identity.removeprefix("sqlite:")
        if self._database_url and identity == self.default:
            return Path(text)  # the operator's own choice may lie anywhere
        path = (self._data / sqlite(text).identity.removeprefix("sqlite:")).resolve()
        if not path.is_relative_to(self._data.resolve()):
            raise ConfigurationError(f"{identity!r} leads out of the data directory by a link")
        return path

    def address(self, identity: str) -> PostgresAddress:
        """Return where a PostgreSQL store is, from this worker's environment.

        Raises:
            ConfigurationError: The variable is not set, or holds no PostgreSQL URL.
        """
        variable = identity.partition(":env:")[2]
        url = os.environ.get(variable) if variable else self._database_url
        if not url:
            raise ConfigurationError(
                f"provider {identity!r}: {variable or DATABASE_URL} is not set on this worker"
            )
        return postgresql_address(url, variable or self._said_by)

    def factory(self, name: str) -> Callable[[], object]:
        """Return what makes a store of the user's own.

        Raises:
            ConfigurationError: None is registered under that name.
        """
        if name not in self._registered:
            raise self._unknown(f"no provider is registered as {name!r}")
        return self._registered[name]

    def _unknown(self, what: str) -> ConfigurationError:
        named = [f"named:{name}" for name in sorted(self._registered)]
        return ConfigurationError(f"{what}; there are {', '.join([_KINDS, *named])}")


def _default(database_url: str | None, said_by: str) -> str:
    if not database_url:
        return f"sqlite:{DEFAULT_FILE}"
    if is_postgresql(database_url):
        return "postgresql"
    file = sqlite_file(database_url, said_by)
    return f"sqlite:{file}" if file else "in_memory:default"
