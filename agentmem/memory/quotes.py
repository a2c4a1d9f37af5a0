"""Quotes: the part of a message that stays with a fact as its evidence."""

import re
import unicodedata

QUOTE_CHARACTERS = 300
"""The longest quote; it outlives the transcript."""
QUOTE_BYTES = 12
"""The shortest quote of a longer message, in bytes of UTF-8: four Chinese characters are one."""

_ELISION = re.compile(r"\.{3,}")


def quote_of(text: str) -> str:
    """Return a message's text as evidence quotes it: on one line, at most 300 characters."""
    quote = " ".join(text.split())
    if len(quote) > QUOTE_CHARACTERS:
        quote = quote[: QUOTE_CHARACTERS - 1] + "…"
    return quote


def find_quote(quote: str, text: str) -> bool:
    """Return whether a quote is a verbatim piece of a text, in any language.

    Letters and digits are compared, in order, without case, marks (accents, vowel points),
    punctuation and spaces: models drop accents, and voice transcripts have no punctuation. The
    pieces around "..." must follow each other in the text.

    Args:
        quote: What somebody says that the text says: at least 12 bytes of UTF-8, punctuation not
            counted, or the whole text.
        text: The message.
    """
    pieces = [folded for piece in _pieces(quote) if (folded := piece.translate(_FOLDING))]
    if not pieces:  # signs alone, like an emoji: only the whole message says what they mean
        return bool(quote.strip()) and quote.split() == text.split()
    said = text.translate(_FOLDING)
    if pieces == [said]:
        return True
    if _size(quote) < QUOTE_BYTES:
        return False
    place = 0
    for piece in pieces:
        place = said.find(piece, place) + len(piece)
        if place < len(piece):
            return False
    return True


class _Folding(dict[int, str]):
    """A table for `str.translate`: each character as it is compared, found when first met."""

    def __missing__(self, code: int) -> str:
        plain = unicodedata.normalize("NFKD", chr(code)).casefold()
        letters = unicodedata.normalize("NFKD", plain)
        self[code] = "".join(map(_base, filter(_is_letter_or_digit, letters)))
        return self[code]


_DOTLESS_I = "\u0131"
_FOLDING = _Folding({ord(_DOTLESS_I): "i"})  # folding the case of "I" loses that it had no dot


def _is_letter_or_digit(char: str) -> bool:
    return unicodedata.category(char)[0] in "LN"


def _base(char: str) -> str:
    # Unicode does not decompose a stroke (ł, ø, đ), but names the letter below it.
    name, struck, _ = unicodedata.name(char, "").partition(" WITH STROKE")
    return unicodedata.lookup(name) if struck else char


def _pieces(quote: str) -> list[str]:
    return _ELISION.split(unicodedata.normalize("NFKD", quote))


def _size(quote: str) -> int:
    kept = (
        char if unicodedata.category(char)[0] in "LNM" else " "
        for char in unicodedata.normalize("NFC", quote)
    )
    return len(" ".join("".join(kept).split()).encode())
