"""The rules of form that a proposed change must keep, in whatever language it is written.

A rule is a pure function of a change and of what the draft shows. It returns the change as it is,
completed, or decided; the first decision ends the row. What a rule refuses is told to the model
once. Whether a change says what the messages say is not decided here: `verification` asks that.
"""

import unicodedata
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from difflib import get_close_matches
from functools import lru_cache
from typing import Literal

from agentmem.dreaming.apply import replaced, rests_on_facts, touched
from agentmem.dreaming.changes import WRITING, Change, Finding, Reason, hold, reject
from agentmem.dreaming.prompts import SYSTEM, TASKS
from agentmem.dreaming.rules.dates import is_date, last_day
from agentmem.dreaming.rules.provenance import cite, evidence_of, local_day, told_at, weakest
from agentmem.dreaming.rules.text import fold, fold_key, printable, text_of, words
from agentmem.dreaming.tools import TOOLS
from agentmem.errors import InvalidFact
from agentmem.facts import RANK, Fact, Tombstone, Trust, checked_name, checked_value
from agentmem.memory.redaction import secret_shape
from agentmem.memory.tools import HINT, MEMORY_TOOLS
from agentmem.records import TranscriptRow
from agentmem.wire import JSONValue

KEY_BYTES = 256
"""The longest key that a dream gives a new fact."""
VALUE_CHARACTERS = 2_000
"""The longest value that a dream writes."""
EVICTED_SHARE = 0.5
"""The share of a scope that may go for the cap in one dream."""
RESERVED = ("_", "agentmem.", "agentmem:")
"""The beginnings of keys that programs keep for themselves."""

_NAME, _NAMES = 300, 100
"""Characters of a key or an id that are kept, and how many of them a list has."""
_NEAR_KEYS = 3
_NEAR_FACTS = 500
_OWN_WORDS = 8
_PACKED_BYTES, _PACKED_RATIO = 500, 10
_LASTING_KINDS = ("preference", "profile", "decision", "event", "plan")
_UNSEEN = frozenset(
    "\u00ad\u200b\u2060\u2061\u2062\u2063\u2064\ufeff\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
)


@dataclass(frozen=True, kw_only=True)
class RuleContext:
    """All that a rule may look at.

    Attributes:
        before: The facts of the frozen snapshot, by key.
        facts: The facts as the draft stands, by key.
        rows: The dream's messages by their aliases, in the order in which they were shown.
        changes: The changes that stand so far.
        findings: The findings by id.
        tombstones: Facts that were forgotten or undone.
        nominated: Keys that code suggests to look at, with the reason.
        again: Whether the model was told what is wrong, and hands this in for the last time.
        opened_at: When the dream began.
        zone: The zone whose days count where a message has none of its own.
    """

    rows: Mapping[str, TranscriptRow]
    before: Mapping[str, Fact] = field(default_factory=dict[str, Fact])
    facts: Mapping[str, Fact] = field(default_factory=dict[str, Fact])
    changes: Sequence[Change] = ()
    findings: Mapping[str, Finding] = field(default_factory=dict[str, Finding])
    tombstones: Sequence[Tombstone] = ()
    nominated: Mapping[str, str] = field(default_factory=dict[str, str])
    again: bool = False
    opened_at: datetime
    zone: str = "UTC"

    @property
    def today(self) -> date:
        """The day of the dream, in its zone."""
        return local_day(self.opened_at, self.zone)


Rule = Callable[[Change, RuleContext], Change]


def judge(change: Change, view: RuleContext) -> Change:
    """Return a proposed change as the rules of form decide it, with what code fills in."""
    change = change.replace(
        status="accepted", code="", message="", fixable=False, verdict="", told=False
    )
    for rule in RULES:
        change = rule(change, view)
        if change.status != "accepted":
            break
    return change


def completed(change: Change, view: RuleContext) -> Change:
    """Fill in what the findings say that a change rests on, and drop what only code may say."""
    found = [view.findings[name] for name in change.findings if name in view.findings]
    first = found[0] if found else Finding()
    old = view.facts.get(change.key)
    kinds = [change.kind, *(finding.kind for finding in found), old.kind if old else ""]
    own = bool(change.evidence or change.quote)
    if change.importance == 3:  # nobody chose it
        chosen = [finding.importance for finding in found] + ([old.importance] if old else [])
        change = change.replace(importance=chosen[0] if chosen else 3)
    evidence = [*change.evidence, *(name for finding in found for name in finding.evidence)]
    if change.op == "update" and change.reason == "condensed" and not evidence:
        change = change.replace(op="condense")
    return change.replace(
        key=unicodedata.normalize("NFC", change.key).strip(),
        findings=[finding.id for finding in found],
        evidence=_brief(evidence),
        quote=_line(change.quote if own and change.quote else first.quote, _NAME),
        agreed=printable(change.agreed or first.agreed, _NAME),
        about=change.about or (first.about if found else "user"),
        sources=[_named(key, view) for key in dict.fromkeys(change.sources[:_NAMES])],
        by=_named(change.by, view) if change.by else "",
        happened=printable(change.happened or first.happened, _NAME).strip(),
        until=printable(change.until or first.until, _NAME).strip(),
        kind=next((kind for kind in kinds if kind in _LASTING_KINDS), ""),
        importance=min(5, max(1, change.importance)),
        reason=_reason(change),
        quoted="",
        witnesses=[],
        said_at=None,
        trust=Trust.TOOL,
    )


def known(change: Change, view: RuleContext) -> Change:
    """Ask that what is updated, removed, merged or pointed at exists.

    A key that differs from one stored key by case, `-`, `_` or spaces is that key; an `add` of a
    stored key is an update, and an update to what a key holds already confirms it.
    """
    change = change.replace(
        key=_stored(change.key, view),
        sources=list(dict.fromkeys(_stored(key, view) for key in change.sources)),
        by=_stored(change.by, view) if change.by else "",
    )
    needed = [*change.sources, *([change.by] if change.by else [])]
    if change.op in ("update", "condense", "remove", "confirm"):
        needed.insert(0, change.key)
    for key in needed:
        if key not in view.facts:
            near = ", ".join(_near(key, view))
            hint = f"; near it: {near}" if near else ""
            return reject(change, "unknown_key", f"there is no key {key!r:.120}{hint}")
    if change.op == "merge" and not [key for key in change.sources if key != change.key]:
        return reject(change, "no_sources", "a merge names the other keys that it takes in")
    if change.op == "remove" and change.by == change.key:
        return reject(change, "no_survivor", f"{change.key!r} cannot stay in place of itself")
    if change.op not in ("add", "update") or change.key not in view.facts:
        return change
    if fold(text_of(view.facts[change.key].value)) == fold(text_of(change.value)):
        return change.replace(op="confirm", value=None, code="echo")
    return change.replace(op="update")


def storable(change: Change, view: RuleContext) -> Change:
    """Ask for a key of 1 to 256 bytes without control characters, and a value stores can hold."""
    key = change.key
    if key not in view.facts and (problem := _key_problem(key)):
        return _unkept(change.replace(key=printable(key, 80)), "bad_key", problem)
    if key.startswith(RESERVED):
        return reject(change, "reserved_key", f"{key!r} belongs to a program")
    if change.op not in WRITING:
        return change.replace(value=None)
    try:
        checked_name(key, "key")
        checked_value(change.value, key)
    except InvalidFact as error:
        return _unkept(change, "bad_value", str(error))
    text = text_of(change.value)
    if change.value is None or not text.strip():
        return reject(change, "missing_value", f"{change.op} of {key!r} has no value")
    if len(text) > VALUE_CHARACTERS:
        message = f"the value has {len(text)} characters, the limit is {VALUE_CHARACTERS}"
        return _unkept(change, "too_long", message)
    data = text.encode()
    if len(data) > _PACKED_BYTES and len(data) > _PACKED_RATIO * len(zlib.compress(data)):
        return _unkept(change, "repetitive", "the value repeats itself")
    return change


def once(change: Change, view: RuleContext) -> Change:
    """Ask that a key changes once in a dream, and is confirmed only as it was before."""
    if change.op == "confirm":
        changed = {key for other in view.changes for key in touched(other)}
        if change.key in changed or change.key not in view.before:
            code = change.code or "already_changed"
            return reject(change, code, f"{change.key!r} is changed by this dream")
    for other in view.changes:
        if shared := touched(change) & touched(other):
            message = f"{min(shared)!r} is changed by {other.id} already"
            return reject(change, "already_changed", message)
    return change


def pinned(change: Change, view: RuleContext) -> Change:
    """Hold a change of a pinned fact: no dream makes one."""
    for key in sorted(touched(change)):
        if key in view.facts and view.facts[key].pinned:
            return hold(change, "pinned", f"{key!r} is pinned")
    return change


def secret(change: Change, view: RuleContext) -> Change:
    """Refuse the shapes of keys, tokens and card numbers; prose is the verification's."""
    shape = secret_shape(f"{change.key}={text_of(change.value)}")
    if not shape and (shape := secret_shape(change.quote)):
        message = f"the quote holds {shape}; quote words without it"
        return reject(change.replace(quote=""), "secret", message)
    if not shape:
        return change
    return _unkept(change, "secret", f"the value looks like {shape}; secrets are not remembered")


def own_text(change: Change, view: RuleContext) -> Change:
    """Refuse eight words in a row of our own prompts and tools: they are no fact."""
    if change.op not in WRITING:
        return change
    if _own_runs().isdisjoint(_runs(text_of(change.value))):
        return change
    return reject(change, "own_text", "that is text of a prompt, not a fact")


def dated(change: Change, view: RuleContext) -> Change:
    """Ask for the form of dates; which day is meant is the model's to say."""
    for name in ("happened", "until"):
        text = getattr(change, name).strip()
        if text and not is_date(text, interval=name == "happened"):
            if view.again:
                change = change.replace(**{name: ""})
                continue
            return reject(
                change, "bad_date", f"{name}: {text!r:.60} is no ISO day, month, year or interval"
            )
    return change


def cited(change: Change, view: RuleContext) -> Change:
    """Ask for a quote of what rests on messages; what rests on facts has the trust of these.

    What stays inexact counts as a quote of the least trusted message that it cites.
    """
    if rests_on_facts(change):
        return _on_facts(change, view)
    if change.op == "remove" and not change.evidence and not change.quote:
        return change  # what it rests on instead is for `removable`
    found = cite(change.evidence, change.quote, change.agreed, view.rows)
    if found.problem and (not found.evidence or not view.again):
        return reject(change, found.problem, found.message)
    change = change.replace(
        evidence=found.evidence,
        quoted=found.quoted,
        agreed=found.agreed,
        witnesses=found.witnesses,
        trust=found.trust,
        said_at=found.said_at,
    )
    if found.problem:
        return change.replace(code=found.problem, message="its quote is in no cited message")
    return change


def removable(change: Change, view: RuleContext) -> Change:
    """Ask a removal for a user's quote, a day that has passed, or a survivor that stays."""
    if change.op != "remove":
        return change
    fact = view.facts[change.key]
    taken_back = change.reason in ("retracted", "asked_to_forget") and change.witnesses
    if taken_back and change.trust == Trust.USER:
        return change.replace(by="", until="")  # nothing stays for it, and no day has passed
    if change.by and _is_weaker(view.facts[change.by], fact):
        return hold(change, "unequal", f"{change.by!r} is not confirmed, and cannot stay for this")
    if change.by:
        return change.replace(
            reason=change.reason or "duplicate",
            trust=change.trust if change.witnesses else view.facts[change.by].trust,
        )
    if is_expired(fact, view.opened_at):
        return change.replace(reason="expired", trust=Trust.USER, verdict="code")
    if _has_passed(change.until, view.today):
        return change.replace(reason="expired", trust=fact.trust)
    if (why := view.nominated.get(change.key)) in ("over_cap", "evidence_forgotten"):
        return _nominated(change, why, view)
    if change.witnesses and change.trust == Trust.USER:
        return change
    message = (
        "a removal needs the words in which the user takes it back (quote), the day that has "
        "passed (until), or the key that stays and says the same (by)"
    )
    # The model is told once; what it does not prove waits for a person.
    return hold(change, "unproven", message).replace(fixable=not view.again)


def trusted(change: Change, view: RuleContext) -> Change:
    """Hold what rests on a weaker word than what it replaces; of equals the later word wins."""
    if change.op == "remove" and (change.reason == "expired" or change.verdict == "code"):
        return change
    if change.op == "confirm" and _only_repeats(change, view):
        message = f"only a word as good as that of {change.key!r} confirms it"
        return reject(change, "only_repeats", message, fixable=False)
    for fact in replaced(change, view.facts) if not rests_on_facts(change) else ():
        if RANK[change.trust] < RANK[fact.trust]:
            message = f"{fact.key!r} rests on a {fact.trust}'s word, this on a {change.trust}'s"
            return hold(change, "lower_trust", message)
        if change.trust == fact.trust and _is_older(change, fact):
            return hold(change, "older", f"{fact.key!r} was said or written later than this")
    if change.trust == Trust.TOOL and change.about == "agent" and change.op in WRITING:
        return reject(change, "tool_rule", "a rule for the agent never comes from a tool")
    return change


def unburied(change: Change, view: RuleContext) -> Change:
    """Hold what would bring back, by older words, a fact that was forgotten or undone."""
    if change.op not in ("add", "update", "merge"):
        return change
    for stone in view.tombstones:
        same_key = change.key not in view.before and fold_key(stone.key) == fold_key(change.key)
        same_value = stone.value is not None and fold(text_of(stone.value)) == fold(
            text_of(change.value)
        )
        said = change.said_at if RANK[change.trust] >= RANK[stone.trust] else None
        if change.op == "merge" and not change.witnesses:
            said = max(filter(None, map(told_at, replaced(change, view.facts))), default=None)
        if (same_key or same_value) and (said is None or said <= stone.at):
            message = f"{stone.key!r} was forgotten after this was last said"
            return hold(change, "forgotten", message)
    return change


RULES: tuple[Rule, ...] = (
    completed,
    known,
    storable,
    once,
    pinned,
    secret,
    own_text,
    dated,
    cited,
    removable,
    trusted,
    unburied,
)
"""The rules in their order."""


def check_finding(finding: Finding, view: RuleContext) -> Finding:
    """Return a finding with what code says about it, whatever the model said of that.

    One that cannot stand has no evidence, and its flags say why: `no_statement`, `no_evidence`,
    `no_quote` or `inexact_quote` with what to do, `bad_date`, or `too_many`.
    """
    finding = finding.replace(
        id="",
        statement=_line(finding.statement, 300),
        keys=list(dict.fromkeys(printable(key, _NAME) for key in finding.keys[:5])),
        evidence=_brief(finding.evidence),
        quote=_line(finding.quote, _NAME),
        agreed=printable(finding.agreed, _NAME),
        happened=printable(finding.happened, _NAME).strip(),
        until=printable(finding.until, _NAME).strip(),
        importance=min(5, max(1, finding.importance)),
        said_at=None,
        trust=Trust.TOOL,
        quoted="",
        flags=[],
    )
    if not finding.statement:
        return finding.replace(evidence=[], flags=["no_statement: say it in a sentence"])
    dates = {
        name: ""
        for name in ("happened", "until")
        if not is_date(text := getattr(finding, name), interval=name == "happened") and text
    }
    if dates and not view.again:
        wrong = ", ".join(f"{name} {getattr(finding, name)!r:.40}" for name in dates)
        message = f"bad_date: {wrong} is no ISO day, month, year or interval"
        return finding.replace(evidence=[], flags=[message])
    found = cite(finding.evidence, finding.quote, finding.agreed, view.rows)
    if found.problem and (not found.evidence or not view.again):
        return finding.replace(evidence=[], flags=[f"{found.problem}: {found.message}"])
    return finding.replace(
        **dates,
        evidence=found.evidence,
        quoted=found.quoted,
        agreed=found.agreed,
        said_at=found.said_at,
        trust=found.trust,
        flags=[found.problem] if found.problem else [],
    )


def is_expired(fact: Fact, now: datetime) -> bool:
    """Tell if a fact has passed the day that it was stored with; no model is asked."""
    return fact.expires_at is not None and fact.expires_at <= now


def settles(change: Change, view: RuleContext) -> bool:
    """Tell if the user says again, in another session, what is not confirmed yet.

    That settles a tentative fact or an unconfirmed value, even where no verifier can read it.
    """
    fact = view.before.get(change.key)
    if fact is None or change.trust != Trust.USER or not change.quoted:
        return False
    session = view.rows[change.quoted].session
    if change.op == "confirm" and fact.state == "tentative":
        return session not in [row.session for row in fact.evidence]
    if change.op == "update" and fact.unconfirmed:
        same = fold(text_of(fact.unconfirmed.value)) == fold(text_of(change.value))
        return same and session not in [row.session for row in fact.unconfirmed.evidence]
    return False


def with_agreement(change: Change, view: RuleContext, *, agrees: bool) -> Change:
    """Return a change with the trust that it has if the user agrees, or does not."""
    if not change.agreed or not change.quoted:
        return change
    if agrees:
        return change
    quoted = view.rows[change.quoted]
    return change.replace(
        trust=Trust.ASSISTANT, agreed="", witnesses=[evidence_of(quoted, change.quote)]
    )


def _on_facts(change: Change, view: RuleContext) -> Change:
    """Give what rewords facts the trust of the weakest one; a message that it cites counts too.

    Equal values lose nothing when they unite, so that the strongest word holds them.
    """
    facts = replaced(change, view.facts)
    trusts = [fact.trust for fact in facts]
    if len({fold(text_of(fact.value)) for fact in facts} | {fold(text_of(change.value))}) == 1:
        strongest = max(trusts, key=RANK.__getitem__, default=Trust.TOOL)
        return change.replace(evidence=[], quote="", agreed="", trust=strongest)
    lowered = Trust.USER in trusts and len(set(trusts)) > 1
    if change.op == "merge" and (lowered or len({fact.state for fact in facts}) > 1):
        message = "a merge would make what a user said, or what is confirmed, less sure"
        return hold(change, "unequal", message)
    if any(fact.unconfirmed for fact in facts):
        return hold(change, "unconfirmed", "a fact with a value that is not confirmed stays whole")
    found = cite(change.evidence, change.quote, change.agreed, view.rows)
    if found.problem:
        return change.replace(evidence=[], quote="", agreed="", trust=weakest(trusts))
    return change.replace(
        evidence=found.evidence,
        quoted=found.quoted,
        agreed=found.agreed,
        witnesses=found.witnesses,
        said_at=found.said_at,
        trust=weakest([*trusts, found.trust]),
    )


def _nominated(change: Change, why: str, view: RuleContext) -> Change:
    """Let go what code found: one of the least worth over the cap, or all its words forgotten."""
    if why == "evidence_forgotten":
        return change.replace(trust=Trust.USER, verdict="code")
    gone = sum(other.reason == "evicted" for other in view.changes)
    if gone >= int(EVICTED_SHARE * len(view.before)):
        message = "at most half of a scope goes for the cap in one dream"
        return hold(change, "over_bound", message)
    return change.replace(reason="evicted", trust=Trust.USER, verdict="code")


def _named(key: str, view: RuleContext) -> str:
    """Return a stored key as it is, and any other one made printable."""
    stored = _stored(key, view)
    return stored if stored in view.facts else printable(key, _NAME)


def _brief(names: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(printable(name, _NAME) for name in names[:_NAMES]))


def _line(text: str, most: int) -> str:
    return printable(" ".join(text[: 4 * most].split()), most)


def _reason(change: Change) -> Reason | Literal[""]:
    if change.reason in ("evicted", "confirmed"):  # code's words, not a model's
        return ""
    if change.op == "condense":
        return "condensed"
    return "duplicate" if change.op == "merge" and not change.reason else change.reason


def _stored(key: str, view: RuleContext) -> str:
    """Return the one stored key that differs by case, `-`, `_` or spaces at most, or the key."""
    plain = unicodedata.normalize("NFC", key).strip()
    if plain in view.facts:
        return plain
    near = [stored for stored in view.facts if fold_key(stored) == fold_key(plain)]
    return near[0] if len(near) == 1 else plain


def _near(key: str, view: RuleContext) -> list[str]:
    # Comparing takes time: long keys by their beginnings, and not at all in a huge scope.
    if len(view.facts) > _NEAR_FACTS:
        return []
    begins = {stored[:64]: stored for stored in view.facts}
    close = get_close_matches(key[:64], begins, n=_NEAR_KEYS, cutoff=0.5)
    return [begins[begin] for begin in close]


def _key_problem(key: str) -> str:
    if not fold(key):
        return "the key is empty"
    if len(key.encode("utf-8", "replace")) > KEY_BYTES:
        return f"the key takes over {KEY_BYTES} bytes"
    if any(unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp") for char in key) or not (
        _UNSEEN.isdisjoint(key)
    ):
        return "the key holds control characters"
    return ""


def _unkept(change: Change, code: str, message: str) -> Change:
    """Refuse a change whose value no draft may keep either."""
    return reject(change.replace(value=None), code, message)


def _only_repeats(change: Change, view: RuleContext) -> bool:
    # The assistant repeats what it recalled.
    fact = view.facts.get(change.key)
    if fact is None:
        return True
    return change.trust == Trust.ASSISTANT or RANK[change.trust] < RANK[fact.trust]


def _is_weaker(stays: Fact, goes: Fact) -> bool:
    return stays.state == "tentative" and goes.state == "settled"


def _has_passed(until: str, today: date) -> bool:
    return bool(until) and last_day(until) < today


def _is_older(change: Change, fact: Fact) -> bool:
    return bool(change.said_at and fact.said_at and change.said_at < fact.said_at)


def _runs(text: str) -> Iterator[tuple[str, ...]]:
    found = words(text)
    for start in range(len(found) - _OWN_WORDS + 1):
        yield found[start : start + _OWN_WORDS]


@lru_cache(maxsize=1)
def _own_runs() -> frozenset[tuple[str, ...]]:
    schemas = [*TOOLS, *(schema for _, schema in MEMORY_TOOLS.values())]
    texts = [SYSTEM, HINT, *TASKS.values(), *(text for one in schemas for text in _texts(one))]
    return frozenset(run for text in texts for run in _runs(text))


def _texts(value: JSONValue) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from _texts(part)
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part)
