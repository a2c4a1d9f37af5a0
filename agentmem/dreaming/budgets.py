"""The amounts of data that a dream shows its model at once, by the size of the model's context."""

from agentmem.wire import Wire

TOKEN_BYTES = 4
"""Bytes of UTF-8 that are counted as a token; the estimate of the whole library."""

PREFIX_BYTES = 240_000
"""Facts in the shared beginning: 60,000 tokens, and 30 % of the model's context at most."""
PREFIX_SHARE = 0.3
_SMALL_SHARE = 0.2

EVIDENCE_BYTES = 200_000
"""Bytes of text that one round reads; what is left waits for the next."""
EVIDENCE_ROWS = 500
MESSAGE_CHARACTERS = 16_000
"""The longest message that is shown whole; of a longer one the beginning and the end, with its
full size between."""
CHUNKS = 8
"""Requests that gather signal reads its messages in, at most."""

REPLY_TOKENS = 8_192
"""The longest reply that is asked for: forty findings take about half of it."""

SMALL_CONTEXT = 16_384
"""Up to so many tokens a context is small: its requests offer only the tools of their phase."""
LEAST_MESSAGE = 2_000
"""Bytes of a message that are shown whole in the smallest context."""

_FIXED_BYTES = 20_000  # tools, rules and a phase's own words
_FIXED_SMALL = 10_000  # the same with the phase's own tools alone
_LEAST_CHUNK = 3_000
_VERIFICATION_BYTES = 120_000


class ContextBudgets(Wire):
    """The amounts of data that fit into the model's context.

    Attributes:
        prefix: Bytes of facts in the shared beginning.
        chunk: Bytes of messages, facts or findings in one request.
        reply: Tokens of a reply.
        verification: Bytes of messages and changes in one verify request: half of the context.
        small: Whether the context is small.
    """

    prefix: int = PREFIX_BYTES
    chunk: int = EVIDENCE_BYTES
    reply: int = REPLY_TOKENS
    verification: int = _VERIFICATION_BYTES
    small: bool = False

    @property
    def message(self) -> int:
        """Characters of the longest message that is shown whole."""
        return min(MESSAGE_CHARACTERS, max(LEAST_MESSAGE, self.chunk // 4))

    @property
    def evidence(self) -> int:
        """Bytes of text that one round reads."""
        return min(EVIDENCE_BYTES, CHUNKS * self.chunk)


def sizes(context: int) -> ContextBudgets:
    """Return what fits into a context of so many tokens; 0 if nobody knows."""
    if context <= 0:
        return ContextBudgets()
    whole = TOKEN_BYTES * context
    small = context <= SMALL_CONTEXT
    prefix = min(PREFIX_BYTES, int((_SMALL_SHARE if small else PREFIX_SHARE) * whole))
    reply = min(REPLY_TOKENS, context // 4)
    fixed = _FIXED_SMALL if small else _FIXED_BYTES
    left = whole - fixed - prefix - TOKEN_BYTES * reply
    return ContextBudgets(
        prefix=prefix,
        chunk=max(_LEAST_CHUNK, min(EVIDENCE_BYTES, left)),
        reply=reply,
        verification=min(_VERIFICATION_BYTES, whole // 2),
        small=small,
    )
