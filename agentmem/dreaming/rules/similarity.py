"""Hints of code about a scope: near-equal keys, equal and alike values, long values.

Hints help a model to look, are used if it hands in nothing, and nominate what prune looks at.
They decide nothing.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations, islice

from agentmem.dreaming.changes import Orientation, Stale
from agentmem.dreaming.rules.text import Rarity, fold, fold_key, text_of, words
from agentmem.facts import Fact
from agentmem.wire import JSONObject, Wire

NEAR_OVERLAP = 0.6
"""The weighed share of the lighter value's words that two alike values share."""
LONG_CHARACTERS = 400
"""Characters from which a value is suggested for condensing."""
_PAIRS = 50
_DECLINED = 1_000

Declined = Sequence[tuple[str, int, str, int]]


class Hints(Wire):
    """The hints that code finds.

    Attributes:
        near_keys: Groups of keys that differ by case, hyphens, underscores or spaces.
        equal: Groups of keys whose values are equal.
        alike: Pairs of keys whose values share most of their words.
        too_long: Keys with long values.
        forgotten: Keys of facts whose every message was forgotten on request.
        held: Keys of changes that an earlier dream could not verify, offered once more.
    """

    near_keys: list[list[str]] = []
    equal: list[list[str]] = []
    alike: list[list[str]] = []
    too_long: list[str] = []
    forgotten: list[str] = []
    held: list[str] = []

    def lines(self) -> list[JSONObject]:
        """Return them as lines for a model."""
        groups: list[tuple[str, list[list[str]]]] = [
            ("near_keys", self.near_keys),
            ("equal", self.equal),
            ("alike", self.alike),
            ("too_long", [[key] for key in self.too_long]),
            ("evidence_forgotten", [[key] for key in self.forgotten]),
            ("held", [[key] for key in self.held]),
        ]
        return [{"hint": name, "keys": keys} for name, found in groups for keys in found]

    def orientation(self) -> Orientation:
        """Return them in place of an orientation that no model handed in."""
        return Orientation(
            source="code",
            duplicates=[*self.near_keys, *self.equal, *self.alike],
            stale=[Stale(key=key, why="evidence_forgotten") for key in self.forgotten],
            too_long=self.too_long,
        )

    def nominated(
        self, stale: Mapping[str, str], unprotected: Sequence[str] = ()
    ) -> dict[str, str]:
        """Return the keys that prune is to look at, with the reason.

        Args:
            stale: Keys that orient called stale, with its reason.
            unprotected: Keys that must go for the cap to hold, lowest score first.
        """
        pairs = [key for keys in (*self.near_keys, *self.equal, *self.alike) for key in keys]
        return {
            **dict.fromkeys(pairs, "near_duplicate"),
            **dict.fromkeys(self.too_long, "too_long"),
            **dict.fromkeys(self.held, "held before"),
            **dict.fromkeys(unprotected, "over_cap"),
            **{key: f"stale: {why}" if why else "stale" for key, why in stale.items()},
            **dict.fromkeys(self.forgotten, "evidence_forgotten"),
        }


def look(facts: Sequence[Fact], declined: Declined = (), held: Sequence[str] = ()) -> Hints:
    """Return what code sees in these facts; pinned ones are left alone.

    Args:
        facts: The facts.
        declined: Pairs that a model left as they were, with the versions of then: they are not
            suggested again until one of them changes.
        held: Keys of changes that are offered once more.
    """
    free = [fact for fact in facts if not fact.pinned]
    versions = {fact.key: fact.version for fact in free}
    left = {
        frozenset((one, other))
        for one, first, other, second in declined
        if versions.get(one) == first and versions.get(other) == second
    }
    near: defaultdict[str, list[str]] = defaultdict(list)
    same: defaultdict[str, list[str]] = defaultdict(list)
    for fact in free:
        near[fold_key(fact.key)].append(fact.key)
        same[fold(text_of(fact.value))].append(fact.key)
    equal = [keys for keys in same.values() if _open(keys, left)]
    alike = [pair for pair in _alike(free, NEAR_OVERLAP) if _open(pair, left)]
    return Hints(
        near_keys=[keys for keys in near.values() if _open(keys, left)],
        equal=equal,
        alike=[pair for pair in alike if not any(set(pair) <= set(keys) for keys in equal)],
        too_long=[fact.key for fact in free if len(text_of(fact.value)) > LONG_CHARACTERS],
        forgotten=[fact.key for fact in free if _forgotten(fact)],
        held=[key for key in held if key in versions],
    )


def declined_pairs(hints: Hints, facts: Mapping[str, Fact]) -> list[tuple[str, int, str, int]]:
    """Return the suggested pairs of these facts with their versions, as later dreams keep them."""
    groups = [*hints.near_keys, *hints.equal, *hints.alike]
    pairs = dict.fromkeys(pair for keys in groups for pair in combinations(sorted(keys), 2))
    return [
        (one, facts[one].version, other, facts[other].version)
        for one, other in islice(pairs, _DECLINED)
        if one in facts and other in facts
    ]


def _open(keys: Sequence[str], left: set[frozenset[str]]) -> bool:
    """Tell if a group has a pair that no model has declined."""
    return any(frozenset(pair) not in left for pair in combinations(keys, 2))


def _forgotten(fact: Fact) -> bool:
    return bool(fact.evidence) and all(row.forgotten for row in fact.evidence)


def _alike(facts: Sequence[Fact], least: float) -> list[list[str]]:
    """Pairs whose shared words weigh at least that share of the lighter value's words."""
    rarity = Rarity(text_of(fact.value) for fact in facts)
    own = {fact.key: set(words(text_of(fact.value))) for fact in facts}
    weight = {word: rarity.weight(word) for word in set[str]().union(*own.values())}
    # Exact sums: the same in whatever order a set is.
    weights = {key: math.fsum(map(weight.__getitem__, mine)) for key, mine in own.items()}
    holders: defaultdict[str, list[str]] = defaultdict(list)
    for key, mine in own.items():
        for word in mine:
            holders[word].append(key)
    pairs: dict[tuple[str, str], float] = {}
    for key, mine in own.items():
        telling = _telling(mine, weight, (1 - least) * weights[key])
        for other in dict.fromkeys(other for word in telling for other in holders[word]):
            shared = mine & own[other]
            if other == key or weights[other] < weights[key] or len(shared) < 2:
                continue  # the lighter one of a pair looks for the other
            share = math.fsum(map(weight.__getitem__, shared)) / weights[key]
            if share >= least:
                pairs[min(key, other), max(key, other)] = share
    best = sorted(pairs, key=lambda pair: (-pairs[pair], pair))[:_PAIRS]
    return [list(pair) for pair in sorted(best)]


def _telling(words: set[str], weight: Mapping[str, float], most: float) -> list[str]:
    """Return the rarest words that outweigh `most`: what is alike has one of them.

    Looking up these alone is quick, since few values hold them.
    """
    found: list[str] = []
    for word in sorted(words, key=lambda word: (-weight[word], word)):
        found.append(word)
        most -= weight[word]
        if most < -1e-9:
            break
    return found
