"""Provenance: which message holds what is proposed, by a verbatim quote, and whose word that is.

A quote works in every language: it is there or it is not. Whether the quoted words really say
what is proposed is a question of meaning, which the verification asks a model.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from agentmem.facts import RANK, Evidence, Fact, Trust
from agentmem.memory.quotes import QUOTE_CHARACTERS, find_quote, quote_of
from agentmem.memory.redaction import redacted
from agentmem.records import TranscriptRow
from agentmem.wire import Wire, dump_json

EVIDENCE = 8
"""Messages that one finding or change may cite."""

_ROLES = {"user": Trust.USER, "assistant": Trust.ASSISTANT}
_USABLE = frozenset({"user", "assistant", "tool_call", "tool_result"})
_SHOWN_AGAIN = 1_000
"""Characters of a message that is shown again beside a refusal."""


class Citation(Wire):
    """The evidence that a finding or a change rests on, as far as its form goes.

    Attributes:
        evidence: The cited messages that may be evidence, by alias.
        quoted: The alias of the message that holds the quote; the least trusted one of the cited
            if none does.
        agreed: The alias of the user's next message, if what the assistant said rests on it.
        witnesses: The same messages as evidence that outlives the transcript.
        trust: Whose word it is; a user's if `agreed` counts, which the verification decides.
        said_at: When the quoted message was said.
        problem: The rule that it breaks, like `no_quote`; empty if it is right.
        message: That in words, for the model.
    """

    evidence: list[str] = []
    quoted: str = ""
    agreed: str = ""
    witnesses: list[Evidence] = []
    trust: Trust = Trust.TOOL
    said_at: datetime | None = None
    problem: str = ""
    message: str = ""


def usable(row: TranscriptRow) -> bool:
    """Tell if a message may be evidence: said in the conversation, not recalled, not forgotten."""
    return row.role in _USABLE and not (row.recalled or row.forgotten) and bool(row.text.strip())


def trust_of(row: TranscriptRow) -> Trust:
    """Return whose word a message is, by its role."""
    return _ROLES.get(row.role, Trust.TOOL)


def weakest(trusts: Iterable[Trust]) -> Trust:
    """Return the weakest trust; a tool's if there is none."""
    return min(trusts, key=RANK.__getitem__, default=Trust.TOOL)


def cite(
    evidence: Sequence[str], quote: str, agreed: str, rows: Mapping[str, TranscriptRow]
) -> Citation:
    """Check what a model cites.

    Args:
        evidence: Aliases of messages.
        quote: The words of one of them that hold the content.
        agreed: The alias of the user's message that agrees with what the assistant said.
        rows: The dream's messages by alias.

    Returns:
        The citation. A quote that only another message of the dream holds counts as that
        message's, since models confuse numbers more often than words.
    """
    cited = [name for name in dict.fromkeys(evidence) if name in rows and usable(rows[name])]
    cited = cited[:EVIDENCE]
    holding = [name for name in cited if quote.strip() and find_quote(quote, rows[name].text)]
    if quote.strip() and not holding:
        elsewhere = [
            name for name, row in rows.items() if usable(row) and find_quote(quote, row.text)
        ]
        if len(elsewhere) == 1:
            holding, cited = elsewhere, [*elsewhere, *cited][:EVIDENCE]
    if not cited:
        if any(name in rows for name in evidence):
            message = "what a message marked recalled shows is known already, and no evidence"
            return Citation(problem="recalled", message=message)
        message = "cite the ids of the messages that say it, like a12"
        return Citation(problem="no_evidence", message=message)
    if holding:
        quoted = max(holding, key=lambda name: RANK[trust_of(rows[name])])
        return _citation(cited, quoted, quote, agreed, rows)
    quoted = min(cited, key=lambda name: RANK[trust_of(rows[name])])
    problem = "inexact_quote" if quote.strip() else "no_quote"
    return _citation(cited, quoted, "", "", rows).replace(
        problem=problem, message=_quote_again(cited, rows)
    )


def evidence_of(row: TranscriptRow, quote: str = "") -> Evidence:
    """Return a message as evidence, with its quote or else its beginning, on one line."""
    return Evidence(
        session=row.session,
        memory=row.memory,
        message=row.message,
        role=row.role,
        said_at=row.at,
        quote=quote_of(redacted(quote or row.text))[:QUOTE_CHARACTERS],
    )


def told_at(fact: Fact) -> datetime | None:
    """Return when a fact was last said, or else written."""
    return fact.said_at or fact.recorded_at


def local_day(at: datetime, zone: str) -> date:
    """Return the day on which something was said where it was said.

    A time that carries an offset of its own keeps it. UTC says nothing about the speaker, since
    clocks of servers run on it, so there `zone` decides.
    """
    return local_time(at, zone).date()


def local_time(at: datetime, zone: str) -> datetime:
    """Return the time at which something was said, on the speaker's clock."""
    if zone == "UTC" or at.utcoffset() != timedelta(0):
        return at
    return at.astimezone(ZoneInfo(zone))


def _citation(
    cited: Sequence[str],
    quoted: str,
    quote: str,
    agreed: str,
    rows: Mapping[str, TranscriptRow],
) -> Citation:
    agreed = agreed if agreed and _agrees(agreed, quoted, rows) else ""
    others: list[str] = [agreed] if agreed else []
    named = list(dict.fromkeys([*cited, quoted, *others]))
    return Citation(
        evidence=list(cited),
        quoted=quoted,
        agreed=agreed,
        witnesses=[evidence_of(rows[name], quote if name == quoted else "") for name in named],
        trust=Trust.USER if agreed else trust_of(rows[quoted]),
        said_at=rows[quoted].at,
    )


def _agrees(agreed: str, quoted: str, rows: Mapping[str, TranscriptRow]) -> bool:
    """Tell if a message is the user's next one after what the assistant said."""
    said = rows[quoted]
    if said.role != "assistant" or agreed not in rows:
        return False
    after = [
        name
        for name, row in rows.items()
        if (row.session, row.memory, row.role) == (said.session, said.memory, "user")
        and row.seq > said.seq
    ]
    return agreed == min(after, key=lambda name: rows[name].seq, default="")


def _quote_again(cited: Sequence[str], rows: Mapping[str, TranscriptRow]) -> str:
    shown = [
        dump_json({"id": name, "role": rows[name].role, "text": rows[name].text[:_SHOWN_AGAIN]})
        for name in cited[:2]
    ]
    return (
        "its quote is in none of the cited messages; copy the words that say it, at least twelve "
        "bytes, exactly as they are: " + " ".join(shown)
    )
