"""From messages to a provider's request, in OpenAI's chat form.

What comes out passes the most demanding provider's rules by construction, whatever goes in, and is
the same bytes whenever the same messages go in:

* one system message, first; then a message of the user: where the assistant opened the
  conversation, a line in the user's place stands before it;
* each call is answered exactly once, right behind it and in order; a call without a result is
  answered by a note;
* call ids are unique and such that every provider takes them; names and arguments are made valid;
* no message is blank; no text holds half of a surrogate pair;
* reasoning and provider fields stand unchanged on the message that they came with, and go to the
  vendor alone that sent them.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType

from agentmem.contracts.calls import ModelCall
from agentmem.errors import InvalidInput
from agentmem.llm.reasoning import content_parts, written
from agentmem.llm.structured_output import repair_request, request_format
from agentmem.llm.vendors import vendor_of
from agentmem.messages import Group, Message, Role, ToolCall, groups
from agentmem.wire import JSONObject, clip, dump_json, encoded_size, objects, plain, plain_text

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_POSITION = re.compile(r"t(\d+)\.s(\d+)\.c(\d+)")
_WIDTHS = (4, 2, 3)


@lru_cache(maxsize=10_000)  # of each call of a conversation, each time that it is sent
def wire_id(call: str) -> str:
    """Return a call's id for providers: nine letters and digits from its position.

    `t3.s1.c0` becomes `000301000`: turn, step and call in base 36, in 4, 2 and 3 digits. What
    does not fit is hashed instead.
    """
    found = _POSITION.fullmatch(call)
    parts = [_base36(int(digits)) for digits in found.groups()] if found else []
    digits = "".join(part.zfill(width) for part, width in zip(parts, _WIDTHS, strict=False))
    return digits if len(digits) == 9 else hashed_id(call)


def hashed_id(text: str) -> str:
    """Return an id of the same form from any text."""
    number = int.from_bytes(hashlib.sha256(text.encode("utf-8", "replace")).digest()[:8])
    return _base36(number).zfill(9)[-9:]


def _base36(number: int) -> str:
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
    return digits


_MARK: JSONObject = {"cache_control": {"type": "ephemeral"}}


def marked(messages: Sequence[JSONObject]) -> list[JSONObject]:
    """Return a conversation's messages with marks for Claude's prompt cache.

    The marks are behind the system prompt (the tools come before it), behind the message that
    ended the request before this one, and at the end, where the next request will find it. Of the
    four that Anthropic allows, one stays free. Tokens of the cache cost a tenth, and those that are
    written to it a quarter more than others.

    Args:
        messages: In OpenAI's form, in order.
    """
    answers = [at for at, message in enumerate(messages) if message.get("role") == "assistant"]
    places = {0} if messages and messages[0].get("role") == "system" else set[int]()
    places.add(len(messages) - 1)
    places.update(_asked_before(messages, answers[-1]) if answers else ())
    return [_marked(m) if at in places else m for at, m in enumerate(messages)]


def _asked_before(messages: Sequence[JSONObject], answer: int) -> list[int]:
    asked = [at for at in range(answer) if messages[at].get("role") in ("user", "tool")]
    return asked[-1:]


def _marked(message: JSONObject) -> JSONObject:
    content = message.get("content")
    if isinstance(content, list) and message.get("role") == "user":
        *parts, last = objects(content)  # pyright: ignore[reportUnknownArgumentType]
        return {**message, "content": [*parts, {**last, **_MARK}]}
    return {**message, **_MARK}


SUMMARY = "Summary of the conversation so far:\n\n"
"""Begins the user message that stands for a summary: no other role may open a conversation."""

OPENED = "(The assistant began this conversation.)"
"""Stands before a greeting: Anthropic, Gemini and others take no conversation that an assistant
opens."""

NO_RESULT = "No result: the call was interrupted, or its result was forgotten."
EMPTY_RESULT = "(empty)"


def render_request(
    call: ModelCall, messages: Sequence[Message], tools: Sequence[JSONObject]
) -> JSONObject:
    """Return the whole request of a model call.

    Args:
        call: What is asked.
        messages: The messages of its prompt.
        tools: The schemas of its tools, in OpenAI's form.
    """
    rendered = render(
        messages,
        clipped=call.prompt.clipped,
        notes=call.prompt.notes,
        vendor=vendor_of(call.model),
    )
    if call.repair and call.response_format:
        rendered.append(repair_request(call.repair, call.response_format))
    request: JSONObject = {
        "model": call.model,
        "messages": rendered,
        "max_tokens": call.max_tokens,
    }
    if tools:
        request["tools"] = list(tools)
        if call.tool_choice == "none":
            request["tool_choice"] = "none"
    if call.reasoning_effort:
        request["reasoning_effort"] = call.reasoning_effort
    if call.response_format:
        request["response_format"] = request_format(call.response_format)
    return request


def render(
    messages: Sequence[Message],
    *,
    clipped: Mapping[str, int],
    notes: Mapping[str, str] = MappingProxyType({}),
    vendor: str = "",
) -> list[JSONObject]:
    """Return the messages of a request, in OpenAI's chat form.

    Args:
        messages: In order; system prompts, if there are several, become one.
        clipped: Ids of messages to be shown shorter, with the encoded bytes that each may take.
        notes: Texts that stand before a message, by its id, as the user's.
        vendor: Whose model is asked, as `vendor_of` says it; empty if all messages are its own.

    Raises:
        InvalidInput: The user said nothing: no provider answers that.
    """
    shown = messages
    if clipped:
        shown = [
            _clipped(message, clipped[message.id]) if message.id in clipped else message
            for message in messages
        ]
    if vendor:
        shown = [_without_others(message, vendor) for message in shown]
    system = "\n\n".join(m.text for m in shown if m.role is Role.SYSTEM and m.text.strip())
    talk = groups(shown)
    said = [group for group in talk if not _is_blank(group[0])]
    if not any(map(_is_users, said)):
        raise InvalidInput("the prompt holds no message of the user")
    rendered: list[JSONObject] = []
    if system:
        rendered.append({"role": "system", "content": plain_text(system)})
    if not _is_users(said[0]):
        rendered.append({"role": "user", "content": OPENED})
    ids: set[str] = set()
    for group in talk if notes else said:
        if group[0].id in notes:
            rendered.append({"role": "user", "content": plain_text(notes[group[0].id])})
        if not notes or not _is_blank(group[0]):
            rendered += _group(group, ids)
    return rendered


def _without_others(message: Message, vendor: str) -> Message:
    """Return a message without what another vendor wants back."""
    if message.vendor in ("", vendor):
        return message
    calls = [call.replace(fields={}) for call in message.calls]
    return message.replace(reasoning=[], fields={}, calls=calls)


def _is_users(group: Group) -> bool:
    return group[0].role in (Role.USER, Role.SUMMARY)


def _group(group: Group, ids: set[str]) -> list[JSONObject]:
    message = group[0]
    if message.role is Role.USER:
        return [{"role": "user", "content": _user_content(message)}]
    if message.role is Role.SUMMARY:
        return [{"role": "user", "content": SUMMARY + plain_text(message.text)}]
    rendered: JSONObject = {"role": "assistant", "content": _assistant_content(message)}
    if not message.calls:
        return [_written(message, rendered)]
    results = {result.call: result for result in reversed(group[1:])}
    calls: list[JSONObject] = []
    answers: list[JSONObject] = []
    for call in message.calls:
        name = wire_id(call.id)
        if name in ids:
            name = hashed_id(f"{message.id} {call.id} {len(ids)}")
        ids.add(name)
        calls.append(_call(call, name))
        answers.append(_answer(results.get(call.id), name))
    return [_written(message, {**rendered, "tool_calls": calls}), *answers]


def _written(message: Message, rendered: JSONObject) -> JSONObject:
    """Return a rendered message with the provider's own fields."""
    # The whole conversation is rendered for each call: what most messages have none of costs none.
    return rendered | plain(written(message)) if message.reasoning or message.fields else rendered


def _user_content(message: Message) -> str | list[JSONObject]:
    if isinstance(message.content, str):
        return plain_text(message.content)
    return plain([part for part in message.content if not _is_blank_part(part)])


def _assistant_content(message: Message) -> str | list[JSONObject] | None:
    said = message.text
    text = plain_text(said) if said.strip() else ""
    parts: list[JSONObject] = plain(content_parts(message)) if message.reasoning else []
    if parts:
        return [*parts, {"type": "text", "text": text}] if text else parts
    return text or None


def _call(call: ToolCall, name: str) -> JSONObject:
    # A model may make up any name; providers take these characters only, and take no empty one.
    function = {
        "name": re.sub(r"[^A-Za-z0-9_-]", "_", call.name)[:64] or "unnamed",
        "arguments": _arguments(call.arguments),
    }
    fields: JSONObject = plain(call.fields) if call.fields else {}
    return {**fields, "id": name, "type": "function", "function": function}


def _arguments(arguments: JSONObject) -> str:
    try:
        text = dump_json(arguments)
        text.encode()
    except (ValueError, TypeError):  # half of a surrogate pair, NaN, or no JSON at all
        return dump_json(plain(arguments))
    return text


def _answer(result: Message | None, name: str) -> JSONObject:
    text = NO_RESULT if result is None else plain_text(result.text)
    return {
        "role": "tool",
        "tool_call_id": name,
        "content": text if text.strip() else EMPTY_RESULT,
    }


def _is_blank(message: Message) -> bool:
    role, content = message.role, message.content
    if role is Role.SYSTEM:
        return True  # it stands in front already
    if isinstance(content, str):
        return not message.calls and not content.strip()
    if role is Role.USER:
        return all(map(_is_blank_part, content))
    return not message.calls and not message.text.strip()


def _is_blank_part(part: JSONObject) -> bool:
    return part.get("type") == "text" and not str(part.get("text") or "").strip()


def _clipped(message: Message, limit: int) -> Message:
    # What was signed fits only the message that it came with.
    message = message.replace(reasoning=[], fields={})
    if isinstance(message.content, str):
        return message.replace(content=clip(message.content, limit))
    parts: list[JSONObject] = []
    for part in message.content:
        if part.get("type") == "text":
            text = clip(str(part.get("text") or ""), limit)
            limit = max(0, limit - encoded_size(text))
            part = {**part, "text": text}
        parts.append(part)
    return message.replace(content=parts)
