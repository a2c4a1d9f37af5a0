"""Rule 6: in which sense the evidence says a value: asked, supposed, denied, over, of another."""

from collections.abc import Iterable, Iterator

from agentmem.dreaming.changes import Change
from agentmem.dreaming.effects import replaced
from agentmem.dreaming.language.telling import (
    Told,
    affirms,
    denies,
    states,
    tellings,
)
from agentmem.dreaming.language.text import content, spaced, stems, text_of
from agentmem.dreaming.rules.view import View, flag, hold
from agentmem.dreaming.trust import RANK, trust_of, usable
from agentmem.facts import Fact, Trust
from agentmem.memory.providers.protocol import TranscriptRow

CODE = "other_sense"
_WHY = {
    "asked": "the cited messages only ask this",
    "supposed": "the cited messages only suppose this",
    "denied": "the cited messages deny this",
    "over": "the cited messages say that this is over",
    "another": "the cited messages say this of somebody else",
}
_WRITING = ("add", "update", "merge")


def asserted(change: Change, view: View) -> Change:
    """Rule 6: what is said in another sense alone replaces no user's word.

    "Do I live in Bergen?", "If I lived", "I don't", "I used to", "I might", "My sister lives":
    none says that the user lives there. What is new is flagged, since a model may read more into
    a talk than a clause says.
    """
    if change.op == "remove":
        return _superseded(change, view)
    if change.op not in _WRITING or not change.evidence:
        return change
    old = replaced(change, view.facts)
    if not (why := _otherwise(change, old, view)):
        return change
    if any(fact.trust == Trust.USER for fact in old):
        return hold(change, CODE, why)
    return flag(change, CODE, why)


def _superseded(change: Change, view: View) -> Change:
    """Hold a removal for the sake of what this dream wrote, and the evidence does not say so."""
    for other in view.changes:
        if change.by and other.key == change.by and CODE in other.code.split(","):
            return hold(change, CODE, f"{change.by!r} itself: {other.message}")
    return change


def _otherwise(change: Change, old: Iterable[Fact], view: View) -> str:
    """Return why no clause says the value as it stands; empty where one does or none is near."""
    value = text_of(change.value)
    known = {word for fact in old for word in content(text_of(fact.value))}
    mine = set(content(value))
    for words in (mine - known, mine, set(content(spaced(change.key)))):
        said = list(_nearest(words, change, view)) if words else []
        if any(alias in change.evidence for alias, _ in said):  # the others only bear out
            found = [_sense(alias, told, change, view) for alias, told in said]
            return "" if not all(found) else _WHY[found[0]]
    return ""


def _nearest(words: set[str], change: Change, view: View) -> Iterator[tuple[str, Told]]:
    """Yield the clauses that have most of the words by weight, or half as much as those."""

    def weight(told: Told) -> float:
        return sum(map(view.rarity.weight, sorted(told.words)))

    said = [
        (alias, told)
        for alias in _speaking(change, view)
        for told in tellings(view.rows[alias].text, words)
    ]
    most = max((weight(told) for _, told in said), default=0.0)
    yield from (one for one in said if weight(one[1]) >= most / 2)


def _speaking(change: Change, view: View) -> Iterator[str]:
    """Yield the cited messages of the change's trust, and what the user says beside them."""
    aliases = list(view.rows)
    near = {at + by for at in map(aliases.index, change.evidence) for by in (-1, 0, 1)}
    sessions = {_talk(view.rows[alias]) for alias in change.evidence}
    for at in sorted(near & set(range(len(aliases)))):
        row = view.rows[aliases[at]]
        if not usable(row) or _talk(row) not in sessions:
            continue
        cited = aliases[at] in change.evidence
        if row.role == "user" or (cited and RANK[trust_of(row)] >= RANK[change.trust]):
            yield aliases[at]


def _sense(alias: str, told: Told, change: Change, view: View) -> str:
    """Return the sense in which a clause says what the value says plainly; empty for none."""
    row, statement = view.rows[alias], f"{spaced(change.key)}: {text_of(change.value)}"
    if row.role not in ("user", "assistant"):
        return ""
    for sense in _WHY:
        if sense not in told.senses or states(statement, told, sense):
            continue
        if sense == "asked" and _answered(alias, view):
            continue
        if sense == "another" and told.whom & set(stems(statement)):
            continue
        return sense
    return ""


def _answered(alias: str, view: View) -> bool:
    """Whether the user answers a question next: the assistant's in any words, its own by a yes."""
    row, rows = view.rows[alias], list(view.rows.values())
    after = rows[list(view.rows).index(alias) + 1 :]
    talk = [other for other in after if _talk(other) == _talk(row) and usable(other)][:2]
    answer = next((other for other in talk if other.role == "user"), None)
    if answer is None:
        return False
    if row.role == "user":
        return affirms(answer.text)
    return not denies(answer.text) and (affirms(answer.text) or "?" not in answer.text)


def _talk(row: TranscriptRow) -> tuple[str, str]:
    return row.session, row.memory
