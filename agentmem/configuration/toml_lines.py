"""Where a field stands in a TOML file: the standard parser keeps no line numbers."""

import tomllib
from collections.abc import Iterator, Sequence
from typing import Any


def line_of(text: str, path: Sequence[str]) -> int:
    """Return the line, from 1, of the statement that names most of a field's path.

    Args:
        text: A file that parses as TOML.
        path: The field's keys from the top: `("agents", "assistant", "model")`.
    """
    line, most = 1, 0
    for start, keys, value in _statements(text):
        depth = _shared(keys, path)
        if depth == len(keys):
            depth += _inside(value, path[depth:])
        if depth > most:
            line, most = start, depth
    return line


def _statements(text: str) -> Iterator[tuple[int, list[str], Any]]:
    """Yield each statement's first line, its full key and its value; {} for a header.

    A statement is the fewest lines that parse alone: an open string or array does not.
    """
    lines = text.splitlines(keepends=True)
    table: list[str] = []
    start = 0
    for end in range(1, len(lines) + 1):
        statement = "".join(lines[start:end])
        try:
            parsed = tomllib.loads(statement)
        except tomllib.TOMLDecodeError:
            continue
        if parsed:
            keys, value = _only_key(parsed)
            header = statement.lstrip().startswith("[")
            table = keys if header else table
            yield start + 1, keys if header else [*table, *keys], {} if header else value
        start = end


def _only_key(parsed: dict[str, Any]) -> tuple[list[str], Any]:
    keys: list[str] = []
    value: Any = parsed
    while isinstance(value, dict) and len(value) == 1:  # pyright: ignore[reportUnknownArgumentType]
        [(key, value)] = value.items()  # pyright: ignore[reportUnknownVariableType]
        keys.append(str(key))  # pyright: ignore[reportUnknownArgumentType]
    return keys, value  # pyright: ignore[reportUnknownVariableType]


def _shared(keys: Sequence[str], path: Sequence[str]) -> int:
    shared = 0
    while shared < min(len(keys), len(path)) and keys[shared] == path[shared]:
        shared += 1
    return shared


def _inside(value: Any, path: Sequence[str]) -> int:
    depth = 0
    while depth < len(path) and isinstance(value, dict) and path[depth] in value:
        value = value[path[depth]]  # pyright: ignore[reportUnknownVariableType]
        depth += 1
    return depth
