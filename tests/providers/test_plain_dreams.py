"""Dreams over a store of five methods: it learns at its cap, and shows what is not confirmed."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import cast

import pytest

from agentmem.contracts import DreamLimits
from agentmem.storage.plain import PlainProvider
from agentmem.storage.sql.provider import SqlProvider
from tests.dreams import NOON, STORE, Scene, Script, changes, findings, says

from .five_methods import FiveMethods

PLACE = (STORE.agent, STORE.scope)


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    """A user's store of five methods, with 130 facts that nobody knows more of."""
    scene = await Scene.make()
    theirs = FiveMethods()
    for number in range(130):
        await theirs.memorize(*PLACE, f"boat_{number:03}", f"Anna owns boat number {number}")
    own = scene.provider
    scene.provider = cast("SqlProvider", PlainProvider(theirs, own, "theirs"))
    await scene.said("I am allergic to nuts.")
    yield scene
    await own.close()


def learned(**more: object) -> Script:
    """A dream that learns of an allergy."""
    return Script(
        gather_signal=findings({"statement": "Allergic to nuts", "evidence": ["a1"]}),
        consolidate=changes(
            {"op": "add", "key": "allergy", "value": "Allergic to nuts", "findings": ["f1"]}
        ),
        **more,  # type: ignore[arg-type]
    )


async def test_a_scope_at_its_cap_keeps_learning(scene: Scene) -> None:
    """The new fact is learned, and facts of unknown origin make room, half of them at most."""
    report = await scene.dream(learned(), DreamLimits(keys=100))
    facts = await scene.facts()
    assert facts["allergy"] == "Allergic to nuts"
    assert len(facts) == 100
    assert report.changes == {"accepted": 32}
    assert report.held == []


async def test_what_is_not_confirmed_is_known_as_such_and_settles(scene: Scene) -> None:
    """The state lies in the worker's own store, since five methods have no place for it."""
    await scene.dream(learned(verify=[says("ok")] * 9), DreamLimits(keys=200))
    (fact,) = await scene.provider.entries(*PLACE, ["allergy"])
    assert (fact.value, fact.state) == ("Allergic to nuts", "tentative")
    await scene.said("No nuts for me please, I am allergic.", session="run-2")
    script = learned(verify=[says("ok")] * 9)
    await scene.dream(script, DreamLimits(keys=200), NOON + timedelta(hours=1))
    (fact,) = await scene.provider.entries(*PLACE, ["allergy"])
    assert (fact.value, fact.state) == ("Allergic to nuts", "settled")
