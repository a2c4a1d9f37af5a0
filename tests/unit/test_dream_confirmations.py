"""What is said again confirms a fact; repetition by machines does not (M-3, M-6)."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from agentmem.facts import Fact, Trust
from tests.drafts import BEFORE, SAID, draft, fact, propose, row
from tests.dreams import NOON, STORE, Scene, Script, changes, findings

PLACE = (STORE.agent, STORE.scope)
HOME = "Lives in Bergen by the fjord"


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    """An empty scope."""
    scene = await Scene.make()
    yield scene
    await scene.provider.close()


async def stored(scene: Scene, key: str = "home") -> Fact:
    """Return a fact with its evidence."""
    (now,) = await scene.provider.entries(*PLACE, [key])
    (fact,) = await scene.provider.facts_at(*PLACE, {key: now.version})
    return fact


def confirming(*evidence: str) -> Script:
    """Script a dream that confirms the home by these messages."""
    return Script(
        gather_signal=findings({"statement": HOME, "evidence": list(evidence)}),
        consolidate=changes({"op": "confirm", "key": "home", "evidence": list(evidence)}),
    )


async def test_a_user_who_says_it_again_confirms_a_fact(scene: Scene) -> None:
    """New evidence, the user's trust, the time of the word; no new value, no new version."""
    await scene.knows("home", HOME, trust=Trust.ASSISTANT)
    before = await stored(scene)
    await scene.said("I live in Bergen, right by the fjord.")
    report = await scene.dream(confirming("a1"))
    after = await stored(scene)
    assert (report.status, report.applied, report.conflicts) == ("completed", [], [])
    assert (after.value, after.version) == (before.value, before.version)
    assert after.recorded_at == before.recorded_at
    assert (before.trust, after.trust) == (Trust.ASSISTANT, Trust.USER)
    assert [one.message for one in after.evidence] == ["m0", "m1"]
    assert after.said_at == NOON - timedelta(hours=2, seconds=-1)


async def test_recalled_text_and_the_assistant_confirm_nothing(scene: Scene) -> None:
    """M-3: a fact that is recalled, asked for and repeated stays as it is, five dreams long."""
    await scene.knows("home", HOME, trust=Trust.ASSISTANT)
    before = await stored(scene)
    for _ in range(5):
        await scene.said("Where do I live? In Bergen by the fjord?")
        await scene.said('recall_memory {"key":"home"}', role="tool_call", name="recall_memory")
        await scene.said(HOME, role="tool_result", name="recall_memory", recalled=True)
        await scene.said("You live in Bergen, by the fjord.", role="assistant")
        await scene.said('search {"query":"live in Bergen by fjord"}', role="tool_call")
        await scene.said("To live in Bergen by the fjord is fine.", role="tool_result")
        await scene.dream(confirming(*(f"a{number}" for number in range(1, 7))))
        assert await stored(scene) == before


async def test_a_message_counts_once(scene: Scene) -> None:
    """A message that a fact rests on already is no new witness, however often it is cited."""
    await scene.said("I live in Bergen by the fjord.")
    add = {"op": "add", "key": "home", "value": HOME, "evidence": ["a1"]}
    again = {"op": "confirm", "key": "home", "evidence": ["a1"]}
    told = findings({"statement": HOME, "evidence": ["a1"]})
    await scene.dream(Script(gather_signal=told, consolidate=changes(add, again)))
    fact = await stored(scene)
    assert (fact.version, [one.message for one in fact.evidence]) == (1, ["m1"])


async def test_a_fact_that_moved_is_not_confirmed(scene: Scene) -> None:
    """The words confirm what the dream saw, not what the agent has stored since (M-12)."""
    await scene.knows("home", HOME)
    await scene.said("I live in Bergen, right by the fjord.")
    begun = await scene.begin()
    script = confirming("a1")
    for name in ("orient", "gather_signal", "consolidate", "prune"):
        await scene.phase(name, begun, script)
    await scene.provider.memorize(*PLACE, "home", "Lives in Oslo")
    report = await scene.commit(begun)
    assert report.conflicts == ["home"]
    assert (await stored(scene)).evidence == []


@pytest.mark.parametrize(
    ("text", "confirms"),
    [
        ("I live in Bergen, by the fjord", True),
        ("Hello! As I said, I live by the fjord in Bergen. And you?", True),
        ("I live in Bergen by the fjord, right?", False),
        ("where do i live", False),
        ("I do not live in Bergen by the fjord", False),
        ("ok, thanks", False),
        ("It is false that I live in Bergen by the fjord", False),
        ("'Lives in Bergen by the fjord' is wrong", False),
        ("I used to live in Bergen by the fjord", False),
        ("I stopped living in Bergen by the fjord", False),
        ("If I lived in Bergen by the fjord, I would sail", False),
        ("I want to live in Bergen by the fjord", False),
    ],
)
def test_a_confirmation_says_it_again(text: str, confirms: bool) -> None:
    """Most of its words, in a statement, and not the contrary, a wish or the past (M-4)."""
    on = draft([fact("home", HOME, trust=Trust.ASSISTANT)], [text])
    done = propose(on, "confirm", "home", evidence=["a1"])
    assert done.status == "accepted"
    assert [one.message for one in done.witnesses] == (["m1"] if confirms else [])
    assert len(on.steps()) == confirms
    assert on.recall(["home"])[0].trust == (Trust.USER if confirms else Trust.ASSISTANT)


def test_a_short_value_is_confirmed_with_its_key() -> None:
    """A "yes" may answer anything, and 42 may be any number."""
    facts = [fact("likes_cats", "yes"), fact("locker_number", 42)]
    on = draft(facts, ["Yes, dogs too, 42 of them", "I do like cats. My locker number is 42"])
    for key in ("likes_cats", "locker_number"):
        assert propose(on, "confirm", key, evidence=["a1"]).witnesses == []
        assert len(propose(on, "confirm", key, evidence=["a1", "a2"]).witnesses) == 1


def test_a_tool_confirms_what_rests_on_tools_alone() -> None:
    """A weaker word adds nothing to a stronger one."""
    said = [row("The station of Finse lies at 1222 m", "tool_result")]
    for trust, count in ((Trust.TOOL, 1), (Trust.ASSISTANT, 0), (Trust.USER, 0)):
        on = draft([fact("finse", "Finse station lies at 1222 m", trust=trust)], said)
        assert len(propose(on, "confirm", "finse", evidence=["a1"]).witnesses) == count
        assert on.recall(["finse"])[0].trust == trust


def test_what_confirms_a_fact_goes_with_it_when_it_is_reworded() -> None:
    """Later changes of the draft rest on the fact as confirmed, in the draft and in the commit."""
    known = [fact("home", HOME, trust=Trust.ASSISTANT), fact("house", "Lives by the fjord")]
    on = draft(known, ["I live in Bergen, by the fjord"])
    propose(on, "confirm", "home", evidence=["a1"])
    merged = propose(on, "merge", "home", HOME, sources=["house"], reason="duplicate")
    assert (merged.status, merged.trust) == ("accepted", Trust.USER)
    (confirm, merge) = on.steps()
    assert [read.key for read in confirm.reads] == ["home"]
    assert [one.message for one in merge.writes[-1].evidence] == ["m1"]
    assert on.recall(["home"])[0].said_at == SAID > BEFORE
