"""`agentmem memory`: facts, their history, undo and pins."""

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.table import Table

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
    refuse,
)
from agentmem.cli.tables import (
    console,
    echo,
    evidence_table,
    facts_table,
    history_table,
    lines,
    shown,
    write_lines,
)
from agentmem.errors import InvalidFact
from agentmem.facts import Fact, Write, until_end
from agentmem.memory.admin import confirmation
from agentmem.records import BRANCH_MARK
from agentmem.storage.protocol import TransactionalProvider
from agentmem.wire import JSONValue, printable

app = typer.Typer(help="Facts of long-term memory: look at them, and look after them.")

Key = Annotated[str, typer.Argument(help="The key, exactly.")]


@app.command()
def facts(
    agent: Agent,
    scope: Scope,
    keys: Annotated[list[str] | None, typer.Argument(help="Only these.")] = None,
    database: Database = None,
    store: Store = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Show a scope's facts with what is not confirmed of them, expired ones too."""

    async def read(provider: TransactionalProvider, where: str) -> tuple[list[Fact], Table]:
        found = await provider.entries(agent, scope, keys or None)
        versions = {fact.key: fact.version for fact in found}
        cited = {fact.key: fact for fact in await provider.facts_at(agent, scope, versions)}
        found = [fact.replace(evidence=cited.get(fact.key, fact).evidence) for fact in found]
        number = "1 fact" if len(found) == 1 else f"{len(found)} facts"
        return found, facts_table(found, f"{agent}, {scope}: {number} ({where})")

    found, table = on_store(database, store, read)
    _show(found, table, as_json)


@app.command()
def history(
    key: Key,
    agent: Agent,
    scope: Scope,
    database: Database = None,
    store: Store = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Show every version of a fact, why it was written and what it rests on."""
    versions = on_store(database, store, lambda provider, _: provider.history(agent, scope, key))
    if not versions:
        refuse(f"there is no history of {key!r} in {agent!r}, {scope!r}")
    _show(versions, history_table(versions, f"{agent}, {scope}: {key}"), as_json)


@app.command()
def resets(
    agent: Agent,
    scope: Scope,
    database: Database = None,
    store: Store = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Show the facts that rest on messages which a workflow reset took out of their session."""

    async def read(provider: TransactionalProvider, where: str) -> tuple[list[Fact], Table]:
        versions = {fact.key: fact.version for fact in await provider.entries(agent, scope)}
        found = [
            fact
            for fact in await provider.facts_at(agent, scope, versions)
            if any(BRANCH_MARK in item.session for item in fact.evidence)
        ]
        number = "1 fact rests" if len(found) == 1 else f"{len(found)} facts rest"
        title = f"{agent}, {scope}: {number} on messages that a reset took away ({where})"
        return found, evidence_table(found, title)

    found, table = on_store(database, store, read)
    _show(found, table, as_json)


@app.command()
def scopes(agent: Agent, database: Database = None, store: Store = DEFAULT_STORE) -> None:
    """List an agent's scopes that hold a fact."""
    for scope in on_store(database, store, lambda provider, _: provider.scopes(agent)):
        echo(scope)


@app.command()
def undo(
    change: Annotated[
        str,
        typer.Argument(
            help="A dream's id, DREAM/CHANGE or KEY@VERSION, as the history shows them."
        ),
    ],
    agent: Agent,
    scope: Scope,
    by: By = "",
    database: Database = None,
    store: Store = DEFAULT_STORE,
) -> None:
    """Take back a dream, one of its changes, or one version; exit with 1 if some could not be."""
    who = person(by)
    done = on_store(database, store, lambda provider, _: provider.undo(agent, scope, change, who))
    for key in done.keys:
        echo(f"taken back: {key}")
    for key in done.conflicts:
        echo(f"changed since, left as it is: {key}", err=True)
    if not (done.keys or done.conflicts):
        echo(f"nothing of {change} is there to take back", err=True)
    if done.conflicts:
        raise typer.Exit(1)


@app.command()
def pin(
    key: Key,
    agent: Agent,
    scope: Scope,
    by: By = "",
    database: Database = None,
    store: Store = DEFAULT_STORE,
) -> None:
    """Keep dreams from changing or removing a fact."""
    _pin(key, agent, scope, person(by), database, store, pinned=True)


@app.command()
def unpin(
    key: Key,
    agent: Agent,
    scope: Scope,
    by: By = "",
    database: Database = None,
    store: Store = DEFAULT_STORE,
) -> None:
    """Let dreams change a fact again."""
    _pin(key, agent, scope, person(by), database, store, pinned=False)


@app.command("set")
def set_(
    key: Key,
    value: Annotated[str, typer.Argument(help="The value: text, or JSON with --as-json.")],
    agent: Agent,
    scope: Scope,
    until: Annotated[
        str | None,
        typer.Option(help="The last day on which it is of use, like 2026-05-09; in UTC."),
    ] = None,
    from_json: Annotated[bool, typer.Option("--as-json", help="Read the value as JSON.")] = False,
    by: By = "",
    database: Database = None,
    store: Store = DEFAULT_STORE,
) -> None:
    """Store a value under a key, in place of what was there."""

    async def write(provider: TransactionalProvider, _: str) -> list[int]:
        made = Write(
            key=key,
            value=_parsed(value) if from_json else value,
            writer="person",
            author=person(by),
            expires_at=until_end(until) if until is not None else None,
        )
        return await provider.write(agent, scope, [made])

    on_store(database, store, write)
    echo(f"stored: {key}")


@app.command()
def confirm(
    key: Key,
    agent: Agent,
    scope: Scope,
    by: By = "",
    database: Database = None,
    store: Store = DEFAULT_STORE,
) -> None:
    """Confirm a fact: settle it, or take its value that is not confirmed in place of the old."""

    async def settle(provider: TransactionalProvider, _: str) -> Write:
        write = await confirmation(provider, agent, scope, key, person(by), datetime.now(UTC))
        await provider.write(agent, scope, [write])
        return write

    confirmed = on_store(database, store, settle)
    echo(printable(f"confirmed: {confirmed.key}: {shown(confirmed.value)}"))


@app.command()
def forget(
    key: Key,
    agent: Agent,
    scope: Scope,
    by: By = "",
    database: Database = None,
    store: Store = DEFAULT_STORE,
) -> None:
    """Remove one fact; its history stays, so that it can be undone."""

    async def remove(provider: TransactionalProvider, _: str) -> list[int]:
        write = Write(op="remove", key=key, writer="person", author=person(by))
        return await provider.write(agent, scope, [write])

    if on_store(database, store, remove) == [0]:
        refuse(f"there is no fact {key!r} in {agent!r}, {scope!r}")
    echo(f"forgotten: {key}")


def _parsed(text: str) -> JSONValue:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidFact(f"the value is no JSON: {error}") from error


def _pin(
    key: str, agent: str, scope: str, by: str, database: str | None, store: str, *, pinned: bool
) -> None:
    there = on_store(
        database, store, lambda provider, _: provider.pin(agent, scope, key, pinned, by)
    )
    if not there:
        refuse(f"there is no fact {key!r} in {agent!r}, {scope!r}")
    echo(f"{'pinned' if pinned else 'unpinned'}: {key}")


def _show(rows: Iterable[Fact], table: Table, as_json: bool) -> None:
    if as_json:
        write_lines(lines(rows))
    else:
        console().print(table)
