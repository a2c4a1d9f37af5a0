"""Bounds that meter, facts that end by themselves, and the cap."""

from datetime import UTC, date, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agentmem.dreaming.rules.limits import protected, score
from agentmem.facts import Evidence, Fact, Trust
from tests.drafts import BEFORE, SAID, draft, fact, propose
from tests.dreams import STORE, Scene, Script

TODAY = date(2026, 3, 25)
OPENED = SAID + timedelta(days=15)


def many(number: int, **fields: object) -> list[Fact]:
    """Facts that are alike but for their key and words."""
    return [fact(f"k{n:03}", f"Anna owns boat number {n}", **fields) for n in range(number)]


def test_the_score_counts_trust_importance_sessions_and_use() -> None:
    """Trust 1 to 3, importance 1 to 5, one for a second session, one for a use in 30 days."""
    sessions = [Evidence(session=name, memory="wm0", message="m1") for name in ("s1", "s2")]
    assert score(fact("k", "v", trust=Trust.TOOL, importance=1), TODAY, {}) == 2
    assert score(fact("k", "v"), TODAY, {}) == 6
    assert score(fact("k", "v", evidence=sessions[:1] * 3), TODAY, {}) == 6
    assert score(fact("k", "v", evidence=sessions), TODAY, {}) == 7
    assert score(fact("k", "v"), TODAY, {"k": TODAY - timedelta(days=30)}) == 7
    assert score(fact("k", "v"), TODAY, {"k": TODAY - timedelta(days=31)}) == 6


def test_at_the_cap_nothing_goes_and_over_it_the_rest() -> None:
    """100 facts stay 100, and 104 become 100."""
    for number in (99, 100, 104):
        on = draft(many(number))
        on.finish(100)
        assert len(on.keys()) == min(number, 100)


def test_expired_facts_go_first_then_those_worth_least_then_the_oldest() -> None:
    """Ties go by the last write, then by key."""
    old = BEFORE - timedelta(days=1)
    on = draft(
        [
            fact("best", "a", importance=5),
            fact("expired", "b", importance=5, expires_at=BEFORE),
            fact("least", "c", importance=1),
            fact("old", "d", recorded_at=old),
            fact("x", "e"),
            fact("y", "f"),
            *many(6, importance=4),
        ]
    )
    on.finish(8)
    assert [one.key for one in on.changes] == ["expired", "least", "old", "x"]
    assert [one.reason for one in on.changes] == ["expired", "evicted", "evicted", "evicted"]
    assert [write.op for step in on.steps() for write in step.writes] == ["remove"] * 4


def test_protected_facts_stay_and_the_cap_gives_way() -> None:
    """Pinned, written by people or programs, or younger than a day."""
    young = OPENED - timedelta(hours=23)
    assert protected(fact("k", "v", pinned=True), OPENED)
    assert protected(fact("k", "v", writer="code"), OPENED)
    assert protected(fact("k", "v", recorded_at=young), OPENED)
    assert not protected(fact("k", "v", recorded_at=young - timedelta(hours=1)), OPENED)
    assert protected(fact("k", "v", writer="person"), OPENED)
    assert not protected(fact("k", "v", writer="agent"), OPENED)
    assert not protected(fact("k", "v", writer="unknown"), OPENED)
    on = draft([*many(9, writer="code"), fact("z", "a dream wrote this")])
    on.finish(5)
    assert len(on.keys()) == 9


def test_at_most_half_of_a_scope_goes_in_one_dream() -> None:
    """A scope far over its cap gets there in steps, and finishing twice takes no second half."""
    on = draft(many(30))
    on.finish(10)
    assert len(on.keys()) == 15
    assert on.finish(10) == on.changes
    assert len(on.keys()) == 15


def test_new_facts_are_not_protected() -> None:
    """Facts that this dream would add compete, and over the cap the least important are held."""
    words = ["Anna sails boats", "Peter walks dogs", "Maria paints walls"]
    on = draft(many(3, importance=4), words)
    for number, (value, importance) in enumerate(zip(words, (5, 1, 2), strict=True), 1):
        key = f"new{number}"
        propose(on, "add", key, value, evidence=[f"a{number}"], importance=importance)
    on.finish(4)
    assert on.keys() == ["k000", "k001", "k002", "new1"]
    assert [(one.key, one.status, one.code) for one in on.changes] == [
        ("new1", "accepted", ""),
        ("new2", "held", "over_cap"),
        ("new3", "held", "over_cap"),
    ]


def test_a_survivor_is_not_evicted_behind_what_it_replaced() -> None:
    """Else both would be gone."""
    on = draft(
        [
            fact("city", "Lives in Bergen", importance=1),
            fact("town", "Lives in Bergen, Norway", importance=1),
            *many(4, importance=5),
        ]
    )
    propose(on, "remove", "city", by="town", reason="duplicate")
    on.finish(4)
    assert "town" in on.keys()  # noqa: SIM118 - a draft is no dict
    assert len(on.keys()) == 4


def test_what_changed_in_this_dream_is_not_evicted_by_it() -> None:
    """A correction of an unimportant fact is not thrown away with it."""
    on = draft([fact("city", "Lives in Oslo", importance=1), *many(3)], ["I live in Bergen now"])
    propose(on, "update", "city", "Lives in Bergen", evidence=["a1"], reason="correction")
    on.finish(3)
    assert on.recall(["city"])[0].value == "Lives in Bergen"
    assert len(on.keys()) == 3


def test_the_model_s_own_choice_for_the_cap_goes_before_code_s() -> None:
    """Nominated keys may go without a survivor, within the same half of the scope."""
    facts = many(8)
    on = draft(facts, nominated=dict.fromkeys([one.key for one in facts], "over_cap"))
    done = [propose(on, "remove", one.key).status for one in facts[2:]]
    assert done == ["accepted"] * 4 + ["held"] * 2
    on.finish(4)
    assert on.keys() == ["k000", "k001", "k006", "k007"]


def test_recent_use_keeps_a_fact() -> None:
    """The used one of two equal facts stays."""
    on = draft(many(4))
    on.finish(3, used={"k000": TODAY})
    assert on.keys() == ["k000", "k002", "k003"]


async def whole(scene: Scene) -> dict[str, dict[str, Any]]:
    """All that is said of each fact, without what only counts and dates its version."""
    entries = await scene.provider.entries(STORE.agent, STORE.scope)
    snapshot = {one.key: one.version for one in entries}
    full = await scene.provider.facts_at(STORE.agent, STORE.scope, snapshot)
    return {one.key: one.model_dump(exclude={"version", "recorded_at"}) for one in full}


async def test_a_scope_of_150_old_facts_comes_down_to_its_cap_and_back() -> None:
    """The 50 worth least of those not protected go, and undoing the dream brings all back."""
    scene = await Scene.make()
    for number in range(150):
        importance = 1 if number < 60 else 2 + number % 4
        writer = "code" if 5 <= number < 10 else "dream"
        value = f"Anna owns boat number {number}"
        await scene.knows(f"boat_{number:03}", value, importance=importance, writer=writer)
    for number in range(5):
        await scene.provider.pin(STORE.agent, STORE.scope, f"boat_{number:03}", True)
    before = await whole(scene)
    await scene.said("Good morning!")
    # The store dates its writes by the clock.
    report = await scene.dream(Script(), now=datetime.now(UTC) + timedelta(days=2))
    assert (report.keys_before, report.keys_after) == (150, 100)
    gone = [f"boat_{number:03}" for number in range(10, 60)]
    assert sorted(before.keys() - (await scene.facts()).keys()) == gone
    undone = await scene.provider.undo(STORE.agent, STORE.scope, report.dream)
    assert (undone.keys, undone.conflicts) == (gone, [])
    assert await whole(scene) == before
    await scene.provider.close()


@given(
    st.lists(
        st.tuples(st.integers(1, 5), st.booleans(), st.sampled_from(list(Trust))), max_size=20
    ),
    st.integers(0, 12),
)
def test_the_cap_never_takes_what_is_protected_nor_more_than_it_must(
    made: list[tuple[int, bool, Trust]], cap: int
) -> None:
    """Any scope: protected facts stay, at most half goes, and none goes without need."""
    facts = [
        fact(f"k{n}", f"Anna owns boat {n}", importance=importance, pinned=pinned, trust=trust)
        for n, (importance, pinned, trust) in enumerate(made)
    ]
    on = draft(facts)
    on.finish(cap)
    kept = set(on.keys())
    assert {one.key for one in facts if one.pinned} <= kept
    assert len(kept) >= min(len(facts), cap)
    assert len(facts) - len(kept) <= len(facts) // 2
    worst = max((score(one, TODAY, {}) for one in facts if one.key not in kept), default=0)
    assert all(
        score(one, TODAY, {}) >= worst for one in facts if one.key in kept and not one.pinned
    )


def test_a_new_fact_takes_the_place_of_one_that_is_worth_less() -> None:
    """A scope at its cap keeps learning."""
    on = draft(many(4, importance=2), ["I am allergic to nuts"])
    propose(on, "add", "allergy", "Allergic to nuts", evidence=["a1"], importance=5)
    on.finish(4)
    assert "allergy" in on.keys()  # noqa: SIM118 - a draft is no dict
    assert len(on.keys()) == 4
    assert [(one.key, one.reason) for one in on.changes if one.op == "remove"] == [
        ("k000", "evicted")
    ]


def test_equal_values_unite_without_a_bound() -> None:
    """Twelve exact duplicates among 24 facts are twelve facts after one dream: nothing is lost."""
    facts = [
        fact(
            f"{name}{n:02}",
            f"Anna owns  boat number {n}" if name == "b" else f"anna owns boat number {n}",
        )
        for n in range(12)
        for name in ("a", "b")
    ]
    on = draft(facts)
    for n in range(12):
        propose(on, "remove", f"b{n:02}", by=f"a{n:02}", reason="duplicate")
    on.finish(100)
    assert on.keys() == [f"a{n:02}" for n in range(12)]


def test_near_duplicates_over_the_bound_wait_for_the_next_dream() -> None:
    """Two per dream, or one in twenty facts; none is refused, and none is held for a person."""
    facts = [
        fact(f"{name}{n}", f"Anna owns boat number {n}{' since May' if name == 'b' else ''}")
        for n in range(5)
        for name in ("a", "b")
    ]
    on = draft(facts)
    for n in range(5):
        propose(on, "remove", f"a{n}", by=f"b{n}", reason="duplicate")
    on.finish(100)
    assert on.counts() == {"accepted": 2, "deferred": 3}
    assert len(on.keys()) == 8


def test_what_disappears_has_a_bound_but_for_a_user_s_request() -> None:
    """Five keys per dream, or three in ten facts; what the user takes back always goes."""
    said = [f"please forget boat number {n}" for n in range(9)]
    on = draft(many(12), said)
    for n in range(9):
        fields = {"evidence": [f"a{n + 1}"], "reason": "asked_to_forget"}
        propose(on, "remove", f"k{n:03}", **fields)
    on.finish(100)
    assert on.counts() == {"accepted": 9}
    on = draft(many(12))
    for n in range(9):
        propose(on, "remove", f"k{n:03}", until="2026-01-10", reason="expired")
    on.finish(100)
    assert on.counts() == {"accepted": 5, "deferred": 4}


def test_new_facts_over_the_bound_wait_the_best_first() -> None:
    """Twenty, and one per message: the more important ones come first."""
    on = draft(said=["I moved to Bergen"])
    for n in range(25):
        fields = {"evidence": ["a1"], "importance": 5 if n >= 20 else 2}
        propose(on, "add", f"k{n:02}", f"Fact number {n}", **fields)
    on.finish(100)
    assert on.counts() == {"accepted": 21, "deferred": 4}
    assert on.keys()[-5:] == [f"k{n}" for n in range(20, 25)]


def test_what_has_passed_its_day_goes_without_a_model() -> None:
    """A fact with `until`, stored or new; a pinned one stays."""
    ended = {"expires_at": BEFORE}
    facts = [fact("voucher", "Voucher", **ended), fact("pinned", "Offer", pinned=True, **ended)]
    on = draft(facts, ["the sale ends on 2026-03-12"])
    propose(on, "add", "sale", "Sale until 2026-03-12", evidence=["a1"], until="2026-03-12")
    on.finish(100)
    assert on.keys() == ["pinned"]
    assert [(one.key, one.status, one.code) for one in on.changes] == [
        ("sale", "rejected", "expired"),
        ("voucher", "accepted", "expired"),
    ]


def test_a_tentative_fact_that_no_user_said_ends_after_thirty_days() -> None:
    """A tentative fact that a user said stays until it is confirmed or taken back."""
    told = [Evidence(session="s0", memory="wm0", message="m1", role="user")]
    page = [Evidence(session="s0", memory="wm0", message="m2", role="tool_result")]
    long_ago, lately = OPENED - timedelta(days=31), OPENED - timedelta(days=9)
    facts = [
        fact("told", "a", state="tentative", evidence=told, recorded_at=long_ago),
        fact("page", "b", state="tentative", evidence=page, recorded_at=long_ago),
        fact("young", "c", state="tentative", evidence=page, recorded_at=lately),
    ]
    on = draft(facts)
    on.finish(100)
    assert on.keys() == ["told", "young"]
    assert score(facts[0], TODAY, {}) == 0


def test_no_fact_survives_in_a_circle() -> None:
    """Two duplicates that name each other: one of them stays."""
    on = draft([fact("city", "Lives in Bergen"), fact("town", "Lives in Bergen")])
    propose(on, "remove", "city", by="town", reason="duplicate")
    done = propose(on, "remove", "town", by="city", reason="duplicate")
    assert (done.status, done.code) == ("rejected", "unknown_key")
    on.finish(100)
    assert on.keys() == ["town"]


def test_a_chain_of_duplicates_ends_in_the_one_that_stays() -> None:
    """A fact that stays for another may itself be replaced by a third."""
    facts = [
        fact("a", "Lives in Bergen"),
        fact("b", "Lives in Bergen"),
        fact("c", "lives in Bergen"),
    ]
    on = draft(facts)
    propose(on, "remove", "a", by="b", reason="duplicate")
    propose(on, "remove", "b", by="c", reason="duplicate")
    on.finish(100)
    assert on.keys() == ["c"]


def test_no_deletion_without_its_replacement() -> None:
    """A removal whose survivor is not stored after all is held."""
    on = draft([fact("drink", "likes coffee")], ["I drink tea only now"])
    stays = propose(on, "add", "drinks", "Tea only", evidence=["a1"])
    propose(on, "remove", "drink", by="drinks", reason="superseded", evidence=["a1"])
    on.decide(stays.replace(status="rejected"))
    on.finish(100)
    assert [(one.key, one.status, one.code) for one in on.changes][1] == (
        "drink",
        "held",
        "no_survivor",
    )
    assert on.keys() == ["drink"]


def test_a_weaker_fact_is_no_survivor_of_a_stronger_one() -> None:
    """A user's fact does not go because a tool's says the same."""
    on = draft([fact("city", "Lives in Bergen"), fact("page", "Lives in Bergen", trust=Trust.TOOL)])
    done = propose(on, "remove", "city", by="page", reason="duplicate")
    assert (done.status, done.code) == ("held", "lower_trust")


def test_deleting_everything_deletes_nothing() -> None:
    """A model that removes all facts without a reason removes none."""
    on = draft(many(40))
    for one in on.keys():  # noqa: SIM118 - a draft is no dict
        propose(on, "remove", one)
        propose(on, "remove", one, again=True)
    on.finish(100)
    assert len(on.keys()) == 40
    assert on.counts() == {"held": 40}
