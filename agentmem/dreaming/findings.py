"""Findings, checked: evidence that was shown, trust by who said it, dates by code."""

from collections.abc import Mapping

from agentmem.dreaming.changes import Finding
from agentmem.dreaming.language.dates import settle
from agentmem.dreaming.language.text import Rarity, fold, printable
from agentmem.dreaming.rules.view import View
from agentmem.dreaming.thresholds import THRESHOLDS, Thresholds
from agentmem.dreaming.trust import attribute, strongest, supports, trust_of, usable
from agentmem.facts import Trust
from agentmem.memory.providers.protocol import TranscriptRow

_NAME, _KEYS = 300, 5


def check_finding(
    finding: Finding,
    rows: Mapping[str, TranscriptRow],
    *,
    zone: str = "UTC",
    rarity: Rarity | None = None,
    limits: Thresholds = THRESHOLDS,
) -> Finding:
    """Return a finding with what code says about it, whatever the model said of that.

    Args:
        finding: As the model sent it.
        rows: The dream's messages by alias.
        zone: The zone whose days count where a message has none of its own.
        rarity: Of the words in these messages; made from them if not given.
        limits: The table of thresholds.

    Returns:
        The finding with evidence that was shown, `said_at`, `trust`, `attributed` and a settled
        date. One that cannot stand has no evidence, and its flags say why: `no_statement`,
        `no_evidence` (none shown, none found), `tool_only` (about the user, and no person or
        assistant said it). A quote that nobody said is dropped (`not_verbatim`).
    """
    rarity = rarity or Rarity(row.text for row in rows.values())
    finding = _tidied(finding, limits)
    if not finding.statement:
        return finding.replace(evidence=[], flags=["no_statement"])
    finding = _with_evidence(finding, rows, rarity, limits)
    if not finding.evidence:
        return finding.replace(flags=["no_evidence"])
    finding = _quoted(_witnessed(finding, rows, limits), rows)
    return _spoken(_dated(finding, rows, zone), rows, limits)


def keep_finding(finding: Finding, kept: dict[str, Finding], view: View) -> Finding:
    """Check a finding and put it among those kept, joined with one that says the same.

    Args:
        finding: As the model sent it.
        kept: The findings so far, by id; it is added to.
        view: What the draft shows.

    Returns:
        The finding as checked; without an id if it was not kept.
    """
    said = fold(_tidied(finding, view.limits).statement)
    known = next((old for old in kept.values() if fold(old.statement) == said), None)
    if known:
        finding = finding.replace(evidence=[*known.evidence, *finding.evidence])
    checked = check_finding(
        finding, view.rows, zone=view.zone, rarity=view.rarity, limits=view.limits
    )
    if not checked.evidence:
        return checked
    if not known and len(kept) >= view.limits.findings:
        return checked.replace(evidence=[], flags=[*checked.flags, "too_many"])
    checked = checked.replace(id=known.id if known else f"f{len(kept) + 1}")
    kept[checked.id] = checked
    return checked


def _tidied(finding: Finding, limits: Thresholds) -> Finding:
    return finding.replace(
        id="",
        statement=_line(finding.statement, limits.statement_characters),
        keys=list(dict.fromkeys(printable(key, _NAME) for key in finding.keys[:_KEYS])),
        evidence=list(dict.fromkeys(finding.evidence)),
        quote=_line(finding.quote, limits.quote_characters),
        happened=_line(finding.happened, _NAME),
        words=_line(finding.words, _NAME),
        importance=min(5, max(1, finding.importance)),
        said_at=None,
        trust=Trust.TOOL,
        attributed=False,
        flags=[],
    )


def _line(text: str, most: int) -> str:
    return printable(" ".join(text[: 4 * most].split()), most)


def _with_evidence(
    finding: Finding, rows: Mapping[str, TranscriptRow], rarity: Rarity, limits: Thresholds
) -> Finding:
    shown = [alias for alias in dict.fromkeys(finding.evidence) if _shown(alias, rows)]
    if any(supports(rows[alias], finding.statement, limits=limits) for alias in shown):
        return finding.replace(evidence=shown[: limits.evidence])
    found = attribute(finding.statement, rows, rarity, limits)
    if not found or found in shown:
        return finding.replace(evidence=shown[: limits.evidence])
    return finding.replace(evidence=[*shown[: limits.evidence - 1], found], attributed=True)


def _shown(alias: str, rows: Mapping[str, TranscriptRow]) -> bool:
    return alias in rows and usable(rows[alias])


def _witnessed(finding: Finding, rows: Mapping[str, TranscriptRow], limits: Thresholds) -> Finding:
    cited = [rows[alias] for alias in finding.evidence]
    behind = [row for row in cited if supports(row, finding.statement, limits=limits)]
    said_at = max(row.at for row in behind or cited)
    return finding.replace(said_at=said_at, trust=strongest(behind))


def _quoted(finding: Finding, rows: Mapping[str, TranscriptRow]) -> Finding:
    """Rule 8: a quote stands in a cited message, letter for letter but for case and typography."""
    quote = fold(finding.quote).rstrip("…").strip(" .\"'")
    if quote and not any(quote in fold(rows[alias].text) for alias in finding.evidence):
        return finding.replace(quote="", flags=[*finding.flags, "not_verbatim"])
    return finding


def _dated(finding: Finding, rows: Mapping[str, TranscriptRow], zone: str) -> Finding:
    cited = [rows[alias] for alias in finding.evidence]
    happened, odd = settle(finding.happened, finding.words, finding.statement, cited, zone)
    return finding.replace(happened=happened, flags=[*finding.flags, *([odd] if odd else [])])


def _spoken(finding: Finding, rows: Mapping[str, TranscriptRow], limits: Thresholds) -> Finding:
    if finding.kind == "repeated" and len(finding.evidence) < limits.repeated_messages:
        kind = "profile" if finding.about == "user" and not finding.happened else "event"
        finding = finding.replace(kind=kind, flags=[*finding.flags, "not_repeated"])
    if finding.about != "user" or finding.kind == "stale":
        return finding
    voices = {trust_of(rows[alias]) for alias in finding.evidence}
    if Trust.USER in voices:
        return finding
    if Trust.ASSISTANT in voices:
        return finding.replace(flags=[*finding.flags, "assistant_only"])
    return finding.replace(evidence=[], flags=[*finding.flags, "tool_only"])
