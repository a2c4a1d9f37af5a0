"""How much a dream puts before its model at once, by the size of the model's context."""

from agentmem.values import Wire

TOKEN_BYTES = 4
"""Bytes of UTF-8 that are counted as a token; the estimate of the whole library."""

PREFIX_BYTES = 240_000
"""Facts in the shared beginning: 60,000 tokens, and 30 % of the model's context at most."""
PREFIX_SHARE = 0.3

EVIDENCE_BYTES = 200_000
"""Bytes of text that one round reads; what is left waits for the next."""
EVIDENCE_ROWS = 500
MESSAGE_CHARACTERS = 16_000
"""The longest message that is shown whole; of a longer one its first three quarters of that and
its last quarter, with the full size between."""
CHUNKS = 8
"""Requests that gather signal reads its messages in, at most."""

REPLY_TOKENS = 8_192
"""The longest reply that is asked for: forty findings take about half of it."""

_FIXED_BYTES = 16_000  # tools, rules and a phase's own words
_LEAST_CHUNK = 2_000


class Sizes(Wire):
    """What fits.

    Attributes:
        prefix: Bytes of facts in the shared beginning.
        chunk: Bytes of messages, facts or findings in one request.
        reply: Tokens of a reply.
    """

    prefix: int = PREFIX_BYTES
    chunk: int = EVIDENCE_BYTES
    reply: int = REPLY_TOKENS

    @property
    def message(self) -> int:
        """Characters of the longest message that is shown whole."""
        return min(MESSAGE_CHARACTERS, self.chunk // 4)

    @property
    def evidence(self) -> int:
        """Bytes of text that one round reads."""
        return min(EVIDENCE_BYTES, CHUNKS * self.chunk)


def sizes(context: int) -> Sizes:
    """Return what fits into a context of so many tokens; 0 if nobody knows."""
    if context <= 0:
        return Sizes()
    whole = TOKEN_BYTES * context
    prefix = min(PREFIX_BYTES, int(PREFIX_SHARE * whole))
    reply = min(REPLY_TOKENS, context // 4)
    left = whole - _FIXED_BYTES - prefix - TOKEN_BYTES * reply
    return Sizes(prefix=prefix, chunk=max(_LEAST_CHUNK, min(EVIDENCE_BYTES, left)), reply=reply)
