"""Messages as people and code see them: entries with an id, a role and a content.

A model's reply is one message. As entries it shows as up to three, `reasoning`, `assistant` and
`tool_call`, which share its id; the contents of the last two roles and of `tool_result` are JSON.
"""

import json
from typing import Any

from agentmem.errors import InvalidInput
from agentmem.messages import Message, Role, ToolCall
from agentmem.values import JSONObject, dump_json

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


def parse_entry(role: str, content: str, number: int) -> JSONObject:
    """Read an entry that code memorizes into the fields of a message.

    Args:
        role: `user`, `assistant`, `tool_call` or `tool_result`.
        content: The text, or JSON as `entries` shows it.
        number: The message's number, which places the calls of a `tool_call`.

    Raises:
        InvalidInput: The role is none of these, or the content is not such JSON.
    """
    if role in ("user", "assistant"):
        if not content.strip():
            raise InvalidInput(f"a {role} message has no text; no model takes an empty message")
        return {"role": Role(role), "content": content}
    if role == "tool_call":
        calls = _json(role, content).get("calls")
        if not isinstance(calls, list) or not calls:
            raise InvalidInput('a tool_call message is JSON like {"calls": [{"id", "name", ...}]}')
        made = [_call(call, f"t0.s{number}.c{i}") for i, call in enumerate(calls)]  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        return {"role": Role.ASSISTANT, "calls": made}
    if role == "tool_result":
        result = _json(role, content)
        return {
            "role": Role.TOOL_RESULT,
            "content": str(result.get("output") or "null"),
            "call": str(result.get("call_id") or ""),
            "name": str(result.get("name") or ""),
        }
    raise InvalidInput(
        f"role {role!r} is unknown; use user, assistant, tool_call or tool_result "
        "(a system prompt belongs to the agent)"
    )


def _call(call: Any, position: str) -> ToolCall:
    if not isinstance(call, dict) or not call.get("name"):  # pyright: ignore[reportUnknownMemberType]
        raise InvalidInput('each of "calls" is an object with "id", "name" and "arguments"')
    data: JSONObject = call
    arguments = data.get("arguments") or {}
    given = str(data.get("id") or position)
    return ToolCall(
        id=position, name=str(data["name"]), arguments=arguments, fields={"given_id": given}
    )


def _json(role: str, content: str) -> JSONObject:
    try:
        value = json.loads(content)
    except ValueError as error:
        raise InvalidInput(f"a {role} message is JSON, this is not: {error}") from error
    if not isinstance(value, dict):
        raise InvalidInput(f"a {role} message is a JSON object")
    return value  # pyright: ignore[reportUnknownVariableType]
