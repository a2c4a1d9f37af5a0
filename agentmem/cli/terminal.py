"""The output to a terminal or a pipe, whatever its encoding is."""

import sys
from collections.abc import Iterable
from io import TextIOWrapper


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
