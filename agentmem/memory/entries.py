"""Messages as people and code see them: entries with an id, a role and a content.

A model's reply is one message. As entries it shows as up to three, `reasoning`, `assistant` and
`tool_call`, which share its id; the contents of the last two roles and of `tool_result` are JSON.
"""

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ValidationError

from agentmem.contracts.calls import PAGE_BYTES
from agentmem.errors import InvalidInput
from agentmem.inputs import MESSAGE_BYTES
from agentmem.messages import Message, Role, ToolCall
from agentmem.values import JSONObject, JSONValue, clip, dump_json, encoded_size

Entry = dict[str, str]


def entries(message: Message) -> list[Entry]:
    """Show a message as its entries, in the order in which a model made them."""
    if message.role is Role.TOOL_RESULT:
        output = {"call_id": message.call, "name": message.name, "output": message.text}
        return [_entry(message, "tool_result", dump_json(output))]
    shown: list[Entry] = []
    if message.reasoning:
        shown.append(_entry(message, "reasoning", dump_json(_reasoning(message))))
    if message.text or not (message.calls or message.reasoning):
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


def parse_entry(role: str, content: str, number: int, given: dict[str, str]) -> JSONObject:
    """Read an entry that code memorizes into the fields of a message.

    Args:
        role: `user`, `assistant`, `tool_call` or `tool_result`.
        content: The text, or JSON as `entries` shows it.
        number: The message's number, which places the calls of a `tool_call`.
        given: Call ids as the caller wrote them, to our own; calls are added to it.

    Raises:
        InvalidInput: The role is none of these, the content is no text, empty or over 1 MiB, or
            the JSON is not such.
    """
    _refuse_unsendable(content, role)
    if role in ("user", "assistant"):
        if not content.strip():
            raise InvalidInput(f"a {role} message has no text; no model takes an empty message")
        return {"role": Role(role), "content": content}
    try:
        if role == "tool_call":
            calls = _Calls.model_validate_json(content).calls
            made = [_place(call, f"t0.s{number}.c{i}", given) for i, call in enumerate(calls)]
            return {"role": Role.ASSISTANT, "calls": made}
        if role == "tool_result":
            result = _Result.model_validate_json(content)
            text = result.output if isinstance(result.output, str) else dump_json(result.output)
            call = given.get(result.call_id, result.call_id)
            return {"role": Role.TOOL_RESULT, "content": text, "call": call, "name": result.name}
    except ValidationError as error:
        raise InvalidInput(f"this is not the JSON of a {role} message: {error}") from error
    raise InvalidInput(
        f"role {role!r} is unknown; use user, assistant, tool_call or tool_result "
        "(a system prompt belongs to the agent)"
    )


def _refuse_unsendable(content: object, role: str) -> None:
    if not isinstance(content, str):
        raise InvalidInput(f"a {role} message takes text, got {type(content).__name__}")
    size = encoded_size(content)
    if size > MESSAGE_BYTES:
        raise InvalidInput(
            f"a {role} message of {size} bytes encoded; the limit is {MESSAGE_BYTES}"
        )
    if not content.isascii() and any("\ud800" <= char <= "\udfff" for char in content):
        raise InvalidInput(f"a {role} message with half of a surrogate pair, which is no text")


def _place(call: _Call, position: str, given: dict[str, str]) -> ToolCall:
    given[call.id] = position
    return ToolCall(id=position, name=call.name, arguments=call.arguments)
