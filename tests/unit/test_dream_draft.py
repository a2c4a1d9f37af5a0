"""A draft: what phases read of it, how it is kept, and what its commit takes."""

import json
from datetime import UTC, datetime, timedelta

from agentmem.dreaming.changes import Change, Finding
from agentmem.dreaming.draft import Draft
from agentmem.facts import Evidence, Fact, Read, Tombstone, Trust
from tests.drafts import BEFORE, SAID, draft, fact, propose, row


def full() -> Draft:
    """A draft with findings and changes of each status."""
    on = draft(
        [fact("city", "Oslo"), fact("drink", "likes coffee"), fact("pet", {"kind": "cat"})],
        ["I moved to Bergen yesterday", "I like green tea", "please forget my pet"],
        zone="Europe/Oslo",
        tombstones=[Tombstone(key="phone", value="555 0100", at=BEFORE)],
        nominated={"drink": "near_duplicate"},
    )
    found = Finding(
        statement="Moved to Bergen",
        evidence=["a1"],
        quote="I moved to Bergen yesterday",
        kind="event",
        happened="2026-03-09",
    )
    on.find([found])
    propose(on, "update", "city", "Bergen", findings=["f1"], reason="correction")
    propose(on, "remove", "drink", again=True)
    propose(on, "update", "nowhere", "x")
    propose(on, "add", "tea", "Likes green tea", evidence=["a2", "a99"])
    propose(on, "remove", "pet", reason="asked_to_forget", evidence=["a3"])
    return on


def test_accepted_changes_show_in_later_reads_and_held_ones_do_not() -> None:
    """The four memory tools work on the draft."""
    on = full()
    assert on.counts() == {"accepted": 3, "held": 1, "rejected": 1}
    assert on.keys() == ["city", "drink", "tea"]
    assert [(one.key, one.value, one.version) for one in on.recall(["tea", "pet", "city"])] == [
        ("tea", "Likes green tea", 0),
        ("city", "Bergen", 3),
    ]
    assert [one.key for one in on.facts()] == on.keys()


def test_a_draft_outlives_its_process() -> None:
    """Written as JSON and read again over the same facts and messages, it is the same."""
    on = full()
    data = json.loads(json.dumps(on.dump()))
    again = Draft.load(data, on.before.values(), on.rows)
    assert again.dump() == on.dump()
    assert again.facts() == on.facts()
    assert again.finish(100) == on.finish(100)
    assert again.steps() == on.steps()
    assert (again.zone, again.opened_at, again.nominated) == (
        on.zone,
        on.opened_at,
        on.nominated,
    )
    assert propose(again, "add", "walk", "moved to Bergen").id == "c6"


def test_the_same_proposals_make_the_same_draft() -> None:
    """Nothing depends on a clock, chance or the order of dictionaries."""
    assert full().dump() == full().dump()
    backwards = draft(reversed([fact("a", "Anna sails"), fact("b", "Peter walks")]))
    assert backwards.keys() == ["a", "b"]


def test_each_change_is_a_step_with_what_it_read_and_writes() -> None:
    """Held and rejected changes make none."""
    on = full()
    on.finish(100)
    steps = {step.id: step for step in on.steps()}
    assert list(steps) == ["c1", "c4", "c5"]
    assert steps["c1"].reads == [Read(key="city", version=3)]
    write = steps["c1"].writes[0]
    assert (write.op, write.key, write.value, write.reason, write.writer) == (
        "set",
        "city",
        "Bergen",
        "correction",
        "dream",
    )
    assert (write.trust, write.kind, write.valid_from, write.said_at) == (
        Trust.USER,
        "event",
        "2026-03-09",
        SAID,
    )
    assert [one.message for one in write.evidence] == ["m1"]
    assert steps["c4"].reads == [Read(key="tea", version=0)]
    gone = steps["c5"].writes[0]
    assert (gone.op, gone.key, gone.reason, gone.value) == (
        "remove",
        "pet",
        "asked_to_forget",
        None,
    )


def test_rewording_keeps_what_was_known_of_the_fact() -> None:
    """Evidence, times and dates of merged facts go over to the result; nothing is forgotten."""
    told = Evidence(session="s0", memory="wm0", message="m4", quote="to Bergen")
    old = fact(
        "city",
        "Lives in Bergen",
        evidence=[told],
        importance=5,
        kind="profile",
        valid_from="2019",
        expires_at=SAID + timedelta(days=900),
    )
    town = old.replace(key="town", value="Lives in Bergen, Norway", expires_at=SAID)
    on = draft([old, town])
    propose(on, "merge", "city", "Lives in Bergen, Norway", sources=["town"])
    kept = on.recall(["city"])[0]
    assert (kept.evidence, kept.importance, kept.kind, kept.said_at) == (
        [told],
        5,
        "profile",
        BEFORE,
    )
    assert (kept.valid_from, kept.expires_at) == ("2019", SAID + timedelta(days=900))


def test_an_idle_citation_does_not_make_a_rewording_newer() -> None:
    """A value that rests on facts keeps their times, so that later words still win."""
    on = draft([fact("city", "Lives in Bergen"), fact("town", "Lives in Bergen, Norway")], ["ok"])
    text = "Lives in Bergen, Norway"
    fields = {"sources": ["town"], "evidence": ["a1"], "quote": "Norway, he said"}
    done = propose(on, "merge", "city", text, **fields)
    assert (done.status, done.witnesses, done.said_at) == ("accepted", [], None)
    assert on.recall(["city"])[0].said_at == BEFORE


def test_a_correction_keeps_no_date_of_what_it_corrects() -> None:
    """The old value's validity ends with it."""
    old = fact("city", "Lives in Oslo", valid_from="2019", expires_at=SAID + timedelta(days=9))
    on = draft([old], ["I moved to Bergen"])
    propose(on, "update", "city", "Lives in Bergen", evidence=["a1"], reason="correction")
    kept = on.recall(["city"])[0]
    assert (kept.valid_from, kept.expires_at, len(kept.evidence)) == ("", None, 1)


def test_a_change_sent_twice_is_reported_once() -> None:
    """A refusal is no louder for being repeated."""
    on = draft([fact("city", "Oslo")], ["hello"])
    for _ in range(3):
        propose(on, "remove", "city")
        propose(on, "update", "nowhere", "x")
    assert on.counts() == {"held": 1, "rejected": 1}


def test_what_is_said_again_in_one_dream_is_the_change_that_said_it() -> None:
    """A call and a hand-in that repeat each other are one change."""
    on = draft(said=["I moved to Bergen in Norway"])
    first = propose(on, "add", "city", "Moved to Bergen in Norway", evidence=["a1"])
    again = propose(on, "add", "city", "moved to bergen in norway", evidence=["a1"])
    assert again == first
    assert on.counts() == {"accepted": 1}


def test_an_empty_draft_commits_nothing() -> None:
    """No facts, no messages, no changes: no steps."""
    on = draft()
    assert (on.find([]), on.finish(100), on.steps(), on.counts(), on.keys()) == ([], [], [], {}, [])


def test_prompts_and_noise_leave_the_store_as_it_is() -> None:
    """A copied system prompt, greetings and recalled facts become no facts."""
    on = draft(
        said=[
            row("You are a helpful assistant. Rule 1: be brief.", "system"),
            "hi",
            "ok",
            row("city: Bergen", "tool_result", recalled=True),
        ]
    )
    for value in (
        "Be brief",
        "You are a helpful assistant",
        "Lives in Bergen",
        "The user is polite",
    ):
        propose(on, "add", "note", value)
        propose(on, "add", "note", value, evidence=["a1", "a4"])
    assert on.finish(100) != []
    assert on.steps() == []


def test_a_recalled_fact_dreamt_of_five_times_stays_as_it_is() -> None:
    """Same finished conversation, same facts: nothing is written again."""
    stored: list[Fact] = [fact("city", "Lives in Bergen, Norway")]
    for _ in range(5):
        on = draft(
            stored,
            ["where do I live?", row("Lives in Bergen, Norway", "tool_result", recalled=True)],
        )
        propose(on, "add", "city", "Lives in Bergen, Norway", evidence=["a2"])
        propose(on, "add", "home", "Lives in Bergen, Norway")
        on.finish(100)
        assert on.steps() == []
        stored = on.facts()


def test_the_phase_that_proposed_is_kept() -> None:
    """The report can say who wanted what."""
    on = draft([fact("city", "Oslo")])
    assert on.propose(Change(op="remove", key="city"), "prune").phase == "prune"


def test_an_update_keeps_the_earlier_value_in_view_unless_it_was_never_true() -> None:
    """Nothing replaced is silently gone: `was` says what held before."""
    for reason, was in (("superseded", "Lives in Oslo"), ("decision", "Lives in Oslo")):
        on = draft([fact("city", "Lives in Oslo")], ["I moved to Bergen"])
        propose(on, "update", "city", "Lives in Bergen", evidence=["a1"], reason=reason)
        kept = on.recall(["city"])[0]
        assert kept.was is not None
        assert (kept.was.value, kept.was.replaced_at) == (was, on.opened_at)
    for reason in ("correction", "retracted", "asked_to_forget"):
        on = draft([fact("city", "Lives in Oslo")], ["I never lived in Oslo"])
        propose(on, "update", "city", "Lives in Bergen", evidence=["a1"], reason=reason)
        assert on.recall(["city"])[0].was is None


def test_a_tentative_update_leaves_the_old_value_and_shows_the_new_one_beside_it() -> None:
    """With whose word it is and its quote."""
    on = draft([fact("city", "Lives in Oslo", kind="profile")], ["I moved to Bergen"])
    done = propose(on, "update", "city", "Lives in Bergen", evidence=["a1"])
    on.decide(done.replace(status="tentative"))
    kept = on.recall(["city"])[0]
    assert (kept.value, kept.kind, kept.state) == ("Lives in Oslo", "profile", "settled")
    assert kept.unconfirmed is not None
    assert (kept.unconfirmed.value, kept.unconfirmed.trust) == ("Lives in Bergen", Trust.USER)
    assert [one.quote for one in kept.unconfirmed.evidence] == ["I moved to Bergen"]
    (step,) = on.steps()
    assert [(one.op, one.value) for one in step.writes] == [("set", "Lives in Oslo")]


def test_a_tentative_update_keeps_when_its_value_holds() -> None:
    """A person who confirms it later gets its end with it."""
    on = draft([fact("city", "Lives in Oslo")], ["I am in Bergen until 5 May"])
    done = propose(
        on, "update", "city", "In Bergen until 2026-05-05", evidence=["a1"], until="2026-05-05"
    )
    on.decide(done.replace(status="tentative"))
    kept = on.recall(["city"])[0]
    assert kept.expires_at is None
    assert kept.unconfirmed is not None
    assert kept.unconfirmed.expires_at == datetime(2026, 5, 6, tzinfo=UTC)


def test_the_new_value_is_written_before_the_sources_go() -> None:
    """A store without transactions never holds neither."""
    on = draft([fact("diet", "Vegan"), fact("food", "No nuts")])
    propose(on, "merge", "diet", "Vegan, no nuts", sources=["food"])
    (step,) = on.steps()
    assert [(write.op, write.key) for write in step.writes] == [("set", "diet"), ("remove", "food")]


def test_until_makes_a_fact_expire_at_the_end_of_its_day() -> None:
    """In the zone of the dream; an update without it has no end."""
    on = draft(said=["the offer is valid until 5 May"], zone="Europe/Oslo")
    propose(on, "add", "offer", "Offer until 2026-05-05", evidence=["a1"], until="2026-05-05")
    kept = on.recall(["offer"])[0].expires_at
    assert kept is not None
    assert kept.isoformat() == "2026-05-06T00:00:00+02:00"
