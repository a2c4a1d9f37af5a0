"""The offline model's dreams: statements by fixed patterns, each phase's work, verification.

It reads no meaning. It confirms a change if the change holds nothing that its messages, or the
facts beside it, do not hold.
"""

import re
from collections.abc import Mapping
from datetime import date, datetime
from functools import lru_cache
from typing import Any, NamedTuple

from agentmem.dreaming.prompts import read_blocks
from agentmem.memory.quotes import QUOTE_BYTES, find_quote
from agentmem.offline.dates import TimeWord, absolute, relative
from agentmem.offline.text import content, fold, numbers, sentences, text_of, tokens
from agentmem.wire import JSONObject

PASSING = re.compile(
    r"(?i)\b(appointment|dentist|doctor|meeting|interview|flight|deadline|reservation|termin|cita)"
    r"|\b(until|till|expires|bis|hasta)\b"
)
"""Words of things that are of no use after their day."""

_NOT_STATED = re.compile(
    r"(?i)[?\uff1f\u061f]\W*$|^\s*>|[\"\u201c][^\"\u201d]*\b(i|my|we)\b|\b(if|would|could|might|maybe|perhaps|"
    r"suppose|imagine|pretend|wish|kidding|joking|lol|haha|wenn|w\u00fcrde|secret|password)\b|[\U0001f609\U0001f643\U0001f644]"
)
_TAKES_BACK = re.compile(
    r"(?i)\b(forget|no longer|not|cancel\w*|any ?more|vergiss|nicht|olvida|n't)\b|\u5fd8"
)
_FILLERS = frozenset(
    content("is was are called name lives live moved move works work says said now")
)
_ISO = re.compile(r"\b\d{4}-\d{2}(?:-\d{2})?\b")

Lines = list[JSONObject]


def verdicts(blocks: Mapping[str, Lines]) -> Lines:
    """Return a verdict for each change of a verify request."""
    today = str(blocks["TODAY"][0]["today"]).split()[-1]
    messages = {line["id"]: line for line in blocks.get("MESSAGES", [])}
    return [_verdict(line, messages, today) for line in blocks.get("CHANGES", [])]


def _verdict(line: JSONObject, messages: Mapping[str, JSONObject], today: str) -> JSONObject:
    cited = messages.get(line.get("message", ""))
    verdict: dict[str, Any] = {"n": line["n"], **dict.fromkeys(("said", "whose", "exact"), "yes")}
    verdict |= {"old": "yes", "fit": "yes", "by": cited["role"] if cited else "user"}
    if verdict["by"] not in ("user", "assistant"):
        verdict["by"] = "tool"
    if cited is not None and not _is_told(line, cited):
        verdict["said"] = "no"
    if not _is_exact(line, cited, messages):
        verdict["exact"] = "no"
    if not _fits_old(line, cited, today):
        verdict["old"] = "no"
    if PASSING.search(text_of(line.get("new", ""))):
        verdict["lasts"] = "no"
    if "no" in verdict.values():
        verdict["why"] = "its words, numbers or dates are not those beside it"
    return verdict


def _is_told(line: JSONObject, cited: JSONObject) -> bool:
    text, quote = cited["text"], line.get("quote", "")
    if cited["role"] != "user" and line.get("about") != "project":
        return False
    return not quote or (find_quote(quote, text) and not _NOT_STATED.search(quote))


def _is_exact(
    line: JSONObject, cited: JSONObject | None, messages: Mapping[str, JSONObject]
) -> bool:
    if line["op"] in ("remove", "confirm") and "quote" not in line:
        return True
    beside = [text_of(value) for value in line.get("takes_in", {}).values()]
    if line["op"] != "confirm":  # there the old value is what the message must say
        beside.append(text_of(line.get("old", "")))
    known = " ".join([*beside, line["key"].replace("_", " ")])
    said = " ".join(message["text"] for message in messages.values() if message["role"] == "user")
    told = said if cited is not None else ""
    new = text_of(line.get("new", line.get("old", "")))
    meant = [day for message in messages.values() if cited is not None for day in _dates(message)]
    dates = _ISO.findall(" ".join([told, known, *meant]))
    # A date is right or wrong as a whole: its numbers may stand in other dates.
    if any(not any(one.startswith(day) for one in dates) for day in _ISO.findall(new)):
        return False
    allowed = numbers(told) | numbers(known) | numbers(" ".join(meant))
    if numbers(new) - allowed:
        return False
    if line["op"] == "remove":
        return True
    mine = set(content(new)) - _FILLERS
    shared = mine & {*content(told), *content(known), *content(" ".join(allowed))}
    return len(shared) >= len(mine) / 2


def _fits_old(line: JSONObject, cited: JSONObject | None, today: str) -> bool:
    old = text_of(line.get("old", ""))
    if line["op"] == "remove":
        if "stays" in line:
            stays = " ".join(map(text_of, line["stays"].values()))
            newer = cited is not None or line.get("reason") == "superseded"
            return newer or set(content(old)) <= set(content(stays))
        if "quote" in line:
            words = set(content(f"{line['key'].replace('_', ' ')} {old}"))
            return bool(_TAKES_BACK.search(line["quote"]) and words & set(content(line["quote"])))
        return "" < line.get("until", "") < today and line["until"] in old
    if line["op"] in ("merge", "condense"):
        beside = [old, *map(text_of, line.get("takes_in", {}).values())]
        return all(numbers(text) <= numbers(text_of(line["new"])) for text in beside)
    return True


def _dates(message: JSONObject) -> list[str]:
    day: date = datetime.fromisoformat(message["at"].split()[-1]).date()
    found = [*relative(message["text"], day), *absolute(message["text"], day)]
    return [word.iso for word in found]


# ruff: noqa: RUF001 - punctuation of other scripts is meant


Blocks = dict[str, Lines]
Facts = dict[str, JSONObject]

STATEMENTS = r"""
retraction  ?{0}            -                   forget (?:about )?(?:my|the) (.+)
retraction  ?{0}            No longer {0}       i (?:no longer|(?:do|am) not(?=.* any ?more)) (.+)
retraction  ?{0}            Cancelled: {0}      (?:my|our|the) (.+?) (?:is|was) cancel\w+.*
correction  ?{0}            {1}, not {0}        (?:.*\b(?:is|am|said) )?not (.+?),? but (.+)
correction  ?{1}            {0}, not {1}        (?:it is|make it|i meant) (.+?), not (.+)
correction  ?{0}            {1}                 .*(?:\bnicht |不是)(.+?)[,，]? ?(?:sondern |是)(.+)
profile     user_name       Is called {0}       (?:my name is|i am called|call me) (.+)
profile     user_name       {clause}            (?:ich heiße|me llamo|我叫|اسمي) ?(.+)
profile     home_city       Lives in {0}        (?:i|we) live in (.+)
profile     home_city       Moved to {0}        (?:i|we)(?: have|'ve)? moved to (.+)
profile     home_city       {clause}            (?:ich wohne in|vivo en|我住在|أعيش في) ?(.+)
profile     work_employer   Works at {0}        i work (?:at|for) (.+)
profile     work_employer   {clause}            (?:ich arbeite bei|trabajo en|أعمل في) (.+)
profile     work_role       Works as {0}        i work as (.+)
profile     allergy_{0}     Is allergic to {0}  i am allergic to (.+)
profile     diet            Is {0}              i am (?:an? )?(vegan|vegetarian)\b.*
profile     languages       Speaks {0}          i speak (.+)
preference  preference_{1}  {0}s {1}            i (?:really )?(like|love|prefer|hate|dislike) (.+)
preference  preference_{0}  Does not like {0}   i (?:do not like|cannot stand) (.+)
preference  preference_{0}  {clause}            (?:ich mag|me gusta|我喜欢|أحب|я люблю) ?(.+)
decision    decision_{0}    Decided: {0}        we (?:have )?(?:decided|agreed) (?:to|on|that) (.+)
decision    rule_{0}        From now on: {0}    from now on,? (.+)
profile     {0}_name        {0} is called {1}   my (.+?)(?: is called|'s name is) (.+)
profile     {0}             {0} is {1}          (?:my|our|the(?= deadline| budget)) (.+?) is (.+)
profile     {0}             {clause}            (?:meine?|mi|我的) ?(.+?) ?(?:ist|se llama|是) ?(.+)
event       event_{0}       {0}                 (?:i|we|my|our|the) (?:am |are )?(\w+ (?!on \d).+)
event       event_{0}       {clause}            (?:ich|wir|yo|我们?) ?(.+)
"""
"""Kind, key, value and clause of what is understood, tried in this order.

{0} and {1} are what the clause caught, {clause} is all of it. A key that begins with "?" is that of
the fact which holds those words: a retraction replaces it, or takes it back ("-"), a correction
puts its value in the place of the words. Values keep the user's words, which rules compare.
"""
_ROWS = [re.split(r" {2,}", row) for row in STATEMENTS.strip().split("\n")]
# What states nothing: questions, ifs, jokes, quotes, secrets.
_UNTOLD = re.compile(
    r"(?i)[?？؟]\W*$|^\s*>|[\"“«][^\"”»]*\b(i|my|we)\b|\b(if|unless|would|could|might|maybe|perhaps"
    r"|suppose|imagine|pretend|wish|kidding|joking|lol|haha|wenn|würde|si|password|secret)\b"
)
_CLAUSES = re.compile(r"(?i)(?:,? (?:and|but|und|y) |[,:;] )(?=(?:i|i'm|we|my|our|ich|vivo) )")
_LEAD = re.compile(r"(?i)^((\w+[,:!]|(and|but|so|also|please|remember|that|actually)\b)[\s,:!]*)+")
_END = re.compile(r"(?i)(,? (because|so that|which)|, (so|but|not|by the way|too|it|s?he|the))\b.*")
_TAIL = re.compile(r"(?i)([\s.!,:;。！，]|\b(now|too|as well|again|instead|any ?more|on|at)\b)+$")
_HOLLOW = re.compile(r"(?i)(point|guess|question|idea|asked|said|told|think|want|need|hope)s?\b")
_VAGUE = re.compile(r"(?i)(not|so|very|too|really|just|a bit|that|it|this|what|how|why)\b")
_SPELT_OUT = {"’": "'", "i'm": "i am", "it's": "it is", "can't": "cannot", "n't": " not"}
_LASTING = re.compile(r"(?i)\b(until|till|expires|bis|hasta)\b")
_SAME = dict(zip(content("live move call job"), content("home home name work"), strict=True))


class Statement(NamedTuple):
    """A statement of a user; its key is a fact's or, after "?", words that the fact meant holds."""

    kind: str
    key: str
    value: str
    quote: str
    when: TimeWord


@lru_cache(maxsize=4096)  # the same conversation is read again for each answer in it
def said(text: str, day: date | None = None) -> tuple[Statement, ...]:
    """Read what a user states; `day` makes dates of time words, which stay without it."""
    told = [one for one in sentences(text) if not _UNTOLD.search(one)]
    read = [_read(clause, one, day) for one in told for clause in _CLAUSES.split(one)]
    return tuple(found for found in read if found)


def _read(clause: str, quote: str, day: date | None) -> Statement | None:
    """Read a clause by the first pattern that catches something worth knowing."""
    for short, full in _SPELT_OUT.items():
        clause = re.sub(short, full, clause, flags=re.IGNORECASE)
    clause = _LEAD.sub("", clause.strip()).strip(" .!,:;。！，")
    dated, when = _dated(clause, day)
    whole = _bare(clause) + (f" ({when.iso})" if when.iso else "")
    for kind, key, value, pattern in _ROWS:
        match = re.fullmatch(pattern, dated, re.IGNORECASE)
        if not match or (kind == "event" and when.iso in ("", str(day))):
            continue
        caught = [_bare(part) for part in match.groups()]
        if all(caught) and not _HOLLOW.match(caught[0]) and not _VAGUE.match(caught[-1]):
            told = value.format(*caught, clause=whole)
            if key[0] == "?":
                return Statement(kind, key.format(*caught), told, quote, when)
            key = key.format(*map(slug, caught))
            return Statement(kind, key, told[0].upper() + told[1:], quote, when)
    return None


def _dated(text: str, day: date | None) -> tuple[str, TimeWord]:
    """Put dates in the place of time words, "on 2026-03-09" for "yesterday"; tells the first."""
    if day is None or "birthday" in text:  # which comes every year
        return text, TimeWord("", "")
    times = [*relative(text, day), *absolute(text, day)]
    for time, iso in times:
        before, found, after = text.partition(time)
        if found and iso not in time:
            linked = re.search(r"\b(?:on|in|from|since|until|by) $", before)
            link = "" if linked else {10: "on ", 21: "from "}.get(len(iso), "in ")
            text = f"{before}{link}{iso.replace('/', ' to ')}{after}"
    return text, next(iter(times), TimeWord("", ""))


def _bare(text: str) -> str:
    return _TAIL.sub("", _END.sub("", text)).strip()


def slug(text: str) -> str:
    """Return the first three content words of a text as a part of a key."""
    named = [word for word in tokens(text.casefold()) if content(word) and not word.isdigit()]
    return "_".join(named[:3])[:60] or "note"


def passing_day(text: str) -> str:
    """Return the day after which a fact is of no use, if it says one: of an appointment, say."""
    days = re.findall(r"\d{4}-\d\d-\d\d", text)
    return days[-1] if days and PASSING.search(text) else ""


def words(text: str) -> set[str]:
    """Return the content words of a key, a value or a question, alike if they mean the same."""
    return {_SAME.get(word, word.replace("our", "or")) for word in content(text)}


def note(told: Statement, known: dict[str, str]) -> tuple[str, str]:
    """Work a statement into what is known; returns its key, if any, and its value, if it stays."""
    key, value = told.key, told.value.strip("-")
    if key[0] == "?":
        old = key[1:]
        key = next((k for k in reversed(known) if words(old) <= words(f"{k} {known[k]}")), "")
        if told.kind == "correction":
            head, *rest = re.split(re.escape(old), known.get(key, ""), maxsplit=1, flags=re.I)
            key, value = (key, head + value) if rest else ("", "")
    else:
        key = next((k for k in known if words(k) == words(key)), key)
    known.pop(key, None)
    if key and value:
        known[key] = value  # the latest stands last
    return key, value


def dream(texts: list[str], *, again: bool = False) -> tuple[str, JSONObject]:
    """Return the tool that a phase hands in with, and its arguments: nothing if asked `again`."""
    blocks = {name: lines for text in texts for name, lines in read_blocks(text).items()}
    if "TODAY" in blocks:
        return "submit_verdicts", {"verdicts": verdicts(blocks)}
    shown = [*blocks["FACTS"][1:], *blocks.get("VALUES", [])]  # of a large scope some are keys only
    facts = {line["k"]: line | {"v": text_of(line["v"])} for line in shown if "v" in line}
    phase = next(text.split()[1] for text in reversed(texts) if text.startswith("PHASE "))
    if phase == "orient":
        today = blocks["FACTS"][0]["date"].split()[-1]
        return "submit_orientation", _orient(facts, blocks.get("HINTS", []), today)
    if phase == "gather_signal":
        return "submit_findings", {"findings": [] if again else _gather(facts, blocks)[:40]}
    changes = [] if again else (_prune if phase == "prune" else _consolidate)(facts, blocks)
    return "submit_changes", {"changes": changes, "summary": f"By fixed rules: {len(changes)}."}


def _orient(facts: Facts, hints: Lines, today: str) -> JSONObject:
    """Judge what code hints at: keys that are nearly one key, values that are nearly one value."""
    found: JSONObject = {"duplicates": [], "contradictions": [], "stale": []}
    for hint, keys in ((hint["hint"], hint["keys"]) for hint in hints):
        *shorter, longest = sorted((words(facts[key]["v"]) for key in keys), key=len)
        if hint in ("held", "too_long", "evidence_forgotten"):
            continue
        if hint == "near_keys" and not all(value <= longest for value in shorter):
            found["contradictions"].append({"keys": keys, "why": "one key, two values"})
        elif hint in ("near_keys", "equal") or (hint == "alike" and shorter == [longest]):
            found["duplicates"].append(keys)
    stale = [key for key, fact in facts.items() if "" < passing_day(fact["v"]) < today]
    found["stale"] = [{"key": key, "why": "its day has passed"} for key in stale]
    return found


def _gather(facts: Facts, blocks: Blocks) -> Lines:
    """Find what the users state, each with the messages that say it; the last word stands."""
    known = {key: fact["v"] for key, fact in facts.items()}
    found: Facts = {}
    for line in (line for line in blocks.get("TRANSCRIPT", []) if line["role"] == "user"):
        day = datetime.fromisoformat(line["at"].split()[-1]).date()
        for told in said(line.get("text", ""), day):
            before = dict(known)
            key, value = note(told, known)
            earlier = found.pop(key, {"evidence": []})
            if key and (value or key in facts):
                mends = told.key[0] == "?" or before.get(key, value) != value
                found[key] = {
                    "kind": "correction" if value and mends else told.kind,
                    "statement": f"{key.replace('_', ' ')}: {value or 'taken back'}",
                    "keys": [key] if key in facts else [],
                    "evidence": [*earlier["evidence"], line["id"]][-8:],
                    "quote": _quoted(told, line["text"]),
                    "happened": "" if _LASTING.search(told.value) else told.when.iso,
                    "until": told.when.iso if _LASTING.search(told.value) else "",
                }
    return list(found.values())


def _quoted(told: Statement, text: str) -> str:
    # A sentence of a few letters is no quote; then the message's own beginning is.
    return told.quote[:200] if len(told.quote.encode()) > QUOTE_BYTES + 4 else text[:200]


def _consolidate(facts: Facts, blocks: Blocks) -> Lines:
    today = blocks["FACTS"][0]["date"].split()[-1]
    changes: Facts = {}
    for found in blocks.get("FINDINGS", []):
        head, _, value = found["statement"].partition(": ")
        key = next(iter(found.get("keys", [])), head.replace(" ", "_"))
        op, reason = "add", "decision" if found["kind"] == "decision" else "new"
        if found["kind"] == "retraction":
            op, reason = "remove", "retracted"
        elif key in facts:
            same = fold(facts[key]["v"]) == fold(value)
            changed = "superseded" if found.get("happened") else "correction"
            op, reason = ("confirm", "") if same else ("update", changed)
        change = {"op": op, "key": key, "value": value, "reason": reason}
        changes[key] = change | {"findings": [found["f"]]}
    orientation = blocks.get("ORIENTATION", [{}])[0]
    for stale in orientation.get("stale", []):
        if (key := stale["key"]) in facts and key not in changes and not facts[key].get("pin"):
            day = passing_day(facts[key]["v"])
            if "" < day < today:
                changes[key] = {"op": "remove", "key": key, "reason": "expired", "until": day}
    alike, seen = orientation.get("duplicates", []), set[str]()
    for group in [*alike, *(issue["keys"] for issue in orientation.get("contradictions", []))]:
        keys = [key for key in group if key in facts and not facts[key].get("pin")]
        if seen.isdisjoint(keys):
            changes |= _united(keys, facts, changes, alike=group in alike)
        seen.update(keys)
    return list(changes.values())


def _united(keys: list[str], facts: Facts, changes: Facts, *, alike: bool) -> Facts:
    """Merge facts that say the same; of others the newest stays, or what the user changed now."""
    ops = {changes[key]["op"] for key in keys if key in changes}
    if ops - {"update"} or len(keys) < 2:
        return {}
    if alike and not ops:
        *sources, stays = sorted(keys, key=lambda key: len(facts[key]["v"]))
        merge = {"op": "merge", "key": stays, "value": facts[stays]["v"], "sources": sources}
        return {stays: merge | {"reason": "duplicate"}}
    stays = max(keys, key=lambda key: (key in changes, facts[key].get("d", "")))
    removal = {"op": "remove", "by": stays, "reason": "superseded"}
    removal["findings"] = changes.get(stays, {}).get("findings", [])
    rest = [key for key in keys if key != stays and key not in changes]
    return {key: removal | {"key": key} for key in rest}


def _prune(facts: Facts, blocks: Blocks) -> Lines:
    """Propose nothing: what is stale went before, and nothing is condensed by rules."""
    return []
