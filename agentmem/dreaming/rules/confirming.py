"""Rule 18: what confirms a fact, and what only repeats it."""
# ruff: noqa: RUF001 - question marks of other scripts

import re

from agentmem.dreaming.changes import Change
from agentmem.dreaming.language.cues import takes_back
from agentmem.dreaming.language.dates import nearest
from agentmem.dreaming.language.named_dates import without_dates
from agentmem.dreaming.language.text import content, hedged, negated, numbers, text_of
from agentmem.dreaming.rules.survivor import speaks_alone, told
from agentmem.dreaming.rules.view import View
from agentmem.dreaming.thresholds import Thresholds
from agentmem.dreaming.trust import RANK, evidence_of, strongest, trust_of
from agentmem.facts import Fact
from agentmem.memory.providers.protocol import TranscriptRow

_QUESTION = re.compile(r"[?？؟]\W*$")


def confirming(change: Change, view: View) -> Change:
    """Rule 18: messages confirm a fact that say it again, and are as good a word as its own.

    Questions say nothing, and the assistant repeats what it knows. A confirmation that no message
    is left for stands, and adds nothing.
    """
    if change.op != "confirm":
        return change
    fact = view.facts[change.key]
    cited = {alias: view.rows[alias] for alias in change.evidence}
    said = {alias: row for alias, row in cited.items() if _says(row, fact, view.limits)}
    return change.replace(
        evidence=list(said),
        witnesses=[evidence_of(row) for row in said.values()],
        said_at=max((row.at for row in said.values()), default=None),
        trust=strongest(said.values()),
    )


def _says(row: TranscriptRow, fact: Fact, limits: Thresholds) -> bool:
    if row.role not in ("user", "tool_result") or RANK[trust_of(row)] < RANK[fact.trust]:
        return False
    alone = speaks_alone(fact.value, limits)
    statement = without_dates(text_of(fact.value) if alone else told(fact))
    message = nearest(row.text, statement)
    words = set(content(statement))
    shared = words & set(content(message))
    return (
        len(shared) >= max(1, limits.confirmed_share * len(words))
        and not _QUESTION.search(message)
        and not numbers(statement) - numbers(message)
        and not (negated(statement) ^ negated(message)) & shared
        and not (hedged(statement) ^ hedged(message)) & shared
        and not takes_back(message)
    )
