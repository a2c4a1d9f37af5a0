"""A case of a dream: what is stored, what was said, what is right, and how one tells."""

from dataclasses import dataclass, field

from agentmem.wire import JSONObject

Stored = tuple[str, str, JSONObject]


@dataclass(frozen=True, kw_only=True)
class Said:
    """A message: text, who says it, how many days before the dream, whether it is recalled."""

    text: str
    role: str = "user"
    days: int = 5
    recalled: bool = False
    planted: bool = False


@dataclass(frozen=True, kw_only=True)
class Probe:
    """The words that the facts must tell afterwards (one of `any_of`) or must not (`none_of`)."""

    any_of: tuple[str, ...] = ()
    none_of: tuple[str, ...] = ()
    when: str = ""


@dataclass(kw_only=True)
class Case:
    """A case.

    Attributes:
        kind: Its type.
        store: Facts before: key, value, and more fields of a write.
        said: The talk.
        findings: What a good gather signal finds; `a1` is the first message.
        changes: What a good consolidate changes.
        pruned: And a good prune.
        probes: What tells whether it went well.
        protected: Keys whose words must still be there.
        apart: Keys that must both be there.
        bait: Words that must not stand in a fact with a user's trust.
        cap: Facts at most.
    """

    kind: str
    store: list[Stored] = field(default_factory=list[Stored])
    said: list[Said] = field(default_factory=list[Said])
    findings: list[JSONObject] = field(default_factory=list[JSONObject])
    changes: list[JSONObject] = field(default_factory=list[JSONObject])
    pruned: list[JSONObject] = field(default_factory=list[JSONObject])
    probes: list[Probe] = field(default_factory=list[Probe])
    protected: list[str] = field(default_factory=list[str])
    apart: list[str] = field(default_factory=list[str])
    bait: list[str] = field(default_factory=list[str])
    cap: int = 100
    interleaved: bool = False
