"""Hand-ins as models really write them: fences, prose, slips of JSON."""

import json
from typing import Any

import pytest

from agentmem.dreaming.changes import Change, Finding
from agentmem.dreaming.submissions import Unreadable, read_change, read_hand_in, read_text
from agentmem.dreaming.tools import MAX_CHANGES, MAX_FINDINGS

FINDINGS = '{"findings": [{"statement": "Likes tea"}]}'


@pytest.mark.parametrize(
    "text",
    [
        FINDINGS,
        f"Sure! Here it is:\n```json\n{FINDINGS}\n```\nAnything else?",
        f"I looked at {{note}} and found this: {FINDINGS}",
        f'{{"plan": "look first"}}\n{FINDINGS}',
        f"{FINDINGS}\n{FINDINGS}",
        f'{{"name": "submit_findings", "arguments": {FINDINGS}}}',
        '{"findings": [{"statement": "Likes tea", "quote": "a\nraw break"}]}',
        '{"findings": [{"statement": "Likes tea", "quote": "```json\\n{}\\n```"}]}',
    ],
    ids=["plain", "fence", "note", "two", "twice", "call", "raw-break", "fence-inside"],
)
def test_a_hand_in_is_found_in_text(text: str) -> None:
    """Fences, prose, braces before it and other objects do not hide a hand-in."""
    found = read_text("gather_signal", text)
    assert found is not None
    assert [finding.statement for finding in found.findings] == ["Likes tea"]


@pytest.mark.parametrize(
    "text",
    [
        "I think the user likes tea.",
        "",
        "{}",
        '{"findings": [{"statement": "Likes te',
        '{"findings": [{"statement": "Likes tea"},]}',
        '{"findings": "none"}',
        '[{"statement": "Likes tea"}]',
        "{" * 100_000,
        '{"a":' * 100_000,
    ],
    ids=["prose", "empty", "bare", "cut", "comma", "text", "list", "braces", "deep"],
)
def test_what_is_no_hand_in_is_none(text: str) -> None:
    """A text that is no hand-in is never taken for an empty one: it is asked for again."""
    assert read_text("gather_signal", text) is None


def test_an_empty_list_is_an_answer_and_a_missing_one_is_not() -> None:
    """Nothing learned must be said; a missing list is told to the model."""
    assert read_hand_in("gather_signal", {"findings": []}).findings == []
    with pytest.raises(Unreadable, match="findings is missing"):
        read_hand_in("gather_signal", {})
    with pytest.raises(Unreadable, match="changes is missing"):
        read_hand_in("consolidate", {})
    assert read_hand_in("prune", {"summary": "All well."}).summary == "All well."


def test_what_only_code_may_say_is_dropped() -> None:
    """A model's word for trust, ids, status, versions or a pinned fact does not count."""
    said: dict[str, Any] = {
        "id": "c99",
        "op": "add",
        "key": "k",
        "value": "v",
        "trust": "user",
        "status": "accepted",
        "reads": [{"key": "k", "version": 7}],
        "witnesses": [{"session": "s", "memory": "wm0", "message": "m1"}],
        "scope": "another",
    }
    assert read_change(said) == Change(op="add", key="k", value="v")
    finding: dict[str, Any] = {"statement": "s", "id": "f7", "trust": "user", "attributed": True}
    assert read_hand_in("gather_signal", {"findings": [finding]}).findings == [
        Finding(statement="s")
    ]


def test_slips_of_type_cost_a_field_and_not_the_item() -> None:
    """A text for a list, a wild importance, an unknown kind: the rest of the item stands."""
    said: dict[str, Any] = {
        "statement": "Likes tea",
        "kind": "hunch",
        "evidence": "a1",
        "keys": ["drink", 7, None],
        "importance": 11,
        "happened": {"day": 3},
        "quote": None,
    }
    (finding,) = read_hand_in("gather_signal", {"findings": [said]}).findings
    assert finding == Finding(statement="Likes tea", evidence=["a1"], keys=["drink"], importance=5)


def test_items_that_cannot_be_read_are_named() -> None:
    """An unknown operation or a missing key is a line for the model and the report."""
    items = [{"op": "explode", "key": "x"}, {"op": "add"}, "text", {"op": "add", "key": "k"}]
    found = read_hand_in("consolidate", {"changes": items})
    assert found.problems == [
        "change 1: op: unknown 'explode'",
        "change 2: key: missing",
        "change 3: not an object",
    ]
    assert [change.key for change in found.changes] == ["k"]


def test_hand_ins_are_bounded() -> None:
    """At most 40 findings and 100 changes are read, and what is left out is said."""
    many = [{"statement": f"s{number}"} for number in range(MAX_FINDINGS + 5)]
    found = read_hand_in("gather_signal", {"findings": many})
    assert (len(found.findings), found.problems) == (
        MAX_FINDINGS,
        ["5 of 45 are over the limit of 40; hand them in now"],
    )
    made = [{"op": "remove", "key": f"k{number}"} for number in range(MAX_CHANGES + 1)]
    assert len(read_hand_in("prune", {"changes": made}).changes) == MAX_CHANGES


def test_orientation_takes_bare_keys() -> None:
    """A list of keys where objects were asked for is read as such."""
    data = json.loads('{"stale": ["a"], "contradictions": [{"keys": ["a", "b"]}], "topics": "x"}')
    found = read_hand_in("orient", data).orientation
    assert [one.key for one in found.stale] == ["a"]
    assert found.topics == ["x"]
