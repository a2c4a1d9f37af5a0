"""Rules 2 to 4, 18, 22, 23: a change by itself, and beside the draft's keys and values."""

import unicodedata
import zlib
from difflib import get_close_matches

from agentmem.dreaming.changes import Change
from agentmem.dreaming.effects import touched
from agentmem.dreaming.language.text import fold, fold_key, printable, text_of
from agentmem.dreaming.rules.survivor import same_topic, speaks_alone
from agentmem.dreaming.rules.view import View, flag, hold, reject
from agentmem.errors import InvalidFact
from agentmem.facts import checked_name, checked_value
from agentmem.secret_shapes import secret_shape

RESERVED = ("_", "agentmem.", "agentmem:")
"""How keys begin that programs keep for themselves."""

_UNSEEN = frozenset(
    "\u00ad\u200b\u2060\u2061\u2062\u2063\u2064\ufeff\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
)
_WRITING = ("add", "update", "merge")


def storable(change: Change, view: View) -> Change:
    """Rule 2: a key of 1 to 256 bytes without control characters, not a program's own.

    And a value that every store holds.
    """
    key = change.key
    if key not in view.facts and (problem := _key_problem(key, view.limits.key_bytes)):
        return _unkept(change.replace(key=printable(key, 80)), "bad_key", problem)
    if key.startswith(RESERVED):
        return reject(change, "reserved_key", f"{key!r} is not a dream's to write")
    if change.op not in _WRITING:
        return change.replace(value=None)
    try:
        checked_name(key, "key")
        checked_value(change.value, key)
    except InvalidFact as error:
        return _unkept(change, "bad_value", str(error))
    if change.value is None or not text_of(change.value).strip():
        return reject(change, "missing_value", f"{change.op} of {key!r} has no value", fixable=True)
    return change


def named(change: Change, view: View) -> Change:
    """Rule 2: a key that differs from one stored key by case, `-`, `_` or spaces is that key."""
    change = change.replace(
        sources=list(dict.fromkeys(_stored(key, view) for key in change.sources)),
        by=_stored(change.by, view) if change.by else "",
    )
    plain = unicodedata.normalize("NFC", change.key).strip()
    key = _stored(plain, view)
    if key == plain:
        return change.replace(key=key)
    return flag(change.replace(key=key), "key_folded", f"{change.key!r} taken for {key!r}")


def known(change: Change, view: View) -> Change:
    """Rule 3: what is updated, removed, merged or pointed at exists; a new key is an add."""
    needed = [*change.sources, *([change.by] if change.by else [])]
    if change.op in ("update", "remove", "confirm"):
        needed.insert(0, change.key)
    for key in needed:
        if key not in view.facts:
            near = ", ".join(_near(key, view))
            hint = f"; near it: {near}" if near else ""
            return reject(change, "unknown_key", f"there is no key {key!r}{hint}", fixable=True)
    if change.op == "add" and change.key in view.facts:
        return change.replace(op="update")
    if change.op == "merge" and not change.sources:
        return reject(change, "no_sources", "a merge names the keys it takes in", fixable=True)
    return change


def _near(key: str, view: View) -> list[str]:
    # By their beginnings: comparing long keys whole takes tens of milliseconds a pair.
    begins = {known[:64]: known for known in view.facts}
    close = get_close_matches(key[:64], begins, n=view.limits.near_keys, cutoff=0.5)
    return [begins[begin] for begin in close]


def once(change: Change, view: View) -> Change:
    """Rule 4: a key changes once in a dream."""
    for other in view.changes:
        if shared := touched(change) & touched(other):
            return reject(
                change, "already_changed", f"{min(shared)!r} is changed by {other.id} already"
            )
    return change


def echo(change: Change, view: View) -> Change:
    """Rule 18: what some key says already, letter for letter, confirms that key.

    A short value ("yes", "tea") says the same only under a key of the same words.
    """
    if change.op not in ("add", "update"):
        return change
    folded = fold(text_of(change.value))
    keys = [key for key, fact in view.facts.items() if fold(text_of(fact.value)) == folded]
    if not speaks_alone(change.value, view.limits):
        keys = [key for key in keys if same_topic(key, change.key)]
    if not keys:
        return change
    key = change.key if change.key in keys else keys[0]
    said = change.replace(op="confirm", key=key, value=None)
    return said.replace(code="echo", message=f"{key!r} says this already")


def secret(change: Change, view: View) -> Change:
    """Rule 22: what looks like a key, token or password is not remembered."""
    shape = secret_shape(f"{change.key}={text_of(change.value)}")
    return _unkept(change, "secret", f"the value looks like {shape}") if shape else change


def sized(change: Change, view: View) -> Change:
    """Rule 23: a dream writes at most 2,000 characters, and no text that says nothing."""
    text = text_of(change.value)
    if len(text) > view.limits.value_characters:
        return _unkept(
            change,
            "too_long",
            f"the value has {len(text)} characters, the limit is {view.limits.value_characters}",
        )
    data = text.encode()
    if len(data) > view.limits.packed_bytes:
        ratio = len(data) / len(zlib.compress(data))
        if ratio > view.limits.packed_ratio:
            return reject(change, "repetitive", "the value repeats itself")
    return change


def pinned(change: Change, view: View) -> Change:
    """Trust: no dream changes a pinned fact."""
    for key in sorted(touched(change)):
        if key in view.facts and view.facts[key].pinned and change.op != "confirm":
            return hold(change, "pinned", f"{key!r} is pinned")
    return change


def _unkept(change: Change, code: str, message: str) -> Change:
    """Refuse a change whose value no draft may keep either."""
    return reject(change.replace(value=None), code, message)


def _stored(key: str, view: View) -> str:
    """Return the one stored key that differs by case, `-`, `_` or spaces at most, or the key."""
    if key in view.facts:
        return key
    near = [stored for stored in view.facts if fold_key(stored) == fold_key(key)]
    return near[0] if len(near) == 1 else key


def _key_problem(key: str, most: int) -> str:
    if not fold(key):
        return "the key is empty"
    if len(key.encode("utf-8", "replace")) > most:
        return f"the key takes over {most} bytes"
    if any(unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp") for char in key) or not (
        _UNSEEN.isdisjoint(key)
    ):
        return "the key holds control characters"
    return ""
