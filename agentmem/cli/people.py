"""Who gives a command: the person that the history names."""

import getpass
from typing import Annotated

import typer

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
