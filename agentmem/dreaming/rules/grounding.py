"""Rules 6, 7, 17 and 24: whether the evidence speaks of what a change says."""

from collections.abc import Iterator

from agentmem.dreaming.changes import Change
from agentmem.dreaming.effects import REWORDING, replaced
from agentmem.dreaming.language.calendar_words import NUMBERS
from agentmem.dreaming.language.cues import corrects, takes_back
from agentmem.dreaming.language.named_dates import without_dates
from agentmem.dreaming.language.text import (
    content,
    fold,
    names,
    numbers,
    sentences,
    spaced,
    stems,
    text_of,
    tokens,
    urls,
)
from agentmem.dreaming.rules.survivor import told
from agentmem.dreaming.rules.view import View, flag, reject
from agentmem.dreaming.trust import told_at, usable
from agentmem.facts import Trust
from agentmem.memory.providers.protocol import TranscriptRow

_WRITING = ("add", "update", "merge")
_OF_A_PERSON = ("preference", "profile")


def grounded(change: Change, view: View) -> Change:
    """Rule 6: a value and its key share words with what is said or replaced, or are refused.

    That are the cited messages, those beside them, and the facts that go. Few words: flagged.
    """
    value = _said(without_dates(text_of(change.value)))
    words = value | _said(spaced(change.key))
    if change.op not in _WRITING or not words:
        return change
    heard = _said(_messages(change, view))
    old = _said("\n".join(text_of(fact.value) for fact in replaced(change, view.facts)))
    pairs = ((words, heard), (value, heard), (value, old))
    share = max(len(some & others) / len(some) for some, others in pairs if some)
    if not share:
        return reject(change, "ungrounded", "the cited messages speak of something else")
    if share < view.limits.grounded_share:
        return flag(change, "weakly_grounded", "the cited messages say little of this")
    return change


def detailed(change: Change, view: View) -> Change:
    """Rule 7: numbers, names and addresses that nobody said are flagged; many are honest."""
    if change.op not in _WRITING:
        return change
    text, heard = text_of(change.value), _heard(change, view)
    said = set(stems(heard))
    counted = {str(NUMBERS[word]) for word in map(fold, tokens(heard)) if word in NUMBERS}
    unsaid = [
        *sorted(numbers(without_dates(text)) - numbers(heard) - counted),
        *sorted(_inner_names(without_dates(text)) - said - names(heard)),
        *sorted(urls(text) - urls(heard)),
    ]
    if not unsaid:
        return change
    return flag(change, "unsaid_detail", f"the evidence does not say {', '.join(unsaid[:5])}")


def replacing(change: Change, view: View) -> Change:
    """Rule 17: what takes a fact's place speaks of the same, or corrects; else it may be one more.

    Nor is its evidence older than the fact's own.
    """
    if change.op != "update" or change.reason in REWORDING:
        return change
    fact = view.facts[change.key]
    rows = [view.rows[alias] for alias in change.evidence]
    old = set(content(told(fact)))
    if not any(
        old & set(content(row.text)) or corrects(row.text) or takes_back(row.text) for row in rows
    ):
        return flag(change, "maybe_additive", "no cited message speaks of the old value")
    at = told_at(fact)
    if change.said_at and at and change.said_at < at:
        return flag(change, "older_evidence", "the fact was said or written later than this")
    return change


def kinds(change: Change, view: View) -> Change:
    """Rule 24: a tool's word makes no preference and no profile of anybody."""
    if change.op not in _WRITING or change.trust != Trust.TOOL or change.kind not in _OF_A_PERSON:
        return change
    return flag(change.replace(kind=""), "tool_kind", f"a tool's word is no {change.kind}")


def _heard(change: Change, view: View) -> str:
    """Return what the evidence says: cited messages, those beside them, and what is replaced."""
    return "\n".join([_messages(change, view), *map(told, replaced(change, view.facts))])


def _messages(change: Change, view: View) -> str:
    rows = {id(row): row for alias in change.evidence for row in _around(alias, view)}
    return "\n".join(row.text for row in rows.values())


def _around(alias: str, view: View) -> Iterator[TranscriptRow]:
    """Yield a message, and those before and after it in its conversation."""
    names = list(view.rows)
    at, here = names.index(alias), view.rows[alias]
    for name in names[max(0, at - 1) : at + 2]:
        row = view.rows[name]
        if (row.session, row.memory) == (here.session, here.memory) and usable(row):
            yield row


def _said(text: str) -> set[str]:
    return set(content(text)) | numbers(text)


def _inner_names(text: str) -> set[str]:
    """Return names that do not begin a sentence, where any word is capitalised."""
    inner = ". ".join(part[:1].lower() + part[1:] for part in sentences(text))
    return names(inner)
