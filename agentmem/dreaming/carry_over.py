"""Carry-over: what a dream found and could not work in is offered to the next one.

The cursor has moved over the messages by then, so their words go along.
"""

from collections.abc import Iterator, Mapping, Sequence

from agentmem.dreaming.apply import stands
from agentmem.dreaming.changes import Change, Finding
from agentmem.dreaming.draft import Draft
from agentmem.dreaming.rules.text import text_of
from agentmem.dreaming.snapshot import Kept, by_alias
from agentmem.records import DreamRecord, TranscriptRow
from agentmem.storage.protocol import TransactionalProvider
from agentmem.wire import Wire

FINDINGS = 100
"""Findings that one dream leaves to the next, at most."""
ATTEMPTS = 2
"""The number of offers of a refused finding; one that only waits for room has no such limit."""
_FINAL = ("secret", "own_text", "expired")
_TEXT = 2_000


class Carried(Wire):
    """The findings that go along to the next dream, and the messages that they cite.

    Attributes:
        findings: Findings, numbered anew, citing `p1`, `p2`, ...
        rows: The messages that they cite, by these aliases.
        attempts: How often each has been carried, by the finding's id.
    """

    findings: list[Finding] = []
    rows: dict[str, TranscriptRow] = {}
    attempts: dict[str, int] = {}


async def carried(
    provider: TransactionalProvider, agent: str, scope: str, earlier: Sequence[DreamRecord]
) -> Carried:
    """Return what the last committed dream leaves to the next, 100 findings at most.

    These are the findings of changes that the live agent's writes overtook, of those that a bound
    deferred, and of those that were refused for their form or for a doubt that could be corrected;
    the latter two are offered twice.
    """
    last = next((one for one in earlier if is_committed(one)), None)
    left = list(left_over(last)) if last else []
    if not last or not left:
        return Carried()
    kept = Kept.model_validate(last.data)
    rows = by_alias(await provider.transcript(agent, scope, last.ranges)) | kept.carried_rows
    return _renumbered(left, rows)


def is_committed(record: DreamRecord) -> bool:
    """Tell if a dream came to its commit; decisions of people and failed dreams did not."""
    return record.status != "running" and bool(record.data.get("draft"))


def left_over(record: DreamRecord) -> Iterator[tuple[Finding, int]]:
    """Yield the findings that a committed dream could not work in, and how often they were."""
    kept = Kept.model_validate(record.data)
    draft = Draft.load(kept.draft, (), {})
    lost = set(record.conflicts)
    standing = [change for change in draft.changes if stands(change) and change.id not in lost]
    done = {name for change in standing for name in change.findings}
    left: dict[str, bool] = {}
    for change in draft.changes:
        late = change.code == "over_bound"
        refused = (
            change.id in lost
            or change.status == "deferred"
            or (change.status == "rejected" and change.fixable and change.code not in _FINAL)
        )
        if late or refused:
            left |= {name: left.get(name, False) or late for name in change.findings}
        if (late or refused) and not change.findings and change.quoted and change.op != "confirm":
            yield _as_finding(change), 0 if late else ATTEMPTS
    for name in [name for name in left if left[name] or name not in done][:FINDINGS]:
        attempts = kept.carried_attempts.get(name, 0)
        if name in draft.findings and (left[name] or attempts < ATTEMPTS):
            yield draft.findings[name], attempts if left[name] else attempts + 1


def _as_finding(change: Change) -> Finding:
    """Return a change that cites messages itself as the finding that it rests on."""
    what = "" if change.op == "remove" else f": {text_of(change.value)}"
    return Finding(
        id=f"of {change.id}",
        kind="retraction" if change.op == "remove" else "correction",
        statement=f"{change.key}{what}"[:300],
        about=change.about or "user",
        keys=[change.key],
        evidence=change.evidence,
        quote=change.quote,
        agreed=change.agreed,
        happened=change.happened,
        until=change.until,
        importance=change.importance,
        said_at=change.said_at,
        trust=change.trust,
        quoted=change.quoted,
    )


def offered_again(earlier: Sequence[DreamRecord]) -> list[str]:
    """Return the keys of changes that the last dream could not verify; they are offered once."""
    last = next((one for one in earlier if is_committed(one)), None)
    if last is None:
        return []
    kept = Kept.model_validate(last.data)
    changes = Draft.load(kept.draft, (), {}).changes
    held = [one for one in changes if one.status == "held" and one.code == "unsure"]
    keys = dict.fromkeys(key for change in held for key in (change.key, *change.sources))
    return [key for key in keys if key not in kept.offered]


def _renumbered(left: Sequence[tuple[Finding, int]], rows: Mapping[str, TranscriptRow]) -> Carried:
    cited = dict.fromkeys(
        alias
        for finding, _ in left
        for alias in (*finding.evidence, *([finding.agreed] if finding.agreed else ()))
    )
    names = {alias: f"p{place}" for place, alias in enumerate(filter(rows.__contains__, cited), 1)}
    findings: list[Finding] = []
    attempts: dict[str, int] = {}
    for finding, times in left:
        evidence = [names[alias] for alias in finding.evidence if alias in names]
        if evidence:
            renamed = {
                "id": f"f{len(findings) + 1}",
                "evidence": evidence,
                "quoted": names.get(finding.quoted, evidence[0]),
                "agreed": names.get(finding.agreed, ""),
            }
            findings.append(finding.replace(**renamed))
            attempts[findings[-1].id] = times
    shown = {name: rows[alias] for alias, name in names.items()}
    quotes = {names[one.quoted]: one.quote for one, _ in left if one.quoted in names}
    brief = {
        name: row.replace(text=_around(row.text, quotes.get(name, "")))
        for name, row in shown.items()
    }
    return Carried(findings=findings, rows=brief, attempts=attempts)


def _around(text: str, quote: str) -> str:
    """Return 2,000 characters of a message, from a little before its quote."""
    start = max(0, text.find(quote[:40]) - 200) if quote else 0
    start = min(start, max(0, len(text) - _TEXT))
    return text[start : start + _TEXT]
