"""`agentmem memory`: erase a scope, take it along, forget a message."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from agentmem.cli.stores import DEFAULT_STORE, Agent, Database, Scope, Store, on_store, refuse
from agentmem.cli.tables import console, counts_table, echo, write_lines
from agentmem.client import connect, retention_days
from agentmem.errors import ConfigurationError
from agentmem.records import MessageId
from agentmem.storage.protocol import TransactionalProvider
from agentmem.wire import JSONObject, as_line

FORMAT = 1
_HEAD = "agentmem_export"


def add_to(app: typer.Typer) -> None:
    """Add these commands to `agentmem memory`."""
    app.command("forget-message")(forget_message)
    app.command()(erase)
    app.command()(export)
    app.command("import")(import_)


def erase(
    agent: Agent,
    scope: Scope,
    database: Database = None,
    store: Store = DEFAULT_STORE,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Delete everything of a scope for good: facts, history, evidence, transcripts, dreams."""
    if not yes:
        typer.confirm(f"Erase all that {agent!r} remembers of {scope!r}?", abort=True)
    gone = on_store(database, store, lambda provider, _: provider.erase(agent, scope))
    console().print(counts_table(gone, f"{agent}, {scope}: {sum(gone.values())} rows erased"))
    echo(asyncio.run(_what_temporal_keeps()))


def forget_message(
    session: Annotated[str, typer.Argument(help="The session's first run id.")],
    message: Annotated[str, typer.Argument(help="The message's id, like m7.")],
    agent: Agent,
    scope: Scope,
    memory: Annotated[str, typer.Option(help="The session's working memory.")] = "wm0",
    database: Database = None,
    store: Store = DEFAULT_STORE,
) -> None:
    """Blank a message's text in the transcript and in every quote; a history shows its names."""
    which = MessageId(session=session, memory=memory, message=message)
    gone = on_store(
        database, store, lambda provider, _: provider.forget_message(agent, scope, which)
    )
    if not gone:
        refuse("nothing is stored of that message, or it was forgotten before")
    echo(f"forgotten in {gone} rows")


def export(
    agent: Agent,
    scope: Scope,
    file: Annotated[Path | None, typer.Argument(help="Standard output without one.")] = None,
    database: Database = None,
    store: Store = DEFAULT_STORE,
) -> None:
    """Write everything of a scope as lines of JSON."""
    rows = on_store(database, store, lambda provider, _: provider.export(agent, scope))
    head: JSONObject = {_HEAD: FORMAT, "agent": agent, "scope": scope, "rows": len(rows)}
    lines = [as_line(row) for row in [head, *rows]]
    if file is None:
        write_lines(lines)
        return
    try:
        file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    except OSError as error:
        refuse(f"{file} cannot be written: {error.strerror}")
    echo(f"{len(rows)} rows written to {file}", err=True)


def import_(
    file: Annotated[Path, typer.Argument(help="What `export` wrote.", exists=True, dir_okay=False)],
    agent: Annotated[str, typer.Option("--agent", "-a", help="By default the file's.")] = "",
    scope: Annotated[str, typer.Option("--scope", "-s", help="By default the file's.")] = "",
    database: Database = None,
    store: Store = DEFAULT_STORE,
) -> None:
    """Put an export into an empty scope, exactly as it was."""

    async def put(provider: TransactionalProvider, _: str) -> str:
        head, *rows = _read(file)
        if head.get("rows", len(rows)) != len(rows):  # older exports do not say
            raise ConfigurationError(
                f"{file} holds {len(rows)} rows of {head['rows']}: it is not whole"
            )
        to = (agent or str(head["agent"]), scope or str(head["scope"]))
        return f"{await provider.restore(*to, rows)} rows put into {to[0]}, {to[1]}"

    echo(on_store(database, store, put))


def _read(file: Path) -> list[JSONObject]:
    rows = list(_lines(file))
    names = (rows[0].get("agent"), rows[0].get("scope")) if rows else ()
    if not rows or rows[0].get(_HEAD) != FORMAT or not all(isinstance(name, str) for name in names):
        raise ConfigurationError(
            f"{file} does not begin as an export of this version ({_HEAD} {FORMAT})"
        )
    return rows


def _lines(file: Path) -> Iterator[JSONObject]:
    with file.open("rb") as lines:  # a line that is no UTF-8 is no JSON either
        for number, line in enumerate(lines, 1):
            try:
                row: Any = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise ConfigurationError(f"{file}, line {number} is no JSON") from error
            if not isinstance(row, dict):
                raise ConfigurationError(f"{file}, line {number} is no JSON object")
            yield cast(JSONObject, row)


async def _what_temporal_keeps() -> str:
    """Say for how long Temporal still has what was said; asks the server if one answers."""
    try:
        days = await retention_days(await connect())
    except ConfigurationError:
        how_long = "the retention time of its namespace (3 days unless it was set otherwise)"
    else:
        how_long = f"{days:g} days, its namespace's retention time"
    return (
        "Temporal still has the histories of this scope's sessions and dreams: running ones until "
        f"they end, ended ones for {how_long}. `temporal workflow delete` removes one at once. "
        "Backups of the database and logs are yours to look after."
    )
