"""`agentmem memory`: what dreams hold back or propose, and the failure gate."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Annotated

import typer

from agentmem.cli.stores import DEFAULT_STORE, Agent, Database, Scope, Store, on_store
from agentmem.cli.terminal import echo
from agentmem.dreaming import decisions
from agentmem.dreaming.decisions import Decision
from agentmem.memory.providers.protocol import TransactionalProvider
from agentmem.values import printable

Dream = Annotated[str, typer.Argument(help="The dream's id, as `waiting` shows it.")]
Changes = Annotated[list[str] | None, typer.Argument(help="Which changes, like c3.")]


def add_to(app: typer.Typer) -> None:
    """Add these commands to `agentmem memory`."""
    app.command()(waiting)
    app.command()(apply)
    app.command()(discard)
    app.command("open-gate")(open_gate)


def waiting(
    agent: Agent, scope: Scope, database: Database = None, store: Store = DEFAULT_STORE
) -> None:
    """List what dreams proposed or held back, and why: a person decides."""
    found = on_store(
        database, store, lambda provider, _: decisions.undecided(provider, agent, scope)
    )
    for one in found:
        why = f" ({one.why})" if one.why else ""
        echo(printable(f"{one.dream} {one.change} {one.status}: {one.line}{why}"))


def apply(
    dream: Dream,
    agent: Agent,
    scope: Scope,
    changes: Changes = None,
    database: Database = None,
    store: Store = DEFAULT_STORE,
) -> None:
    """Apply a proposal, or held changes by name; exit with 1 if a key has changed since."""
    _decide(
        database,
        store,
        lambda provider, now: decisions.apply(
            provider, agent, scope, dream, changes or (), now=now
        ),
    )


def discard(
    dream: Dream,
    agent: Agent,
    scope: Scope,
    changes: Changes = None,
    database: Database = None,
    store: Store = DEFAULT_STORE,
) -> None:
    """Take changes off the list without applying them; without names all of the dream."""
    _decide(
        database,
        store,
        lambda provider, now: decisions.discard(
            provider, agent, scope, dream, changes or (), now=now
        ),
    )


def open_gate(
    agent: Agent, scope: Scope, database: Database = None, store: Store = DEFAULT_STORE
) -> None:
    """Let a scope dream again after failures, without waiting."""
    now = datetime.now(UTC)
    failures = on_store(
        database, store, lambda provider, _: decisions.reset_gate(provider, agent, scope, now=now)
    )
    echo(f"the gate is open; it had counted {failures} failures")


def _decide(
    database: str | None,
    store: str,
    decision: Callable[[TransactionalProvider, datetime], Awaitable[Decision]],
) -> None:
    now = datetime.now(UTC)
    done = on_store(database, store, lambda provider, _: decision(provider, now))
    for what, lines in (("applied", done.applied), ("discarded", done.discarded)):
        for line in lines:
            echo(printable(f"{what}: {line}"))
    for line in done.conflicts:
        echo(printable(f"changed since, left as it is: {line}"), err=True)
    if done.applied:
        echo(f"undo by: {done.id}")
    if done.conflicts:
        raise typer.Exit(1)
