"""The tool calls of a reply: placed by their position, with arguments that are always an object."""

import json
from collections.abc import Collection
from typing import Any, cast

from agentmem.messages import ToolCall
from agentmem.models.plain import as_mapping, objects, plain
from agentmem.models.reasoning import read_call_fields
from agentmem.values import JSONObject, printable

MOST_CALLS = 128
"""Calls of one reply that are kept; no turn may run that many."""

MOST_ARGUMENT_BYTES = 256 * 1024
NAME_CHARACTERS = 128
_DEPTH = 64

CUT_OFF = "the call was cut off at the reply's limit of {tokens} tokens; send it again, shorter"


def read_calls(message: JSONObject, position: str) -> list[ToolCall]:
    """Return the tool calls of a reply's message.

    Ids are positions (`t3.s1.c0`): a model's own may be missing or stand twice. Missing, empty
    and null arguments are an empty object. A call whose arguments are anything but an object
    has a `problem`, in words for the model, and must not run. Control characters in a name, which
    no store may take, become `?`.

    Args:
        message: In OpenAI's form.
        position: The turn and step of the reply, `t3.s1`.
    """
    calls = objects(message.get("tool_calls"))
    if not calls and message.get("function_call"):  # the form before tools, still in use
        calls = [{"function": message["function_call"]}]
    return [_call(call, f"{position}.c{place}") for place, call in enumerate(calls[:MOST_CALLS])]


def call_in_text(text: str, tools: Collection[str], position: str) -> list[ToolCall]:
    """Return the call that a model wrote as its text, as small models do.

    Only where the whole text is a JSON object with the name of an offered tool and its arguments
    (`arguments` or `parameters`), and nothing else: a call inside a sentence, in a fence, or of an
    unknown tool is text.
    """
    stripped = text.strip()
    if not (stripped.startswith("{") and stripped.endswith("}")):
        return []
    try:
        found = as_mapping(json.loads(stripped))
    except (ValueError, RecursionError):
        return []
    rest = {name: value for name, value in found.items() if name not in ("name", "type")}
    if found.get("name") not in tools or set(rest) not in ({"arguments"}, {"parameters"}):
        return []
    function = {"name": found["name"], "arguments": next(iter(rest.values()))}
    return [_call({"function": function}, f"{position}.c0")]


def _call(call: JSONObject, place: str) -> ToolCall:
    function = as_mapping(call.get("function"))
    arguments, problem = _arguments(function.get("arguments"))
    return ToolCall(
        id=place,
        name=printable(str(function.get("name") or "")[:NAME_CHARACTERS]),
        arguments=arguments,
        problem=problem,
        fields=read_call_fields(call),
    )


def _arguments(value: object) -> tuple[JSONObject, str]:
    if value is None or (isinstance(value, str) and value.strip() in ("", "null")):
        return {}, ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if len(text.encode("utf-8", "replace")) > MOST_ARGUMENT_BYTES:
        return {}, f"the arguments are larger than {MOST_ARGUMENT_BYTES} bytes; send less"
    try:
        parsed: Any = json.loads(text, parse_constant=_refuse)
        if isinstance(parsed, str) and parsed.lstrip().startswith("{"):  # encoded twice
            parsed = json.loads(parsed, parse_constant=_refuse)
    except RecursionError:
        return {}, "the arguments are nested too deeply"
    except ValueError as error:
        return {}, f"the arguments are not valid JSON ({error}); send the call again"
    if not isinstance(parsed, dict):
        return {}, f"a JSON object is expected as the arguments, not {text:.40}; send it again"
    if _too_deep(cast("JSONObject", parsed), _DEPTH):
        return {}, f"the arguments are nested more than {_DEPTH} deep"
    return plain(parsed), ""


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _too_deep(value: object, room: int) -> bool:
    if isinstance(value, dict):
        inner = list(cast("JSONObject", value).values())
    elif isinstance(value, list):
        inner = cast("list[Any]", value)
    else:
        return False
    return room == 0 or any(_too_deep(item, room - 1) for item in inner)
