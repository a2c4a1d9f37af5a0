"""The one table of the rules' numbers."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Thresholds:
    """What the rules measure by; the number of the rule stands before each.

    Those of rules 5, 6 and 14 and of support were measured on real conversations; the others are
    starting values.
    """

    # 2: key
    key_bytes: int = 256
    near_keys: int = 3
    # 5: evidence
    evidence: int = 8
    attribution: float = 0.5
    # 6: grounding
    grounded_share: float = 0.25
    # trust: what makes a message support a statement
    support_words: int = 2
    support_share: float = 0.25
    # 11: survivor
    survivor_words: float = 0.8
    telling_words: int = 3
    # 13: budgets, of the facts that the dream found
    removals: int = 2
    removals_share: float = 0.05
    disappearing: int = 5
    disappearing_share: float = 0.3
    # 14: adds, for nothing and for each message that was said
    adds: int = 5
    adds_a_message: float = 0.5
    # 15: condensing a long value
    condensed_from: int = 200
    condensed_to: float = 0.2
    condensed_names: float = 0.8
    reworded: float = 0.5
    # 18: what of a fact's words a message must say to confirm it
    confirmed_share: float = 0.6
    # 19: own text
    own_words: int = 8
    # 21: script
    script_letters: int = 20
    # 23: size
    value_characters: int = 2_000
    packed_bytes: int = 500
    packed_ratio: int = 10
    # findings
    findings: int = 40
    statement_characters: int = 300
    quote_characters: int = 200
    repeated_messages: int = 3
    # hints: what code itself nominates
    near_overlap: float = 0.6
    long_characters: int = 400
    # cap
    protected_hours: int = 24
    used_days: int = 30
    evicted_share: float = 0.5


THRESHOLDS = Thresholds()
