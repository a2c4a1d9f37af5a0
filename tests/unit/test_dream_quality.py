"""The benchmark of dreams: what the rules block wrongly, and what harm they let through."""

import json
from pathlib import Path

import pytest

from benchmarks.dream_case import Case
from benchmarks.dream_cases import cases
from benchmarks.dream_quality import measure, rules
from benchmarks.locomo_lines import measure as measure_lines
from benchmarks.locomo_lines import talks


def test_there_are_four_cases_of_each_of_22_types() -> None:
    """A third of them in another script, a quarter in two sessions at once; always the same."""
    made = cases(1)
    assert len(made) == 88
    assert len({case.kind for case in made}) == 22
    foreign = [case for case in made if any(not one.text.isascii() for one in case.said)]
    assert 26 <= len(foreign) <= 32
    assert sum(case.interleaved for case in made) == 22
    assert [case.said for case in cases(1)] == [case.said for case in made]
    assert [case.said for case in cases(2)] != [case.said for case in made]


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_the_rules_let_good_changes_pass() -> None:
    """At most 1 % of a good model's changes, verified by a right reader, do not settle."""
    tally = await measure("gold", 1, 1)
    made = sum(tally.changes.values())
    assert made > 50
    assert tally.changes["accepted"] >= 0.99 * made, tally.codes
    assert (tally.kept, tally.stale, tally.dated) == (tally.planted, 0, tally.dates), tally.notes
    assert (tally.harm, tally.restless, tally.failed) == (0, 0, []), tally.notes


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_the_rules_let_no_harm_through() -> None:
    """A model that proposes every harm, and says yes to all, loses, merges and forges nothing."""
    tally = await measure("bad", 1, 1)
    assert sum(tally.changes.values()) > 500
    assert (tally.harm, tally.restless, tally.failed) == (0, 0, []), tally.notes


async def test_lines_of_a_conversation_count_what_facts_cite(tmp_path: Path) -> None:
    """A question's turns as often as asked for, notes of the same turns, right days."""
    turns = [
        ("D1:1", "Ada", "I went to a support group yesterday."),
        ("D1:2", "Bob", "Nice."),
        ("D1:3", "Bob", "I work as a nurse."),
    ]
    asked = [
        {"category": 2, "evidence": ["D1:1"], "answer": "7 May 2023"},
        {"category": 2, "evidence": ["D1:1"], "answer": "May, 2023"},
        {"category": 1, "evidence": ["D1:2; D1:3"], "answer": "a nurse"},
    ]
    conversation = {
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [{"dia_id": t, "speaker": who, "text": text} for t, who, text in turns],
    }
    observation = {"session_1_observation": {"Bob": [["Bob is a nurse.", "D1:3"]]}}
    file = tmp_path / "talks.json"
    file.write_text(
        json.dumps([{"conversation": conversation, "qa": asked, "observation": observation}])
    )
    lines = await measure_lines(list(talks(file)), rules(Case(kind="")), 100)
    assert (lines.asked, lines.found, lines.facts, lines.cited, lines.observed) == (4, 3, 2, 2, 1)
    assert (lines.days, lines.told, lines.dated, lines.failed) == (1, 1, 1, [])
