"""What code itself sees in a scope: near-equal keys, alike values, facts that may have to go.

Hints help a model to look, stand in where it hands in nothing, and nominate what prune looks at.
They decide nothing: what goes is for the rules.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import date

from agentmem.dreaming.changes import Orientation, Stale
from agentmem.dreaming.language.text import Rarity, content, fold_key, text_of
from agentmem.dreaming.rules import THRESHOLDS, Thresholds
from agentmem.dreaming.rules.removal import expired
from agentmem.facts import Fact
from agentmem.values import JSONObject, Wire

_PAIRS = 50


class Hints(Wire):
    """What code sees.

    Attributes:
        near_keys: Groups of keys that differ by case, hyphens, underscores or spaces.
        alike: Pairs of keys whose values share most of their words.
        expired: Keys that have passed their own stored date.
        too_long: Keys with long values.
        forgotten: Keys of facts whose every message was forgotten on request.
    """

    near_keys: list[list[str]] = []
    alike: list[list[str]] = []
    expired: list[str] = []
    too_long: list[str] = []
    forgotten: list[str] = []

    def lines(self) -> list[JSONObject]:
        """Return them as lines for a model."""
        groups: list[tuple[str, list[list[str]]]] = [
            ("near_keys", self.near_keys),
            ("alike", self.alike),
            ("expired", [[key] for key in self.expired]),
            ("too_long", [[key] for key in self.too_long]),
            ("evidence_forgotten", [[key] for key in self.forgotten]),
        ]
        return [{"hint": name, "keys": keys} for name, found in groups for keys in found]

    def orientation(self) -> Orientation:
        """Return them in place of an orientation that no model handed in."""
        return Orientation(
            source="code",
            duplicates=[*self.near_keys, *self.alike],
            stale=[
                *(Stale(key=key, why="expired") for key in self.expired),
                *(Stale(key=key, why="evidence_forgotten") for key in self.forgotten),
            ],
            too_long=self.too_long,
        )

    def nominated(self, unprotected: Sequence[str] = ()) -> dict[str, str]:
        """Return the keys that prune is to look at, with the reason.

        Args:
            unprotected: Keys that must go for the cap to hold, lowest score first.
        """
        pairs = [key for keys in (*self.near_keys, *self.alike) for key in keys]
        return {
            **dict.fromkeys(pairs, "near_duplicate"),
            **dict.fromkeys(self.too_long, "too_long"),
            **dict.fromkeys(unprotected, "over_cap"),
            **dict.fromkeys(self.forgotten, "evidence_forgotten"),
            **dict.fromkeys(self.expired, "expired"),
        }


def look(facts: Sequence[Fact], today: date, limits: Thresholds = THRESHOLDS) -> Hints:
    """Return what code sees in these facts; pinned ones are left alone."""
    free = [fact for fact in facts if not fact.pinned]
    near: defaultdict[str, list[str]] = defaultdict(list)
    for fact in free:
        near[fold_key(fact.key)].append(fact.key)
    return Hints(
        near_keys=[keys for keys in near.values() if len(keys) > 1],
        alike=_alike(free, limits.near_overlap),
        expired=[fact.key for fact in free if expired(fact, today)],
        too_long=[fact.key for fact in free if len(text_of(fact.value)) > limits.long_characters],
        forgotten=[fact.key for fact in free if _forgotten(fact)],
    )


def _forgotten(fact: Fact) -> bool:
    return bool(fact.evidence) and all(row.forgotten for row in fact.evidence)


def _alike(facts: Sequence[Fact], least: float) -> list[list[str]]:
    """Pairs whose shared words weigh at least that share of the lighter value's words."""
    rarity = Rarity(text_of(fact.value) for fact in facts)
    words = {fact.key: set(content(text_of(fact.value))) for fact in facts}
    weight = {word: rarity.weight(word) for word in set[str]().union(*words.values())}
    # Exact sums: the same in whatever order a set is.
    weights = {key: math.fsum(map(weight.__getitem__, mine)) for key, mine in words.items()}
    holders: defaultdict[str, list[str]] = defaultdict(list)
    for key, mine in words.items():
        for word in mine:
            holders[word].append(key)
    pairs: dict[tuple[str, str], float] = {}
    for key, mine in words.items():
        telling = _telling(mine, weight, (1 - least) * weights[key])
        for other in dict.fromkeys(other for word in telling for other in holders[word]):
            shared = mine & words[other]
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
