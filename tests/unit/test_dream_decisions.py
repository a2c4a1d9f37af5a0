"""Proposals and held changes, applied or discarded by people, and the gate opened by hand."""

from datetime import timedelta

import pytest

from agentmem.contracts import DreamLimits
from agentmem.dreaming.decisions import apply, discard, reset_gate, undecided
from agentmem.dreaming.verification import QUESTIONS
from agentmem.errors import ConfigurationError, ModelCallError
from agentmem.facts import Write
from agentmem.values import JSONObject, JSONValue
from tests.dreams import NOON, STORE, Scene, Script, blocks_of, calls, changes, findings, says

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
        consolidate=changes(
            {"op": "update", "key": "city", "value": "Moved to Bergen", "findings": ["f1"]},
            {"op": "add", "key": "pet", "value": "Cat is named Momo", "findings": ["f2"]},
            {"op": "remove", "key": "job"},
        ),
    )


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
        ("c1", "accepted", "update city"),
        ("c2", "accepted", "add pet"),
        ("c3", "held", "remove job"),
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
    assert (city.version, city.writer) == (2, "dream")
    waiting = await undecided(scene.provider, AGENT, SCOPE)
    assert [one.change for one in waiting] == ["c3"]


async def test_a_key_that_moved_is_left_alone(scene: Scene) -> None:
    """The agent has learned better since the dream: its word stays, the rest applies (M-12)."""
    await prepared(scene)
    dream = (await scene.dream(moving(), mode="propose")).dream
    await scene.provider.write(AGENT, SCOPE, [Write(key="city", value="Lives in Voss")])
    done = await apply(scene.provider, AGENT, SCOPE, dream, now=LATER)
    assert (done.applied, done.conflicts) == (["add pet"], ["update city"])
    assert (await scene.facts())["city"] == "Lives in Voss"


async def test_a_held_change_is_applied_by_name(scene: Scene) -> None:
    """H-03, M-9: what a dream may not remove, a person may."""
    await prepared(scene)
    dream = (await scene.dream(moving())).dream
    with pytest.raises(ConfigurationError, match="c3"):
        await apply(scene.provider, AGENT, SCOPE, dream, now=LATER)
    with pytest.raises(ConfigurationError, match="no change c1"):
        await apply(scene.provider, AGENT, SCOPE, dream, ["c1"], now=LATER)
    done = await apply(scene.provider, AGENT, SCOPE, dream, ["c3"], now=LATER)
    assert done.applied == ["remove job"]
    assert "job" not in await scene.facts()
    assert await undecided(scene.provider, AGENT, SCOPE) == []


async def half_sure(request: JSONObject) -> JSONObject:
    """A verifier that is sure of the new fact, and of nothing else."""
    made = [
        {"n": line["n"], **dict.fromkeys(QUESTIONS, "yes" if line["op"] == "add" else "unsure")}
        | ({} if line.get("new") in (None, "Home is in Bergen now") else {"exact": "no"})
        for line in blocks_of(request)["CHANGES"]
    ]
    return calls(("submit_verdicts", {"verdicts": made}))


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
        verify=[half_sure],
    )
    report = await scene.dream(script)
    (held,) = await undecided(scene.provider, AGENT, SCOPE)
    done = await apply(scene.provider, AGENT, SCOPE, report.dream, [held.change], now=LATER)
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
    """What never came to its commit waits for nobody."""
    await prepared(scene)
    with pytest.raises(Exception, match="handed in nothing"):
        await scene.dream(Script(gather_signal=[says("hm"), says("hm")]), DreamLimits())
    assert await undecided(scene.provider, AGENT, SCOPE) == []


async def test_a_decision_is_undone_like_a_dream(scene: Scene) -> None:
    """Its id takes it back whole: the scope is as it was, and what was added stays away."""
    before = await prepared(scene)
    dream = (await scene.dream(moving(), mode="propose")).dream
    done = await apply(scene.provider, AGENT, SCOPE, dream, ["c1", "c2", "c3"], now=LATER)
    assert set(await scene.facts()) == {"city", "pet"}
    undone = await scene.provider.undo(AGENT, SCOPE, done.id)
    assert (undone.keys, undone.conflicts) == (["city", "job", "pet"], [])
    assert await scene.facts() == before
    stones = await scene.provider.tombstones(AGENT, SCOPE)
    assert "pet" in {stone.key for stone in stones}


async def test_undoing_a_proposal_takes_back_what_was_applied_of_it(scene: Scene) -> None:
    """M-9: by the proposal's own id, however many decisions there were."""
    before = await prepared(scene)
    dream = (await scene.dream(moving(), mode="propose")).dream
    nothing = await scene.provider.undo(AGENT, SCOPE, dream)
    assert (nothing.keys, nothing.conflicts) == ([], [])
    await apply(scene.provider, AGENT, SCOPE, dream, ["c1"], now=LATER)
    await apply(scene.provider, AGENT, SCOPE, dream, ["c2", "c3"], now=LATER)
    assert set(await scene.facts()) == {"city", "pet"}
    after = await scene.facts()
    undone = await scene.provider.undo(AGENT, SCOPE, dream)
    assert (undone.keys, undone.conflicts) == (["city", "job", "pet"], [])
    assert await scene.facts() == before
    with pytest.raises(ConfigurationError, match=r"taken back since.*: job@3, pet@2$"):
        await apply(scene.provider, AGENT, SCOPE, dream, ["c2", "c3"], now=LATER)
    for name in ("job@3", "pet@2", "city@3"):
        await scene.provider.undo(AGENT, SCOPE, name)
    assert await scene.facts() == after
    again = await apply(scene.provider, AGENT, SCOPE, dream, ["c2", "c3"], now=LATER)
    assert again.applied == ["add pet", "remove job"]


async def test_what_was_taken_back_is_refused_one_by_one_too(scene: Scene) -> None:
    """By the change, not by the set that it was applied in; what was not is not held up."""
    before = await prepared(scene)
    dream = (await scene.dream(moving(), mode="propose")).dream
    done = await apply(scene.provider, AGENT, SCOPE, dream, ["c2", "c3"], now=LATER)
    await scene.provider.undo(AGENT, SCOPE, done.id)
    for names, undo in (
        (["c2"], "pet@2"),
        (["c3"], "job@3"),
        (["c1", "c2"], "pet@2"),
        (["c2", "c1", "c3"], "job@3, pet@2"),
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
    await apply(scene.provider, AGENT, SCOPE, dream, ["c3"], now=LATER)
    assert set(await scene.facts()) == {"city", "pet"}
    undone = await scene.provider.undo(AGENT, SCOPE, dream)
    assert (undone.keys, undone.conflicts) == (["city", "job", "pet"], [])
    assert await scene.facts() == before
