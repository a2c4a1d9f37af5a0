"""Answers in a form: the least that keeps a JSON schema, and says of itself that it is none."""

from __future__ import annotations

import math
from typing import Any, cast

from agentmem.models.plain import as_list, as_mapping
from agentmem.values import JSONObject, JSONValue

__all__ = ["STAND_IN", "stand_in"]

STAND_IN = "(offline stand-in, no answer)"
"""The value that each free text gets."""

_DEPTH = 32
_FORMATS = {
    "date-time": "2000-01-01T00:00:00Z",
    "date": "2000-01-01",
    "time": "00:00:00Z",
    "duration": "PT0S",
    "email": "offline@example.com",
    "uri": "https://example.com/",
    "uuid": "00000000-0000-4000-8000-000000000000",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
}


def stand_in(schema: JSONObject) -> JSONValue:
    """Return a value for a JSON schema: required fields only, the first of several choices.

    A `pattern` is kept only where `examples`, `enum` or `const` have a text for it; no schema is
    kept that asks for unlike items or contains itself for ever.
    """
    return _value(schema, schema, _DEPTH)


def _value(schema: Any, root: JSONObject, depth: int) -> JSONValue:
    if not isinstance(schema, dict) or depth == 0:
        return None
    node = _settled(as_mapping(cast("object", schema)), root, depth)
    if "const" in node:
        return node["const"]
    for word in ("enum", "examples"):
        if node.get(word):
            return node[word][0]
    kind = _kind(node)
    if kind == "object":
        fields, other = node.get("properties", {}), node.get("additionalProperties", {})
        required = node.get("required", [])
        return {name: _value(fields.get(name, other), root, depth - 1) for name in required}
    if kind == "array":
        first, rest = node.get("prefixItems", []), node.get("items", {})
        count = range(node.get("minItems", 0))
        return [_value(first[n] if n < len(first) else rest, root, depth - 1) for n in count]
    if kind in ("integer", "number"):
        return _number(node, whole=kind == "integer")
    return {"boolean": False, "null": None}.get(kind) if kind != "string" else _text(node)


def _settled(node: JSONObject, root: JSONObject, depth: int) -> JSONObject:
    """Return a schema without references and choices."""
    parts = list(node.get("allOf", []))
    parts += [node[word][0] for word in ("anyOf", "oneOf") if node.get(word)]
    if "$ref" in node:
        parts.append(_referred(node["$ref"], root))
    settled = {k: v for k, v in node.items() if k not in ("allOf", "anyOf", "oneOf", "$ref")}
    for part in map(as_mapping, parts if depth else ()):
        inner = _settled(part, root, depth - 1)
        fields = {**inner.get("properties", {}), **settled.get("properties", {})}
        required = [*settled.get("required", []), *inner.get("required", [])]
        settled = {**inner, **settled}
        settled |= {"properties": fields} if fields else {}
        settled |= {"required": list(dict.fromkeys(required))} if required else {}
    return settled


def _referred(reference: str, root: JSONObject) -> Any:
    found: Any = root
    for part in reference.removeprefix("#").split("/")[1:]:
        found = as_mapping(found).get(part.replace("~1", "/").replace("~0", "~"))
    return found


def _kind(node: JSONObject) -> str:
    kind: Any = node.get("type")
    for one in as_list(kind) or [kind]:
        if isinstance(one, str):
            return one
    for word, meant in (("properties", "object"), ("required", "object"), ("items", "array")):
        if word in node:
            return meant
    return "integer" if "minimum" in node or "maximum" in node else "string"


def _text(node: JSONObject) -> str:
    text = _FORMATS.get(str(node.get("format")), STAND_IN)
    return text.ljust(node.get("minLength", 0), ".")[: node.get("maxLength")]


def _number(node: JSONObject, *, whole: bool) -> float | int:
    step = node.get("multipleOf") or (1 if whole else 0)
    least = max(node.get("minimum", -math.inf), node.get("exclusiveMinimum", -math.inf))
    most = min(node.get("maximum", math.inf), node.get("exclusiveMaximum", math.inf))
    number = min(max(0, least), most)
    if number in (node.get("exclusiveMinimum"), node.get("exclusiveMaximum")):
        between = (least + most) / 2 if math.isfinite(least + most) else number + 1
        number = between if number == least else number - 1
    if step:
        number = math.ceil(number / step) * step
        number = number + step if number == node.get("exclusiveMinimum") else number
    return int(number) if whole else number
