"""Thought that a model writes into its text, between tags of its chat template.

A server that does not know the template leaves the tags in the text. The table holds the tags of
the templates that are in use; they are markup, the same in every language.
"""

import re
import unicodedata
from bisect import bisect

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
_MOST_BLOCKS = 100


def split_thought(text: str) -> tuple[str, str]:
    """Return the thought in a text, and the text without it.

    Blocks that open a line are thought, and so is everything before a closing tag that has no
    opening one, and everything after an opening tag at the front that is never closed, as in a
    reply that was cut off. Tags in a sentence, in quotes or in a fenced block are text.

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
    return "\n".join(part.strip() for part in thoughts if part.strip()), told


def _first_block(text: str) -> tuple[int, int, int, int] | None:
    """Return where the first block starts, where its thought does, where that ends and it ends."""
    fences = _fences(text)
    for opening in _BLOCK.finditer(text):
        if bisect(fences, opening.start()) % 2:
            continue
        closing = _CLOSING[opening[1].lower()]
        end = _matching_end(text, opening, closing)
        if end is not None:
            return opening.start(), opening.end(), end, end + len(closing)
        if not text[: opening.start()].strip():
            return opening.start(), opening.end(), len(text), len(text)
        return None  # whatever comes later may be part of it
    return None


def _matching_end(text: str, opening: re.Match[str], closing: str) -> int | None:
    tags = re.compile(f"{re.escape(opening[1])}|{re.escape(closing)}", re.IGNORECASE)
    depth = 1
    first: int | None = None
    for tag in tags.finditer(text, opening.end()):
        if _is_quoted(text, tag):
            continue
        is_end = tag[0].lower() == closing
        depth += -1 if is_end else 1
        if is_end and first is None:
            first = tag.start()
        if depth == 0:
            return tag.start()
    return first  # a thought may speak of its own opening tag


def _lone_end(text: str) -> re.Match[str] | None:
    """Return the first closing tag that ends a thought, not one that a sentence speaks of."""
    fences = _fences(text)
    lowered = text.lower()
    opened = {closing: lowered.find(opening) for opening, closing in _CLOSING.items()}
    for end in _END.finditer(text):
        before, after = text[max(0, end.start() - 1) : end.start()], text[end.end() : end.end() + 1]
        is_word = before in _BLANKS and after in _BLANKS and before and after
        is_quoted = _is_quoted(text, end)
        was_opened = 0 <= opened[end[0].lower()] < end.start()
        if not (is_quoted or is_word or was_opened or bisect(fences, end.start()) % 2):
            return end
    return None


def _is_quoted(text: str, tag: re.Match[str]) -> bool:
    around = text[max(0, tag.start() - 1) : tag.start()], text[tag.end() : tag.end() + 1]
    return all(map(_is_quote, around))


def _is_quote(char: str) -> bool:
    # Quotes and brackets of any script.
    marks = ("Pi", "Pf", "Ps", "Pe")
    return bool(char) and (char in "`'\"" or unicodedata.category(char) in marks)


def _fences(text: str) -> list[int]:
    return [fence.start() for fence in _FENCE.finditer(text)]
