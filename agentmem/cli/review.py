"""`agentmem memory`: what dreams hold back or propose, and the failure gate."""

from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime
from typing import Annotated

import typer

from agentmem.cli.stores import (
    DEFAULT_STORE,
    Agent,
    AsJson,
    By,
    Database,
    Scope,
    Store,
    on_store,
    person,
)
from agentmem.cli.tables import echo, shown, write_lines
from agentmem.dreaming import review as decisions
from agentmem.dreaming.review import Decision, Undecided
from agentmem.storage.protocol import TransactionalProvider
from agentmem.wire import dump_json, printable

Dream = Annotated[str, typer.Argument(help="The dream's id, as `waiting` shows it.")]
Changes = Annotated[list[str] | None, typer.Argument(help="Which changes, like c3.")]


def add_to(app: typer.Typer) -> None:
    """Add these commands to `agentmem memory`."""
    app.command()(waiting)
    app.command()(apply)
    app.command()(discard)
    app.command("open-gate")(open_gate)


def waiting(
    agent: Agent,
    scope: Scope,
    database: Database = None,
    store: Store = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Show what dreams proposed or held back, on whose words and why: a person decides."""
    found = on_store(
        database, store, lambda provider, _: decisions.undecided(provider, agent, scope)
    )
    for one in found:
        if as_json:
            write_lines([dump_json(one.full())])
        else:
            for line in _described(one):
                echo(printable(line))


def apply(
    dream: Dream,
    agent: Agent,
    scope: Scope,
    changes: Changes = None,
    by: By = "",
    database: Database = None,
    store: Store = DEFAULT_STORE,
) -> None:
    """Apply a proposal, or held changes by name; exit with 1 if a key has changed since."""
    _decide(
        database,
        store,
        lambda provider, now: decisions.apply(
            provider, agent, scope, dream, changes or (), now=now, by=person(by)
        ),
    )


def discard(
    dream: Dream,
    agent: Agent,
    scope: Scope,
    changes: Changes = None,
    by: By = "",
    database: Database = None,
    store: Store = DEFAULT_STORE,
) -> None:
    """Take changes off the list without applying them; without names all of the dream."""
    _decide(
        database,
        store,
        lambda provider, now: decisions.discard(
            provider, agent, scope, dream, changes or (), now=now, by=person(by)
        ),
    )


def open_gate(
    agent: Agent,
    scope: Scope,
    by: By = "",
    database: Database = None,
    store: Store = DEFAULT_STORE,
) -> None:
    """Let a scope dream again after failures, without waiting."""
    now = datetime.now(UTC)
    failures = on_store(
        database,
        store,
        lambda provider, _: decisions.reset_gate(provider, agent, scope, now=now, by=person(by)),
    )
    echo(f"the gate is open; it had counted {failures} failures")


def _described(one: Undecided) -> Iterator[str]:
    """Yield the lines that say what a change would do, and what it rests on."""
    yield f"{one.dream} {one.change} {one.status}: {one.line}"
    for key, value in one.old.items():
        yield f"  old {key}: {shown(value)}"
    if not one.line.startswith("remove "):
        yield f"  new: {shown(one.new)}"
    if one.stays:
        yield f"  stays: {one.stays}"
    if one.quote:
        day = f", {one.said_at:%Y-%m-%d}" if one.said_at else ""
        yield f'  quote: "{one.quote}" ({one.speaker}{day})'
    if one.why:
        yield f"  why: {one.why}"


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
