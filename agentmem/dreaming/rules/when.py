"""Rule 9: a fact says when, as its evidence does, and never "yesterday"."""

from agentmem.dreaming.changes import Change
from agentmem.dreaming.effects import replaced
from agentmem.dreaming.language.dates import agree, local_day, nearest, settle, spans
from agentmem.dreaming.language.named_dates import absolute
from agentmem.dreaming.language.text import text_of
from agentmem.dreaming.language.timewords import TimeWord, relative
from agentmem.dreaming.rules.view import View, flag, reject
from agentmem.memory.providers.protocol import TranscriptRow

_ODD = {
    "date_corrected": "the date is by the evidence's time words",
    "date_unchecked": "the evidence does not say this date",
    "date_unreadable": "the date was no ISO date",
}


def dated(change: Change, view: View) -> Change:
    """Rule 9: code resolves the dates; relative words are made absolute, wrong dates corrected."""
    if change.op not in ("add", "update", "merge"):
        return change
    rows = [view.rows[alias] for alias in change.evidence]
    text = text_of(change.value)
    happened, odd = settle(change.happened, change.words, text, rows, view.zone)
    change = change.replace(happened=happened)
    if odd:
        change = flag(change, odd, _ODD[odd])
    for row in rows:
        if left := _left(text, row, view.zone):
            return reject(
                change,
                "relative_date",
                f"write {left.iso} for {left.words!r}, which was said then",
                fixable=True,
            )
    return _corrected(change, rows, view)


def _left(text: str, row: TranscriptRow, zone: str) -> TimeWord | None:
    """Return a relative time that a text has from a message without saying which day it was."""
    day = local_day(row.at, zone)
    said = {word.iso for word in relative(row.text, day)}
    named = [word.iso for word in absolute(text, day)]
    for word in relative(text, day):
        if word.iso in said and not any(agree(word.iso, iso) for iso in named):
            return word
    return None


def _corrected(change: Change, rows: list[TranscriptRow], view: View) -> Change:
    """Put the right date in place of one that nobody said, when time words tell which it was."""
    text = text_of(change.value)
    known, meant = set[str](), set[str]()
    for row in rows:
        day = local_day(row.at, view.zone)
        known |= {word.iso for word in (*relative(row.text, day), *absolute(row.text, day))}
        meant |= {word.iso for word in relative(nearest(row.text, text), day)}
    for fact in replaced(change, view.facts):
        known |= spans(text_of(fact.value))
    wrong = [word for word in absolute(text) if not any(agree(word.iso, other) for other in known)]
    right = next(iter(meant)) if len(meant) == 1 else ""
    if not wrong or not right or any(agree(right, iso) for iso in spans(text)):
        return change
    message = f"the evidence says {right}, not {wrong[0].words}"
    if len(wrong) > 1 or not isinstance(change.value, str):
        return reject(change, "wrong_date", message, fixable=True)
    mended = change.value.replace(wrong[0].words, right)
    return flag(change.replace(value=mended), "date_corrected", message)
