"""A dream as a transaction: opened once, paid once, committed once, reported shortly."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from agentmem.contracts import PHASES, DreamLimits, FailedCall, PhaseName, Usage
from agentmem.dreaming.budgets import EVIDENCE_BYTES, EVIDENCE_ROWS
from agentmem.dreaming.model_replies import Asker
from agentmem.errors import DreamFailed, ModelCallError, ProviderError
from agentmem.facts import Write
from agentmem.wire import JSONObject, encoded_size
from tests.dreams import NOON, STORE, Answer, Scene, Script, changes, findings, orientation

AGENT, SCOPE = STORE.agent, STORE.scope
LONG_AGO = NOON - timedelta(days=80)


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    """An empty scope."""
    scene = await Scene.make()
    yield scene
    await scene.provider.close()


ADDED: JSONObject = {
    "op": "add",
    "key": "pet",
    "value": "Cat is named Momo",
    "findings": ["f1"],
}


def learned(key: str = "pet", value: str = "Cat is named Momo") -> Script:
    """Script a dream that learns one fact from the first message."""
    return Script(
        gather_signal=findings({"statement": value, "evidence": ["a1"]}),
        consolidate=changes(ADDED | {"key": key, "value": value}),
    )


class Failing:
    """Answers by a script, and fails one request for good."""

    def __init__(self, script: Asker, at: int) -> None:
        self.left = at
        self._script = script

    async def __call__(self, request: JSONObject) -> JSONObject:
        """Answer a request, or fail it."""
        self.left -= 1
        if self.left == 0:
            raise ModelCallError("the model is away")
        return await self._script(request)


# Beginning.


async def test_beginning_twice_opens_one_dream(scene: Scene) -> None:
    """Begin is idempotent by the dream's id: the second call sees the first one's snapshot."""
    await scene.knows("home", "Lives in Oslo")
    await scene.said("My cat is named Momo.")
    first = await scene.begin(dream="d1")
    await scene.knows("drink", "Likes tea")
    await scene.said("My dog is named Rex.")
    assert await scene.begin(dream="d1") == first
    assert (first.facts, first.messages) == (1, 1)
    assert (await scene.provider.scope_state(AGENT, SCOPE)).failures == 1


async def test_nothing_new_asks_no_model_and_counts_no_attempt(scene: Scene) -> None:
    """Without new messages there is nothing to dream of."""
    await scene.knows("home", "Lives in Oslo")
    begun = await scene.begin()
    assert (begun.status, begun.facts) == ("nothing_new", 1)
    assert (await scene.provider.scope_state(AGENT, SCOPE)).failures == 0


async def test_three_failures_close_the_gate_and_success_opens_it(scene: Scene) -> None:
    """Three attempts in a row without a commit skip the scope, with the reason and the next try."""
    await scene.said("My cat is named Momo.")
    for number in range(3):
        assert (await scene.begin(dream=f"crashed-{number}")).status == "ready"
    skipped = await scene.begin(dream="d4", now=NOON + timedelta(minutes=59))
    assert skipped.status == "skipped"
    assert skipped.reason.startswith("3 dreams of this scope failed in a row")
    assert "2026-03-25T13:00" in skipped.reason
    report = await scene.dream(learned(), now=NOON + timedelta(minutes=61))
    assert report.status == "completed"
    assert (await scene.provider.scope_state(AGENT, SCOPE)).failures == 0


async def test_the_gates_threshold_is_a_setting(scene: Scene) -> None:
    """The failures that close the gate come from the dream's limits."""
    await scene.said("My cat is named Momo.")
    limits = DreamLimits(failures=1)
    assert (await scene.begin(limits, dream="crashed")).status == "ready"
    assert (await scene.begin(limits, dream="next")).status == "skipped"


async def test_a_round_reads_at_most_500_messages(scene: Scene) -> None:
    """The messages that do not fit wait for the next round, and every message is read once."""
    for number in range(EVIDENCE_ROWS + 10):
        await scene.said(f"Message {number}.")
    first = await scene.begin()
    assert (first.messages, first.more_evidence) == (EVIDENCE_ROWS, True)
    for name in PHASES:
        await scene.phase(name, first, Script())
    await scene.commit(first)
    second = await scene.begin()
    assert (second.messages, second.more_evidence) == (10, False)


async def test_a_round_reads_at_most_200_kilobytes_and_one_message_at_least(scene: Scene) -> None:
    """A message over the bound still passes, alone, so that nothing blocks a scope for ever."""
    await scene.said("x" * (EVIDENCE_BYTES + 1))
    await scene.said("y" * 150_000)
    await scene.said("z" * 150_000)
    sizes: list[int] = []
    while (begun := await scene.begin()).status == "ready":
        sizes.append(begun.messages)
        for name in PHASES:
            await scene.phase(name, begun, Script())
        await scene.commit(begun)
    assert sizes == [1, 1, 1]


# Paid replies.


@pytest.mark.parametrize("at", [1, 2, 3, 4])
async def test_a_phase_tried_again_pays_only_for_the_call_in_flight(scene: Scene, at: int) -> None:
    """Each reply is kept before it is used: a retry asks again only what was not answered."""
    await scene.knows("a", "Likes tea")
    await scene.knows("trip", "Conference in Lyon in January", expires_at=LONG_AGO)
    await scene.said("My cat is named Momo.")
    script = learned()
    failing = Failing(script, at)
    begun = await scene.begin()
    failures = 0
    for name in PHASES:
        try:
            await scene.phase(name, begun, failing)
        except ModelCallError:
            failures += 1
            await scene.phase(name, begun, failing)
    report = await scene.commit(begun)
    assert failures == 1
    assert (len(script.requests), report.usage.requests) == (4, 4)
    assert len({str(request) for request in script.requests}) == 4


class Refusing(Failing):
    """Answers by a script after so many replies that are paid for and refused."""

    async def __call__(self, request: JSONObject) -> JSONObject:
        """Refuse a reply, or answer."""
        self.left -= 1
        if self.left >= 0:
            paid = Usage(prompt=1_000_000, completion=1_000, cost=1, requests=1)
            raise ModelCallError("no choice in it", FailedCall(kind="garbled", paid=paid))
        return await self._script(request)


@pytest.mark.parametrize("refused", [1, 2, 3])
async def test_refused_replies_count_once_however_often_a_phase_is_tried(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, refused: int
) -> None:
    """Also where the phase is lost behind the reply that was taken at last."""
    await scene.said("My cat is named Momo.")
    script = learned()
    refusing = Refusing(script, refused)
    begun = await scene.begin()

    async def attempt(name: PhaseName) -> bool:
        try:
            await scene.phase(name, begun, refusing)
        except (ModelCallError, ProviderError):
            return False
        return True

    async def lost(*_: Any) -> None:
        raise ProviderError("the store is away")

    for name in PHASES:
        with monkeypatch.context() as patch:
            patch.setattr(scene.provider, "save_dream", lost)
            attempts = [await attempt(name) for _ in range(refused + 2)]
        assert not any(attempts)
        assert await attempt(name)
    usage = (await scene.commit(begun)).usage
    asked = len(script.requests)
    assert (usage.requests, usage.prompt // 1_000_000) == (asked + refused, refused)
    assert usage.completion == asked * 100 + refused * 1_000
    assert usage.cost == pytest.approx(asked * 0.01 + refused)


@pytest.mark.parametrize("change", ["nothing", "verifier", "model"])
async def test_a_reply_that_another_request_replaces_is_paid_for(scene: Scene, change: str) -> None:
    """A new setting between two attempts asks anew: what the reply before took stays counted."""
    await scene.said("My cat is named Momo.")
    script = learned()
    begun = await scene.begin()
    for name in PHASES[:2]:
        await scene.phase(name, begun, script)
    before = len(script.requests)
    with pytest.raises(ModelCallError):
        await scene.phase("consolidate", begun, Failing(script, 2))
    script.before("consolidate", changes(ADDED))
    options: dict[str, Any] = {}
    if change == "verifier":
        options["verifier"] = "openai/other"
    elif change == "model":
        begun = begun.replace(model="openai/other")
    for name in PHASES[2:]:
        await scene.phase(name, begun, script, **options)
    assert (await scene.commit(begun)).usage.requests == len(script.requests)
    assert len(script.requests) - before == (3 if change == "model" else 2)


async def test_a_retried_phase_repeats_the_same_bytes(scene: Scene) -> None:
    """Whatever the live agent writes meanwhile, the request in flight is sent again unchanged."""
    await scene.knows("home", "Lives in Oslo")
    await scene.knows("drink", "Likes tea")
    await scene.said("My cat is named Momo.")
    begun = await scene.begin()
    asked: list[JSONObject] = []

    async def away(request: JSONObject) -> Answer:
        asked.append(request)
        raise ModelCallError("the model is away")

    for number in range(2):
        with pytest.raises(ModelCallError):
            await scene.phase("orient", begun, away)
        await scene.knows("home", f"Lives in place {number}")
        await scene.said("Something else.")
    assert asked[0] == asked[1]


async def test_a_phase_that_is_done_is_not_done_again(scene: Scene) -> None:
    """A phase whose answer was lost returns its kept result, without a model call."""
    await scene.said("My cat is named Momo.")
    begun = await scene.begin()
    script = learned()
    first = await scene.phase("gather_signal", begun, script)
    again = Script()
    assert await scene.phase("gather_signal", begun, again) == first
    assert again.requests == []


async def test_a_slower_attempt_overwrites_nothing(scene: Scene) -> None:
    """An attempt that was thought dead and ends late leaves the later phases' work alone."""
    await scene.knows("a", "Likes tea")
    await scene.knows("b", "Likes milk")
    await scene.said("My cat is named Momo.")
    begun = await scene.begin()
    script = learned()

    async def late(request: JSONObject) -> Answer:
        for name in PHASES[:3]:
            await scene.phase(name, begun, script)
        return orientation(stale=[{"key": "a"}])

    await scene.phase("orient", begun, Script(orient=late))
    await scene.phase("prune", begun, script)
    await scene.commit(begun)
    assert (await scene.facts())["pet"] == "Cat is named Momo"


async def test_an_unknown_dream_is_said(scene: Scene) -> None:
    """A phase of a dream that the store does not hold fails with a message, not a traceback."""
    await scene.said("Hi.")
    begun = (await scene.begin()).replace(dream="elsewhere")
    with pytest.raises(DreamFailed, match="no dream elsewhere of this scope"):
        await scene.phase("orient", begun, Script())


# Committing.


async def test_nothing_touches_the_store_before_the_commit(scene: Scene) -> None:
    """Until the commit a recalling agent sees nothing of a dream, and afterwards all of it."""
    await scene.said("My cat is named Momo.")
    begun = await scene.begin()
    for name in PHASES:
        await scene.phase(name, begun, learned())
        assert await scene.facts() == {}
    await scene.commit(begun)
    assert await scene.facts() == {"pet": "Cat is named Momo"}


async def test_committing_twice_changes_nothing_and_reports_the_same(scene: Scene) -> None:
    """A commit whose answer was lost is a no-op with the same report."""
    await scene.said("My cat is named Momo.")
    begun = await scene.begin()
    for name in PHASES:
        await scene.phase(name, begun, learned())
    first = await scene.commit(begun)
    (before,) = await scene.provider.entries(AGENT, SCOPE)
    assert await scene.commit(begun) == first
    assert await scene.provider.entries(AGENT, SCOPE) == [before]


async def test_five_dreams_over_one_conversation_change_it_once(scene: Scene) -> None:
    """Dreaming again over the same conversation changes nothing and asks nothing."""
    await scene.said("My cat is named Momo.")
    statuses: list[str] = []
    asked: list[int] = []
    for _ in range(5):
        script = learned()
        statuses.append((await scene.dream(script)).status)
        asked.append(len(script.requests))
    assert statuses == ["completed", *["nothing_new"] * 4]
    assert asked == [3, 0, 0, 0, 0]
    assert [fact.version for fact in await scene.provider.entries(AGENT, SCOPE)] == [1]


async def test_explicitly_nothing_learned_moves_the_cursor(scene: Scene) -> None:
    """An empty list of findings is an answer: the messages are consumed, no failure counts."""
    await scene.said("Hello!")
    report = await scene.dream(Script())
    assert (report.status, report.summary) == ("nothing_learned", "nothing changed.")
    assert (await scene.provider.scope_state(AGENT, SCOPE)).failures == 0
    assert (await scene.begin()).status == "nothing_new"


async def test_a_failed_dream_leaves_the_messages_for_the_next(scene: Scene) -> None:
    """A model that fails for good changes nothing; the next dream reads the same."""
    await scene.knows("home", "Lives in Oslo")
    await scene.said("My cat is named Momo.")
    with pytest.raises(ModelCallError):
        await scene.dream(Failing(learned(), 2))
    assert await scene.facts() == {"home": "Lives in Oslo"}
    assert (await scene.provider.scope_state(AGENT, SCOPE)).failures == 1
    await scene.dream(learned())
    assert (await scene.facts())["pet"] == "Cat is named Momo"


async def test_a_fact_that_the_live_agent_changed_wins(scene: Scene) -> None:
    """A fact that changed meanwhile stays and is reported as a conflict; the rest commits."""
    await scene.knows("city", "Lives in Oslo")
    await scene.knows("job", "Works as a baker")
    await scene.said("I moved to Bergen, and I work as a nurse now.")
    begun = await scene.begin()
    script = Script(
        gather_signal=findings(
            {"statement": "Moved to Bergen", "evidence": ["a1"]},
            {"statement": "Works as a nurse now", "evidence": ["a1"]},
        ),
        consolidate=changes(
            {"op": "update", "key": "city", "value": "Moved to Bergen", "findings": ["f1"]},
            {"op": "update", "key": "job", "value": "Works as a nurse now", "findings": ["f2"]},
        ),
    )
    for name in PHASES:
        await scene.phase(name, begun, script)
    live = [Write(key="city", value="Lives in Tromsø"), Write(key="pet", value="cat")]
    await scene.provider.write(AGENT, SCOPE, live)
    report = await scene.commit(begun)
    assert await scene.facts() == {
        "city": "Lives in Tromsø",
        "job": "Works as a nurse now",
        "pet": "cat",
    }
    assert (report.status, report.conflicts) == ("completed_with_rejections", ["city"])
    assert report.changes == {"conflict": 1, "accepted": 1}


async def test_a_report_stays_under_4_kilobytes(scene: Scene) -> None:
    """However much a dream did, its report is short, and its counts are whole."""
    for number in range(60):
        await scene.said(f"Visited the castle Number{number} with Ines.")
        await scene.said("How nice.", role="assistant")
    told = [
        {
            "statement": f"Visited the castle Number{number} with Ines",
            "evidence": [f"a{2 * number + 1}"],
        }
        for number in range(40)
    ]
    made = [
        {"op": "add", "key": f"{'long_key_' * 20}{number}", "value": item["statement"]}
        | {"findings": [f"f{number + 1}"]}
        for number, item in enumerate(told)
    ]
    gone = [{"op": "remove", "key": f"gone_{number}"} for number in range(40)]
    script = Script(
        gather_signal=findings(*told), consolidate=changes(*made, *gone, summary="word " * 1_000)
    )
    report = await scene.dream(script)
    assert encoded_size(report.model_dump_json()) <= 4_000
    assert report.changes["accepted"] == 40
    assert report.changes["rejected"] == 40
    assert report.applied
    assert report.held
