"""JSON schemas inside what every model provider takes."""

from collections.abc import Sequence
from typing import Any, cast

from agentmem.wire import JSONObject, as_list, as_mapping, objects

_SCALARS = ("string", "number", "boolean", "object")

ANYTHING: list[JSONObject] = [
    *({"type": kind} for kind in _SCALARS),
    {"type": "array", "items": {"anyOf": [{"type": kind} for kind in _SCALARS]}},
    {"type": "null"},
]
"""Any JSON, as alternatives: some providers refuse a part of a schema that has no type."""

WORDS = {
    *("type", "description", "default", "enum", "anyOf", "properties", "required", "items"),
    *("additionalProperties", "minItems", "maxItems", "minimum", "maximum", "exclusiveMinimum"),
    *("exclusiveMaximum", "multipleOf", "minLength", "maxLength", "pattern", "format"),
    *("$ref", "$defs"),
}
"""The JSON Schema keywords that are sent. Others bound a value more, as a call's check does too."""

_LOOK_AROUND = "(?"  # no provider's patterns have it

_KINDS: dict[type, str] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    type(None): "null",
}


def plain_schema(schema: JSONObject) -> JSONObject:
    """Return a schema that every provider takes, for the same values or more.

    References are written out in place, as several providers and most local models do not follow
    them; only a type that contains itself keeps its references, and its definition with them.
    There are no titles. Each part has a type or alternatives, each array says what it holds: a
    tuple is an array of any of its types, with a description of its places.
    """
    return _Plain(schema).write()


class _Plain:
    def __init__(self, schema: JSONObject) -> None:
        self._schema = schema
        self._definitions: dict[str, JSONObject] = schema.get("$defs", {})
        self._kept: list[str] = []

    def write(self) -> JSONObject:
        written = self._node(self._schema, ())
        kept: JSONObject = {}
        for name in self._kept:  # grows while definitions are written
            kept[name] = self._node(self._definitions[name], (name,))
        return written | ({"$defs": kept} if kept else {})

    def _node(self, node: object, inside: tuple[str, ...]) -> JSONObject:
        here = _in_common_words(as_mapping(node))
        written: JSONObject = {}
        for word, value in here.items():
            if word == "$ref":
                written = self._reference(value, inside) | written
            elif word in WORDS and word != "$defs":
                written[word] = self._value(word, value, inside)
        return _typed(written)

    def _value(self, word: str, value: Any, inside: tuple[str, ...]) -> Any:
        if word == "items" or (word == "additionalProperties" and as_mapping(value)):
            return self._node(value, inside)
        if word == "anyOf":
            return [self._node(item, inside) for item in value]
        if word == "properties":
            return {name: self._node(item, inside) for name, item in value.items()}
        return value

    def _reference(self, reference: str, inside: tuple[str, ...]) -> JSONObject:
        name = reference.removeprefix("#/$defs/")
        if name in inside:
            if name not in self._kept:
                self._kept.append(name)
            return {"$ref": reference}
        return self._node(self._definitions[name], (*inside, name))


def _in_common_words(node: JSONObject) -> JSONObject:
    """Say in words that all providers know what other words say."""
    here = dict(node)
    if "oneOf" in here:
        here["anyOf"] = [*as_list(here.get("anyOf")), *as_list(here.pop("oneOf"))]
    for part in objects(here.pop("allOf", None)):
        here = part | here
    if "const" in here:
        here["enum"] = [here.pop("const")]
    if patterns := as_mapping(here.get("patternProperties")):
        here["additionalProperties"] = next(iter(patterns.values()))
    if "prefixItems" in here:
        here |= _places(here)
    if _LOOK_AROUND in str(here.get("pattern", "")):
        del here["pattern"]
    kinds = here.get("type")
    if isinstance(kinds, list):
        rest = {name: value for name, value in here.items() if name not in ("type", "description")}
        here = {name: here[name] for name in ("description", "default") if name in here}
        here["anyOf"] = [rest | {"type": kind} for kind in cast("list[object]", kinds)]
    return here


def _places(node: JSONObject) -> JSONObject:
    """Return what replaces the places of a tuple: any of their types, and their order in words."""
    places = objects(node["prefixItems"])
    kinds: list[JSONObject] = []
    for place in places:
        kind = {word: value for word, value in place.items() if word not in ("title", "default")}
        if kind not in kinds:
            kinds.append(kind)
    names = [str(place.get("title") or place.get("type") or "any") for place in places]
    order = f"In this order: {', '.join(names)}."
    return {
        "items": kinds[0] if len(kinds) == 1 else {"anyOf": kinds},
        "description": f"{node.get('description') or ''} {order}".strip(),
    }


def _typed(node: JSONObject) -> JSONObject:
    """Return a part of a schema with a type, or with alternatives that have one."""
    if node.get("type") == "array" and "items" not in node:
        return node | {"items": {"anyOf": ANYTHING}}
    if "type" in node or "anyOf" in node or "$ref" in node:
        return node
    if "properties" in node:
        return node | {"type": "object"}
    values = as_list(node.get("enum"))
    if not values:
        return node | {"anyOf": ANYTHING}
    rest = {word: value for word, value in node.items() if word != "enum"}
    by_kind = _by_kind(values)
    if len(by_kind) == 1:
        return rest | by_kind[0]
    return rest | {"anyOf": by_kind}


def _by_kind(values: Sequence[object]) -> list[JSONObject]:
    kinds: dict[str, list[object]] = {}
    for value in values:
        kinds.setdefault(_KINDS.get(type(value), "object"), []).append(value)
    return [
        {"type": kind} if kind == "null" else {"type": kind, "enum": some}
        for kind, some in kinds.items()
    ]
