"""References to memory stores: light values for workflow code, opened on the worker.

A reference holds a name and a kind, never credentials: it stands in workflow histories. The worker
(or a script) opens the store behind it on first use.
"""

import itertools
import re
from collections.abc import Callable
from pathlib import PurePath
from typing import TypeVar

from temporalio import workflow

from agentmem.errors import ConfigurationError
from agentmem.wire import Wire

Made = TypeVar("Made", bound=Callable[..., object])

_new_stores = itertools.count(1)

PROVIDER_MARK = "__agentmem_provider__"


class ProviderReference(Wire):
    """A memory store by its identity, as it travels and as dreams are named after it.

    Attributes:
        identity: `sqlite:<path as given>`, `postgresql`, `postgresql:env:NAME`,
            `in_memory:<name>`, `named:<name>` or `default`.
    """

    identity: str


def in_memory(name: str = "default") -> ProviderReference:
    """Refer to a store in the process's memory: gone with it, for tests and trials.

    Args:
        name: In workflow code, stores of the same name are one store of the worker's process.
            Elsewhere each call is a new store, whatever its name: keep the reference.

    Raises:
        ConfigurationError: The name is not 1 to 64 letters, digits, `_`, `-` or `.`.
    """
    name = _word(name, "in_memory")
    if not workflow.in_workflow():
        name = f"{name}.new{next(_new_stores)}"
    return ProviderReference(identity=f"in_memory:{name}")


def sqlite(db_path: str) -> ProviderReference:
    """Refer to a SQLite file under the worker's data directory (`AGENTMEM_DATA`).

    Raises:
        ConfigurationError: The path is no text, empty, absolute or leads out of that directory. A
            dream's input may come from anybody who can start workflows, so no path may.
    """
    _refuse_other(db_path, "sqlite", "a path")
    if ":memory:" in db_path:
        raise ConfigurationError(f"sqlite({db_path!r}): for a store in memory write in_memory()")
    path = PurePath(db_path)
    if not db_path.strip() or path.is_absolute() or ".." in path.parts or "\x00" in db_path:
        raise ConfigurationError(
            f"sqlite({db_path!r}): give a path relative to the worker's data directory "
            "(AGENTMEM_DATA), without '..'"
        )
    return ProviderReference(identity=f"sqlite:{db_path}")


def postgresql(connection_string: str | None = None) -> ProviderReference:
    """Refer to a PostgreSQL database by where the worker finds its URL.

    Args:
        connection_string: Nothing for the worker's `AGENTMEM_DATABASE_URL`, or `env:NAME` for
            another variable of the worker's environment.

    Raises:
        ConfigurationError: A URL was given. It would stand, password and all, in the workflow's
            history.
    """
    if connection_string is None:
        return ProviderReference(identity="postgresql")
    _refuse_other(connection_string, "postgresql", "nothing, or env:NAME")
    kind, _, name = connection_string.partition(":")
    if kind != "env" or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise ConfigurationError(
            "postgresql(): a URL would stand in the workflow's history with its password; set "
            "AGENTMEM_DATABASE_URL on the worker and write postgresql(), or name a variable of "
            'the worker\'s environment: postgresql("env:RESEARCH_DATABASE_URL")'
        )
    return ProviderReference(identity=f"postgresql:env:{name}")


def named(name: str) -> ProviderReference:
    """Refer to a store of your own, registered on the worker by `@provider(name)`.

    Raises:
        ConfigurationError: The name is not 1 to 64 letters, digits, `_`, `-` or `.`.
    """
    return ProviderReference(identity=f"named:{_word(name, 'named')}")


def provider(name: str) -> Callable[[Made], Made]:
    """Register a class or a function that makes a `MemoryProvider`, under a name.

    Put it in the module that the worker loads (`AGENTMEM_APP`); workflow code then says
    `named(name)`. It is called once, without arguments, on first use; it may be async.
    """
    _word(name, "provider")

    def mark(made: Made) -> Made:
        setattr(made, PROVIDER_MARK, name)
        return made

    return mark


def _word(name: str, where: str) -> str:
    _refuse_other(name, where, "a name")
    if not re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", name):
        raise ConfigurationError(
            f"{where}({name!r}): a name is 1 to 64 letters, digits, '_', '-' or '.'"
        )
    return name


def _refuse_other(value: object, where: str, what: str) -> None:
    if not isinstance(value, str):
        raise ConfigurationError(f"{where}() takes {what} as text, got {type(value).__name__}")
