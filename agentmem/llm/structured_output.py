"""Answers that keep a JSON schema: asking for them, reading them, saying what is wrong."""

import json
import re
from typing import Any

from jsonschema import SchemaError
from jsonschema.protocols import Validator
from jsonschema.validators import Draft202012Validator, validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable

from agentmem.errors import ConfigurationError
from agentmem.wire import JSONObject, as_list, as_mapping, clip, dump_json, objects

SCHEMA_BYTES = 64 * 1024
"""Encoded bytes of a schema: it travels with each model call."""

_PROBLEMS = 5
_PROBLEM_BYTES = 300
_FENCE = re.compile(r"```(?:json)?\s*\n(.*?)\n?\s*```", re.DOTALL | re.IGNORECASE)

IN_WORDS = "Your answer must be JSON alone, without any text around it, that keeps this schema:\n"
REPAIR = (
    "That is not an answer in the form that was asked for: {problem}. Answer again, with JSON "
    "alone, without any text around it, that keeps this schema:\n{schema}"
)


def check_schema(schema: JSONObject) -> None:
    """Check a response format before any model is asked.

    Raises:
        ConfigurationError: It is no JSON schema, or takes over 64 KiB.
    """
    size = len(dump_json(schema).encode())
    if size > SCHEMA_BYTES:
        raise ConfigurationError(
            f"response_format takes {size} bytes encoded, the limit is {SCHEMA_BYTES}"
        )
    try:
        validator_for(schema, default=Draft202012Validator).check_schema(schema)
    except SchemaError as error:
        where = ".".join(map(str, error.absolute_path)) or "its top level"
        raise ConfigurationError(
            f"response_format is no JSON schema: {clip(error.message, 200)} at {where}"
        ) from None


def request_format(schema: JSONObject) -> JSONObject:
    """Return the `response_format` of a request."""
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}


def with_strict(form: JSONObject) -> JSONObject:
    """Return a `response_format` that OpenAI holds its model to, token by token."""
    return {**form, "json_schema": {**as_mapping(form["json_schema"]), "strict": True}}


def in_words(request: JSONObject) -> JSONObject:
    """Return a request that asks for its response format in the system prompt."""
    rest = dict(request)
    schema = as_mapping(rest.pop("response_format")["json_schema"])["schema"]
    text = IN_WORDS + dump_json(schema)
    messages = objects(rest["messages"])
    if messages and messages[0].get("role") == "system":
        first, messages = messages[0], messages[1:]
        text = f"{first['content']}\n\n{text}"
    rest["messages"] = [{"role": "system", "content": text}, *messages]
    return rest


def repair_request(problem: str, schema: JSONObject) -> JSONObject:
    """Return the user's message that asks for an answer once more."""
    return {"role": "user", "content": REPAIR.format(problem=problem, schema=dump_json(schema))}


def read_structured(text: str, schema: JSONObject) -> tuple[str, str]:
    """Return an answer's JSON as text, and what is wrong with it; empty if nothing is.

    The whole text is the JSON, or the one fenced block in it.

    Raises:
        ConfigurationError: The schema refers to what is not in it.
    """
    data, problem = _parsed(text)
    if problem and len(blocks := _FENCE.findall(text)) == 1:
        text = blocks[0]
        data, problem = _parsed(text)
    return text.strip(), problem or _violations(data, schema)


def _parsed(text: str) -> tuple[Any, str]:
    try:
        return json.loads(text, parse_constant=_refuse), ""
    except RecursionError:
        return None, "the JSON is nested too deeply"
    except ValueError as error:
        return None, f"it is not valid JSON ({error})" if text.strip() else "it is empty"


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _violations(data: Any, schema: JSONObject) -> str:
    # Without a registry of its own, the library would fetch a remote reference.
    kind = validator_for(schema, default=Draft202012Validator)
    validator: Validator = kind(schema, registry=Registry())
    try:
        found = [
            f"{'.'.join(map(str, error.absolute_path)) or 'the whole'}: "
            f"{clip(error.message, _PROBLEM_BYTES)}"
            for error, _ in zip(validator.iter_errors(data), range(_PROBLEMS), strict=False)
        ]
    except RecursionError:
        return "the JSON is nested too deeply"
    except Unresolvable as error:
        raise ConfigurationError(f"response_format refers to {error.ref!r}: not in it") from None
    return "; ".join(found)


# What OpenAI's strict mode takes (Structured Outputs, "Supported schemas"); the rest is an error.
_STRICT_WORDS = {
    *("type", "properties", "required", "additionalProperties", "items", "anyOf", "enum", "const"),
    *("$ref", "$defs", "description", "title", "pattern", "format", "multipleOf", "minimum"),
    *("maximum", "exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems"),
}
_STRICT_FORMATS = {
    *("date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"),
}
_STRICT_DEPTH = 10
_STRICT_VALUES = 1_000
_LOOK_AROUND = "(?"


def takes_strict(schema: JSONObject) -> bool:
    """Tell whether OpenAI's strict mode takes a schema.

    Every object must require all of its fields and allow no further ones, every part must have a
    type, and only some of JSON Schema's words are known.
    """
    is_object = schema.get("type") == "object"
    return is_object and _count_values(schema) <= _STRICT_VALUES and _is_strict(schema, 0)


def has_free_fields(node: object) -> bool:
    """Tell whether a schema has an object whose fields are not listed, as a dict has.

    Anthropic's structured outputs take no such object: it would have to be empty.
    """
    here = as_mapping(node)
    if here.get("type") == "object" and not here.get("properties"):
        return True
    if here.get("additionalProperties") not in (None, False) or "patternProperties" in here:
        return True
    return any(map(has_free_fields, [*as_list(node), *here.values()]))


def _is_strict(node: object, depth: int) -> bool:
    here = as_mapping(node)
    if depth > _STRICT_DEPTH or not set(here) <= _STRICT_WORDS:
        return False
    if "$ref" in here:
        return set(here) == {"$ref"} and str(here["$ref"]).startswith("#")
    if not {"type", "anyOf", "enum", "const"} & set(here):
        return False
    if here.get("format", "date") not in _STRICT_FORMATS:
        return False
    if _LOOK_AROUND in str(here.get("pattern", "")):
        return False
    fields = as_mapping(here.get("properties"))
    if _is_object(here) and not _is_closed(here, fields):
        return False
    if here.get("type") == "array" and "items" not in here:
        return False
    deeper = depth + bool(fields)
    inner = [*fields.values(), *as_list(here.get("anyOf"))]
    inner += [here["items"]] if "items" in here else []
    defined = as_mapping(here.get("$defs")).values()
    return all(_is_strict(one, deeper) for one in inner) and all(
        _is_strict(one, 0) for one in defined
    )


def _is_object(node: JSONObject) -> bool:
    kind = node.get("type")
    return kind == "object" or "object" in as_list(kind) or "properties" in node


def _is_closed(node: JSONObject, fields: JSONObject) -> bool:
    further = node.get("additionalProperties")
    return further is False and set(fields) == set(map(str, as_list(node.get("required"))))


def _count_values(node: object) -> int:
    here = as_mapping(node)
    inner = sum(map(_count_values, [*as_list(node), *here.values()]))
    return inner + len(as_list(here.get("enum")))
