"""In which sense a message says a value: what may not replace a user's word, and what may."""
# ruff: noqa: RUF001 - words of many scripts

import time

import pytest

from agentmem.dreaming.changes import Change
from agentmem.offline.telling import tellings
from agentmem.facts import Trust
from tests.drafts import draft, fact, propose, row

ELSEWHERE = {
    "卑尔根": ("城市", "住在奥斯陆", "住在卑尔根"),
    "Берген": ("город", "Живёт в Осло", "Живёт в Бергене"),
    "ベルゲン": ("都市", "オスロに住んでいる", "ベルゲンに住んでいる"),
}


def moved(said: list[object], value: str = "", **fields: object) -> Change:
    """What is decided on a move to Bergen, of a user whom the store has in Oslo."""
    first = said[0] if isinstance(said[0], str) else ""
    key, old, new = next(
        (told for name, told in ELSEWHERE.items() if name in first), ("city", "Oslo", "Bergen")
    )
    on = draft([fact(key, old)], said)  # type: ignore[arg-type]
    more = {"evidence": ["a1"], "reason": "correction"} | fields
    return propose(on, "update", key, value or new, **more)


OTHERWISE = [
    ("ask", "Do I live in Bergen?"),
    ("ask", "Where in Bergen do I live?"),
    ("ask", "I wonder if I live in Bergen"),
    ("ask", "Wohne ich in Bergen?"),
    ("ask", "我住在卑尔根吗？"),
    ("ask", "Я живу в Бергене?"),
    ("suppose", "If I lived in Bergen, I would cycle to work"),
    ("suppose", "I might move to Bergen"),
    ("suppose", "Maybe I live in Bergen"),
    ("suppose", "Vielleicht ziehe ich nach Bergen"),
    ("suppose", "Wenn ich in Bergen wohnte"),
    ("suppose", "Quizás vivo en Bergen"),
    ("suppose", "如果我住在卑尔根"),
    ("deny", "I don't live in Bergen"),
    ("deny", "I no longer live in Bergen"),
    ("deny", "I don't think I live in Bergen"),
    ("deny", "Ich wohne nicht in Bergen"),
    ("deny", "Je n'habite pas à Bergen"),
    ("deny", "No vivo en Bergen"),
    ("deny", "Non vivo a Bergen"),
    ("deny", "Não moro em Bergen"),
    ("deny", "我不住在卑尔根"),
    ("deny", "Я не живу в Бергене"),
    ("deny", "ベルゲンに住んでいません"),
    ("over", "I used to live in Bergen"),
    ("over", "Früher wohnte ich in Bergen"),
    ("over", "Antes vivía en Bergen"),
    ("over", "Раньше я жил в Бергене"),
    ("over", "我以前住在卑尔根"),
    ("else", "My sister lives in Bergen"),
    ("else", "Anna lives in Bergen"),
    ("else", "Meine Schwester wohnt in Bergen"),
    ("else", "Ma sœur habite à Bergen"),
    ("else", "Mi hermana vive en Bergen"),
    ("else", "Моя сестра живёт в Бергене"),
    ("else", "我姐姐住在卑尔根"),
    ("else", "姉はベルゲンに住んでいる"),
]


@pytest.mark.parametrize(("why", "said"), OTHERWISE)
def test_what_is_said_in_another_sense_replaces_no_users_word(why: str, said: str) -> None:
    """M-2, M-9: shared words alone do not make a statement of a question, a wish or a denial."""
    done = moved([said])
    assert (done.status, done.code) == ("held", "other_sense")
    assert why in done.message


@pytest.mark.parametrize(
    "said",
    [
        "I live in Bergen",
        "I live in Bergen, not in Oslo",
        "I live in Bergen not Oslo",
        "I don't live in Oslo I live in Bergen",
        "No I live in Bergen",
        "I no longer live in Oslo but in Bergen",
        "I haven't lived in Oslo since I moved to Bergen",
        "I used to live in Oslo and now live in Bergen",
        "I'm used to Bergen now",
        "I have never been happier than in Bergen",
        "I live in Bergen, right?",
        "I live in Bergen, can you find me a doctor?",
        "Could you change my city to Bergen?",
        "Did you know that I moved to Bergen?",
        "Did I tell you that I moved to Bergen?",
        "I moved to Bergen. Isn't Bergen nice?",
        "Do I live in Oslo? I live in Bergen!",
        "If you need me, I live in Bergen now",
        "Since May I am in Bergen",
        "Don't forget that I live in Bergen",
        "My sister and I moved to Bergen",
        "My wife moved to Bergen with me",
        "We moved to Bergen because my sister lives there",
        "My boss Anna moved the office to Bergen",
        "Ich wohne nicht mehr in Oslo, sondern in Bergen",
        "J'habite à Bergen",
        "No, vivo en Bergen",
        "我不住在奥斯陆了，我住在卑尔根",
        "Я живу в Бергене",
        "ベルゲンに住んでいます",
    ],
)
def test_a_plain_word_replaces(said: str) -> None:
    """A clause about the old value, somebody else or something else is not held against it."""
    done = moved([said])
    assert done.status in ("accepted", "flagged")
    assert "other_sense" not in done.code


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("Do I live in Bergen?", "Asked whether Bergen is home"),
        ("If I lived in Bergen I would cycle", "Would cycle in Bergen"),
        ("I might move to Bergen", "May move to Bergen"),
        ("I might move to Bergen", "Lives in Oslo, considering a move to Bergen"),
        ("I don't live in Bergen", "Does not live in Bergen"),
        ("I don't like Bergen", "Dislikes Bergen"),
        ("Ich wohne nicht in Bergen", "Wohnt nicht in Bergen"),
        ("I used to live in Bergen", "Used to live in Bergen"),
        ("I used to live in Bergen", "Lived in Bergen"),
        ("My sister lives in Bergen", "Sister lives in Bergen"),
        ("My friend Tom lives in Bergen", "Tom lives in Bergen"),
        ("Anna lives in Bergen", "Anna lives in Bergen"),
        ("我姐姐住在卑尔根", "姐姐住在卑尔根"),
        ("我不住在卑尔根", "不住在卑尔根"),
    ],
)
def test_a_value_may_say_it_in_that_sense(said: str, value: str) -> None:
    """What says of itself that it is a question, a doubt, a denial or another's life is so."""
    assert "other_sense" not in moved([said], value).code


def test_the_key_may_say_whose_it_is() -> None:
    """`sister_city: Bergen` is the sister's, and `tom: Lives in Bergen` Tom's."""
    for key, said in (
        ("sister_city", "My sister lives in Bergen"),
        ("tom", "My friend Tom lives in Bergen"),
    ):
        on = draft([fact(key, "Oslo")], [said])
        done = propose(on, "update", key, "Bergen", evidence=["a1"], reason="correction")
        assert done.code == ""


def test_a_question_that_is_answered_says_something() -> None:
    """By the user: an assistant's in any words but a no, its own by a yes."""
    ask = "Do you live in Bergen?"
    assert moved(["Do I live in Bergen?", "yes"]).status != "held"
    assert (
        moved(["Do I live in Bergen?", row("Who knows", "assistant"), "Yes, I do"]).status != "held"
    )
    assert moved(["Do I live in Bergen?", row("Yes, in Bergen", "assistant")]).status == "held"
    for answer, code in (("yes", ""), ("For a year", ""), ("no", "other_sense")):
        on = draft(said=[row(ask, "assistant"), answer])
        done = propose(on, "add", "city", "Lives in Bergen", evidence=["a1", "a2"])
        assert done.code == code


def test_where_nothing_of_a_users_is_replaced_it_is_flagged() -> None:
    """What may be right commits: a new fact, or one in the place of a tool's word."""
    for known in ([], [fact("city", "Oslo", trust=Trust.TOOL)]):
        on = draft(known, ["I might move to Bergen"])
        done = propose(on, "add", "city", "Bergen", evidence=["a1"], reason="correction")
        assert (done.status, done.code.split(",")[0]) == ("flagged", "other_sense")


def test_what_was_flagged_so_supersedes_nothing() -> None:
    """A new key and a removal in its favour is no way round."""
    on = draft([fact("city", "Lives in Oslo")], ["Do I live in Bergen, not in Oslo?"])
    added = propose(on, "add", "home_city", "Lives in Bergen", evidence=["a1"])
    assert added.status == "flagged"
    gone = propose(on, "remove", "city", reason="superseded", by="home_city", evidence=["a1"])
    assert (gone.status, gone.code) == ("held", "other_sense")


def test_a_question_beside_what_is_cited_is_not_held_against_it() -> None:
    """The neighbours of a cited message only bear out what it says."""
    said = ["I finally did it, in the harbour, with people", "Do people in Bergen sail?"]
    on = draft(said=said)
    done = propose(
        on, "add", "work", "At the harbour with people of Bergen who sail", evidence=["a1"]
    )
    assert "other_sense" not in done.code


def test_a_yes_or_no_fact_is_judged_by_its_key() -> None:
    """`vegetarian: true` has no words of its own."""
    for said, value, status in (
        ("Am I a vegetarian?", True, "held"),
        ("I am not a vegetarian", True, "held"),
        ("I am a vegetarian", True, "accepted"),
        ("I am not a vegetarian", False, "accepted"),
    ):
        on = draft([fact("vegetarian", not value)], [said])
        done = propose(on, "update", "vegetarian", value, evidence=["a1"], reason="correction")
        assert done.status == status


@pytest.mark.parametrize(
    "text", ["not " * 50_000, "if I " * 30_000, "n't" * 60_000, "不" * 50_000, "可以" * 50_000]
)
def test_a_long_message_takes_no_long_time(text: str) -> None:
    """M-40: in one go over its words."""
    start = time.monotonic()
    list(tellings(text + " Bergen", ["bergen"]))
    assert time.monotonic() - start < 5
