"""The store that a command works on, and the person that gives the command."""

import asyncio
import getpass
import sys
from collections.abc import Awaitable, Callable
from typing import Annotated, NoReturn, TypeVar

import typer

from agentmem.cli.logs import log_to_stderr
from agentmem.config.app import load_app
from agentmem.errors import AgentMemError
from agentmem.settings import load_settings
from agentmem.storage.identities import DATABASE_URL
from agentmem.storage.protocol import TransactionalProvider
from agentmem.storage.registry import Providers

By = Annotated[
    str,
    typer.Option("--by", metavar="NAME", help="Who does it, for the history: by default the user."),
]


def person(by: str) -> str:
    """Return the given name, or the operating system's name of who runs the command."""
    try:
        return by or getpass.getuser()
    except (OSError, KeyError):  # a user without a name, as in a container
        return "somebody"


Result = TypeVar("Result")

Agent = Annotated[str, typer.Option("--agent", "-a", help="Whose facts.")]
Scope = Annotated[str, typer.Option("--scope", "-s", help="Which scope, for example a user.")]
Database = Annotated[
    str | None,
    typer.Option(
        "--database",
        "-d",
        metavar="URL",
        help="postgresql://USER:PASSWORD@HOST/DATABASE or sqlite:////PATH; by default what "
        "AGENTMEM_DATABASE_URL says, else memory.db in AGENTMEM_DATA.",
    ),
]
Store = Annotated[
    str,
    typer.Option(
        "--store",
        metavar="IDENTITY",
        help="Another store of the same worker: sqlite:research.db, postgresql:env:NAME, "
        "named:NAME (with AGENTMEM_APP).",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print lines of JSON.")]
DEFAULT_STORE = "default"


def on_store(
    database: str | None,
    store: str,
    work: Callable[[TransactionalProvider, str], Awaitable[Result]],
) -> Result:
    """Open a store, do the work and close it; a mistake is one line and exit code 1.

    Args:
        database: The default store's URL, None for the settings'.
        store: Its identity.
        work: Gets the store, and for people where it is.
    """
    log_to_stderr()

    async def run() -> Result:
        settings = load_settings()
        providers = Providers(
            settings.data_directory,
            database or settings.database,
            load_app(settings.app).providers,
            "--database" if database else DATABASE_URL,
        )
        try:
            provider = await providers.get(store)
            return await work(provider, providers.describe(store))
        finally:
            await providers.close()

    try:
        return asyncio.run(run())
    except AgentMemError as error:
        refuse(error.message)


def refuse(message: str) -> NoReturn:
    """Say on standard error what is wrong and exit with 1."""
    sys.stderr.write(f"agentmem: {message}\n")
    raise typer.Exit(1)
