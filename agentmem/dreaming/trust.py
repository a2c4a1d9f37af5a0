"""Witnesses: which messages support a statement, and whose word it therefore rests on."""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime

from agentmem.dreaming.language.named_dates import without_dates
from agentmem.dreaming.language.text import Rarity, content, fold, names
from agentmem.dreaming.thresholds import THRESHOLDS, Thresholds
from agentmem.facts import RANK, Evidence, Fact, Trust
from agentmem.memory.providers.protocol import TranscriptRow
from agentmem.memory.quotes import quote_of

_ROLES = {"user": Trust.USER, "assistant": Trust.ASSISTANT}
_SPOKEN = frozenset(_ROLES)
_USABLE = _SPOKEN | {"tool_call", "tool_result"}
_MARKUP = re.compile(
    r"^\s*(?:[<{\[|]|```|\$ |>>> )"  # tags, JSON, tables, fences, shells
    r"|</?\w+[^<>]*>|\.\*|\\[bdsw]\b|\[\^|\bgrep\b|\brg\b"  # tool markup, search patterns
)


def usable(row: TranscriptRow) -> bool:
    """Whether a message may be evidence: said in the conversation, not recalled, not forgotten."""
    return row.role in _USABLE and not (row.recalled or row.forgotten) and bool(row.text.strip())


def trust_of(row: TranscriptRow) -> Trust:
    """Return whose word a message is."""
    return _ROLES.get(row.role, Trust.TOOL)


def supports(
    row: TranscriptRow, statement: str, key: str = "", limits: Thresholds = THRESHOLDS
) -> bool:
    """Whether a message bears a statement out: so a cited "ok" lends nothing.

    It must share two content words with the statement and its key, and a quarter of the
    statement's. A shared name counts as two, and of two words one is enough: "lives in Bergen"
    rests on "I moved to Bergen".
    """
    plain = without_dates(statement)
    said, message = set(content(plain)), set(content(row.text))
    if not said:  # figures or signs alone, like a date
        return bool(statement.strip()) and fold(statement) in fold(row.text)
    shared = (said | set(content(key))) & message
    weight = len(shared) + len(shared & names(plain) & names(row.text))
    needed = min(limits.support_words, (len(said) + 1) // 2)
    return weight >= needed and len(shared) >= limits.support_share * len(said)


def strongest(rows: Iterable[TranscriptRow]) -> Trust:
    """Return the strongest trust among messages; that of a tool when there are none."""
    return max(map(trust_of, rows), key=RANK.__getitem__, default=Trust.TOOL)


def attribute(
    statement: str,
    rows: Mapping[str, TranscriptRow],
    rarity: Rarity,
    limits: Thresholds = THRESHOLDS,
) -> str:
    """Return the alias of the message that a statement without evidence comes from, or nothing.

    Only what a user or an assistant said counts, and no line that is a search pattern or tool
    markup: those hold a statement's words without saying it.
    """
    best, found = limits.attribution, ""
    for alias, row in rows.items():
        if row.role not in _SPOKEN or not usable(row):
            continue
        overlap = rarity.overlap(statement, _prose(row.text))
        if overlap > best or (overlap == best and not found):
            best, found = overlap, alias
    return found


def evidence_of(row: TranscriptRow) -> Evidence:
    """Return a message as evidence, with what outlives the transcript."""
    return Evidence(
        session=row.session,
        memory=row.memory,
        message=row.message,
        role=row.role,
        said_at=row.at,
        quote=quote_of(row.text),
    )


def told_at(fact: Fact) -> datetime | None:
    """Return when a fact was last said, or else written."""
    return fact.said_at or fact.recorded_at


def _prose(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not _MARKUP.search(line))
