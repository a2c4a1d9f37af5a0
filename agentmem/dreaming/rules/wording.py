"""Rules 16, 19 and 21: how a value is worded."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache

from agentmem.dreaming.changes import Change
from agentmem.dreaming.language.text import fold, stems, text_of, tokens
from agentmem.dreaming.prompts import SYSTEM, TASKS
from agentmem.dreaming.rules.view import View, flag, reject
from agentmem.dreaming.tools import TOOLS
from agentmem.memory.tools import HINT, MEMORY_TOOLS
from agentmem.values import JSONValue

_WRITING = ("add", "update", "merge")
_SIGNS = frozenset("+-<>=≤≥%$€£¥")
_EXEMPT = re.compile(r"\"[^\"]*\"|“[^”]*”|«[^»]*»|「[^」]*」|`[^`]*`|https?://\S+")
_ONE_SCRIPT = {"HIRAGANA": "CJK", "KATAKANA": "CJK"}


def paraphrase(change: Change, view: View) -> Change:
    """Rule 16: the same words in another order say the same, unless they correct.

    "A owns B" corrected to "B owns A" passes for its reason.
    """
    old = view.facts.get(change.key)
    if change.op not in ("add", "update") or old is None or change.reason == "correction":
        return change
    if _bag(text_of(old.value)) != _bag(text_of(change.value)):
        return change
    said = change.replace(op="confirm", value=None)
    return said.replace(code="paraphrase", message=f"{change.key!r} says this in the same words")


def own_text(change: Change, view: View) -> Change:
    """Rule 19: eight words in a row of our own prompts and tools are no fact."""
    if change.op not in _WRITING:
        return change
    runs = _runs(text_of(change.value), view.limits.own_words)
    if _own_runs(view.limits.own_words).isdisjoint(runs):
        return change
    return reject(change, "own_text", "that is a prompt's text, not a fact")


def scripted(change: Change, view: View) -> Change:
    """Rule 21: a value is in the script of its evidence; sent again all the same, it is flagged.

    Names, code and quoted words may be in any.
    """
    script, letters = _script(text_of(change.value))
    if change.op not in _WRITING or letters < view.limits.script_letters or not change.evidence:
        return change
    spoken = {_script(view.rows[alias].text)[0] for alias in change.evidence} - {""}
    if not spoken or script in spoken:
        return change
    message = f"write it as the messages do, in {min(spoken).title()} letters"
    if "other_script" in view.refused.get(change.key, ()):
        return flag(change, "other_script", f"not in {min(spoken).title()} letters")
    return reject(change, "other_script", message, fixable=True)


def _bag(text: str) -> Counter[str]:
    return Counter(stems(text)) + Counter(char for char in text if char in _SIGNS)


def _runs(text: str, length: int) -> Iterator[tuple[str, ...]]:
    words = [fold(token) for token in tokens(text)]
    for start in range(len(words) - length + 1):
        yield tuple(words[start : start + length])


@lru_cache(maxsize=4)
def _own_runs(length: int) -> frozenset[tuple[str, ...]]:
    schemas = [*TOOLS, *(schema for _, schema in MEMORY_TOOLS.values())]
    texts = [SYSTEM, HINT, *TASKS.values(), *(text for one in schemas for text in _texts(one))]
    return frozenset(run for text in texts for run in _runs(text, length))


def _texts(value: JSONValue) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from _texts(part)
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part)


def _script(text: str) -> tuple[str, int]:
    """Return the script of most letters of a text, and how many letters are in it."""
    plain = " ".join(word for word in _EXEMPT.sub(" ", text).split() if not word[0].isupper())
    found = Counter(_script_of(char) for char in plain if char.isalpha())
    return found.most_common(1)[0] if found else ("", 0)


@lru_cache(maxsize=10_000)
def _script_of(char: str) -> str:
    script = unicodedata.name(char, "UNKNOWN").split(" ")[0].split("-")[0]
    return _ONE_SCRIPT.get(script, script)
