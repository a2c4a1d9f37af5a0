"""JSON schemas as every model provider takes them."""

from typing import Any, cast

from agentmem.values import JSONObject

_ONE = {"items", "additionalProperties", "contains", "not", "propertyNames"}
_MANY = {"anyOf", "oneOf", "allOf", "prefixItems"}
_NAMED = {"properties", "patternProperties"}
_DROPPED = {"title", "discriminator", "$defs"}


def plain_schema(schema: JSONObject) -> JSONObject:
    """Return a schema without titles, its references written out in place.

    Several providers and most local models do not follow `$ref`. Only a type that contains
    itself keeps its references, and its definition with them.
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

    def _node(self, node: Any, inside: tuple[str, ...]) -> Any:
        if not isinstance(node, dict):
            return node
        written: JSONObject = {}
        for word, value in cast("JSONObject", node).items():
            if word == "$ref":
                written = self._reference(value, inside) | written
            elif word not in _DROPPED:
                written[word] = self._value(word, value, inside)
        return written

    def _value(self, word: str, value: Any, inside: tuple[str, ...]) -> Any:
        if word in _ONE:
            return self._node(value, inside)
        if word in _MANY:
            return [self._node(item, inside) for item in value]
        if word in _NAMED:
            return {name: self._node(item, inside) for name, item in value.items()}
        return value

    def _reference(self, reference: str, inside: tuple[str, ...]) -> JSONObject:
        name = reference.removeprefix("#/$defs/")
        if name in inside:
            if name not in self._kept:
                self._kept.append(name)
            return {"$ref": reference}
        return self._node(self._definitions[name], (*inside, name))
