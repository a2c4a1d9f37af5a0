"""Texts as the rules compare them: folded, in content words of any script, weighed by rarity.

Scripts without spaces between words (Chinese, Japanese, Thai, ...) and Korean, whose particles
stick to words, are compared by pairs of characters. A word's stem is a guess that is right often
enough to compare two texts, and nothing else.
"""
# ruff: noqa: RUF001 - words and signs of many scripts

import math
import re
import unicodedata
from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import groupby, pairwise

from agentmem.dreaming.language.words import CLOSED_CLASS, EXCEPTIONS, HEDGES, NEGATIONS
from agentmem.values import JSONValue, dump_json

_TYPOGRAPHY = str.maketrans(
    {
        **dict.fromkeys("‘’‚‛′ʼ", "'"),
        **dict.fromkeys("“”„‟″«»", '"'),
        **dict.fromkeys("‐‑‒–—―−", "-"),
    }
)
_PAIRED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]"
)
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_INVISIBLE = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff\u00ad]")
_URL = re.compile(
    r"(?:https?://|www\.)[^\s<>\"'）】」]+|\b[\w.+-]{1,64}@[\w-]{1,63}\.[\w.-]{1,190}",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_MARKS, _HEDGING, _EXCEPTING = (
    re.compile("|".join(filter(_PAIRED.match, sorted(words, key=len, reverse=True))))
    for words in (NEGATIONS, HEDGES, EXCEPTIONS)
)
_ARABIC = re.compile(r"^و?(?:ب?ال|[أيتن](?=\w{3}))?(\w{3,}?)(?:ها|هم|نا|ه|ي|ك)?$")
"""What Arabic puts before and after a word: and, the, I, he; his, my, your."""
_SENTENCE = re.compile(r"(?<=[.!?…])(?<!\s\d\.)(?<!\s\d\d\.)\s+|(?<=[。！？])|\n+")


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
    """Return a text as it is compared: NFC, without case, typography and surplus spaces."""
    plain = _INVISIBLE.sub("", unicodedata.normalize("NFC", text)).translate(_TYPOGRAPHY)
    return unicodedata.normalize("NFC", " ".join(plain.casefold().split()))


def fold_key(key: str) -> str:
    """Return a key without case, hyphens, underscores and spaces."""
    return re.sub(r"[-_\s]+", "", fold(key))


def spaced(key: str) -> str:
    """Return a key as words: without its hyphens and underscores."""
    return key.replace("_", " ").replace("-", " ")


def tokens(text: str) -> list[str]:
    """Return a text's words in order, as they are written, without URLs' and dates' marks.

    A run of a script without spaces is one token; so is an emoji.
    """
    found: list[str] = []
    for kind, run in groupby(unicodedata.normalize("NFC", text), _kind):
        if kind == "symbol":
            found += run
        elif kind:
            found.append("".join(run).strip("'’"))
    return [token for token in found if token]


def stems(text: str) -> list[str]:
    """Return the stems of all words of a text in order, small words included."""
    return [stem for token in tokens(text) for stem in _stems(token)]


def content(text: str) -> list[str]:
    """Return the stems of a text's content words in order, as often as they occur."""
    return list(_content(text))


def numbers(text: str) -> set[str]:
    """Return the numbers of a text, digits of any script as ASCII, `1,200` as `1200`."""
    if not text.isascii():
        text = "".join(
            str(unicodedata.digit(char)) if char.isdigit() and not char.isascii() else char
            for char in text
        )
    return {re.sub(r",(?=\d{3})", "", found) for found in _NUMBER.findall(text)}


def urls(text: str) -> set[str]:
    """Return the URLs and mail addresses of a text, folded."""
    return {fold(found.rstrip(".,;:!?)")) for found in _URL.findall(text)}


def names(text: str) -> set[str]:
    """Return the stems of what looks like a name: capitalised words and Chinese characters.

    A word that begins a sentence counts as well, since it often is one; small words do not.
    """
    found = set(_HAN.findall(unicodedata.normalize("NFC", text)))
    for token in tokens(_URL.sub(" ", text)):
        if token[0].isupper() and fold(token) not in CLOSED_CLASS:
            found.update(_stems(token))
    return found


def negates(token: str) -> bool:
    """Whether a word turns a statement round."""
    return fold(token) in NEGATIONS or fold(token).endswith("n't")


def negated(text: str) -> set[str]:
    """Return the stems that stand beside a word that turns a statement round: not, nicht, 不, ...

    Three words after it and one before it, in scripts without spaces three characters each way.
    """
    return _beside(text, negates, _MARKS, 1)


def hedged(text: str) -> set[str]:
    """Return the stems beside a word that makes a statement a wish, a doubt or an exception.

    Or a thing of the past, like "used to": three words after it, and what an exception is from.
    """
    wished = _beside(text, lambda token: fold(token) in HEDGES, _HEDGING, 0)
    return wished | _beside(text, lambda token: fold(token) in EXCEPTIONS, _EXCEPTING, 1)


def _beside(
    text: str, marks: Callable[[str], bool], paired: re.Pattern[str], back: int
) -> set[str]:
    found: set[str] = set()
    words = tokens(text)
    for place, token in enumerate(words):
        if marks(token):
            beside = words[max(0, place - back) : place] + words[place + 1 : place + 4]
            found.update(stem for word in beside for stem in _stems(word))
        elif _PAIRED.match(token):
            for mark in paired.finditer(token):
                start, end = mark.span()
                found.update(_stems(token[max(0, start - 3) : start]))
                found.update(_stems(token[end : end + 3]))
    return found


def sentences(text: str) -> list[str]:
    """Return a text's sentences and lines, none of them blank."""
    return [part.strip() for part in _SENTENCE.split(text) if part.strip()]


class Rarity:
    """How rare each content word is in a collection of texts, such as a dream's transcript."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._seen: dict[str, int] = {}
        self._texts = 0
        for text in texts:
            self._texts += 1
            for word in set(content(text)):
                self._seen[word] = self._seen.get(word, 0) + 1

    def weight(self, word: str) -> float:
        """Return a word's weight: the logarithm of one in how many texts holds it."""
        return math.log1p(self._texts / max(1, self._seen.get(word, 0)))

    def overlap(self, text: str, other: str) -> float:
        """Return the share (0 to 1) of `text`'s content words, by weight, that `other` holds."""
        mine = set(content(text))
        whole = sum(map(self.weight, sorted(mine)))
        shared = sum(map(self.weight, sorted(mine & set(content(other)))))
        return shared / whole if whole else 0.0


@lru_cache(maxsize=10_000)
def _kind(char: str) -> str:
    if _PAIRED.match(char):
        return "paired"
    category = unicodedata.category(char)
    if category[0] in "LNM" or char in "'’":
        return "word"
    return "symbol" if category == "So" else ""


def _weighty(token: str) -> bool:
    return len(token) > 1 or not token.isascii() or token.isdigit()


@lru_cache(maxsize=4_000)
def _content(text: str) -> tuple[str, ...]:
    return tuple(
        stem
        for token in tokens(text)
        if fold(token) not in CLOSED_CLASS and _weighty(token)
        for stem in _stems(token)
    )


@lru_cache(maxsize=20_000)
def _stems(token: str) -> tuple[str, ...]:
    word = fold(token)
    if _PAIRED.match(word):
        return tuple(map("".join, pairwise(word))) or (word,)
    return (_stem(word),) if word else ()


def _stem(word: str) -> str:
    if "\u0600" <= word[0] <= "\u06ff":
        return _ARABIC.sub(r"\1", word)[:5]
    if not word.isascii():
        # Inflected endings differ by language; the beginning of a long word rarely does.
        return word[:5] if len(word) > 5 and "LATIN" not in unicodedata.name(word[0], "") else word
    word = word.removesuffix("'s").replace("'", "")
    if len(word) < 4 or not word.isalpha():
        return word
    for ending, instead in (("ies", "y"), ("sses", "ss"), ("ing", ""), ("ed", ""), ("s", "")):
        if word.endswith(ending) and not word.endswith("ss" if ending == "s" else "\0"):
            cut = word.removesuffix(ending) + instead
            if len(cut) >= 3:
                word = cut
                break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsaeiou":
        word = word[:-1]
    return word.removesuffix("e") if len(word) > 3 else word
