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
from agentmem.models.plain import as_list, as_mapping, objects
from agentmem.values import JSONObject, clip, dump_json

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
    """Return the `response_format` of a request.

    `strict`, which OpenAI takes for schemas without optional and further fields only, is set for
    those; for others it would be an error.
    """
    json_schema: JSONObject = {"name": "answer", "schema": schema}
    if _is_closed(schema):
        json_schema["strict"] = True
    return {"type": "json_schema", "json_schema": json_schema}


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


def _is_closed(node: Any) -> bool:
    here = as_mapping(node)
    if here.get("type") == "object" or "properties" in here:
        fields = as_mapping(here.get("properties"))
        if here.get("additionalProperties") is not False:
            return False
        if set(fields) != set(here.get("required", [])):
            return False
    return all(map(_is_closed, [*as_list(node), *here.values()]))
