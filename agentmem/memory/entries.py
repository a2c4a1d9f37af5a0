"""Messages as people and code see them: entries with an id, a role and a content.

A model's reply is one message. As entries it shows as up to three, `reasoning`, `assistant` and
`tool_call`, which share its id; the contents of the last two roles and of `tool_result` are JSON.
"""

import json
import math
from collections.abc import Mapping, Sequence
from types import NoneType
from typing import Any, TypeVar, cast

from pydantic import BaseModel, ValidationError

from agentmem.contracts.calls import PAGE_BYTES
from agentmem.errors import InvalidInput
from agentmem.inputs import MESSAGE_BYTES
from agentmem.messages import CODE_CALLS, IN_CONTENT, THOUGHT, Message, Role, ToolCall
from agentmem.wire import JSONObject, JSONValue, clip, dump_json, encoded_size

Entry = dict[str, str]


def entries(message: Message) -> list[Entry]:
    """Show a message as its entries, in the order in which a model made them."""
    if message.role is Role.TOOL_RESULT:
        output = {"call_id": message.call, "name": message.name, "output": message.text}
        return [_entry(message, "tool_result", dump_json(output))]
    shown: list[Entry] = []
    if message.reasoning:
        shown.append(_entry(message, "reasoning", dump_json(_reasoning(message))))
    if message.text.strip() or not (message.calls or message.reasoning):
        shown.append(_entry(message, message.role.value, message.text))
    if message.calls:
        calls = [{"id": c.id, "name": c.name, "arguments": c.arguments} for c in message.calls]
        shown.append(_entry(message, "tool_call", dump_json({"calls": calls})))
    return shown


def _entry(message: Message, role: str, content: str) -> Entry:
    return {"id": message.id, "role": role, "content": content}


def _reasoning(message: Message) -> JSONObject:
    texts = [str(part.get("thinking") or part.get("text") or "") for part in message.reasoning]
    return {"text": "\n".join(filter(None, texts)), "opaque": message.reasoning}


WHOLE_BYTES = 1_800_000
"""Encoded bytes up to which people are shown a message as it is: over 2 MiB a query fails, and what
stands in quotes inside of quotes takes four times its size."""

_CUT_BYTES = WHOLE_BYTES // 3

PAGE_MESSAGES = 50
"""Messages in one page for people, if they ask for no other number."""


def page(messages: Sequence[Message], args: Sequence[Any]) -> JSONObject:
    """Return a page of a conversation for people, below Temporal's limit for a query's answer.

    Args:
        messages: The whole conversation, oldest first.
        args: `offset` (0) and `limit` (50) as people sent them.

    Returns:
        `messages` (entries; what is too large for an answer is cut), `total`, and `next`: the
        offset of the next page, None at the end.

    Raises:
        InvalidInput: An argument is no whole number of at least 0.
    """
    offset = _number(args, 0, "offset", 0)
    limit = _number(args, 1, "limit", PAGE_MESSAGES)
    shown: list[Entry] = []
    size = 0
    end = offset
    for message in messages[offset : offset + limit]:
        found = _bounded(entries(message))
        size += _size(found)
        if shown and size > PAGE_BYTES:
            break
        shown += found
        end += 1
    return {"messages": shown, "total": len(messages), "next": end if end < len(messages) else None}


def _bounded(found: list[Entry]) -> list[Entry]:
    if _size(found) <= WHOLE_BYTES:
        return found
    return [{**entry, "content": clip(entry["content"], _CUT_BYTES)} for entry in found]


def _size(found: list[Entry]) -> int:
    return sum(encoded_size(entry["content"]) for entry in found)


def _number(args: Sequence[Any], place: int, name: str, default: int) -> int:
    value = args[place] if len(args) > place else default
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise InvalidInput(f"{name} is {value!r}; use a whole number of at least 0")
    return value


class _Call(BaseModel):
    id: str = ""
    name: str
    arguments: JSONObject = {}


class _Calls(BaseModel):
    calls: list[_Call]


class _Result(BaseModel):
    call_id: str
    name: str = ""
    output: JSONValue = None


class _Reasoning(BaseModel):
    text: str = ""
    opaque: list[JSONObject] = []


DEPTH = 70
"""The deepest nesting of JSON in an entry; the arguments of a model's own calls have 64 levels."""

ID_CHARACTERS = 200
"""The longest id of a call: it goes along to each new run."""

_TEXTS = ("user", "assistant", "summary")

_Form = TypeVar("_Form", bound=BaseModel)


def parse_entry(
    role: str, content: str, number: int, given: Mapping[str, str]
) -> tuple[JSONObject, dict[str, str]]:
    """Read an entry that code memorizes into the fields of a message.

    Args:
        role: `user`, `assistant`, `summary`, `reasoning`, `tool_call` or `tool_result`.
        content: The text, or JSON as `entries` shows it.
        number: The message's number, which places the calls of a `tool_call`.
        given: Call ids as the caller wrote them, to our own.

    Returns:
        The fields, and the ids of its own calls as the caller wrote them, to our own.

    Raises:
        InvalidInput: The role is none of these, the content is no text, empty or over 1 MiB, or
            the JSON is not such, or holds what no JSON, store or model takes; the message names
            the place and says what to do.
    """
    _refuse_unsendable(content, role)
    if role in _TEXTS:
        if not content.strip():
            raise InvalidInput(
                f"a {role} message has no text; no model takes an empty message, so leave it out"
            )
        return {"role": Role(role), "content": content}, {}
    if role == "tool_call":
        return _call_fields(_read(_Calls, content, role).calls, number)
    if role == "tool_result":
        result = _read(_Result, content, role)
        text = result.output if isinstance(result.output, str) else dump_json(result.output)
        call = given.get(result.call_id, result.call_id)
        fields = {"role": Role.TOOL_RESULT, "content": text, "call": call, "name": result.name}
        return fields, {}
    if role == "reasoning":
        return {"role": Role.ASSISTANT, "reasoning": _parts(_read(_Reasoning, content, role))}, {}
    raise InvalidInput(
        f"role {role!r:.100} is unknown; use user, assistant, tool_call, tool_result, reasoning or "
        "summary (a system prompt belongs to the agent)"
    )


def refuse_unkeepable(fields: JSONObject, role: str) -> None:
    """Refuse what could not be sent to a worker, or not be read there again.

    Raises:
        InvalidInput: It takes over 1 MiB, or is no message.
    """
    try:
        made = Message.model_validate({"id": "m0", **fields}).model_dump_json()
        Message.model_validate_json(made)
    except ValueError as error:
        raise InvalidInput(f"this is no {role} message: {clip(str(error), 300)}") from None
    size = len(made.encode())
    if size > MESSAGE_BYTES + _FRAME_BYTES:
        raise InvalidInput(
            f"a {role} message of {size} bytes encoded; the limit is {MESSAGE_BYTES}: give less, "
            "or put it where a tool can read it"
        )


_FRAME_BYTES = 4 * 1024  # of a message beside its content


def _refuse_unsendable(content: object, role: str) -> None:
    if not isinstance(content, str):
        raise InvalidInput(f"a {role} message takes text, got {type(content).__name__}")
    # JSON inside of JSON takes up to four times its size: of that the message itself is measured.
    size = encoded_size(content) if role in _TEXTS else len(content) // 4
    if size > MESSAGE_BYTES:
        raise InvalidInput(
            f"a {role} message of {size} bytes encoded; the limit is {MESSAGE_BYTES}: give less, "
            "or put it where a tool can read it"
        )
    if _has_half_pair(content):
        raise InvalidInput(
            f"a {role} message with half of a surrogate pair, which is no text; replace it, by "
            "text.encode('utf-8', 'replace').decode() for example"
        )


def _has_half_pair(text: str) -> bool:
    return not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text)


def _read(form: type[_Form], content: str, role: str) -> _Form:
    """Read the JSON of an entry; whatever is wrong is named by its place."""
    try:
        value: Any = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(
            f"the content of a {role} message is not valid JSON ({clip(str(error), 200)}); give "
            "it as recall() shows it"
        ) from None
    found = _unportable(value)
    if found:
        place = found[0].lstrip(".") or "the content"
        raise InvalidInput(f"a {role} message: {place} {found[1]}")
    try:
        return form.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = _place(first["loc"]).lstrip(".") or "the content"
        raise InvalidInput(
            f"a {role} message: {place}: {first['msg']}; give it as recall() shows it"
        ) from None


def _unportable(value: Any, depth: int = 0) -> tuple[str, str] | None:
    """Find what of a JSON value cannot be sent or kept: its place, and what is wrong with it."""
    if isinstance(value, float) and not math.isfinite(value):
        return "", "is no finite number, and JSON has no other; give null or a text"
    if isinstance(value, str) and _has_half_pair(value):
        return "", "holds half of a surrogate pair, which is no text; replace it"
    if not isinstance(value, dict | list):
        return None
    if depth == DEPTH:
        return "", f"is nested more than {DEPTH} deep; give the inside as text"
    if isinstance(value, list):
        items = enumerate(cast("list[Any]", value))
    else:
        items = cast("dict[str, Any]", value).items()
    for key, item in items:
        if isinstance(key, str) and _has_half_pair(key):
            return "", "has a key with half of a surrogate pair, which is no text; replace it"
        found = _unportable(item, depth + 1)
        if found:
            return _place([key]) + found[0], found[1]
    return None


def _place(loc: Sequence[int | str]) -> str:
    return "".join(f"[{one}]" if isinstance(one, int) else f".{clip(one, 60)}" for one in loc)


def _call_fields(calls: Sequence[_Call], number: int) -> tuple[JSONObject, dict[str, str]]:
    if not calls:
        raise InvalidInput("a tool_call message: calls is empty; give one call at least")
    names: dict[str, str] = {}
    made: list[ToolCall] = []
    for at, call in enumerate(calls):
        if not call.id.strip():
            raise InvalidInput(
                f"a tool_call message: calls[{at}].id is missing; give each call an id, by which "
                "its result can name it"
            )
        if len(call.id) > ID_CHARACTERS:
            raise InvalidInput(
                f"a tool_call message: calls[{at}].id has {len(call.id)} characters, the limit is "
                f"{ID_CHARACTERS}; number the calls instead"
            )
        if call.id in names:
            raise InvalidInput(
                f"a tool_call message: calls[{at}].id is {call.id!r:.100}, which a call before it "
                "has; give each call its own, so that its result is told apart"
            )
        names[call.id] = f"{CODE_CALLS}s{number}.c{at}"
        made.append(ToolCall(id=names[call.id], name=call.name, arguments=call.arguments))
    return {"role": Role.ASSISTANT, "calls": made}, names


_Needs = Mapping[str, tuple[type | tuple[type, ...], bool]]
_NEEDS: Mapping[str, _Needs] = {
    "thinking": {"thinking": (str, False), "signature": ((str, NoneType), False)},
    "redacted_thinking": {"data": (str, True)},
    "reasoning_content": {"text": (str, False)},
    "reasoning_details": {"value": ((list, dict), True)},
    "reasoning_items": {"value": ((list, dict), True)},
    "content": {"part": (dict, True)},
    THOUGHT: {"text": (str, True)},
}
"""Each type of reasoning part with what a provider is sent: the kind of value, and if it must be
there. Parts of other types are sent to none."""


def _parts(reasoning: _Reasoning) -> list[JSONObject]:
    """Return the reasoning parts of an entry as messages hold them."""
    for at, part in enumerate(reasoning.opaque):
        kind = part.get("type")
        wrong = "" if isinstance(kind, str) else "type"
        for name, (wanted, must) in _NEEDS.get(str(kind), {}).items():
            if (must or name in part) and not isinstance(part.get(name), wanted):
                wrong = name
        if kind == "thinking" and not wrong and not (part.get("thinking") or part.get("signature")):
            wrong = "thinking"
        if kind == "content" and not wrong and part["part"].get("type") not in IN_CONTENT:
            wrong = "part.type"
        if wrong:
            raise InvalidInput(
                f"a reasoning message: opaque[{at}].{wrong} is missing or of another kind; give "
                "opaque as recall() shows it, or text alone"
            )
    parts = list(reasoning.opaque)
    if not parts and reasoning.text.strip():
        parts = [{"type": "reasoning_content", "text": reasoning.text}]
    if not parts:
        raise InvalidInput("a reasoning message has neither text nor opaque parts; leave it out")
    return parts
