"""Facts and their history on a terminal or in a pipe, safe to show in any encoding."""

import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from io import TextIOWrapper

from rich.console import Console
from rich.table import Table
from rich.text import Text

from agentmem.facts import Evidence, Fact, FactVersion
from agentmem.memory.recalled_facts import earlier_value
from agentmem.wire import JSONObject, JSONValue, dump_json, printable


def replace_what_cannot_be_shown() -> None:
    """Have both output streams replace characters that their encoding does not have by `?`."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")


def echo(line: str, *, err: bool = False) -> None:
    """Write a line for people; unlike typer's, in the stream's own encoding, ASCII too."""
    stream = sys.stderr if err else sys.stdout
    stream.write(f"{line}\n")


def write_lines(lines: Iterable[str]) -> None:
    """Write lines of JSON to standard output, as UTF-8 always: they lose nothing."""
    sys.stdout.flush()
    for line in lines:
        sys.stdout.buffer.write(f"{line}\n".encode(errors="backslashreplace"))
    sys.stdout.buffer.flush()


_VALUE_CHARACTERS = 300


def console() -> Console:
    """Return where people read: as wide as the terminal, or wide enough in a file."""
    return Console(width=None if sys.stdout.isatty() else 160, highlight=False)


def facts_table(facts: Iterable[Fact], title: str) -> Table:
    """Return a table of facts, a row each."""
    table = _table(title, "key", "value", "said", "trust", "version", "")
    now = datetime.now(UTC)
    for fact in facts:
        said = _day(fact.said_at or fact.recorded_at)
        row = (fact.key, shown(fact.value), said, fact.trust, str(fact.version))
        table.add_row(*map(_safe, (*row, "\n".join(_marks(fact, now)))))
    return table


def history_table(versions: Sequence[FactVersion], title: str) -> Table:
    """Return a table of a key's versions, the newest first, each with its quotes."""
    table = _table(title, "written", "what", "by", "rests on", "undo")
    for one in reversed(versions):
        lines = ["removed" if one.op == "remove" else shown(one.value)]
        if one.replaced_by:
            lines[0] += f" (kept in {one.replaced_by})"
        lines += [one.reason] if one.reason else []
        lines += _states(one, None) if one.op == "set" else []
        what = "\n".join(lines)
        by = f"{one.author or one.writer}, {one.trust}"
        if one.author:
            by = f"{one.writer} {by}"
        quotes = "\n".join(map(_quote, one.evidence))
        table.add_row(*map(_safe, (_moment(one.recorded_at), what, by, quotes, one.change)))
    return table


def evidence_table(facts: Sequence[Fact], title: str) -> Table:
    """Return a table of facts and what each rests on."""
    table = _table(title, "key", "value", "rests on")
    for fact in facts:
        quotes = "\n".join(map(_quote, fact.evidence))
        table.add_row(*map(_safe, (fact.key, shown(fact.value), quotes)))
    return table


def counts_table(counts: dict[str, int], title: str) -> Table:
    """Return a table of numbers by name, those that are 0 left out."""
    table = _table(title, "what", "rows")
    for name, number in counts.items():
        if number:
            table.add_row(name, str(number))
    return table


def lines(rows: Iterable[Fact]) -> Iterable[str]:
    """Return facts or versions as lines of JSON, every field of each."""
    for row in rows:
        shown: JSONObject = row.full()
        yield dump_json(shown)


def _table(title: str, *columns: str) -> Table:
    text = Text(printable(title))
    # As wide as its title, which would be broken otherwise.
    table = Table(title=text, min_width=text.cell_len, title_justify="left", header_style="bold")
    for name in columns:
        table.add_column(name, overflow="fold")
    return table


def shown(value: JSONValue) -> str:
    """Return a value as people read it: text as it is, other JSON as JSON, at most 300 characters.

    What is cut says by how much.
    """
    text = value if isinstance(value, str) else dump_json(value)
    over = len(text) - _VALUE_CHARACTERS
    return text if over <= 0 else f"{text[:_VALUE_CHARACTERS]}... ({over} more)"


def _marks(fact: Fact, now: datetime) -> list[str]:
    return ["pinned"] * fact.pinned + _states(fact, now)


def _states(fact: Fact, now: datetime | None) -> list[str]:
    """Return what else there is to know of a fact: its state, its end, other values.

    Args:
        fact: The fact.
        now: The time, after which an earlier value is shown for 30 days; None shows it in any case.
    """
    found: list[str] = []
    if fact.state == "tentative":
        found += ["not confirmed", *_newest_quote(fact.evidence)]
    if fact.expires_at:
        found.append(f"until {_moment(fact.expires_at)}")
    if new := fact.unconfirmed:
        found += [f"not confirmed: {shown(new.value)}", *_newest_quote(new.evidence)]
        found += [f"until {_moment(new.expires_at)}"] if new.expires_at else []
    if was := fact.was if now is None else earlier_value(fact, now):
        found.append(f"was {shown(was.value)} until {_day(was.replaced_at)}")
    return found


def _newest_quote(evidence: Sequence[Evidence]) -> list[str]:
    quoted = [item for item in evidence if item.quote]
    return [f'"{quoted[-1].quote}" ({quoted[-1].role})'] if quoted else []


def _quote(item: Evidence) -> str:
    said = f": {item.quote}" if item.quote else ""
    return f"{item.role} {_day(item.said_at)} {item.session} {item.memory} {item.message}{said}"


def _day(at: datetime | None) -> str:
    return at.strftime("%Y-%m-%d") if at else ""


def _moment(at: datetime | None) -> str:
    return at.strftime("%Y-%m-%d %H:%M:%SZ") if at else ""


def _safe(text: str) -> Text:
    # A stored text must not move the cursor or colour the screen.
    return Text("\n".join(map(printable, text.split("\n"))))
