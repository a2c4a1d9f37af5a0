"""`agentmem`: what people do with long-term memory from a terminal."""

import typer

from agentmem.cli import memory
from agentmem.cli import privacy as rights
from agentmem.cli import review as decisions
from agentmem.cli.tables import replace_what_cannot_be_shown

app = typer.Typer(
    name="agentmem",
    help="Look after what agents remember. The worker is `python worker.py`.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,  # its tracebacks may show what variables hold
)
app.add_typer(memory.app, name="memory")
decisions.add_to(memory.app)
rights.add_to(memory.app)


@app.callback()
def main() -> None:
    """Look after what agents remember. The worker is `python worker.py`."""


def run() -> None:
    """Run the command; on a terminal that is not UTF-8 some characters are replaced."""
    replace_what_cannot_be_shown()
    app()
