"""The text of a docstring that a model reads: the first paragraph, and its `Args:` section."""

import inspect
import re
from typing import Any

# No library for this: docstring-parser drops the texts of all parameters for one line without a
# colon; griffe takes half a second to import and misses an `Args:` that no blank line precedes.
_SECTION = re.compile(r"[A-Z]\w*( \w+)?:$")
_PARAMETER = re.compile(r"\*{0,2}(\w+)\s*(\(.*?\))?:\s*(.*)")


def summary(function: Any) -> str:
    """Return a docstring's first paragraph on one line, empty if there is none."""
    lines: list[str] = []
    for line in (inspect.getdoc(function) or "").splitlines():
        if not line.strip() or _SECTION.match(line):
            break
        lines.append(line.strip())
    return " ".join(lines)


def parameters(function: Any) -> dict[str, str]:
    """Return the texts of a Google-style `Args:` section, by parameter."""
    found: dict[str, str] = {}
    name, margin = "", 0
    for line in _section(inspect.getdoc(function) or ""):
        indent = len(line) - len(line.lstrip())
        match = _PARAMETER.match(line.strip())
        if match and (not found or indent <= margin):
            name, margin = match[1], indent
            found[name] = match[3]
        elif name:
            found[name] = f"{found[name]} {line.strip()}".strip()
    return found


def _section(doc: str) -> list[str]:
    lines = doc.splitlines()
    starts = [i for i, line in enumerate(lines) if line in ("Args:", "Arguments:")]
    if not starts:
        return []
    found: list[str] = []
    for line in lines[starts[0] + 1 :]:
        if line.strip() and not line.startswith(" "):
            break
        if line.strip():
            found.append(line)
    return found
