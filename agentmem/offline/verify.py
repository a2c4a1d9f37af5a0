"""The offline model's verification: by the words, numbers and dates of the cited messages.

It reads no meaning. It says yes if a change holds nothing that its messages, or the facts beside
it, do not hold.
"""

import re
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

from agentmem.memory.quotes import find_quote
from agentmem.offline.named_dates import absolute
from agentmem.offline.text import content, numbers, text_of
from agentmem.offline.timewords import relative
from agentmem.values import JSONObject

PASSING = re.compile(
    r"(?i)\b(appointment|dentist|doctor|meeting|interview|flight|deadline|reservation|termin|cita)"
    r"|\b(until|till|expires|bis|hasta)\b"
)
"""Words of things that are of no use after their day."""

_UNTOLD = re.compile(
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
    return not quote or (find_quote(quote, text) and not _UNTOLD.search(quote))


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
