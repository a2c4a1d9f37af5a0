"""The offline model's side of a conversation, as a function of the conversation alone."""

# ruff: noqa: RUF001 - punctuation of other scripts is meant

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple, cast

from agentmem.dreaming.text import content, fold, sentences
from agentmem.testing.offline.calling import Call, asked_calls
from agentmem.testing.offline.matching import placed, shared, subject
from agentmem.testing.offline.reading import said, slug
from agentmem.values import JSONObject, dump_json

HONEST = (
    "I am the offline stand-in: fixed rules, no language model. I can note what you tell me, "
    "answer from memory and use tools."
)
UNKNOWN = "I have nothing about that in memory, and as the offline stand-in I know nothing else."

_MEMORY = ("recall_memory", "store_memory", "forget_memory", "list_memory_keys")
_ALL: JSONObject = {}


def _regex(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_SMALL_TALK = {
    "Hello!": _regex(r"(?:hi|hello|hey|good (?:morning|evening)|hallo|hola|你好|مرحبا)\b"),
    "You are welcome.": _regex(r"(?:thanks|thank you|danke|gracias|谢谢|شكرا)"),
}
_ASKS = _regex(
    r"[^?？؟]*[?？؟]|(?:what|who|where|when|which|how|do you (?:remember|know)|tell me|remind me)\b"
)
_REMEMBER = _regex(r"(?:please )?(?:remember|note|keep in mind|do(?:n't| not) forget)(?: that)?\b")
_FORGET = _regex(r"(?:please |can you |could you )?forget (?:about )?(?:my |the )?(.+)")
_EVERYTHING = _regex(r".*\b(?:about me|everything)\b")
_GETTING = _regex(r"(?:get|fetch|find|search|look ?up) ")
_ASKING = set(content("what's who's where's when's remember know tell told said remind say again"))


class Turn(NamedTuple):
    """What the offline model sees of a conversation.

    Attributes:
        text: What the user said last.
        earlier: What the user said before.
        done: The calls of this turn with their results.
        last: The user's tool called last before this turn, if any.
        tools: The tools that may be called now, by name.
    """

    text: str
    earlier: list[str]
    done: list[tuple[Call, str]]
    last: Call | None
    tools: Mapping[str, JSONObject]


def talk(messages: Sequence[JSONObject], tools: Mapping[str, JSONObject]) -> tuple[str, list[Call]]:
    """Return what to say and the tools to call.

    Args:
        messages: The conversation in the OpenAI shape.
        tools: The tools that may be called now, by name.
    """
    turn = _turn(messages, tools)
    made = [call for call, _ in turn.done]
    calls: list[Call] = []
    for call in chain.from_iterable(_wanted(sentence, turn) for sentence in sentences(turn.text)):
        if call.name in tools and call not in [*made, *calls]:
            calls.append(call)
    return ("Let me look.", calls) if calls else (_reply(turn), [])


def text_of(message: JSONObject) -> str:
    """Return a message's text, its parts put together."""
    body: Any = message.get("content") or ""
    return body if isinstance(body, str) else "".join(part.get("text") or "" for part in body)


def _turn(messages: Sequence[JSONObject], tools: Mapping[str, JSONObject]) -> Turn:
    spoken = [at for at, message in enumerate(messages) if message["role"] == "user"]
    start = spoken[-1] if spoken else 0
    results = {m["tool_call_id"]: text_of(m) for m in messages[start:] if m["role"] == "tool"}
    done: list[tuple[Call, str]] = []
    last: Call | None = None
    for at, message in enumerate(messages):
        for made in message.get("tool_calls") or ():
            call = Call(made["function"]["name"], json.loads(made["function"]["arguments"]))
            if at > start:
                done.append((call, results.get(made["id"], "")))
            elif call.name not in _MEMORY:
                last = call
    texts = [text_of(messages[at]) for at in spoken] or [""]
    return Turn(texts[-1], texts[:-1], done, last, tools)


def _wanted(sentence: str, turn: Turn) -> Iterator[Call]:
    """Yield the calls that a sentence asks for, whether or not they are made already."""
    used = _used(sentence, turn)
    yield from used
    if _REMEMBER.match(sentence):
        rest = _REMEMBER.sub("", sentence, count=1).strip(" :,.")
        told = [(one.key, one.value) for one in said(sentence) if one.key and one.value]
        for key, value in told or [(f"note_{slug(rest)}", rest)]:
            yield Call("store_memory", {"key": key, "value": value})
    elif forget := _FORGET.match(sentence):
        yield Call("recall_memory", _ALL)
        if key := _best(forget[1], _recalled(turn)):
            yield Call("forget_memory", {"key": key})
    elif _asks(sentence) and not used and not _best(sentence, _heard(turn.earlier)):
        yield Call("recall_memory", _ALL)


def _used(sentence: str, turn: Turn) -> list[Call]:
    users = {name: tool for name, tool in turn.tools.items() if name not in _MEMORY}
    return asked_calls(sentence, users, turn.last)


def _asks(sentence: str) -> bool:
    return bool(_ASKS.match(sentence)) and "how are you" not in fold(sentence)


def _heard(texts: Sequence[str]) -> dict[str, str]:
    """Return what the user has said, by key, the last word on each."""
    known: dict[str, str] = {}
    last = ("", "")
    for told in chain.from_iterable(map(said, texts)):
        key, value = placed(told, known, *last)
        known.pop(key, None)
        if key and value:
            known[key], last = value, (key, told.caught)
    return known


def _recalled(turn: Turn) -> dict[str, str]:
    """Return the facts in what memory showed in this turn, by key."""
    found: dict[str, str] = {}
    for call, output in turn.done:
        for line in output.split("\n") if call.name == "recall_memory" else ():
            try:
                fact = json.loads(line)
                key, value = fact["key"], fact["value"]
            except (ValueError, TypeError, KeyError):
                continue  # a fence, a remark, a list of keys
            found[key] = value if isinstance(value, str) else dump_json(value)
    return found


def _best(question: str, facts: Mapping[str, str]) -> str:
    """Return the key of the fact that holds over half of what a question is about, or nothing."""
    wanted = subject(question) - _ASKING
    held = {key: shared(wanted, subject(f"{key} {value}")) for key, value in facts.items()}
    near = [key for key, count in held.items() if 2 * count > len(wanted)]
    return max(near, key=lambda key: (held[key], shared(wanted, subject(key))), default="")


def _reply(turn: Turn) -> str:
    """Return the answer in words, once nothing is left to call."""
    polite = [words for words, pattern in _SMALL_TALK.items() if pattern.match(turn.text)]
    results = [_told(call, output) for call, output in turn.done if call.name != "recall_memory"]
    before, after = _heard(turn.earlier), _heard([*turn.earlier, turn.text])
    noted = [value for key, value in after.items() if before.get(key) != value]
    notes = [f"Noted: {'; '.join(noted)}."] if noted and not results else []
    answers = [
        _answered(sentence, {**before, **_recalled(turn)})
        for sentence in sentences(turn.text)
        if _asks(sentence)
        and not (results and _used(sentence, turn))
        and not _FORGET.match(sentence)
    ]
    return " ".join([*polite, *results, *notes, *dict.fromkeys(answers)]) or HONEST


def _told(call: Call, output: str) -> str:
    """Put a tool's result in a sentence."""
    if call.name in _MEMORY:
        return output.rstrip(".") + "."
    what = _GETTING.sub("", call.name.replace("_", " ")).capitalize()
    given = ", ".join(str(value) for value in call.arguments.values())
    return f"{what}{f' ({given})' if given else ''}: {_plain(output)}."


def _plain(output: str) -> str:
    try:
        data: Any = json.loads(output)
    except ValueError:
        return output.strip().rstrip(".")
    if isinstance(data, dict):
        return ", ".join(f"{name} {value}" for name, value in cast("JSONObject", data).items())
    return str(data)


def _answered(question: str, facts: Mapping[str, str]) -> str:
    if _EVERYTHING.match(question):
        return f"I know: {'; '.join(facts.values())}." if facts else UNKNOWN
    key = _best(question, facts)
    return f"{key.replace('_', ' ').capitalize()}: {facts[key]}." if key else UNKNOWN
