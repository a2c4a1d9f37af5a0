"""Facts and their history on a terminal: safe to show, whatever they hold."""

import sys
from collections.abc import Iterable, Sequence
from datetime import datetime

from rich.console import Console
from rich.table import Table
from rich.text import Text

from agentmem.facts import Evidence, Fact
from agentmem.journal import FactVersion
from agentmem.values import JSONObject, dump_json, printable

_VALUE_CHARACTERS = 300


def console() -> Console:
    """Return where people read: as wide as the terminal, or wide enough in a file."""
    return Console(width=None if sys.stdout.isatty() else 160, highlight=False)


def facts_table(facts: Iterable[Fact], title: str) -> Table:
    """Return a table of facts, a row each."""
    table = _table(title, "key", "value", "said", "trust", "version", "")
    for fact in facts:
        mark = "pinned" if fact.pinned else ""
        row = (fact.key, _value(fact), _day(fact.said_at or fact.recorded_at), fact.trust)
        table.add_row(*map(_safe, (*row, str(fact.version), mark)))
    return table


def history_table(versions: Sequence[FactVersion], title: str) -> Table:
    """Return a table of a key's versions, the newest first, each with its quotes."""
    table = _table(title, "written", "what", "by", "rests on", "undo")
    for one in reversed(versions):
        what = "removed" if one.op == "remove" else _value(one)
        if one.replaced_by:
            what += f" (kept in {one.replaced_by})"
        if one.reason:
            what += f"\n{one.reason}"
        by = f"{one.writer}, {one.trust}"
        quotes = "\n".join(map(_quote, one.evidence))
        table.add_row(*map(_safe, (_moment(one.recorded_at), what, by, quotes, one.change)))
    return table


def evidence_table(facts: Sequence[Fact], title: str) -> Table:
    """Return a table of facts and what each rests on."""
    table = _table(title, "key", "value", "rests on")
    for fact in facts:
        quotes = "\n".join(map(_quote, fact.evidence))
        table.add_row(*map(_safe, (fact.key, _value(fact), quotes)))
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


def _value(fact: Fact) -> str:
    text = fact.value if isinstance(fact.value, str) else dump_json(fact.value)
    over = len(text) - _VALUE_CHARACTERS
    return text if over <= 0 else f"{text[:_VALUE_CHARACTERS]}... ({over} more)"


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
