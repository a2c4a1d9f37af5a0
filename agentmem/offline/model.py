"""The offline model: fixed rules in a model's place, and never more than that.

It follows the chat protocol with its tools, so that agents can be tried, tested and measured
without a model. `docs/offline-model.md` says what it understands and what it does not.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Any, NamedTuple, cast

from agentmem.llm.summaries import FORM, INSTRUCTIONS
from agentmem.offline.dates import absolute, relative
from agentmem.offline.dreams import dream, note, said, slug, words
from agentmem.offline.text import content, fold, sentences, text_of, tokens
from agentmem.wire import JSONObject, JSONValue, as_list, as_mapping, dump_json

__all__ = ["STAND_IN", "stand_in"]

STAND_IN = "(offline stand-in, no answer)"
"""The value that each free text gets."""

_DEPTH = 32
_FORMATS = {
    "date-time": "2000-01-01T00:00:00Z",
    "date": "2000-01-01",
    "time": "00:00:00Z",
    "duration": "PT0S",
    "email": "offline@example.com",
    "uri": "https://example.com/",
    "uuid": "00000000-0000-4000-8000-000000000000",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
}


def stand_in(schema: JSONObject) -> JSONValue:
    """Return a value for a JSON schema: required fields only, the first of several choices.

    A `pattern` is kept only where `examples`, `enum` or `const` have a text for it; no schema is
    kept that asks for unlike items or contains itself for ever.
    """
    return _value(schema, schema, _DEPTH)


def _value(schema: Any, root: JSONObject, depth: int) -> JSONValue:
    if not isinstance(schema, dict) or depth == 0:
        return None
    node = _settled(as_mapping(cast("object", schema)), root, depth)
    if "const" in node:
        return node["const"]
    for word in ("enum", "examples"):
        if node.get(word):
            return node[word][0]
    kind = _kind(node)
    if kind == "object":
        fields, other = node.get("properties", {}), node.get("additionalProperties", {})
        required = node.get("required", [])
        return {name: _value(fields.get(name, other), root, depth - 1) for name in required}
    if kind == "array":
        first, rest = node.get("prefixItems", []), node.get("items", {})
        count = range(node.get("minItems", 0))
        return [_value(first[n] if n < len(first) else rest, root, depth - 1) for n in count]
    if kind in ("integer", "number"):
        return _number(node, whole=kind == "integer")
    return {"boolean": False, "null": None}.get(kind) if kind != "string" else _string(node)


def _settled(node: JSONObject, root: JSONObject, depth: int) -> JSONObject:
    """Return a schema without references and choices."""
    parts = list(node.get("allOf", []))
    parts += [node[word][0] for word in ("anyOf", "oneOf") if node.get(word)]
    if "$ref" in node:
        parts.append(_referred(node["$ref"], root))
    settled = {k: v for k, v in node.items() if k not in ("allOf", "anyOf", "oneOf", "$ref")}
    for part in map(as_mapping, parts if depth else ()):
        inner = _settled(part, root, depth - 1)
        fields = {**inner.get("properties", {}), **settled.get("properties", {})}
        required = [*settled.get("required", []), *inner.get("required", [])]
        settled = {**inner, **settled}
        settled |= {"properties": fields} if fields else {}
        settled |= {"required": list(dict.fromkeys(required))} if required else {}
    return settled


def _referred(reference: str, root: JSONObject) -> Any:
    found: Any = root
    for part in reference.removeprefix("#").split("/")[1:]:
        found = as_mapping(found).get(part.replace("~1", "/").replace("~0", "~"))
    return found


def _kind(node: JSONObject) -> str:
    kind: Any = node.get("type")
    for one in as_list(kind) or [kind]:
        if isinstance(one, str):
            return one
    for word, meant in (("properties", "object"), ("required", "object"), ("items", "array")):
        if word in node:
            return meant
    return "integer" if "minimum" in node or "maximum" in node else "string"


def _string(node: JSONObject) -> str:
    text = _FORMATS.get(str(node.get("format")), STAND_IN)
    return text.ljust(node.get("minLength", 0), ".")[: node.get("maxLength")]


def _number(node: JSONObject, *, whole: bool) -> float | int:
    step = node.get("multipleOf") or (1 if whole else 0)
    least = max(node.get("minimum", -math.inf), node.get("exclusiveMinimum", -math.inf))
    most = min(node.get("maximum", math.inf), node.get("exclusiveMaximum", math.inf))
    number = min(max(0, least), most)
    if number in (node.get("exclusiveMinimum"), node.get("exclusiveMaximum")):
        between = (least + most) / 2 if math.isfinite(least + most) else number + 1
        number = between if number == least else number - 1
    if step:
        number = math.ceil(number / step) * step
        number = number + step if number == node.get("exclusiveMinimum") else number
    return int(number) if whole else number


OPENING = "By fixed rules, no summary of a model's. The user said:"

_ASKED = INSTRUCTIONS.partition("{words}")[0]
_LINE = 100
_LINES = 20


def summarised(messages: Sequence[tuple[str, str]]) -> str:
    """Return what stands for a summary; empty if these messages do not ask for one.

    Args:
        messages: Roles and texts of a request.
    """
    if not messages or messages[0][0] != "system" or not messages[0][1].startswith(_ASKED):
        return ""
    said: list[str] = []
    for line in messages[-1][1].split("\n")[1:-1]:
        message = as_mapping(json.loads(line))
        text = str(message.get("text", ""))
        if text.startswith(OPENING):
            said += text.removeprefix(OPENING).strip().split(" | ")
        elif message.get("from") == "user":
            said.append(" ".join(text.split())[:_LINE].rstrip(" ."))
    return f"{OPENING} {' | '.join(said[-_LINES:])}"


__all__ = ["MODEL", "answer", "litellm_provider"]

MODEL = "agentmem/offline"
"""Its name, as litellm names models: provider and model."""

HONEST = (
    "I am the offline stand-in: fixed rules, no language model. I can note what you tell me, "
    "answer from memory and use tools."
)
UNKNOWN = "I have nothing about that in memory, and as the offline stand-in I know nothing else."

_MEMORY = {"recall_memory", "store_memory", "forget_memory", "list_memory_keys"}
_SMALL_TALK = {"Hello!": r"(?i)(hi|hello)\b", "You are welcome.": r"(?i)thank(s| you)\b"}
_ASKS = re.compile(r"(?i).*\?\W*$|(what|who|where|when|which|do you (remember|know)|tell me)\b")
_REMEMBER = re.compile(r"(?i)(please )?(remember|note|keep in mind)( that)?\b[ :,]*")
_FORGET = re.compile(r"(?i)(?:please |can you |could you )?forget (.+)")
_EVERYTHING = re.compile(r"(?i).*\b(about me|everything)\b")
_ASKING = words("what's who's where's when's remember know tell told said go went")

# What asks for a tool; what a parameter's name says of it, and where its value stands.
_ORDERS = re.compile(r"(?i).*\bplease\b|.*\?\W*$|(can|could|would) you\b|(what|how|when|where)\b")
_DULL = set(content("get fetch find search show list look tool run do current"))
_TIMES = re.compile(r"(?i)(.*_)?(date|day|when|time)")
_FREE = re.compile(r"(?i)(.*_)?(query|question|text|message|topic|expression|title|note|content)")
_ENDS = {"from": r"(?i)from|origin|source|start", "to": r"(?i)to|dest|target|recipient"}
_NAME = r"[^\W\da-z_][\w'-]*(?: [^\W\da-z_][\w'-]*)*"
_NAMES = re.compile(rf"{_NAME}(?:(?:, and |, | and ){_NAME})*")
_BEFORE = re.compile(r"(?i)^\W*(\w+ )??(in|for|at|of|about|near|to) |^\W+")


class OfflineCall(NamedTuple):
    """A tool call."""

    name: str
    arguments: JSONObject


def answer(request: JSONObject) -> JSONObject:
    """Return the chat completion that answers an OpenAI-style request; the same for the same.

    Args:
        request: `messages`, and if given `tools`, `tool_choice` ("none" or "auto"), `model`,
            `response_format`.
    """
    messages: list[JSONObject] = request["messages"]
    tools = {tool["function"]["name"]: tool["function"] for tool in request.get("tools") or ()}
    if request.get("tool_choice") == "none":
        tools = {}
    if any(name.startswith("submit_") for name in tools):
        asked = [_text(message) for message in messages if message["role"] == "user"]
        again = any(message["role"] == "assistant" for message in messages)
        return _completion(request, "", [OfflineCall(*dream(asked, again=again))])
    if summary := summarised([(str(m["role"]), _text(m)) for m in messages]):
        handed_in = [OfflineCall(FORM, {"summary": summary})] if FORM in tools else []
        return _completion(request, "" if handed_in else f"SUMMARY\n{summary}", handed_in)
    text, calls = _talk(messages, tools)
    if (form := as_mapping(request.get("response_format"))) and not calls:
        text = dump_json(stand_in(as_mapping(as_mapping(form.get("json_schema")).get("schema"))))
    return _completion(request, text, calls)


def litellm_provider() -> Any:
    """Return a handler for `litellm.custom_provider_map`, where it answers as `agentmem/offline`.

    litellm is imported here, which takes seconds.
    """
    from litellm import ModelResponse
    from litellm.llms.custom_llm import CustomLLM

    class OfflineModel(CustomLLM):
        def completion(self, *args: Any, **kwargs: Any) -> Any:
            request = {"model": MODEL, "messages": kwargs["messages"], **kwargs["optional_params"]}
            return ModelResponse(**answer(request))

        async def acompletion(self, *args: Any, **kwargs: Any) -> Any:
            return self.completion(*args, **kwargs)

    return OfflineModel()


def _completion(request: JSONObject, text: str, calls: list[OfflineCall]) -> JSONObject:
    asked = dump_json([request["messages"], request.get("tools")]).encode("utf-8", "replace")
    mark = hashlib.sha256(asked).hexdigest()[:12]  # makes the ids of a conversation unique
    message: JSONObject = {"role": "assistant", "content": text or None}
    if calls:
        functions = [{"name": call.name, "arguments": dump_json(call.arguments)} for call in calls]
        message["tool_calls"] = [
            {"id": f"call_{mark}_{number}", "type": "function", "function": function}
            for number, function in enumerate(functions)
        ]
    made = dump_json(message).encode("utf-8", "replace")
    used = {"prompt_tokens": len(asked) // 4, "completion_tokens": len(made) // 4}
    finish = "tool_calls" if calls else "stop"
    return {
        "id": f"chatcmpl-{mark}",
        "object": "chat.completion",
        "created": 0,
        "model": request.get("model", MODEL),
        "choices": [{"index": 0, "finish_reason": finish, "message": message}],
        "usage": {**used, "total_tokens": sum(used.values())},
    }


def _text(message: JSONObject) -> str:
    body: Any = message.get("content") or ""
    return body if isinstance(body, str) else "".join(part.get("text") or "" for part in body)


def _talk(
    messages: list[JSONObject], tools: Mapping[str, JSONObject]
) -> tuple[str, list[OfflineCall]]:
    """Return what to say and what to call, by what the user said and what was done about it."""
    spoken = [at for at, message in enumerate(messages) if message["role"] == "user"] or [0]
    texts = [_text(messages[at]) for at in spoken]
    turn = messages[spoken[-1] :]
    results = {message.get("tool_call_id"): _text(message) for message in turn}
    made = [call["function"] | call for one in turn for call in one.get("tool_calls") or ()]
    done = [
        (OfflineCall(f["name"], json.loads(f["arguments"])), results.get(f["id"], "")) for f in made
    ]
    shown = [output for call, output in done if call.name == "recall_memory"]
    lines = [line for output in shown for line in re.findall(r'(?m)^\{"key".*\}$', output)]
    recalled = {fact["key"]: text_of(fact["value"]) for fact in map(json.loads, lines)}
    heard, asked = _heard(texts[:-1]), sentences(texts[-1])
    calls: list[OfflineCall] = []
    for call in (call for one in asked for call in _wanted(one, tools, heard, recalled)):
        if call.name in tools and call not in [*calls, *(made for made, _ in done)]:
            calls.append(call)
    if calls:
        return "Let me look.", calls
    told = [_told(call, output) for call, output in done if call.name != "recall_memory"]
    news = [value for key, value in _heard(texts).items() if heard.get(key) != value]
    parts = [polite for polite, pattern in _SMALL_TALK.items() if re.match(pattern, texts[-1])]
    parts += told or [f"Noted: {'; '.join(news)}."] * bool(news)
    for one in asked:
        if _ASKS.match(one) and not (told and (_FORGET.match(one) or _used(one, tools))):
            parts.append(_answered(one, recalled | heard))
    return " ".join(dict.fromkeys(parts)) or HONEST, []


def _heard(texts: list[str]) -> dict[str, str]:
    """Return what the user has said, by key, the last word on each."""
    known: dict[str, str] = {}
    for one in (one for text in texts for one in said(text)):
        note(one, known)
    return known


def _told(call: OfflineCall, output: str) -> str:
    """Put a tool's result in a sentence."""
    given = ", ".join(str(value) for value in call.arguments.values())
    what = f"{call.name.removeprefix('get_').replace('_', ' ').capitalize()} ({given}): "
    return f"{'' if call.name in _MEMORY else what}{output.strip().rstrip('.')}."


def _best(question: str, facts: Mapping[str, str]) -> str:
    """Return the key of the fact that holds over half of what a question is about, or nothing."""
    wanted = words(question) - _ASKING
    held = {key: len(wanted & words(f"{key} {value}")) for key, value in facts.items()}
    near = [key for key, count in held.items() if 2 * count > len(wanted)]
    return max(near, key=lambda key: (held[key], -len(words(key) - wanted)), default="")


def _answered(question: str, facts: Mapping[str, str]) -> str:
    if _EVERYTHING.match(question) and facts:
        return f"I know: {'; '.join(facts.values())}."
    key = _best(question, facts)
    return f"{key.replace('_', ' ').capitalize()}: {facts[key]}." if key else UNKNOWN


def _wanted(
    sentence: str, tools: Mapping[str, JSONObject], heard: dict[str, str], recalled: dict[str, str]
) -> Iterator[OfflineCall]:
    """Yield the calls that a sentence asks for, whether or not they are made already."""
    used = _used(sentence, tools)
    yield from used
    if _REMEMBER.match(sentence):
        rest = _REMEMBER.sub("", sentence, count=1).rstrip(".")
        for key, value in (_heard([sentence]) or {f"note_{slug(rest)}": rest}).items():
            yield OfflineCall("store_memory", {"key": key, "value": value, "quote": sentence})
    elif forget := _FORGET.match(sentence):
        yield OfflineCall("recall_memory", {})
        if key := _best(forget[1], recalled):
            yield OfflineCall("forget_memory", {"key": key, "quote": sentence})
    elif _ASKS.match(sentence) and not used and not _best(sentence, heard):
        yield OfflineCall("recall_memory", {})


def _used(sentence: str, tools: Mapping[str, JSONObject]) -> list[OfflineCall]:
    """Return the calls of the user's tools that a sentence asks for, one for each name in it."""
    spoken = [word for word in content(sentence) if word not in _DULL]
    owned = {name: set(content(name)) - _DULL for name in tools.keys() - _MEMORY}
    shares = [
        (len(own.intersection(spoken)) / len(own), name) for name, own in owned.items() if own
    ]
    share, name = max(shares, default=(0, ""))
    if share < 0.5 or not (spoken[0] in owned[name] or _ORDERS.match(sentence)):
        return []
    rest = sentence  # what stands behind the words of the tool's name
    for word in tokens(sentence):
        rest = rest.partition(word)[2] if owned[name].intersection(content(word)) else rest
    return list(_filled(tools[name], sentence, rest))


def _filled(tool: JSONObject, sentence: str, rest: str) -> Iterator[OfflineCall]:
    """Yield calls with each parameter that the sentence names; none if a required one lacks."""
    schema: JSONObject = tool.get("parameters") or {}
    specs: dict[str, JSONObject] = schema.get("properties") or {}
    figures = iter(re.findall(r"\d+(?:\.\d+)?", sentence))
    found = {name: _values(name, spec, sentence, rest, figures) for name, spec in specs.items()}
    arguments = {name: values[0] for name, values in found.items() if values}
    if all(name in arguments for name in schema.get("required", ())):
        several = next((name for name, values in found.items() if len(values) > 1), "")
        for value in found.get(several, [""]):
            yield OfflineCall(tool["name"], arguments | ({several: value} if several else {}))


def _values(name: str, spec: JSONObject, text: str, rest: str, figures: Iterator[str]) -> list[Any]:
    """Return what a sentence holds for a parameter, by its type and its name."""
    kinds = {spec.get("type"), *(shape.get("type") for shape in spec.get("anyOf", ()))}
    if "enum" in spec:
        return [value for value in spec["enum"] if fold(str(value)) in fold(text)][:1]
    if kinds & {"integer", "number"}:
        return [int(one) if one.isdigit() else float(one) for one in [next(figures, "")] if one]
    if "string" not in kinds:
        return []
    if _TIMES.fullmatch(name):  # they go to a tool as they were said
        some = date(2000, 1, 1)
        times = [*relative(text, some), *absolute(text, some)]
        return [time.words.rstrip(".") for time in times][:1]
    for end, pattern in _ENDS.items():
        if re.match(pattern, name):
            return re.findall(rf"\b{end} ({_NAME}|\S+@\S+\w)", text)[:1]
    if quoted := re.findall(r"[\"“](.+?)[\"”]", text):
        return quoted[:1]
    rest = _BEFORE.sub("", rest)
    names = None if _FREE.fullmatch(name) else _NAMES.match(rest)
    if names:
        return re.split(r", and |, | and ", names[0])
    return [one for one in re.split(r"[?!,]|\.$", rest)[:1] if one]
