"""Reasoning: parts that a provider wants back unchanged, and thought inside of text.

Each reasoning part is stored with a `type`: `thinking` and `redacted_thinking` blocks as they
came, `reasoning_content` with its `text` (left out if the blocks say the same), `content` for
reasoning that was among the content parts, and `reasoning_details` or `reasoning_items` with
their `value`. On a request each is placed where it came from.

A server that does not know a chat template leaves its tags in the text. What is between them
becomes a `thought` with its `text`: it is kept for people, and no provider takes it back. The table
holds the tags of the templates that are in use; they are markup, the same in every language.
"""

import re
import unicodedata
from bisect import bisect

from agentmem.messages import IN_CONTENT, THOUGHT, Message
from agentmem.wire import JSONObject, as_mapping, objects

_TAGS = (
    ("<think>", "</think>"),  # DeepSeek, Qwen, GLM, MiniMax, and most that follow them
    ("<thinking>", "</thinking>"),  # Amazon Nova, and models that are prompted so
    ("<thought>", "</thought>"),  # Gemini behind OpenAI's protocol
    ("<budget:thinking>", "</budget:thinking>"),
    ("<seed:think>", "</seed:think>"),  # ByteDance Seed
    ("<mm:think>", "</mm:think>"),
    ("[THINK]", "[/THINK]"),  # Mistral
    ("◁think▷", "◁/think▷"),  # Moonshot
    ("<|START_THINKING|>", "<|END_THINKING|>"),  # Cohere
    ("<|begin_of_thought|>", "<|end_of_thought|>"),  # OpenThinker, Sky-T1
    ("<|inner_prefix|>", "<|inner_suffix|>"),  # Apertus
    ("<longcat_think>", "</longcat_think>"),  # Meituan
    ("<unused94>", "<unused95>"),  # MedGemma
    ("<|channel>", "<channel|>"),  # Gemma
    ("<reasoning>", "</reasoning>"),  # Reka
)
# What some templates put around the answer that follows a thought.
_AROUND = (
    ("<answer>", "</answer>"),  # Hunyuan, GLM
    ("<response>", "</response>"),  # Granite, Ernie
    ("<|START_RESPONSE|>", "<|END_RESPONSE|>"),
    ("<|begin_of_solution|>", "<|end_of_solution|>"),
    ("<|begin_of_box|>", "<|end_of_box|>"),
)
_CLOSING = {opening.lower(): closing.lower() for opening, closing in _TAGS}
_ANY_OPENING = "|".join(re.escape(opening) for opening, _ in _TAGS)
_ANY_CLOSING = "|".join(re.escape(closing) for _, closing in _TAGS)

# A block opens a line: a tag inside a sentence is what the sentence is about.
_BLOCK = re.compile(rf"^[ \t\ufeff]*({_ANY_OPENING})", re.IGNORECASE | re.MULTILINE)
# Many templates end the prompt with the opening tag, so that a reply holds the closing one alone.
_END = re.compile(_ANY_CLOSING, re.IGNORECASE)
_FENCE = re.compile(r"^[ \t]*(?:```|~~~)", re.MULTILINE)
_BLANKS = " \t"
_SENTENCE_ENDS = ".!?\u2026\u3002\uff01\uff1f"
_MOST_BLOCKS = 100
_NEAR, _LINE = 16, 1_000
"""Characters before a tag that tell whether it is a word, or quoted."""


def split_thought(text: str) -> tuple[str, str]:
    """Return the thought in a text, and the text without it.

    Blocks that open a line are thought, and so is everything before a closing tag that has no
    opening one, and everything after an opening tag at the front that is never closed, as in a
    reply that was cut off. Tags in a sentence, in quotes or in a fenced block are text. Tags that a
    template puts around the answer behind a thought are left out.

    Returns:
        Both without white space around them; the text itself, unchanged, if it holds no thought.
    """
    if not _END.search(text) and not _BLOCK.match(text.lstrip()):
        return "", text
    thoughts: list[str] = []
    said: list[str] = []
    rest = text
    for _ in range(_MOST_BLOCKS):
        found = _first_block(rest)
        if found is None:
            break
        start, opened, closed, end = found
        said.append(rest[:start])
        thoughts.append(rest[opened:closed])
        rest = rest[end:]
    said.append(rest)
    told = "\n".join(part.strip() for part in said if part.strip())
    for _ in range(_MOST_BLOCKS):
        end = _lone_end(told)
        if end is None:
            break
        thoughts.append(told[: end.start()])
        told = told[end.end() :].strip()
    if not thoughts:
        return "", text
    return "\n".join(part.strip() for part in thoughts if part.strip()), _bare(told)


def _bare(told: str) -> str:
    """Return an answer without the tags of a template around it."""
    lowered = told.lower()
    for opening, closing in _AROUND:
        start, end = opening.lower(), closing.lower()
        at = lowered.find(end)
        if lowered.startswith(start) and at in (-1, len(told) - len(end)):
            return told[len(start) : at if at >= 0 else len(told)].strip()
    return told


def _first_block(text: str) -> tuple[int, int, int, int] | None:
    """Return where the first block starts, where its thought does, where that ends and it ends."""
    fences = _fences(text)
    for opening in _BLOCK.finditer(text):
        if bisect(fences, opening.start()) % 2:
            continue
        end = _matching_end(text, opening)
        if end is not None:
            return opening.start(), opening.end(), end.start(), end.end()
        if not text[: opening.start()].strip():
            return opening.start(), opening.end(), len(text), len(text)
        return None  # whatever comes later may be part of it
    return None


def _matching_end(text: str, opening: re.Match[str]) -> re.Match[str] | None:
    closing = _CLOSING[opening[1].lower()]
    tags = re.compile(f"{re.escape(opening[1])}|{re.escape(closing)}", re.IGNORECASE)
    depth = 1
    first: re.Match[str] | None = None
    for tag in tags.finditer(text, opening.end()):
        if _is_quoted(text, tag):
            continue
        is_end = tag[0].lower() == closing
        depth += -1 if is_end else 1
        if is_end and first is None:
            first = tag
        if depth == 0:
            return tag
    # A thought may speak of its own opening tag, and a model may close with another template's.
    ends = (end for end in _END.finditer(text, opening.end()) if not _is_quoted(text, end))
    return first or next(ends, None)


def _lone_end(text: str) -> re.Match[str] | None:
    """Return the first closing tag that ends a thought, not one that a sentence speaks of."""
    fences = _fences(text)
    lowered = text.lower()
    opened = {closing: lowered.find(opening) for opening, closing in _CLOSING.items()}
    for end in _END.finditer(text):
        told = text[max(0, end.start() - _NEAR) : end.start()]
        after = text[end.end() : end.end() + 1]
        is_apart = told[-1:] in _BLANKS and after in _BLANKS and told and after
        is_word = is_apart and told.rstrip(_BLANKS)[-1:] not in _SENTENCE_ENDS
        # A thought may leave a fence open: then there is an odd number of them.
        is_fenced = bisect(fences, end.start()) % 2 and len(fences) % 2 == 0
        was_opened = 0 <= opened[end[0].lower()] < end.start()
        if not (_is_quoted(text, end) or is_word or was_opened or is_fenced):
            return end
    return None


_MIRRORED = {"(": ")", "[": "]", "{": "}", "<": ">", "\u00ab": "\u00bb", "\u201e": "\u201c"}


def _is_quoted(text: str, tag: re.Match[str]) -> bool:
    """Tell whether a tag stands between marks that belong together, not behind one and before one.

    A thought may end by a quote, and the answer begin with one.
    """
    before, after = text[max(0, tag.start() - 1) : tag.start()], text[tag.end() : tag.end() + 1]
    if before in _QUOTES and before == after:
        near = text[max(0, tag.start() - _LINE) : tag.start()]
        line = near[near.rfind("\n") + 1 :]
        return _quotes(line, before) % 2 == 1
    return _opens(before) and _closes(after) and _MIRRORED.get(before, after) == after


_QUOTES = ("`", "'", '"')


def _quotes(line: str, mark: str) -> int:
    """Count a mark in a line; an apostrophe within a word is none."""
    inside = re.findall(rf"(?<=\w){re.escape(mark)}(?=\w)", line) if mark == "'" else []
    return line.count(mark) - len(inside)


def _opens(char: str) -> bool:
    return bool(char) and unicodedata.category(char) in ("Pi", "Ps")


def _closes(char: str) -> bool:
    return bool(char) and unicodedata.category(char) in ("Pf", "Pe", "Pi")


def _fences(text: str) -> list[int]:
    return [fence.start() for fence in _FENCE.finditer(text)]


_BLOCKS = ("thinking", "redacted_thinking")
_LISTS = ("reasoning_details", "reasoning_items")
_SPECIFIC = "provider_specific_fields"


def read_reasoning(message: JSONObject) -> list[JSONObject]:
    """Return the reasoning parts of a reply's message, in OpenAI's form as litellm gives it."""
    blocks = objects(message.get("thinking_blocks"))
    parts = list(blocks)
    if thought := message.get("thought"):
        parts.append({"type": THOUGHT, "text": thought})
    text = message.get("reasoning_content")
    if isinstance(text, str) and text:
        same = text == _thought(blocks)
        parts.append({"type": "reasoning_content", **({} if same else {"text": text})})
    specific = as_mapping(message.get(_SPECIFIC))
    parts += [
        {"type": "content", "part": part}
        for part in (*objects(message.get("content")), *objects(specific.get("content")))
        if part.get("type") in IN_CONTENT
    ]
    for name in _LISTS:
        value = message.get(name) or specific.get(name)
        if value:
            parts.append({"type": name, "value": value})
    return parts


def read_fields(message: JSONObject) -> JSONObject:
    """Return the fields of a message that only its provider understands, signatures for example.

    What litellm repeats there from the message itself is left out.
    """
    fields = {
        name: value
        for name, value in as_mapping(message.get(_SPECIFIC)).items()
        if value is not None and name not in (*_LISTS, "refusal") and not message.get(name)
    }
    return {_SPECIFIC: fields} if fields else {}


def read_call_fields(call: JSONObject) -> JSONObject:
    """Return what a provider attached to a call, besides what a call is made of."""
    fields = {
        name: value
        for name, value in call.items()
        if name not in ("id", "type", "function", "index") and value is not None
    }
    inner = as_mapping(as_mapping(call.get("function")).get(_SPECIFIC))
    return {_SPECIFIC: inner, **fields} if inner else fields


def written(message: Message) -> JSONObject:
    """Return the fields by which a request's message carries its reasoning and provider fields."""
    blocks = [part for part in message.reasoning if part.get("type") in _BLOCKS]
    fields: JSONObject = dict(message.fields)
    if blocks:
        fields["thinking_blocks"] = blocks
    for part in message.reasoning:
        if part.get("type") == "reasoning_content":
            fields["reasoning_content"] = part.get("text", _thought(blocks))
        elif part.get("type") in _LISTS:
            fields[part["type"]] = part.get("value")
    return fields


def content_parts(message: Message) -> list[JSONObject]:
    """Return the reasoning that stood among the content parts."""
    return [part["part"] for part in message.reasoning if part.get("type") == "content"]


def _thought(blocks: list[JSONObject]) -> str:
    return "".join(str(block.get("thinking") or "") for block in blocks)
