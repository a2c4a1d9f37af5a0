"""The data of each phase as lines, in the shapes that `prompts` lists."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agentmem.dreaming.budgets import MESSAGE_CHARACTERS
from agentmem.dreaming.changes import Change, Finding, Orientation
from agentmem.dreaming.prompts import fact_line, shown, stamp
from agentmem.dreaming.rules.provenance import usable
from agentmem.dreaming.rules.text import Rarity, text_of, words
from agentmem.facts import Fact
from agentmem.records import TranscriptRow
from agentmem.wire import JSONObject, dump_json

_VALUE_CHARACTERS = 500
_NEAR = 3


def orientation_lines(orientation: Orientation) -> list[JSONObject]:
    """Return what orient found, on one line."""
    found = orientation.model_dump(mode="json")
    return [
        {name: value for name, value in found.items() if name not in ("source", "unknown_keys")}
    ]


def transcript_lines(
    rows: Mapping[str, TranscriptRow], most: int = MESSAGE_CHARACTERS, zone: str = "UTC"
) -> list[JSONObject]:
    """Return the dream's messages by alias; what is known already is shown without its text.

    Of a message longer than `most` characters its beginning and its end are shown.
    """
    sessions: dict[str, str] = {}
    lines: list[JSONObject] = []
    for alias, row in rows.items():
        session = sessions.setdefault(row.session, f"b{len(sessions) + 1}")
        if row.forgotten or not (row.text.strip() or row.recalled):
            continue
        line: dict[str, Any] = {"id": alias, "s": session, "role": row.role}
        line["at"] = stamp(row.at, zone)
        if row.name:
            line["name"] = row.name
        line |= {"recalled": True} if row.recalled else {"text": shortened(row.text, most)}
        lines.append(line)
    return lines


def cited_rows(
    aliases: Iterable[str], rows: Mapping[str, TranscriptRow], before: int = 1, after: int = 0
) -> dict[str, TranscriptRow]:
    """Return the cited messages with their neighbours in the same conversation, in order."""
    places = list(rows)
    wanted: set[str] = set()
    for alias in aliases:
        if alias not in rows:
            continue
        here = rows[alias]
        same = [
            name
            for name in places
            if (rows[name].session, rows[name].memory) == (here.session, here.memory)
            and (usable(rows[name]) or name == alias)
        ]
        at = same.index(alias)
        wanted.update(same[max(0, at - before) : at + after + 1])
    return {name: rows[name] for name in places if name in wanted}


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
            "about": finding.about,
            "evidence": [alias for alias in finding.evidence if alias in rows],
            "agreed": finding.agreed,
            "happened": finding.happened,
            "until": finding.until,
            "importance": finding.importance,
            "keys": finding.keys,
            "near": near.keys(finding.statement),
        }
        lines.append({name: value for name, value in line.items() if value})
    return lines


def change_lines(changes: Iterable[Change]) -> list[JSONObject]:
    """Return the draft's changes so far, and why some were not accepted."""
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
    """Return the keys that code suggests to look at, numbered, with the reason."""
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
        self._words = {fact.key: set(words(text)) for fact, text in zip(facts, texts, strict=True)}

    def keys(self, statement: str) -> list[str]:
        said = set(words(statement))
        scores = {
            key: sum(map(self._rarity.weight, sorted(said & own)))
            for key, own in self._words.items()
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


def shortened(text: str, most: int) -> str:
    """Return a text, or of one over `most` characters its beginning, its size and its end."""
    if len(text) <= most:
        return text
    tail = most // 4
    head = most - tail
    return f"{text[:head]} ...[{len(text)} characters in full]... {text[-tail:]}"
