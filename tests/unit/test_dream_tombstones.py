"""Forgotten facts stay forgotten until a user says them again, over a real store."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from agentmem.contracts import PHASES
from agentmem.errors import ProviderError
from agentmem.facts import Tombstone, Trust, Write
from agentmem.records import MessageId
from agentmem.wire import JSONObject
from tests.drafts import SAID, draft, fact, propose, row
from tests.dreams import STORE, Scene, Script, changes, findings

PLACE = (STORE.agent, STORE.scope)
NOW = datetime.now(UTC)  # the stores date removals by the clock
BEFORE, LATER = NOW - timedelta(hours=1), NOW + timedelta(hours=1)
PHONE = "Phone number is 555 0100"


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    """An empty scope."""
    scene = await Scene.make()
    yield scene
    await scene.provider.close()


def adding(key: str = "phone", value: str = PHONE) -> Script:
    """Script a dream that learns one fact from its first message."""
    return Script(
        gather_signal=findings({"statement": value, "evidence": ["a1"]}),
        consolidate=changes({"op": "add", "key": key, "value": value, "findings": ["f1"]}),
    )


@pytest.mark.parametrize("key", ["phone", "contact_number"])
async def test_a_dream_over_older_messages_brings_nothing_back(scene: Scene, key: str) -> None:
    """Neither under its key nor under another; said again later, it comes back."""
    await scene.said("My phone number is 555 0100.", at=BEFORE)
    await scene.provider.memorize(*PLACE, "phone", PHONE)
    await scene.provider.forget(*PLACE, "phone")
    report = await scene.dream(adding(key), now=LATER)
    assert await scene.facts() == {}
    assert report.status == "completed_with_rejections"
    assert report.held == [f"held add {key}: 'phone' was forgotten after this was last said"]
    await scene.said("My phone number is 555 0100, do keep it.", at=LATER)
    report = await scene.dream(adding(key), now=LATER + timedelta(hours=1))
    assert await scene.facts() == {key: PHONE}
    assert report.held == []


async def test_what_a_dream_forgot_on_request_stays_forgotten(scene: Scene) -> None:
    """A request that a dream obeyed counts from when it was said, not from the dream."""
    await scene.knows("phone", PHONE)
    await scene.said("Please forget my phone number 555 0100.", at=BEFORE)
    gone = {"op": "remove", "key": "phone", "reason": "asked_to_forget", "findings": ["f1"]}
    found = {"kind": "retraction", "statement": "Forget the phone number", "evidence": ["a1"]}
    await scene.dream(Script(gather_signal=findings(found), consolidate=changes(gone)), now=LATER)
    assert await scene.facts() == {}
    await scene.said("My phone number is 555 0100.", at=BEFORE - timedelta(hours=1))
    await scene.dream(adding(), now=LATER)
    assert await scene.facts() == {}
    await scene.said("My phone number is 555 0100.", at=BEFORE + timedelta(minutes=5))
    await scene.dream(adding(), now=LATER)
    assert await scene.facts() == {"phone": PHONE}


async def test_tombstones_are_frozen_with_the_snapshot(scene: Scene) -> None:
    """A phase decides by what was forgotten when the dream began, however late it is tried."""
    await scene.said("My phone number is 555 0100.", at=BEFORE)
    await scene.provider.memorize(*PLACE, "phone", PHONE)
    await scene.provider.forget(*PLACE, "phone")
    begun = await scene.begin(now=LATER)
    await scene.provider.memorize(*PLACE, "phone", PHONE)
    script = adding()
    await scene.phase("gather_signal", begun, script)
    result = await scene.phase("consolidate", begun, script)
    assert result.counts["held"] == 1


@pytest.mark.parametrize("key", ["phone", "contact_number"])
async def test_what_is_forgotten_while_a_dream_runs_stays_so(scene: Scene, key: str) -> None:
    """The commit holds what the agent has forgotten since the dream began."""
    await scene.said("My phone number is 555 0100.", at=BEFORE)
    begun = await scene.begin(now=LATER)
    script = adding(key)
    for name in ("orient", "gather_signal", "consolidate", "prune"):
        await scene.phase(name, begun, script)
    await scene.provider.write(*PLACE, [Write(key="phone", value=PHONE, writer="agent")])
    await scene.provider.write(
        *PLACE, [Write(op="remove", key="phone", writer="agent", reason="asked_to_forget")]
    )
    report = await scene.commit(begun)
    assert await scene.facts() == {}
    assert (report.keys_after, len(report.held)) == (0, 1)
    assert await scene.commit(begun) == report


async def test_long_forgotten_values_do_not_swell_a_dream(scene: Scene) -> None:
    """No dream writes so long a value, so its key alone is kept from coming back."""
    await scene.said("My phone number is 555 0100.", at=BEFORE)
    await scene.provider.memorize(*PLACE, "phone", "x" * 2_001)
    await scene.provider.forget(*PLACE, "phone")
    begun = await scene.begin(now=LATER)
    record = await scene.provider.dream(*PLACE, begun.dream)
    assert record is not None
    assert "xxx" not in record.model_dump_json()
    script = adding()
    await scene.phase("gather_signal", begun, script)
    assert (await scene.phase("consolidate", begun, script)).counts["held"] == 1


def test_only_as_good_a_word_brings_a_fact_back() -> None:
    """The assistant may go on about what the user had it forget; a later "thanks" says nothing."""
    stone = Tombstone(key="phone", value=PHONE, trust=Trust.USER, at=SAID)
    later = SAID + timedelta(hours=1)
    said = [
        row("My phone number is 555 0100", at=SAID - timedelta(hours=1)),
        row("As you said, your phone number is 555 0100", "assistant", at=later),
        row("Thanks a lot!", at=later),
    ]
    on = draft(said=said, tombstones=[stone])
    fields = {"evidence": ["a1", "a2", "a3"], "quote": "As you said, your phone number"}
    held = propose(on, "add", "phone", PHONE, **fields)
    assert (held.status, held.code) == ("held", "forgotten")
    weaker = draft(said=said, tombstones=[stone.replace(trust=Trust.ASSISTANT)])
    done = propose(weaker, "add", "phone", PHONE, **fields)
    assert done.status == "accepted"


def test_a_retraction_names_no_survivor() -> None:
    """A fact that the user takes back is removed, whatever key the model says holds it."""
    on = draft(
        [fact("phone", PHONE), fact("contact", "Reach Anna by mail")],
        ["Please forget my phone number 555 0100"],
    )
    done = propose(on, "remove", "phone", by="contact", reason="asked_to_forget", evidence=["a1"])
    assert (done.status, done.by) == ("accepted", "")


async def test_a_message_forgotten_in_a_phase_is_not_saved_by_it(scene: Scene) -> None:
    """The phase's work on it by then is dropped; tried again, the phase reads the rest."""
    await scene.said("My phone number is 555 0100.", at=BEFORE)
    await scene.said("I live in Bergen.", at=BEFORE)

    async def forgetful(request: JSONObject) -> JSONObject:
        message = MessageId(session="run-1", memory="wm0", message="m1")
        assert await scene.provider.forget_message(*PLACE, message) > 0
        return findings({"statement": PHONE, "quote": "phone number is 555 0100"})

    lives = findings({"statement": "Lives in Bergen", "evidence": ["a2"]})
    script = Script(gather_signal=[forgetful, lives])
    begun = await scene.begin(now=LATER)
    await scene.phase("orient", begun, script)
    with pytest.raises(ProviderError, match="was forgotten"):
        await scene.phase("gather_signal", begun, script)
    assert "555 0100" not in str(await scene.provider.export(*PLACE))
    await scene.phase("gather_signal", begun, script)
    assert "555 0100" not in str(script.of("gather_signal")[-1])
    assert "555 0100" not in str(await scene.provider.export(*PLACE))
    assert scene.results["gather_signal"].counts["findings"] == 1


async def test_a_message_forgotten_in_a_commit_is_not_saved_by_it(scene: Scene) -> None:
    """A record from before is refused; the commit that is tried again has the store's own."""
    await scene.said("My phone number is 555 0100.", at=BEFORE)
    script = adding()
    begun = await scene.begin(now=LATER)
    for name in PHASES:
        await scene.phase(name, begun, script)
    stale = await scene.provider.dream(*PLACE, begun.dream)
    assert stale is not None
    message = MessageId(session="run-1", memory="wm0", message="m1")
    await scene.provider.forget_message(*PLACE, message)
    with pytest.raises(ProviderError, match="was forgotten"):
        await scene.provider.commit(*PLACE, stale, [])
    report = await scene.commit(begun)
    assert "number is 555 0100." not in str(await scene.provider.export(*PLACE))
    assert report.dream == begun.dream
