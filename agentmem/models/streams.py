"""A reply that comes in pieces, put together to the same form as one that comes whole.

Not by litellm's own builder: providers number the pieces of parallel calls in ways of their own
(all 0, or not at all), and it joins the arguments of different calls then.
"""

from typing import Any

from agentmem.models.plain import as_list, as_mapping, joined_text, objects
from agentmem.values import JSONObject

_TEXTS = ("content", "reasoning_content", "refusal")
_LISTS = ("reasoning_items", "reasoning_details")
_SPECIFIC = "provider_specific_fields"


class Assembly:
    """The pieces of one reply, in OpenAI's form as litellm gives them.

    A piece without choices or without a delta adds nothing but its usage; the last usage counts,
    and without one there is none.
    """

    def __init__(self) -> None:
        self._message: JSONObject = {"role": "assistant"}
        self._texts: dict[str, list[str]] = {}
        self._calls: list[JSONObject] = []
        self._at: dict[Any, JSONObject] = {}
        self._blocks: list[JSONObject] = []
        self._finish: object = None
        self._usage: JSONObject = {}
        self._is_empty = True

    def add(self, chunk: JSONObject) -> None:
        """Take the next piece."""
        if usage := as_mapping(chunk.get("usage")):
            self._usage = usage
        for choice in objects(chunk.get("choices"))[:1]:
            self._is_empty = False
            self._finish = choice.get("finish_reason") or self._finish
            self._take(as_mapping(choice.get("delta")))

    def reply(self) -> JSONObject:
        """Return the whole reply; without choices if no piece had any."""
        message = dict(self._message)
        message |= {name: "".join(parts) for name, parts in self._texts.items()}
        if self._calls:
            message["tool_calls"] = self._calls
        if self._blocks:
            message["thinking_blocks"] = self._blocks
        choice = {"message": message, "finish_reason": self._finish}
        return {"choices": [] if self._is_empty else [choice], "usage": self._usage}

    def _take(self, delta: JSONObject) -> None:
        for name in _TEXTS:
            value: Any = delta.get(name)
            text = value if not as_list(value) else joined_text(objects(as_list(value)))
            if isinstance(text, str):
                self._texts.setdefault(name, []).append(text)
        for name in _LISTS:
            if value := as_list(delta.get(name)):
                self._message[name] = [*self._message.get(name, []), *value]
        for block in objects(delta.get("thinking_blocks")):
            self._think(block)
        for piece in objects(delta.get("tool_calls")):
            self._call(piece)
        if specific := as_mapping(delta.get(_SPECIFIC)):
            self._message[_SPECIFIC] = _merged(as_mapping(self._message.get(_SPECIFIC)), specific)

    def _think(self, block: JSONObject) -> None:
        last = self._blocks[-1] if self._blocks else {}
        # A signature closes its block, and signs no other.
        is_open = last.get("type") == "thinking" and not last.get("signature")
        if block.get("type") == "thinking" and is_open:
            thought = f"{last.get('thinking') or ''}{block.get('thinking') or ''}"
            last |= {"thinking": thought}
            if block.get("signature"):
                last["signature"] = block["signature"]
        else:
            self._blocks.append({k: v for k, v in block.items() if v is not None})

    def _call(self, piece: JSONObject) -> None:
        place, given = piece.get("index"), piece.get("id")
        function = as_mapping(piece.get("function"))
        call = self._at.get(place)
        if call is None or _is_another(call, given, function):
            inner: JSONObject = {"name": "", "arguments": ""}
            call = {"id": given, "type": "function", "function": inner}
            self._calls.append(call)
            self._at[place] = call
        inner = as_mapping(call["function"])
        inner["name"] = function.get("name") or inner["name"]
        inner["arguments"] += str(function.get("arguments") or "")
        for name, value in piece.items():
            if name not in ("index", "id", "type", "function") and value is not None:
                call[name] = value
        if specific := as_mapping(function.get(_SPECIFIC)):
            inner[_SPECIFIC] = _merged(as_mapping(inner.get(_SPECIFIC)), specific)


def _is_another(call: JSONObject, given: object, function: JSONObject) -> bool:
    """Tell whether a piece at the place of a call begins another one."""
    if given:
        return call["id"] != given
    return bool(function.get("name")) and bool(call["function"]["arguments"])


def _merged(old: JSONObject, new: JSONObject) -> JSONObject:
    merged = old | {name: value for name, value in new.items() if value is not None}
    for name in old.keys() & new.keys():
        if isinstance(old[name], list) and isinstance(new[name], list):
            merged[name] = [*old[name], *new[name]]
    return merged
