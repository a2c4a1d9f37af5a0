"""The demo's screen: titles, rows of who says what, tables, checks."""

from contextlib import AbstractContextManager
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

COLUMNS = 100


class Screen:
    """Writes on the terminal; plain text of 100 columns where it is none.

    Args:
        checking: Whether `check` shows and counts what it is given.

    Attributes:
        failed: What did not hold.
    """

    def __init__(self, *, checking: bool) -> None:
        console = Console(highlight=False)
        console.width = min(console.width, COLUMNS) if console.is_terminal else COLUMNS
        self._console = console
        self._checking = checking
        self.failed: list[str] = []

    def title(self, text: str) -> None:
        """Begin a part."""
        self._console.print()
        self._console.rule(Text(text, style="bold"), align="left", style="blue")

    def say(self, text: str, style: str = "") -> None:
        """Write a line."""
        self._console.print(Text(text, style=style), soft_wrap=True)

    def row(
        self, name: str, text: str, *, number: str = "", took: str = "", style: str = "blue"
    ) -> None:
        """Write who says what.

        Args:
            name: Who.
            text: What.
            number: The turn's.
            took: What it took.
            style: Of the name.
        """
        grid = Table.grid(padding=(0, 1), expand=True)
        grid.add_column(width=2, justify="right", style="dim")
        grid.add_column(width=13)
        grid.add_column(ratio=1, overflow="fold")
        cells = [number, Text(name, style=style), Text(text)]
        if took:
            grid.add_column(justify="right", no_wrap=True, style="dim")
            cells.append(took)
        grid.add_row(*cells)
        self._console.print(grid)

    def link(self, name: str, address: str) -> None:
        """Write an address on a line of its own, never broken."""
        self._console.print(
            Text(f"   {name:<13} {address}", style=f"link {address}"), soft_wrap=True
        )

    def table(self, title: str, columns: dict[str, int], rows: list[tuple[str, list[str]]]) -> None:
        """Write a table.

        Args:
            title: What it shows.
            columns: Names, each with its share of the width; 0 for one that is never broken.
            rows: Each a style and its cells.
        """
        table = Table(
            title=title, title_justify="left", title_style="bold", expand=True, box=box.SIMPLE_HEAD
        )
        for name, ratio in columns.items():
            table.add_column(name, ratio=ratio or None, no_wrap=not ratio, overflow="fold")
        for style, cells in rows:
            table.add_row(*map(Text, cells), style=style)
        self._console.print(table)

    def check(self, holds: bool, text: str) -> None:
        """Show whether something holds that must, if the demo checks."""
        if not self._checking:
            return
        if holds:
            self.row("ok", text, style="bold green")
        else:
            self.row("FAILED", text, style="bold red")
            self.failed.append(text)

    def waiting(self, text: str) -> AbstractContextManager[Any]:
        """Show on a terminal that something goes on, while the context lasts."""
        return self._console.status(text)
