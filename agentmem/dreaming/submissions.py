"""Reading what a model hands in: arguments of a submit tool, or JSON somewhere in its text.

What is right is kept and what is wrong is named, item by item. A field that only code may fill is
dropped, a field of a wrong type falls back to its default: what matters is checked by the rules.
"""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from pydantic import ValidationError

from agentmem.contracts import PhaseName
from agentmem.dreaming.changes import Change, Finding, Orientation
from agentmem.dreaming.tools import MAX_CHANGES, MAX_FINDINGS
from agentmem.wire import JSONObject, Wire

Model = TypeVar("Model", bound=Wire)

# Raw line breaks inside strings are a common slip, and harmless.
_DECODER = json.JSONDecoder(strict=False)

_ORIENTATION = frozenset({"topics", "duplicates", "contradictions", "stale", "too_long"})
_RESTING = frozenset({"evidence", "quote", "agreed", "about", "happened", "until", "importance"})
_FINDING = _RESTING | {"kind", "statement", "keys"}
_CHANGE = _RESTING | {"op", "key", "value", "sources", "by", "reason", "findings"}
_LISTS = frozenset({"topics", "keys", "evidence", "sources", "findings", "too_long"})

_PLACES = 1_000
"""Braces of a text at which an object is looked for; a million of them would take minutes."""


@dataclass(kw_only=True)
class HandIn:
    """The content that a model handed in, as far as it can be read.

    Attributes:
        orientation: Of orient.
        findings: Of gather_signal.
        changes: Of consolidate and prune.
        summary: What was done, in the model's words.
        problems: What could not be read, a line for each item.
    """

    orientation: Orientation = field(default_factory=Orientation)
    findings: list[Finding] = field(default_factory=list[Finding])
    changes: list[Change] = field(default_factory=list[Change])
    summary: str = ""
    problems: list[str] = field(default_factory=list[str])

    @property
    def usable(self) -> bool:
        """Tell if anything in it can be used; an empty list is an answer, and can be used."""
        return not self.problems or bool(self.findings or self.changes)


class Unreadable(ValueError):
    """A hand-in that is none; the message says to the model what is missing."""


def read_hand_in(phase: PhaseName, data: JSONObject) -> HandIn:
    """Read the arguments of a phase's submit tool.

    Raises:
        Unreadable: What the phase is about is missing. An empty list is an answer, none is not.
    """
    if phase == "orient":
        return HandIn(orientation=_orientation(data))
    if phase == "gather_signal":
        items = _items(data, "findings")
        found = HandIn()
        for number, item in enumerate(items[:MAX_FINDINGS], 1):
            _keep(_lenient(Finding, item, _FINDING), found.findings, found, f"finding {number}")
    else:
        # Prune may end with a summary alone; elsewhere another name of the list would be lost.
        summed_up = phase == "prune" and "changes" not in data and data.get("summary")
        items = [] if summed_up else _items(data, "changes")
        found = HandIn(summary=str(data.get("summary") or ""))
        for number, item in enumerate(items[:MAX_CHANGES], 1):
            _keep(read_change(item), found.changes, found, f"change {number}")
    most = MAX_FINDINGS if phase == "gather_signal" else MAX_CHANGES
    if len(items) > most:
        found.problems.append(
            f"{len(items) - most} of {len(items)} are over the limit of {most}; hand them in now"
        )
    return found


def read_text(phase: PhaseName, text: str) -> HandIn | None:
    """Read a hand-in out of a text: its last JSON object that is one; None without any.

    Models draft in their text before they hand in, so what comes last counts.
    """
    last: HandIn | None = None
    for data in objects_in(text):
        if _is_about(phase, inner := inside(data)):
            try:
                last = read_hand_in(phase, inner)
            except Unreadable:
                continue
    return last


def inside(data: JSONObject) -> JSONObject:
    """Return the arguments of a call that was written instead of made, else the object itself."""
    for name in ("function", "arguments", "parameters", "input"):
        inner = data.get(name)
        if isinstance(inner, str):
            inner = next(objects_in(inner), None)
        if isinstance(inner, dict):
            return inside(cast("JSONObject", inner))
    return data


def read_change(data: Any) -> Change | str:
    """Read one change; a text says what is wrong with it."""
    return _lenient(Change, data, _CHANGE)


def texts(value: Any) -> list[str]:
    """Read a list of texts; a single text counts as one."""
    found = cast("list[object]", value) if isinstance(value, list) else [value]
    return [item for item in found if isinstance(item, str) and item.strip()]


def objects_in(text: str) -> Iterator[JSONObject]:
    """Yield each JSON object of a text, the outermost of each place, in order."""
    at = text.find("{")
    for _ in range(_PLACES):
        if at < 0:
            return
        try:
            found, end = _DECODER.raw_decode(text, at)
            yield cast("JSONObject", found)
        except (ValueError, RecursionError):
            end = at + 1
        at = text.find("{", end)


def _is_about(phase: PhaseName, data: JSONObject) -> bool:
    wanted = {"orient": _ORIENTATION, "gather_signal": {"findings"}}
    return any(name in data for name in wanted.get(phase, {"changes", "summary"}))


def _items(data: JSONObject, name: str) -> list[Any]:
    items = data.get(name)
    if not isinstance(items, list):
        raise Unreadable(f"{name} is missing; hand in an empty list if there is nothing")
    return cast("list[Any]", items)


def _keep(read: Model | str, kept: list[Model], found: HandIn, what: str) -> None:
    if isinstance(read, str):
        found.problems.append(f"{what}: {read}")
    else:
        kept.append(read)


def _orientation(data: JSONObject) -> Orientation:
    fields = {name: data[name] for name in _ORIENTATION & data.keys()}
    for name, item in (("contradictions", "keys"), ("stale", "key")):
        fields[name] = [
            {item: entry} if not isinstance(entry, dict) else entry
            for entry in (cast("list[Any]", fields.get(name)) or [])
        ]
    read = _lenient(Orientation, fields, _ORIENTATION)
    return read if isinstance(read, Orientation) else Orientation()


def _lenient(model: type[Model], data: Any, names: frozenset[str]) -> Model | str:
    """Read what can be read of a model; a text says why it cannot be one."""
    if not isinstance(data, Mapping):
        return "not an object"
    fields = {
        name: _coerced(name, value)
        for name, value in cast("Mapping[str, Any]", data).items()
        if name in names and value not in (None, "")
    }
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        wrong = {str(problem["loc"][0]) for problem in error.errors()}
    try:
        return model.model_validate({n: v for n, v in fields.items() if n not in wrong})
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        given = fields.get(str(problem["loc"][0]))
        return f"{problem['loc'][0]}: {f'unknown {given!r:.60}' if given else 'missing'}"


def _coerced(name: str, value: Any) -> Any:
    if name in _LISTS:
        return texts(value)
    if name == "importance" and isinstance(value, int | float) and math.isfinite(value):
        return min(5, max(1, round(value)))
    return value
