"""A reply that comes in pieces, put together to the same form as one that comes whole.

Not by litellm's own builder: providers number the pieces of parallel calls in ways of their own
(all 0, or not at all), and it joins the arguments of different calls then. Some providers repeat
where others continue: a later piece holds the whole arguments, the whole name or the whole text
once more. What a piece was is decided when all of them are here.
"""

import json
from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import Any

from agentmem.wire import JSONObject, as_list, as_mapping, joined_text, objects

_TEXTS = ("content", "reasoning_content", "refusal")
_LISTS = ("reasoning_items", "reasoning_details")
_SPECIFIC = "provider_specific_fields"
_LEGACY = "function_call"
_AGAIN = "again"  # of a call without an id at the place of another one


class Assembly:
    """The pieces of one reply, in OpenAI's form as litellm gives them.

    A piece without choices or without a delta adds nothing but its usage; the last usage counts,
    and without one there is none.
    """

    def __init__(self, tools: Collection[str] = ()) -> None:
        """Begin a reply.

        Args:
            tools: Names of the tools that the model was offered, to tell a name that comes in
                pieces from one that is repeated.
        """
        self._tools = tools
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
            self._take(as_mapping(choice.get("delta")), is_last=bool(choice.get("finish_reason")))

    def reply(self) -> JSONObject:
        """Return the whole reply; without choices if no piece had any."""
        message = dict(self._message)
        message |= {name: _whole_text(parts) for name, parts in self._texts.items()}
        if self._calls:
            message["tool_calls"] = _each_once([self._put_together(call) for call in self._calls])
        if self._blocks:
            message["thinking_blocks"] = self._blocks
        choice = {"message": message, "finish_reason": self._finish}
        return {"choices": [] if self._is_empty else [choice], "usage": self._usage}

    def _take(self, delta: JSONObject, *, is_last: bool) -> None:
        for name in _TEXTS:
            value: Any = delta.get(name)
            text = value if not as_list(value) else joined_text(objects(as_list(value)))
            if isinstance(text, str):
                parts = self._texts.setdefault(name, [])
                # Some providers close with a piece that holds all of it once more.
                if not (is_last and text and text == "".join(parts)):
                    parts.append(text)
        for name in _LISTS:
            if value := as_list(delta.get(name)):
                self._message[name] = [*self._message.get(name, []), *value]
        for block in objects(delta.get("thinking_blocks")):
            self._think(block)
        for piece in objects(delta.get("tool_calls")):
            self._call(piece)
        legacy = as_mapping(delta.get("function_call"))  # the form before tools, still in use
        if legacy and set(self._at) <= {_LEGACY}:
            self._call({"index": _LEGACY, "function": legacy})
        if specific := as_mapping(delta.get(_SPECIFIC)):
            self._message[_SPECIFIC] = _merged(as_mapping(self._message.get(_SPECIFIC)), specific)

    def _put_together(self, call: JSONObject) -> JSONObject:
        function = as_mapping(call["function"])
        whole = {
            "name": _whole_name(function["name"], self._tools),
            "arguments": _whole_arguments(function["arguments"]),
        }
        return {**call, "function": {**function, **whole}}

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

    def _continued(self, place: Any, given: object, function: JSONObject) -> JSONObject | None:
        """Return the call that a piece is of, or that stands at its place; None for neither."""
        call = self._at.get(place)
        if given and (call is None or call["id"] != given):
            same = next((c for c in self._calls if c["id"] == given), None)
            if same is not None and (place is None or not function.get("name")):
                return same
        last = self._calls[-1] if self._calls else None
        if call is not None or last is None or given:
            return call
        if place is None:  # it continues a call that has a place
            return last
        # Some count pieces, not calls: what has no name continues, unless it stands for itself.
        pieces = "".join(last["function"]["arguments"])
        is_itself = _is_object(pieces) and bool(_text(function.get("arguments")))
        return None if function.get("name") or is_itself else last

    def _call(self, piece: JSONObject) -> None:
        place, given = piece.get("index"), piece.get("id")
        function = as_mapping(piece.get("function"))
        call = self._continued(place, given, function)
        if call is None or _is_another(call, given, function):
            again = call is not None and not given
            inner: JSONObject = {"name": [], "arguments": []}
            call = {"id": given, "type": "function", "function": inner, _AGAIN: again}
            self._calls.append(call)
        self._at[place] = call
        inner = as_mapping(call["function"])
        if name := str(function.get("name") or ""):
            inner["name"].append(name)
        if arguments := _text(function.get("arguments")):
            inner["arguments"].append(arguments)
        for name, value in piece.items():
            if name not in ("index", "id", "type", "function") and value is not None:
                call[name] = value
        if specific := as_mapping(function.get(_SPECIFIC)):
            inner[_SPECIFIC] = _merged(as_mapping(inner.get(_SPECIFIC)), specific)


def _is_another(call: JSONObject, given: object, function: JSONObject) -> bool:
    """Tell whether a piece at the place of a call begins another one."""
    names, pieces = call["function"]["name"], call["function"]["arguments"]
    name, arguments = function.get("name"), _text(function.get("arguments"))
    before = "".join(pieces)
    # Whole arguments are never continued.
    is_whole = before.rstrip().endswith("}") and _is_object(before)
    if given and call["id"]:
        if call["id"] == given:
            return False
        # Some servers make up an id for each piece: what continues begins nothing.
        is_itself = _is_object(arguments)
        if not name:
            return is_whole and is_itself and not _same_object(before, arguments)
        return is_whole or is_itself or not before.strip()
    if not name or not names or not is_whole:
        return False
    is_same = name in ("".join(names), names[-1:][0])
    # The same arguments again are a repetition; what a name alone begins is seen at the end.
    if not arguments:
        return not given and bool(_object(before))
    return not (is_same and _same_object(before, arguments))


def _each_once(calls: Sequence[JSONObject]) -> list[JSONObject]:
    """Leave out calls that a provider sent once more."""
    kept: list[JSONObject] = []
    for call in calls:
        again, name = call.pop(_AGAIN), call["function"]["name"]
        others = kept if call["id"] else kept[-1:] if again else []
        is_empty = again and not call["function"]["arguments"].strip()
        is_repeated = any(
            _is_same_call(call, other) or (is_empty and name == other["function"]["name"])
            for other in others
        )
        if not is_repeated:
            kept.append(call)
    return kept


def _is_same_call(one: JSONObject, other: JSONObject) -> bool:
    mine, theirs = one["function"], other["function"]
    return (
        one["id"] in (other["id"], None, "")
        and mine["name"] == theirs["name"]
        and _same_object(mine["arguments"], theirs["arguments"])
    )


def _whole_name(pieces: Sequence[str], tools: Collection[str]) -> str:
    """Return a name from its pieces: continued, repeated, or longer each time."""
    joined, last = "".join(pieces), pieces[-1] if pieces else ""
    for name in (joined, last, *pieces):
        if name in tools:
            return name
    is_repeated = all(later.startswith(piece) for piece, later in pairwise(pieces))
    return last if is_repeated else joined


def _whole_arguments(pieces: Sequence[str]) -> str:
    """Return arguments from their pieces: continued, sent again in full, or longer each time."""
    joined = "".join(pieces)
    if len(pieces) < 2 or _is_object(joined):
        return joined
    last = pieces[-1]
    if _is_object(last) and last.startswith("".join(pieces[:-1])):
        return last
    if all(len(p) < len(q) and q.startswith(p) for p, q in pairwise(pieces)):
        return last
    return _last_object(joined) or joined


def _last_object(text: str) -> str:
    """Return the last one of whole JSON objects in a row; empty where the text is anything else."""
    decoder = json.JSONDecoder()
    text = text.rstrip()
    start, at = 0, 0
    try:
        while at < len(text):
            start = at
            while text[start].isspace():
                start += 1
            found, at = decoder.raw_decode(text, start)
            if not isinstance(found, dict):
                return ""
    except (ValueError, RecursionError):
        return ""
    return text[start:at]


def _whole_text(pieces: Sequence[str]) -> str:
    """Return a text from its pieces, which some providers send longer each time."""
    said = [piece for piece in pieces if piece]
    grows = len(said) > 2 and all(
        len(piece) < len(later) and later.startswith(piece) for piece, later in pairwise(said)
    )
    return said[-1] if grows else "".join(said)


def _text(arguments: object) -> str:
    if isinstance(arguments, str):
        return arguments
    return json.dumps(arguments, ensure_ascii=False) if arguments else ""


def _object(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _is_object(text: str) -> bool:
    return isinstance(_object(text), dict)


def _same_object(one: str, other: str) -> bool:
    return one == other or (_is_object(one) and _object(one) == _object(other))


def _merged(old: JSONObject, new: JSONObject) -> JSONObject:
    merged = old | {name: value for name, value in new.items() if value is not None}
    for name in old.keys() & new.keys():
        if isinstance(old[name], list) and isinstance(new[name], list):
            merged[name] = [*old[name], *new[name]]
    return merged
