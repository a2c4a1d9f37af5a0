"""Which tools the offline model calls: those that a request names, with what it names for them."""

# ruff: noqa: RUF001 - punctuation of other scripts is meant

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any, NamedTuple

from agentmem.dreaming.named_dates import absolute
from agentmem.dreaming.text import content, fold
from agentmem.dreaming.timewords import relative
from agentmem.values import JSONObject


class Call(NamedTuple):
    """A tool call."""

    name: str
    arguments: JSONObject


def _regex(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_ORDERS = _regex(r"(?:please|can you|could you|would you)\b|.*[?？؟]\W*$|(?:what|how|when|where)\b")
_FOLLOWS = _regex(r"(?:and|what about|how about)\b")
_DULL = set(content("get fetch find search show list look tool run do current"))

_TIMES = _regex(r"(?:.*_)?(?:date|day|when|time)")
_WORDY = _regex(r"(?:.*_)?(?:query|question|text|message|topic|expression|title|note|task|content)")
_CODES = _regex(r".*(?:_id|id|number|code|reference)")
_ENDS = {"from": _regex(r"from|origin|source|start"), "to": _regex(r"to|dest|target|recipient")}
_NUMBERS = ("integer", "number")
_NAME = r"[^\W\da-z_][\w'-]*(?: [^\W\da-z_][\w'-]*)*"
_NAMES = re.compile(rf"\b(?:in|for|at|of|about|near|to) ({_NAME}(?:(?:, and |, | and ){_NAME})*)")
_SOME_DAY = date(2000, 1, 1)  # time words go to a tool as they were said


def asked_calls(
    sentence: str, tools: Mapping[str, JSONObject], last: Call | None = None
) -> list[Call]:
    """Return the calls that a sentence asks for, one for each name in it (Oslo and Bergen).

    Args:
        sentence: A sentence of the user's.
        tools: The user's tools by name, as they were declared.
        last: The call before, which "and in Bergen?" asks for again.
    """
    name, opens = _named(sentence, tools)
    if name and (opens or _ORDERS.match(sentence)):
        return list(_filled(tools[name], sentence, {}))
    if last and last.name in tools and _FOLLOWS.match(sentence):
        calls = list(_filled(tools[last.name], sentence, last.arguments))
        return [call for call in calls if call.arguments != last.arguments]
    return []


def _named(sentence: str, tools: Mapping[str, JSONObject]) -> tuple[str, bool]:
    """Return the tool half of whose name a sentence holds, and whether it opens with that."""
    words = content(sentence)
    first = next((word for word in words if word not in _DULL), "")
    best, most = "", 0.0
    for name in tools:
        parts = set(content(re.sub(r"[\W_]|(?<=[a-z])(?=[A-Z])", " ", name))) - _DULL
        share = len(parts & set(words)) / len(parts) if parts else 0.0
        if share >= 0.5 and share > most:
            best, most = name, share
    return best, bool(best) and first in content(best.replace("_", " "))


def _filled(tool: JSONObject, sentence: str, given: JSONObject) -> Iterator[Call]:
    """Yield calls with each parameter that the sentence names; none if a required one lacks."""
    schema: JSONObject = tool.get("parameters") or {}
    specs: dict[str, JSONObject] = schema.get("properties") or {}
    found = {name: _values(name, spec, sentence) for name, spec in specs.items()}
    counted = [name for name, values in found.items() if values and not isinstance(values[0], str)]
    for place, name in enumerate(counted):  # the second number is the second parameter's
        found[name] = found[name][place : place + 1]
    arguments = given | {name: values[0] for name, values in found.items() if values}
    if any(name not in arguments for name in schema.get("required", ())):
        return
    several = next((name for name, values in found.items() if len(values) > 1), None)
    if several is None:
        yield Call(tool["name"], arguments)
    else:
        for value in found[several]:
            yield Call(tool["name"], arguments | {several: value})


def _values(name: str, spec: JSONObject, sentence: str) -> list[Any]:
    """Return what a sentence holds for a parameter, by its type and its name."""
    if "anyOf" in spec:  # an optional one
        shapes: list[JSONObject] = spec["anyOf"]
        spec = next((shape for shape in shapes if shape.get("type") != "null"), spec)
    kind: Any = spec.get("type")
    if "enum" in spec:
        return [value for value in spec["enum"] if fold(str(value)) in fold(sentence)][:1]
    if kind in _NUMBERS:
        found = map(float, re.findall(r"\d+(?:\.\d+)?", sentence))
        return [int(n) if n.is_integer() or kind == "integer" else n for n in found]
    return _texts(name, sentence) if kind == "string" else []


def _texts(name: str, sentence: str) -> list[str]:
    if _TIMES.fullmatch(name):
        times = [*relative(sentence, _SOME_DAY), *absolute(sentence, _SOME_DAY)]
        return [time.words.rstrip(".") for time in times][:1]
    for end, pattern in _ENDS.items():
        if pattern.match(name):
            both = re.search(
                rf"(?:\bfrom )?\b(?P<from>{_NAME}) (?:in)?to (?P<to>{_NAME})", sentence
            )
            one = re.search(rf"\b{end} (?P<{end}>{_NAME})", sentence)
            return [found[end]] if (found := both or one) else []
    if quoted := re.findall(r"[\"“](.+?)[\"”]", sentence):
        return quoted[:1]
    if _CODES.fullmatch(name):
        return re.findall(r"\b[\w-]*\d[\w-]*", sentence)[:1]
    if _WORDY.fullmatch(name):
        return re.findall(r"\b(?:for|about|that says|of|calculate) (.+?)[?.!]*$", sentence)[:1]
    if names := _NAMES.search(sentence):
        return re.split(r", and |, | and ", names[1])
    return re.findall(r"\b(?:in|for|at|of|about|near) ([^?.!,]+)", sentence)[:1]
