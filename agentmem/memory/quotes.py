"""Quotes: the part of a message that stays with a fact as its evidence."""

QUOTE_CHARACTERS = 300
"""The longest quote; it outlives the transcript."""


def quote_of(text: str) -> str:
    """Return a message's text as evidence quotes it: on one line, at most 300 characters."""
    quote = " ".join(text.split())
    if len(quote) > QUOTE_CHARACTERS:
        quote = quote[: QUOTE_CHARACTERS - 1] + "…"
    return quote
