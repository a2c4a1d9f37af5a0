"""Texts in a form that can be compared in every language: folded, in words, weighed by rarity.

Nothing here knows a language. Scripts without spaces between words (Chinese, Japanese, Thai, ...)
and Korean, whose particles stick to words, are compared by pairs of characters. What this module
finds only suggests where a model should look; it decides nothing.
"""

import math
import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from itertools import groupby, pairwise

from agentmem.wire import JSONValue, dump_json

_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]"
)


def text_of(value: JSONValue) -> str:
    """Return a fact's value as text: itself if it is text, else its JSON."""
    return value if isinstance(value, str) else dump_json(value)


def printable(text: str, most: int) -> str:
    """Return at most so many characters of a text, those that no store holds made visible."""
    return "".join(
        char if unicodedata.category(char) not in ("Cc", "Cs") else ascii(char)[1:-1]
        for char in text[:most]
    )[:most]


def fold(text: str) -> str:
    """Return a text without case, surplus spaces and invisible characters; signs stay."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    seen = "".join(char for char in plain if unicodedata.category(char) != "Cf")
    return " ".join(unicodedata.normalize("NFKC", seen).split())


def fold_key(key: str) -> str:
    """Return a key without case, hyphens, underscores and spaces; its other signs count."""
    return re.sub(r"[-_\s]+", "", unicodedata.normalize("NFC", key).casefold())


@lru_cache(maxsize=8_000)
def words(text: str) -> tuple[str, ...]:
    """Return a text's words in order, without case and marks; an unspaced script's in pairs."""
    plain = unicodedata.normalize("NFKD", text.casefold())
    letters = unicodedata.normalize("NFC", "".join(map(_letter, plain)))
    found: list[str] = []
    for word in letters.split():
        for unspaced, run in groupby(word, lambda char: bool(_UNSPACED.match(char))):
            part = "".join(run)
            found += map("".join, pairwise(part)) if unspaced and len(part) > 1 else [part]
    return tuple(found)


@lru_cache(maxsize=20_000)
def _letter(char: str) -> str:
    category = unicodedata.category(char)
    if category[0] in "LNS":
        return char
    return "" if category in ("Mn", "Cf") else " "


class Rarity:
    """The rarity of each word in a collection of texts, such as the facts of a scope."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._seen: dict[str, int] = {}
        self._texts = 0
        for text in texts:
            self._texts += 1
            for word in set(words(text)):
                self._seen[word] = self._seen.get(word, 0) + 1

    def weight(self, word: str) -> float:
        """Return a word's weight: the logarithm of one in how many texts holds it."""
        return math.log1p(self._texts / max(1, self._seen.get(word, 0)))
