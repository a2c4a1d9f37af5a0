"""The data of each phase as lines, in the shapes that `prompts` lists."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agentmem.dreaming.changes import Change, Finding, Orientation
from agentmem.dreaming.language.text import Rarity, content, text_of
from agentmem.dreaming.prompts import fact_line, shown, stamp
from agentmem.dreaming.sizes import MESSAGE_CHARACTERS
from agentmem.facts import Fact
from agentmem.memory.providers.protocol import TranscriptRow
from agentmem.values import JSONObject, dump_json

_VALUE_CHARACTERS = 500
_NEAR = 3


def orientation_lines(orientation: Orientation) -> list[JSONObject]:
    """Return what orient found, on one line."""
    found = orientation.model_dump(mode="json")
    return [
        {name: value for name, value in found.items() if name not in ("source", "unknown_keys")}
    ]


def transcript_lines(
    rows: Mapping[str, TranscriptRow], most: int = MESSAGE_CHARACTERS
) -> list[JSONObject]:
    """Return the dream's messages by alias; what is known already stands without its text.

    Of a message longer than `most` characters its beginning and its end are shown.
    """
    sessions: dict[str, str] = {}
    lines: list[JSONObject] = []
    for alias, row in rows.items():
        session = sessions.setdefault(row.session, f"b{len(sessions) + 1}")
        if row.forgotten or not (row.text.strip() or row.recalled):
            continue
        line: dict[str, Any] = {"id": alias, "s": session, "role": row.role, "at": stamp(row.at)}
        if row.name:
            line["name"] = row.name
        line |= {"recalled": True} if row.recalled else {"text": _cut(row.text, most)}
        lines.append(line)
    return lines


def finding_lines(
    findings: Iterable[Finding], facts: Sequence[Fact], rows: Mapping[str, TranscriptRow]
) -> list[JSONObject]:
    """Return what gather signal found, each with the stored keys that it may touch."""
    near = _Near(facts)
    lines: list[JSONObject] = []
    for finding in findings:
        line: dict[str, Any] = {
            "f": finding.id,
            "kind": finding.kind,
            "statement": finding.statement,
            "quote": finding.quote,
            "who": str(finding.trust),
            "said": stamp(finding.said_at) if finding.said_at else "",
            "about": finding.about,
            "evidence": [alias for alias in finding.evidence if alias in rows],
            "happened": finding.happened,
            "words": finding.words,
            "importance": finding.importance,
            "keys": finding.keys,
            "near": near.keys(finding.statement),
        }
        lines.append({name: value for name, value in line.items() if value})
    return lines


def change_lines(changes: Iterable[Change]) -> list[JSONObject]:
    """Return the draft's changes so far, and why some do not stand."""
    lines: list[JSONObject] = []
    for change in changes:
        line: dict[str, Any] = {
            "c": change.id,
            "op": change.op,
            "key": change.key,
            "value": None if change.value is None else shown(change.value, _VALUE_CHARACTERS),
            "by": change.by,
            "status": change.status,
            "why": change.message,
        }
        lines.append({name: value for name, value in line.items() if value not in (None, "")})
    return lines


def nominated_lines(nominated: Mapping[str, str]) -> list[JSONObject]:
    """Return the keys that code finds fit to go or to condense, numbered."""
    return [
        {"n": f"n{number}", "key": key, "why": why}
        for number, (key, why) in enumerate(nominated.items(), 1)
    ]


def count_lines(facts: int, cap: int) -> list[JSONObject]:
    """Return how many facts there are, how many there may be, how many must go."""
    return [{"facts": facts, "cap": cap, "must_go": max(0, facts - cap)}]


class _Near:
    """Finds the stored keys whose facts share the rarest words with a statement."""

    def __init__(self, facts: Sequence[Fact]) -> None:
        texts = [f"{fact.key.replace('_', ' ')} {text_of(fact.value)}" for fact in facts]
        self._rarity = Rarity(texts)
        self._words = {
            fact.key: set(content(text)) for fact, text in zip(facts, texts, strict=True)
        }

    def keys(self, statement: str) -> list[str]:
        said = set(content(statement))
        scores = {
            key: sum(map(self._rarity.weight, sorted(said & words)))
            for key, words in self._words.items()
        }
        best = sorted((key for key in scores if scores[key] > 0), key=lambda key: -scores[key])
        return best[:_NEAR]


def value_lines(facts: Mapping[str, Fact], keys: Iterable[str], room: int) -> list[JSONObject]:
    """Return these facts with their values, as many as fit into so many bytes."""
    lines: list[JSONObject] = []
    for key in dict.fromkeys(keys):
        if key in facts:
            line = fact_line(facts[key])
            room -= len(dump_json(line).encode())
            if room < 0:
                break
            lines.append(line)
    return lines


def _cut(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    tail = most // 4
    head = most - tail
    return f"{text[:head]} ...[{len(text)} characters in full]... {text[-tail:]}"
