"""Texts as the offline model compares them: folded, in the stems of their content words.

Scripts without spaces between words (Chinese, Japanese, Thai, ...) and Korean, whose particles
stick to words, are compared by pairs of characters. A word's stem is a guess that is right often
enough to compare two texts, and nothing else.
"""

import re
import unicodedata
from functools import lru_cache
from itertools import groupby, pairwise

from agentmem.wire import JSONValue, dump_json

# ruff: noqa: RUF001 - words and signs of many scripts

_ENGLISH = """
a about after again all also am an and any are as at be because been before being but by can could
did do does doing done for from get gets getting got had has have having he her here hers him his
how i i'd i'll i'm i've if in into is it it's its just let me might more most much must
my of off ok okay on only or other our ours out over own please really she should since so some such
than thanks that that's the their theirs them then there these they this those through to too up
us use user user's users very was we we're were what when where which while who whom why will with
would yes you you're your yours actually well still now
"""
_GERMAN = """
aber als am an auch auf aus bei bin bis bist da dann das dass dem den der des die dir doch du durch
ein eine einem einen einer er es für habe haben hat hatte ich ihm ihn ihr im in ins ist ja kann mal
man mein meine mich mir mit nach noch nun nur ob oder schon sehr sein seine sich sie sind so um und
uns unser vom von vor war warum was wenn wer werden wie wir wird wo zu zum zur nutzer benutzer
"""
_ROMANCE = """
à al au aux avec c'est ce ces cette d' dans de des du e el elle en es est esta este et eu fait il
ils j'ai je l' la las le les leur lo los ma mais me mes mi mon mas más nos notre nous o os ou où
par para pero pour por qu' que qui se sa son sont su sur sus te tu un una une uno vous y è che con
da del della di dei i gli ho io mio mia per più sono uma um meu minha com
utilisateur usuario utente usuário
"""
_OTHERS = """
من في على إلى عن مع و هو هي هذا هذه أنا ان أن قد كان में है हैं का की के को से मैं हूँ था थी
ve bir bu o ben da de ile için ο η το οι τα του της και σε στο στη στην είναι να με
הוא היא אני של את עם על זה i w na z do się jest to een het van op met ik och att som en ett jag
jeg og å på er
"""
_RUSSIAN = """
а без бы был была были было в вам вас во вот все вы где да для до его ее её если есть еще ещё же за
и из или им их к как ко когда кто ли меня мне мой моя мы на над нам нас но о об он она они от по
под при с сейчас со так там то того тоже только ты у уже чем что это этот я пользователь
"""
CLOSED_CLASS = frozenset(" ".join((_ENGLISH, _GERMAN, _ROMANCE, _RUSSIAN, _OTHERS)).split())
"""Words that carry grammar, not content, folded."""


# ruff: noqa: RUF001 - words and signs of many scripts


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
_INVISIBLE = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff\u00ad]")
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_ARABIC = re.compile(r"^و?(?:ب?ال|[أيتن](?=\w{3}))?(\w{3,}?)(?:ها|هم|نا|ه|ي|ك)?$")
"""The parts that Arabic puts before and after a word: and, the, I, he; his, my, your."""
_SENTENCE = re.compile(r"(?<=[.!?…])(?<!\s\d\.)(?<!\s\d\d\.)\s+|(?<=[。！？])|\n+")


def text_of(value: JSONValue) -> str:
    """Return a fact's value as text: itself if it is text, else its JSON."""
    return value if isinstance(value, str) else dump_json(value)


def fold(text: str) -> str:
    """Return a text as it is compared: NFC, without case, typography and surplus spaces."""
    plain = _INVISIBLE.sub("", unicodedata.normalize("NFC", text)).translate(_TYPOGRAPHY)
    return unicodedata.normalize("NFC", " ".join(plain.casefold().split()))


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


def sentences(text: str) -> list[str]:
    """Return a text's sentences and lines, none of them blank."""
    return [part.strip() for part in _SENTENCE.split(text) if part.strip()]


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
