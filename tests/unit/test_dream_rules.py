"""The rules that a single change must pass: what each stops, and what it must let pass."""

import json
import random
import string
from datetime import timedelta, timezone
from typing import Any

import pytest

from agentmem.dreaming.changes import Change, Finding
from agentmem.dreaming.rules import RULES, Tombstone
from agentmem.facts import Read, Trust
from tests.drafts import BEFORE, SAID, draft, fact, propose, row

MOVED = "I moved to Bergen"


def decided(change: Change) -> tuple[str, str, bool]:
    """What was decided, by which rule, and whether a model may mend it."""
    return change.status, change.code, change.fixable


def test_a_change_that_passes_carries_all_that_the_commit_needs() -> None:
    """Code fills in witnesses, reads, trust, time and id."""
    on = draft(said=[MOVED])
    done = propose(on, "add", "city", "Lives in Bergen", evidence=["a1"])
    assert decided(done) == ("accepted", "", False)
    assert (done.id, done.phase, done.trust, done.said_at) == (
        "c1",
        "consolidate",
        Trust.USER,
        SAID,
    )
    assert done.reads == [Read(key="city", version=0)]
    assert [(one.message, one.quote) for one in done.witnesses] == [("m1", MOVED)]


def test_what_only_code_may_say_is_taken_from_no_model() -> None:
    """A model cannot give its change a status, trust, versions or the cap's own reason."""
    on = draft([fact("city", "Oslo")], [row("Bergen is nice", "tool_result")])
    done = propose(
        on,
        "remove",
        "city",
        reason="evicted",
        status="accepted",
        trust="user",
        reads=[{"key": "city", "version": 99}],
        witnesses=[{"session": "s", "memory": "wm0", "message": "m9"}],
        id="c77",
        importance=77,
    )
    assert decided(done) == ("held", "unproven", False)
    assert (done.id, done.reason, done.importance, done.witnesses) == ("c1", "", 5, [])
    assert done.reads == [Read(key="city", version=3)]


def test_the_table_names_each_rule_once() -> None:
    """Rules are plain functions in one table, in their order."""
    assert len(RULES) == len(set(RULES)) > 10
    assert all(rule.__doc__ for rule in RULES)


# Rule 2: keys


@pytest.mark.parametrize(
    "key",
    [
        "",
        "  ",
        "a\x00b",
        "a\nb",
        "a\x1bb",
        "k\u200bey",
        "\ufeffkey",
        "\u202eyek",
        "a\u2066b",
        "\u200d",
    ],
)
def test_unreadable_keys_are_refused(key: str) -> None:
    """Empty keys, and those with control or invisible characters, reach no store (M-42)."""
    done = propose(draft(said=[MOVED]), "add", key, "Bergen", evidence=["a1"])
    assert decided(done) == ("rejected", "bad_key", False)


@pytest.mark.parametrize("key", ["k" * 257, "é" * 129, "\ud800", "_dream:failures", "agentmem.x"])
def test_long_and_reserved_keys_are_refused(key: str) -> None:
    """Over 256 bytes, no Unicode, or a program's own: not a dream's to write (M-42)."""
    done = propose(draft(said=[MOVED]), "add", key, "Bergen", evidence=["a1"])
    assert (done.status, done.code in ("bad_key", "reserved_key")) == ("rejected", True)


@pytest.mark.parametrize(
    "key", ["k", "k" * 256, "é" * 128, "城市", "родной_город", "home city", "🏠", "家👨‍👩‍👧"]
)
def test_keys_of_any_script_pass(key: str) -> None:
    """Letters, marks and emoji are good keys; they are stored NFC, without outer spaces."""
    done = propose(draft(said=[MOVED]), "add", f" {key} ", "Bergen", evidence=["a1"])
    assert (done.status, done.key) == ("accepted", key)


@pytest.mark.parametrize(
    "key", ["Home-City", "HOME_CITY", "home city", "homecity", "home_city\u200b"]
)
def test_a_near_equal_key_is_the_stored_one(key: str) -> None:
    """Case, hyphens, underscores and spaces split no memory in two (M-42)."""
    on = draft([fact("home_city", "Oslo")], [MOVED])
    done = propose(on, "add", key, "Bergen", evidence=["a1"])
    assert (done.status, done.code, done.key, done.op) == (
        "flagged",
        "key_folded",
        "home_city",
        "update",
    )
    assert on.keys() == ["home_city"]


def test_a_key_that_is_like_two_others_stays_itself() -> None:
    """Code does not choose between two stored keys."""
    on = draft([fact("homeCity", "Oslo"), fact("home_city", "Rome")], [MOVED])
    assert propose(on, "add", "home-city", "Bergen", evidence=["a1"]).key == "home-city"


def test_keys_that_differ_in_letters_stay_apart() -> None:
    """`ß` is `ss` without case, but a plural or an accent makes another key (M-42)."""
    on = draft([fact("resume", "sent"), fact("straße", "Domgata")], [MOVED])
    assert propose(on, "add", "résumé", "Bergen", evidence=["a1"]).key == "résumé"
    assert propose(on, "add", "STRASSE", "Bergen", evidence=["a1"]).key == "straße"


# Rule 3: what is named exists


@pytest.mark.parametrize(
    "fields",
    [
        {"op": "update", "key": "citty", "value": "Bergen"},
        {"op": "remove", "key": "citty"},
        {"op": "confirm", "key": "citty"},
        {"op": "merge", "key": "city", "value": "Bergen", "sources": ["citty", "city"]},
        {"op": "remove", "key": "pet", "by": "citty", "reason": "duplicate"},
    ],
)
def test_an_unknown_key_is_refused_with_the_nearest_ones(fields: dict[str, Any]) -> None:
    """A made-up key is named, and the model may mend it (M-16)."""
    on = draft([fact("city", "Oslo"), fact("pet", "cat")], [MOVED])
    done = propose(on, **fields)
    assert decided(done) == ("rejected", "unknown_key", True)
    assert "'citty'" in done.message
    assert "near it: city" in done.message


def test_other_changes_of_a_hand_in_stand_beside_a_refused_one() -> None:
    """One bad key does not sink the rest (M-16, H-02)."""
    on = draft([fact("city", "Oslo")], [MOVED])
    propose(on, "remove", "nowhere")
    assert propose(on, "update", "city", "Bergen", evidence=["a1"]).status == "accepted"
    assert on.counts() == {"rejected": 1, "accepted": 1}


def test_an_add_of_a_stored_key_is_an_update() -> None:
    """`store_memory` need not know what is there."""
    on = draft([fact("city", "Oslo")], [MOVED])
    assert propose(on, "add", "city", "Bergen", evidence=["a1"]).op == "update"


def test_a_merge_without_sources_and_a_write_without_value_are_refused() -> None:
    """Ops that lack what they are about may be sent again (H-02)."""
    on = draft([fact("city", "Oslo")], [MOVED])
    assert decided(propose(on, "merge", "x", "Bergen")) == ("rejected", "no_sources", True)
    for blank in (None, "", " \n"):
        done = propose(on, "update", "city", blank, evidence=["a1"])
        assert decided(done) == ("rejected", "missing_value", True)


def test_what_no_store_holds_is_not_kept_in_the_draft_either() -> None:
    """The refusal is reported, and the draft still writes as standard JSON (M-38)."""
    on = draft([fact("city", "Oslo")], [MOVED])
    for key, value in (
        ("a\x00\ud800", "x"),
        ("k", float("nan")),
        ("k", "\ud800"),
        ("k", "x" * 9_999),
    ):
        propose(on, "add", key, value, evidence=["a1", "\x00"], words="\x00", happened="\ud800")
    propose(on, "remove", "city", by="\x00" * 5_000, reason="duplicate")
    propose(on, "merge", "k", "x", sources=["\ud800"] * 500)
    text = json.dumps(on.dump(), allow_nan=False, ensure_ascii=False)
    assert len(text.encode()) < 12_000
    assert "\\u0000" not in text


@pytest.mark.parametrize("value", ["a\x00b", "\ud800", float("nan"), {"k": float("inf")}])
def test_a_value_that_no_store_holds_is_refused(value: Any) -> None:
    """NUL, lone surrogates and NaN reach no store (M-38, M-44)."""
    assert propose(draft(said=[MOVED]), "add", "k", value, evidence=["a1"]).code == "bad_value"


# Rule 4: one change a key


def test_a_second_change_of_a_key_is_refused_and_the_same_one_is_nothing() -> None:
    """The first stands; said twice it is one change."""
    on = draft([fact("city", "Oslo")], [MOVED, "The city is Voss"])
    first = propose(on, "update", "city", "Bergen", evidence=["a1"])
    assert propose(on, "add", "City", "Bergen", evidence=["a1"]) == first
    second = propose(on, "update", "city", "Voss", evidence=["a2"])
    assert decided(second) == ("rejected", "already_changed", False)
    assert propose(on, "remove", "city").code == "already_changed"
    assert [one.value for one in on.recall(["city"])] == ["Bergen"]


def test_inside_a_repeat_the_later_change_wins() -> None:
    """What a phase sends again takes the place of what it sent, if it can stand."""
    on = draft([fact("city", "Oslo")], [MOVED, "The city is Voss"])
    propose(on, "update", "city", "Bergen", evidence=["a1"])
    assert propose(on, "update", "city", "Zanzibar", again=True).code == "no_evidence"
    assert [one.value for one in on.recall(["city"])] == ["Bergen"]
    assert propose(on, "update", "city", "Voss", evidence=["a2"], again=True).status == "accepted"
    assert [one.value for one in on.recall(["city"])] == ["Voss"]
    assert propose(on, "add", "CITY", "Bergen", evidence=["a1"], again=True).key == "city"
    assert [one.value for one in on.recall(["city"])] == ["Bergen"]


def test_a_repeat_of_another_phase_replaces_nothing() -> None:
    """Prune does not take the place of what consolidate decided."""
    on = draft([fact("city", "Oslo")], [MOVED, "The city is Voss"])
    propose(on, "update", "city", "Bergen", evidence=["a1"])
    later = Change(op="update", key="city", value="Voss", evidence=["a2"])
    assert on.propose(later, "prune", again=True).code == "already_changed"


# Rule 5: evidence


def test_a_change_without_evidence_is_refused_and_may_be_mended() -> None:
    """Nothing is learned from nowhere: an invented profile finds no message (M-2)."""
    on = draft(said=[row("GET /users 200", "tool_result"), "thanks"])
    done = propose(on, "add", "user_name", "The user is Dana, aged 34")
    assert decided(done) == ("rejected", "no_evidence", True)
    assert on.keys() == []


def test_left_out_evidence_is_found() -> None:
    """Weak models need not cite: code finds the message that says it."""
    on = draft(said=["hello", MOVED])
    done = propose(on, "add", "city", "Moved to Bergen")
    assert (done.status, done.evidence, done.trust) == ("accepted", ["a2"], Trust.USER)


def test_evidence_comes_from_the_findings_that_a_change_names() -> None:
    """With their date, importance and kind; unknown findings count for nothing."""
    on = draft(said=["I moved to Bergen yesterday"])
    on.find([Finding(statement="Moved to Bergen", evidence=["a1"], kind="event", importance=4)])
    done = propose(on, "add", "move", "Moved to Bergen", findings=["f9", "f1"])
    assert (done.evidence, done.findings, done.happened, done.importance, done.kind) == (
        ["a1"],
        ["f1"],
        "2026-03-09",
        4,
        "event",
    )


@pytest.mark.parametrize(
    "said",
    [
        row(MOVED, recalled=True),
        row(MOVED, forgotten=True),
        row(MOVED, "system"),
        row(MOVED, "summary"),
        row(MOVED, "reasoning"),
    ],
)
def test_what_was_not_said_in_the_conversation_is_no_evidence(said: Any) -> None:
    """Recalled facts, forgotten text, prompts and reasoning teach nothing (M-1, M-3)."""
    done = propose(draft(said=[said]), "add", "city", "Moved to Bergen", evidence=["a1"])
    assert done.code == "no_evidence"


def test_a_wrong_citation_is_helped_by_the_message_that_says_it() -> None:
    """Weak models cite the neighbour; code adds what supports the change."""
    on = draft([fact("city", "Oslo")], ["good morning", MOVED])
    done = propose(on, "update", "city", "Moved to Bergen", evidence=["a1"])
    assert (done.status, done.evidence, done.trust) == ("accepted", ["a1", "a2"], Trust.USER)


def test_invented_ids_beside_real_ones_are_flagged() -> None:
    """The change stands on the real message alone (M-16)."""
    done = propose(draft(said=[MOVED]), "add", "city", "Bergen", evidence=["a1", "a99", "m1"])
    assert (done.status, done.code, done.evidence) == ("flagged", "unknown_evidence", ["a1"])


def test_at_most_eight_messages_are_evidence() -> None:
    """Citing everything proves nothing more."""
    on = draft(said=[f"Bergen {number}" for number in range(20)])
    done = propose(on, "add", "city", "Bergen", evidence=list(on.rows))
    assert len(done.witnesses) == 8


# Rule 9: dates


def test_yesterday_s_fact_has_the_day_before_its_message() -> None:
    """Said on 10 March, dreamt on 25 March in another zone: the 9th (H-07, M-17)."""
    noon = SAID.astimezone(timezone(timedelta(hours=1)))
    on = draft(said=[row("I moved to Bergen yesterday", at=noon)], zone="Pacific/Auckland")
    done = propose(on, "add", "move", "Moved to Bergen", evidence=["a1"])
    assert done.happened == "2026-03-09"
    assert on.recall(["move"])[0].valid_from == "2026-03-09"


def test_a_relative_word_left_in_the_value_is_refused_with_its_date() -> None:
    """The model may send it again with the day that code names (H-07, M-17)."""
    on = draft(said=["I moved to Bergen yesterday"])
    done = propose(on, "add", "move", "Moved to Bergen yesterday", evidence=["a1"])
    assert decided(done) == ("rejected", "relative_date", True)
    assert "2026-03-09" in done.message


def test_a_mended_change_takes_the_place_of_its_refusal() -> None:
    """What was sent again right is not reported as refused."""
    on = draft(said=["I moved to Bergen yesterday"])
    propose(on, "add", "move", "Moved to Bergen yesterday", evidence=["a1"])
    propose(on, "add", "move", "Moved to Bergen on 2026-03-09", evidence=["a1"], again=True)
    assert on.counts() == {"accepted": 1}


def test_a_translated_relative_word_is_seen_too() -> None:
    """What the message says in Chinese is not kept as "yesterday" either."""
    on = draft(said=["我昨天搬到 Bergen"])
    done = propose(on, "add", "move", "Moved to Bergen yesterday", evidence=["a1"])
    assert done.code == "relative_date"


@pytest.mark.parametrize(
    "value",
    [
        "Moved to Bergen yesterday (2026-03-09)",
        "Moved to Bergen on 9 March 2026, yesterday as was said",
        "Moved to Bergen on 2026-03-09",
    ],
)
def test_an_absolute_date_beside_the_words_passes(value: str) -> None:
    """The original words may stay beside their date."""
    on = draft(said=["I moved to Bergen yesterday"])
    done = propose(on, "add", "move", value, evidence=["a1"])
    assert (done.status, done.value) == ("accepted", value)


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("The rule of this team: no meetings on Mondays", "today's rule is no meetings on Mondays"),
        ("My favourite song is Yesterday by the Beatles", "favourite song: Yesterday, Beatles"),
        ("I read the Tomorrow series", "reads the Tomorrow series"),
        ("I run regularly, lately in Bergen", "lately runs in Bergen"),
    ],
)
def test_words_that_are_no_time_pass(said: str, value: str) -> None:
    """Titles, possessives and vague words are no relative dates (M-17)."""
    done = propose(draft(said=[said]), "add", "note", value, evidence=["a1"])
    assert done.status == "accepted"


def test_a_wrong_date_in_the_value_is_corrected() -> None:
    """The day before the dream gives way to the day before the message (H-07)."""
    on = draft(said=["I moved to Bergen yesterday"])
    done = propose(on, "add", "move", "Moved to Bergen on 24 March 2026", evidence=["a1"])
    assert (done.status, done.code, done.value) == (
        "flagged",
        "date_corrected",
        "Moved to Bergen on 2026-03-09",
    )


def test_a_wrong_date_inside_a_structure_is_sent_back() -> None:
    """Code mends text; in other JSON the model must."""
    on = draft(said=["I moved to Bergen yesterday"])
    value = {"city": "Bergen", "moved": "2026-03-24"}
    assert decided(propose(on, "add", "move", value, evidence=["a1"])) == (
        "rejected",
        "wrong_date",
        True,
    )


def test_dates_that_somebody_said_are_left_alone() -> None:
    """A date of the message or of the replaced fact is nobody's mistake."""
    on = draft(
        [fact("visa", "Visa until 2027-01-31")],
        ["Yesterday I got it: the visa is now valid until 30 June 2028"],
    )
    done = propose(
        on, "update", "visa", "Visa valid until 2028-06-30, before 2027-01-31", evidence=["a1"]
    )
    assert (done.status, done.value) == (
        "accepted",
        "Visa valid until 2028-06-30, before 2027-01-31",
    )


def test_a_date_that_nothing_speaks_of_is_dropped() -> None:
    """No time words in the evidence: the model's date was made up (M-17)."""
    on = draft(said=["I like green tea"])
    done = propose(on, "add", "tea", "Likes green tea", happened="2026-03-25", evidence=["a1"])
    assert (done.status, done.happened) == ("accepted", "")


def test_an_interval_gives_both_ends() -> None:
    """In Rome from the 3rd to the 9th: since and until are known."""
    on = draft(said=["I will be in Rome 3 to 9 May"])
    propose(on, "add", "trip", "In Rome", evidence=["a1"])
    kept = on.recall(["trip"])[0]
    assert (kept.valid_from, kept.valid_to) == ("2026-05-03", "2026-05-09")


# Rule 12: what was forgotten stays so


@pytest.mark.parametrize(
    ("key", "value"), [("phone", "Phone 555 0100"), ("number", "phone  555 0100")]
)
def test_older_evidence_brings_nothing_back(key: str, value: str) -> None:
    """Neither the forgotten key nor its value under another one returns (M-11)."""
    stone = Tombstone(key="phone", value="Phone 555 0100", at=SAID + timedelta(hours=1))
    on = draft(said=["my phone is 555 0100"], tombstones=[stone])
    assert propose(on, "add", key, value, evidence=["a1"]).code == "forgotten"
    assert on.keys() == []


def test_said_again_it_is_learned_again() -> None:
    """Newer evidence passes, and other facts are not touched (M-11)."""
    stone = Tombstone(key="phone", value="Phone 555 0100", at=SAID - timedelta(hours=1))
    on = draft(said=["my phone is 555 0100", MOVED], tombstones=[stone])
    assert propose(on, "add", "phone", "Phone 555 0100", evidence=["a1"]).status == "accepted"
    assert propose(on, "add", "city", "Bergen", evidence=["a2"]).status == "accepted"


def test_a_key_that_was_stored_again_since_may_change() -> None:
    """A tombstone buries the fact of its time, not the key for ever."""
    stone = Tombstone(key="phone", value="555 0100", at=SAID + timedelta(hours=1))
    on = draft([fact("phone", "555 0199")], ["my phone is 555 0142"], tombstones=[stone])
    assert propose(on, "update", "phone", "555 0142", evidence=["a1"]).status == "accepted"


# Rule 18: echoes


def test_what_is_known_is_confirmed() -> None:
    """A fact said again, under its key or another, gets evidence and no second fact (M-6)."""
    on = draft([fact("city", "Lives in Bergen by the fjord")], ["I live in Bergen by the fjord"])
    for key in ("city", "home"):
        done = propose(on, "add", key, "lives in  Bergen by the FJORD", evidence=["a1"])
        assert (done.op, done.key, done.code, done.status) == (
            "confirm",
            "city",
            "echo",
            "accepted",
        )
    (step,) = on.steps()
    assert [(write.op, write.key) for write in step.writes] == [("confirm", "city")]
    assert on.counts() == {"accepted": 1}


def test_short_values_echo_under_keys_of_the_same_words_alone() -> None:
    """Two questions may have the answer "yes"; one city has not two keys."""
    on = draft([fact("likes_cats", "yes"), fact("city", "Bergen")], ["yes, dogs too. Bergen!"])
    assert propose(on, "add", "likes_dogs", "yes", evidence=["a1"]).op == "add"
    assert propose(on, "add", "home_city", "Bergen", evidence=["a1"]).op == "confirm"


# Rules 15, 22, 23: cut content, secrets, size


@pytest.mark.parametrize("value", ["...", "Name: Anna. [...]", "The rest remains unchanged."])
def test_a_placeholder_does_not_replace_a_long_value(value: str) -> None:
    """A long fact is written whole or not at all (M-40)."""
    long = "Anna's flat has four rooms and a garden. " * 6
    on = draft([fact("flat", long)], ["Anna: the rest remains unchanged, Anna's name"])
    assert propose(on, "update", "flat", value, evidence=["a1"]).code == "cut_content"


@pytest.mark.parametrize(
    "secret",
    [
        "sk-" + "proj-" + "a1B2" * 8,
        "ghp_" + "Z9y8" * 9,
        "AKIA" + "ABCD1234EFGH5678",
        "xoxb-" + "1234567890-abcdef",
        "-----BEGIN RSA " + "PRIVATE KEY-----",
        "eyJ" + "hbGciOiJIUzI1NiJ9.eyJ" + "zdWIiOiIxMjM0In0.c2lnbmF0dXJl",
        "password" + "=hunter2!",
        "DB_PASSWORD" + "=hunter2!",
        "the wifi password " + "is hunter2xyz",
        "Passwort" + ": hunter2xyz",
        "пароль" + ": hunter2xyz",
        '{"api_key": "' + "0123456789abcdef" + '"}',
        "postgres" + "://anna:hunter2@db/agent",
    ],
)
def test_secrets_are_not_remembered(secret: str) -> None:
    """Keys, tokens and passwords are refused, whoever said them (M-12)."""
    on = draft(said=[f"it is {secret}"])
    done = propose(on, "add", "note", f"it is {secret}", evidence=["a1"])
    assert decided(done) == ("rejected", "secret", False)
    assert secret not in done.message


def test_a_password_under_its_key_is_a_secret_too() -> None:
    """Key and value are looked at together."""
    on = draft(said=["my password is hunter2"])
    for key in ("password", "wifi_password"):
        assert propose(on, "add", key, "hunter2", evidence=["a1"]).code == "secret"


@pytest.mark.parametrize(
    "value",
    [
        "Keeps passwords in Bitwarden",
        "Uses 1Password; the password is kept there",
        "The password is 12 characters long",
        "Uses an API key for the weather service, kept in the vault",
        "Signs tokens with JWT",
        "Flight SK-1472 at 9:30",
        "https://example.org/reset-password",
    ],
)
def test_talk_of_secrets_is_remembered(value: str) -> None:
    """What holds no secret passes."""
    assert propose(draft(said=[value]), "add", "note", value, evidence=["a1"]).status == "accepted"


def test_values_have_a_size() -> None:
    """2,000 characters pass, one more does not (M-40)."""
    noise = random.Random(1)
    text = "".join(noise.choices(string.ascii_letters + "   ", k=2_001))
    on = draft(said=[text])
    assert propose(on, "add", "whole", text[:2_000], evidence=["a1"]).status == "accepted"
    assert propose(on, "add", "long", text, evidence=["a1"]).code == "too_long"


def test_a_value_that_says_one_thing_for_ever_is_refused() -> None:
    """What packs to a tenth says nothing, and half a megabyte is refused at once (M-40)."""
    on = draft(said=["ha " * 300])
    assert propose(on, "add", "laugh", "ha " * 300, evidence=["a1"]).code == "repetitive"
    assert propose(on, "add", "laugh", "ha " * 160_000, evidence=["a1"]).code == "bad_value"
    assert propose(on, "add", "laugh", "ha ha ha ha", evidence=["a1"]).status == "accepted"


# Trust


@pytest.mark.parametrize(
    ("stored", "role", "status"),
    [
        (Trust.USER, "user", "accepted"),
        (Trust.USER, "assistant", "held"),
        (Trust.USER, "tool_result", "held"),
        (Trust.ASSISTANT, "user", "accepted"),
        (Trust.ASSISTANT, "assistant", "accepted"),
        (Trust.ASSISTANT, "tool_result", "held"),
        (Trust.TOOL, "user", "accepted"),
        (Trust.TOOL, "tool_result", "accepted"),
    ],
)
def test_only_equal_or_higher_trust_replaces(stored: Trust, role: str, status: str) -> None:
    """A tool's or the assistant's word does not overrule a user's (M-48, M-51)."""
    on = draft([fact("city", "Oslo", trust=stored)], [row("The city is Bergen", role)])
    done = propose(on, "update", "city", "Bergen", evidence=["a1"], reason="correction")
    assert done.status == status
    assert [one.value for one in on.recall(["city"])] == [
        "Bergen" if status == "accepted" else "Oslo"
    ]


def test_a_cited_ok_does_not_carry_an_update() -> None:
    """A user's message that says nothing of it lends no trust (M-4)."""
    on = draft([fact("city", "Oslo")], ["ok"])
    done = propose(on, "update", "city", "Lives in Bergen", evidence=["a1"])
    assert decided(done) == ("rejected", "ungrounded", False)


def test_the_later_statement_wins_by_the_message_s_time() -> None:
    """An old message, dreamt of late, does not overrule what was said since (M-4)."""
    on = draft([fact("city", "Oslo", said_at=SAID + timedelta(days=1))], [MOVED])
    assert propose(on, "update", "city", "Bergen", evidence=["a1"]).code == "older"
    on = draft([fact("city", "Oslo", said_at=None, recorded_at=BEFORE)], [MOVED])
    assert propose(on, "update", "city", "Bergen", evidence=["a1"]).status == "accepted"


def test_pinned_facts_are_never_touched() -> None:
    """Not updated, not merged away, not removed; confirmed at most."""
    on = draft(
        [fact("city", "Oslo", pinned=True), fact("home", "Oslo flat")], [MOVED, "forget Oslo"]
    )
    assert propose(on, "update", "city", "Bergen", evidence=["a1"]).code == "pinned"
    assert propose(on, "remove", "city", reason="asked_to_forget", evidence=["a2"]).code == "pinned"
    merged = propose(on, "merge", "home", "Oslo flat, Oslo", sources=["city"])
    assert decided(merged) == ("held", "pinned", False)


def test_a_correction_replaces_the_lie_and_strengthens_nothing() -> None:
    """A fact that the user calls false gives way to what holds instead (M-4)."""
    on = draft([fact("owner", "Anna owns the boat")], ["No, Peter owns the boat, not Anna"])
    done = propose(
        on, "update", "owner", "Peter owns the boat", reason="correction", evidence=["a1"]
    )
    assert done.status == "accepted"
    assert on.recall(["owner"])[0].value == "Peter owns the boat"
