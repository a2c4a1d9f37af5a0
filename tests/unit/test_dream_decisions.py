"""Proposals and held changes, applied or discarded by people, and the gate opened by hand."""

from datetime import timedelta

import pytest

from agentmem.contracts import DreamLimits
from agentmem.dreaming.review import apply, discard, reset_gate, undecided
from agentmem.dreaming.verification import QUESTIONS
from agentmem.dreaming.verification import SUBMIT as VERDICTS
from agentmem.errors import ConfigurationError, ModelCallError
from agentmem.facts import Write
from agentmem.wire import JSONObject, JSONValue
from tests.dreams import (
    NOON,
    STORE,
    Line,
    Scene,
    Script,
    blocks_of,
    calls,
    changes,
    findings,
    says,
)

AGENT, SCOPE = STORE.agent, STORE.scope
LATER = NOON + timedelta(hours=3)


@pytest.fixture
async def scene() -> Scene:
    """An empty scope."""
    return await Scene.make()


def moving() -> Script:
    """A dream that corrects a city, adds a pet and removes a job that nobody took back."""
    return Script(
        gather_signal=findings(
            {"statement": "Moved to Bergen", "evidence": ["a1"]},
            {"statement": "Cat is named Momo", "evidence": ["a1"]},
        ),
        consolidate=[
            changes(
                {"op": "update", "key": "city", "value": "Moved to Bergen", "findings": ["f1"]},
                {"op": "add", "key": "pet", "value": "Cat is named Momo", "findings": ["f2"]},
                {"op": "remove", "key": "job"},
            ),
            changes({"op": "remove", "key": "job"}),
        ],
    )


def doubting(*keys: str) -> Line:
    """Verdicts that are sure of every change but those of these keys, and of the control."""

    async def verdicts(request: JSONObject) -> JSONObject:
        lines = blocks_of(request)["CHANGES"]
        seen = set[str]()
        made: list[JSONObject] = []
        for line in lines:
            sure = line["key"] not in keys and line["key"] not in seen
            seen.add(line["key"])
            answer = "yes" if sure else "unsure"
            said = dict.fromkeys(QUESTIONS, answer) | {"why": "it may be somebody else's"}
            made.append({"n": line["n"], **said, "by": line["trust"]})
        return calls((VERDICTS, {"verdicts": made}))

    return verdicts


async def held(scene: Scene) -> str:
    """The id of the change that was held."""
    waiting = await undecided(scene.provider, AGENT, SCOPE)
    [name] = [one.change for one in waiting if one.status == "held"]
    return name


async def prepared(scene: Scene) -> dict[str, JSONValue]:
    """Two facts and a message."""
    await scene.knows("city", "Lives in Oslo")
    await scene.knows("job", "Works as a baker")
    await scene.said("I moved to Bergen. My cat is named Momo.")
    return await scene.facts()


async def test_a_proposal_applies_nothing(scene: Scene) -> None:
    """The change set is kept, the messages are read, the gate's count is zero."""
    before = await prepared(scene)
    report = await scene.dream(moving(), mode="propose")
    assert (report.status, report.applied, report.keys_after) == ("proposed", [], 2)
    assert report.proposed == ["update city", "add pet"]
    assert await scene.facts() == before
    assert (await scene.provider.scope_state(AGENT, SCOPE)).failures == 0
    assert (await scene.dream(moving())).status == "nothing_new"
    waiting = await undecided(scene.provider, AGENT, SCOPE)
    assert [(one.change, one.status, one.line) for one in waiting] == [
        ("c1", "proposed", "update city"),
        ("c2", "proposed", "add pet"),
        (waiting[2].change, "held", "remove job"),
    ]


async def test_a_proposal_is_applied_once(scene: Scene) -> None:
    """Without names what its rules let pass; held changes only by name; twice changes nothing."""
    await prepared(scene)
    dream = (await scene.dream(moving(), mode="propose")).dream
    done = await apply(scene.provider, AGENT, SCOPE, dream, now=LATER)
    assert (done.applied, done.conflicts) == (["update city", "add pet"], [])
    expected = {"city": "Moved to Bergen", "job": "Works as a baker", "pet": "Cat is named Momo"}
    assert await scene.facts() == expected
    again = await apply(scene.provider, AGENT, SCOPE, dream, ["c1", "c2"], now=LATER)
    assert again == done
    (city,) = await scene.provider.entries(AGENT, SCOPE, ["city"])
    assert (city.version, city.writer, city.state) == (2, "person", "settled")
    waiting = await undecided(scene.provider, AGENT, SCOPE)
    assert [one.line for one in waiting] == ["remove job"]


async def test_a_key_that_moved_is_left_alone(scene: Scene) -> None:
    """The agent has learned better since the dream: its word stays, the rest applies."""
    await prepared(scene)
    dream = (await scene.dream(moving(), mode="propose")).dream
    await scene.provider.write(AGENT, SCOPE, [Write(key="city", value="Lives in Voss")])
    done = await apply(scene.provider, AGENT, SCOPE, dream, now=LATER)
    assert (done.applied, done.conflicts) == (["add pet"], ["update city"])
    assert (await scene.facts())["city"] == "Lives in Voss"


async def test_a_held_change_is_applied_by_name(scene: Scene) -> None:
    """A person may remove what a dream may not."""
    await prepared(scene)
    dream = (await scene.dream(moving())).dream
    name = await held(scene)
    with pytest.raises(ConfigurationError, match=name):
        await apply(scene.provider, AGENT, SCOPE, dream, now=LATER)
    with pytest.raises(ConfigurationError, match="no change c1"):
        await apply(scene.provider, AGENT, SCOPE, dream, ["c1"], now=LATER)
    done = await apply(scene.provider, AGENT, SCOPE, dream, [name], now=LATER)
    assert done.applied == ["remove job"]
    assert "job" not in await scene.facts()
    assert await undecided(scene.provider, AGENT, SCOPE) == []


async def test_a_held_change_may_rest_on_what_its_own_dream_wrote(scene: Scene) -> None:
    """A removal in favour of a fact that the same dream added reads that fact's new version."""
    await scene.knows("city", "Lives in Oslo, above a bakery")
    await scene.said("My home is in Bergen now.")
    script = Script(
        gather_signal=findings({"statement": "Home is in Bergen now", "evidence": ["a1"]}),
        consolidate=changes(
            {"op": "add", "key": "home", "value": "Home is in Bergen now", "findings": ["f1"]},
            {"op": "remove", "key": "city", "by": "home", "reason": "duplicate"},
        ),
        verify=doubting("city"),
    )
    report = await scene.dream(script)
    name = await held(scene)
    done = await apply(scene.provider, AGENT, SCOPE, report.dream, [name], now=LATER)
    assert (done.conflicts, await scene.facts()) == ([], {"home": "Home is in Bergen now"})


async def test_what_is_discarded_is_off_the_list(scene: Scene) -> None:
    """Nothing is applied, the gate's count stays, and a name that waits no more is said."""
    before = await prepared(scene)
    dream = (await scene.dream(moving(), mode="propose")).dream
    done = await discard(scene.provider, AGENT, SCOPE, dream, ["c2"], now=LATER)
    assert done.discarded == ["add pet"]
    assert (await discard(scene.provider, AGENT, SCOPE, dream, now=LATER)).discarded == [
        "update city",
        "remove job",
    ]
    assert await undecided(scene.provider, AGENT, SCOPE) == []
    assert await scene.facts() == before
    with pytest.raises(ConfigurationError, match="none"):
        await discard(scene.provider, AGENT, SCOPE, dream, now=LATER)
    with pytest.raises(ConfigurationError, match="no dream 'dream-77'"):
        await discard(scene.provider, AGENT, SCOPE, "dream-77", now=LATER)


async def test_the_gate_is_opened_by_hand(scene: Scene) -> None:
    """After three failures a reset lets the next dream through at once."""
    await prepared(scene)

    async def fails(_: object) -> object:
        raise ModelCallError("no model")

    for _ in range(3):
        with pytest.raises(ModelCallError):
            await scene.dream(Script(gather_signal=fails))  # type: ignore[arg-type]
    assert (await scene.dream(moving())).status == "skipped"
    assert await reset_gate(scene.provider, AGENT, SCOPE, now=NOON) == 3
    assert (await scene.dream(moving())).status == "completed_with_rejections"


async def test_a_dream_that_failed_has_nothing_to_apply(scene: Scene) -> None:
    """A dream that never came to its commit has no change that waits for a decision."""
    await prepared(scene)
    with pytest.raises(Exception, match="handed in nothing"):
        await scene.dream(Script(gather_signal=[says("hm"), says("hm")]), DreamLimits())
    assert await undecided(scene.provider, AGENT, SCOPE) == []


async def test_a_decision_is_undone_like_a_dream(scene: Scene) -> None:
    """Its id takes it back whole: the scope is as it was, and what was added stays away."""
    before = await prepared(scene)
    dream = (await scene.dream(moving(), mode="propose")).dream
    names = ["c1", "c2", await held(scene)]
    done = await apply(scene.provider, AGENT, SCOPE, dream, names, now=LATER)
    assert set(await scene.facts()) == {"city", "pet"}
    undone = await scene.provider.undo(AGENT, SCOPE, done.id)
    assert (undone.keys, undone.conflicts) == (["city", "job", "pet"], [])
    assert await scene.facts() == before
    stones = await scene.provider.tombstones(AGENT, SCOPE)
    assert "pet" in {stone.key for stone in stones}


async def test_undoing_a_proposal_takes_back_what_was_applied_of_it(scene: Scene) -> None:
    """By the proposal's own id, however many decisions there were."""
    before = await prepared(scene)
    dream = (await scene.dream(moving(), mode="propose")).dream
    nothing = await scene.provider.undo(AGENT, SCOPE, dream)
    assert (nothing.keys, nothing.conflicts) == ([], [])
    name = await held(scene)
    await apply(scene.provider, AGENT, SCOPE, dream, ["c1"], now=LATER)
    await apply(scene.provider, AGENT, SCOPE, dream, ["c2", name], now=LATER)
    assert set(await scene.facts()) == {"city", "pet"}
    after = await scene.facts()
    undone = await scene.provider.undo(AGENT, SCOPE, dream)
    assert (undone.keys, undone.conflicts) == (["city", "job", "pet"], [])
    assert await scene.facts() == before
    with pytest.raises(ConfigurationError, match=r"taken back since.*: job@3, pet@2$"):
        await apply(scene.provider, AGENT, SCOPE, dream, ["c2", name], now=LATER)
    for version in ("job@3", "pet@2", "city@3"):
        await scene.provider.undo(AGENT, SCOPE, version)
    assert await scene.facts() == after
    again = await apply(scene.provider, AGENT, SCOPE, dream, ["c2", name], now=LATER)
    assert again.applied == ["add pet", "remove job"]


async def test_what_was_taken_back_is_refused_one_by_one_too(scene: Scene) -> None:
    """By the change, not by the set that it was applied in; what was not is not held up."""
    before = await prepared(scene)
    dream = (await scene.dream(moving(), mode="propose")).dream
    name = await held(scene)
    done = await apply(scene.provider, AGENT, SCOPE, dream, ["c2", name], now=LATER)
    await scene.provider.undo(AGENT, SCOPE, done.id)
    for names, undo in (
        (["c2"], "pet@2"),
        ([name], "job@3"),
        (["c1", "c2"], "pet@2"),
        (["c2", "c1", name], "job@3, pet@2"),
    ):
        with pytest.raises(ConfigurationError, match=f"taken back since.*: {undo}$"):
            await apply(scene.provider, AGENT, SCOPE, dream, names, now=LATER)
    assert await scene.facts() == before
    other = await apply(scene.provider, AGENT, SCOPE, dream, ["c1"], now=LATER)
    assert other.applied == ["update city"]


async def test_undoing_a_dream_takes_back_what_was_applied_of_it_later(scene: Scene) -> None:
    """A held removal that a person applied in favour of a fact of the dream goes with that fact."""
    before = await prepared(scene)
    dream = (await scene.dream(moving())).dream
    await apply(scene.provider, AGENT, SCOPE, dream, [await held(scene)], now=LATER)
    assert set(await scene.facts()) == {"city", "pet"}
    undone = await scene.provider.undo(AGENT, SCOPE, dream)
    assert (undone.keys, undone.conflicts) == (["city", "job", "pet"], [])
    assert await scene.facts() == before


async def test_what_waits_shows_what_is_decided(scene: Scene) -> None:
    """Old and new value, the words with their speaker and day, and what the verifier says."""
    await scene.knows("city", "Lives in Oslo")
    await scene.said("I live in Bergen now, at last. My sister has a cat called Momo.")
    script = Script(
        gather_signal=findings({"statement": "Lives in Bergen", "evidence": ["a1"]}),
        consolidate=changes(
            {
                "op": "update",
                "key": "city",
                "value": "Lives in Bergen",
                "evidence": ["a1"],
                "quote": "I live in Bergen now",
            },
            {"op": "add", "key": "pet", "value": "Has a cat called Momo", "evidence": ["a1"]},
        ),
        verify=doubting("city", "pet"),
    )
    await scene.dream(script, mode="propose")
    city, pet = await undecided(scene.provider, AGENT, SCOPE)
    assert (city.old, city.new) == ({"city": "Lives in Oslo"}, "Lives in Bergen")
    assert (city.quote, city.speaker) == ("I live in Bergen now", "user")
    assert city.said_at
    assert city.said_at.date() <= NOON.date()
    assert "somebody else's" in city.why
    assert (pet.old, pet.new) == ({}, "Has a cat called Momo")
    await apply(scene.provider, AGENT, SCOPE, city.dream, [city.change], now=LATER, by="Ada")
    (fact,) = await scene.provider.entries(AGENT, SCOPE, ["city"])
    assert (fact.value, fact.state, fact.unconfirmed) == ("Lives in Bergen", "settled", None)
    assert (fact.writer, fact.author) == ("person", "Ada")
    done = await discard(scene.provider, AGENT, SCOPE, city.dream, now=LATER, by="Bob")
    record = await scene.provider.dream(AGENT, SCOPE, done.id)
    assert record
    assert record.data["by"] == "Bob"


async def test_a_decision_on_housekeeping_leaves_no_tombstone(scene: Scene) -> None:
    """A person applied what a dream proposed: the fact was not taken back for that."""
    await prepared(scene)
    dream = (await scene.dream(moving())).dream
    await apply(scene.provider, AGENT, SCOPE, dream, [await held(scene)], now=LATER, by="Ada")
    assert "job" not in {stone.key for stone in await scene.provider.tombstones(AGENT, SCOPE)}
