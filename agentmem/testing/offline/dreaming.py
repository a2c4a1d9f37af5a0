"""The offline model's dreaming: each phase as a function of its request alone."""

from __future__ import annotations

import re
from collections import Counter
from datetime import datetime
from itertools import combinations

from agentmem.dreaming.prompts import read_blocks
from agentmem.dreaming.text import content, fold, names, tokens
from agentmem.testing.offline.matching import alike, placed, shared
from agentmem.testing.offline.reading import Said, said
from agentmem.values import JSONObject

Lines = list[JSONObject]
Blocks = dict[str, Lines]
Facts = dict[str, JSONObject]

_REPEATED = 3
_FAILED = re.compile(r"\b(?:error|failed|failure|not found|unknown|invalid)\b", re.IGNORECASE)
_NAME = re.compile(r"(?<=[\w,] )[A-Z][\w'-]{2,}(?: [A-Z][\w'-]+)*")


def dream(texts: list[str], *, again: bool = False) -> tuple[str, JSONObject]:
    """Return the tool that a phase of a dream hands in with, and its arguments.

    Args:
        texts: The user messages of the request, in order.
        again: Whether it was asked to mend what it handed in: then it drops that.
    """
    blocks = {name: lines for text in texts for name, lines in read_blocks(text).items()}
    facts = {str(line["k"]): line for line in blocks["FACTS"][1:]}
    phase = next(text.split()[1] for text in reversed(texts) if text.startswith("PHASE "))
    if phase == "orient":
        return "submit_orientation", _orient(facts, blocks.get("HINTS", []))
    if phase == "gather_signal":
        found = [] if again else _gather(facts, blocks.get("TRANSCRIPT", []))
        return "submit_findings", {"findings": found}
    if again:
        return "submit_changes", {"changes": [], "summary": "What was refused is left out."}
    work = _consolidate if phase == "consolidate" else _prune
    return "submit_changes", work(facts, blocks)


def _orient(facts: Facts, hints: Lines) -> JSONObject:
    duplicates: list[list[str]] = []
    contradictions: Lines = []
    for key, other in combinations(facts, 2):
        ours, theirs = (set(content(str(facts[name]["v"]))) for name in (key, other))
        near = alike(key, other)
        held = shared(min(ours, theirs, key=len), max(theirs, ours, key=len))
        if (near and held == min(len(ours), len(theirs))) or (ours == theirs and len(ours) > 2):
            _group(duplicates, key, other)
        elif near:
            contradictions.append({"keys": [key, other], "why": "one subject, two values"})
    hinted = {
        name: [key for hint in hints if hint["hint"] == name for key in hint["keys"]]
        for name in ("expired", "too_long")
    }
    return {
        "duplicates": duplicates,
        "contradictions": contradictions,
        "stale": [{"key": key, "why": "its date has passed"} for key in hinted["expired"]],
        "too_long": hinted["too_long"],
        "topics": sorted({key.split("_")[0] for key in facts})[:12],
    }


def _group(groups: list[list[str]], key: str, other: str) -> None:
    group = next((group for group in groups if key in group or other in group), None)
    if group is None:
        groups.append(group := [])
    group += [name for name in (key, other) if name not in group]


def _gather(facts: Facts, transcript: Lines) -> Lines:
    known = {key: str(fact["v"]) for key, fact in facts.items()}
    found: Facts = {}
    last: dict[str, tuple[str, str]] = {}
    asked = [line for line in transcript if line["role"] == "user" and "text" in line]
    for line in asked:
        for told in said(line["text"], datetime.fromisoformat(line["at"]).date()):
            key, value = placed(told, known, *last.get(line["s"], ("", "")))
            if not key:
                continue
            earlier = found.pop(key, {})
            if told.old and value and not earlier and not told.key:
                value = f"{value}, not {told.old}" if told.kind == "correction" else value
            if value or key in facts:
                found[key] = _finding(told, key, value, key in facts, earlier, line["id"])
            known.pop(key, None)
            if value:
                known[key], last[line["s"]] = value, (key, told.caught)
    return [*found.values(), *_repeated(asked, known), *_failures(transcript, facts)][:40]


def _finding(
    told: Said, key: str, value: str, stored: bool, earlier: JSONObject, alias: str
) -> JSONObject:
    kind = "correction" if value and (earlier or told.kind == "retraction") else told.kind
    return {
        "kind": kind,
        "statement": f"{key.replace('_', ' ')}: {value or 'taken back'}",
        "about": "project" if kind == "decision" else "user",
        "keys": [key] if stored else [],
        "evidence": [*earlier.get("evidence", []), alias][-8:],
        "quote": told.quote[:200],
        "happened": told.happened,
        "words": told.words,
        "importance": 4 if kind in ("profile", "correction", "decision") else 3,
    }


def _repeated(asked: Lines, known: dict[str, str]) -> Lines:
    """Find the names that three messages or more speak of and no fact tells of."""
    named = [(line["id"], set(_NAME.findall(line["text"]))) for line in asked]
    counts = Counter(name for _, heard in named for name in heard)
    told = fold(" ".join(known.values()))
    return [
        {
            "kind": "repeated",
            "statement": f"topic {fold(name)}: Often speaks of {name}",
            "evidence": [alias for alias, heard in named if name in heard][:8],
            "importance": 2,
        }
        for name, count in sorted(counts.items())
        if count >= _REPEATED and fold(name) not in told
    ]


def _failures(transcript: Lines, facts: Facts) -> Lines:
    """Find tool errors about names that facts hold."""
    return [
        {
            "kind": "stale",
            "statement": f"{key.replace('_', ' ')}: a tool failed on it: {line['text'][:150]}",
            "about": "other",
            "keys": [key],
            "evidence": [line["id"]],
        }
        for line in transcript
        if line["role"].startswith("tool") and _FAILED.search(line.get("text", ""))
        for key, fact in facts.items()
        if names(str(fact["v"])) & names(line["text"])
    ]


def _consolidate(facts: Facts, blocks: Blocks) -> JSONObject:
    changes: Facts = {}
    for finding in blocks.get("FINDINGS", []):
        if finding["kind"] != "stale":
            change = _worked_in(finding, facts)
            changes[change["key"]] = change
    for orientation in blocks.get("ORIENTATION", []):
        for group in orientation.get("duplicates", []):
            changes |= _merged([key for key in group if key in facts], facts, changes)
        for issue in orientation.get("contradictions", []):
            changes |= _settled([key for key in issue["keys"] if key in facts], facts, changes)
    return {"changes": list(changes.values()), "summary": _counted(list(changes.values()))}


def _worked_in(finding: JSONObject, facts: Facts) -> JSONObject:
    head, _, value = finding["statement"].partition(": ")
    named = head.replace(" ", "_")
    key = next(iter(finding.get("keys", [])), named)
    if key not in facts:
        key = next((stored for stored in facts if alike(stored, key)), named)
    change: JSONObject = {"op": "add", "key": key, "value": value, "reason": "new"}
    if finding["kind"] == "retraction":
        change = {"op": "remove", "key": key, "reason": "retracted"}
    elif key in facts:
        same = fold(str(facts[key]["v"])) == fold(value)
        change |= {"op": "confirm" if same else "update", "reason": "" if same else "correction"}
    elif finding["kind"] == "decision":
        change["reason"] = "decision"
    resting = {name: finding[name] for name in _RESTING if name in finding}
    return change | resting | {"findings": [finding["f"]]}


_RESTING = ("evidence", "happened", "words", "importance")


def _merged(group: list[str], facts: Facts, changes: Facts) -> Facts:
    """Merge facts that say the same; if the user has just changed one, that one stays alone."""
    if any(changes.get(key, {}).get("op") != "confirm" for key in group if key in changes):
        return _settled(group, facts, changes)
    free = [key for key in group if not facts[key].get("pin")]
    if len(free) < 2:
        return {}
    stays = max(free, key=lambda key: (len(content(str(facts[key]["v"]))), key in changes))
    sources = [key for key in free if key != stays]
    for key in sources:
        changes.pop(key, None)
    value = _holding(stays, sources, facts)
    return {
        stays: {
            "op": "merge",
            "key": stays,
            "value": value,
            "sources": sources,
            "reason": "duplicate",
        }
    }


def _holding(stays: str, sources: list[str], facts: Facts) -> str:
    """Return the value that stays, with the words of the others that it lacks behind it."""
    value = str(facts[stays]["v"])
    held = set(content(f"{stays.replace('_', ' ')} {value}"))
    others = " ".join(f"{key.replace('_', ' ')} {facts[key]['v']}" for key in sources)
    lacking = {fold(word): word for word in tokens(others) if set(content(word)) - held}
    return f"{value} ({' '.join(lacking.values())})" if lacking else value


def _settled(group: list[str], facts: Facts, changes: Facts) -> Facts:
    """Let the newest of facts that disagree stay: what the user said now, else the later day."""
    said_now = [key for key in group if key in changes and changes[key]["op"] != "remove"]
    days = {key: str(facts[key].get("d", "")) for key in group}
    latest = max(group, key=days.__getitem__)
    stays = said_now[0] if said_now else latest
    rest = {name: changes.get(stays, {}).get(name, []) for name in ("evidence", "findings")}
    return {
        key: {"op": "remove", "key": key, "by": stays, "reason": "superseded", **rest}
        for key in group
        if key not in changes
        and not facts[key].get("pin")
        and (said_now or days[key] < days[stays])
    }


def _prune(facts: Facts, blocks: Blocks) -> JSONObject:
    changed = {change["key"] for change in blocks.get("CHANGES", [])}
    changes = [
        {"op": "remove", "key": line["key"], "reason": "expired"}
        for line in blocks.get("NOMINATED", [])
        if line["why"].startswith("expired") and line["key"] not in changed
    ]
    done = [c for c in blocks.get("CHANGES", []) if c["status"] in ("accepted", "flagged")]
    return {"changes": changes, "summary": _counted([*done, *changes])}


def _counted(changes: Lines) -> str:
    counts = Counter(str(change["op"]) for change in changes)
    return ", ".join(f"{op}: {count}" for op, count in counts.items()) or "Nothing to change."
