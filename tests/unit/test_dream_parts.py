"""Input that does not fit into one request: pages, chunks, halves, and unreadable messages."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from agentmem.contracts import DreamLimits, DreamReport
from agentmem.dreaming.budgets import sizes
from agentmem.errors import ContextOverflow, DreamFailed, ModelCallError
from agentmem.wire import JSONObject
from tests.dreams import (
    NOON,
    STORE,
    Answer,
    Scene,
    Script,
    blocks_of,
    changes,
    findings,
    orientation,
    says,
)

SMALL = DreamLimits(context=20_000)
"""80 kB: 24 for facts, 20 for a reply, 20 for what a phase shows."""


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    """An empty scope."""
    scene = await Scene.make()
    yield scene
    await scene.provider.close()


def ids(request: JSONObject) -> list[str]:
    """Return the messages that a request shows."""
    return [line["id"] for line in blocks_of(request)["TRANSCRIPT"]]


def size(request: JSONObject) -> int:
    """Return the bytes of a request's messages."""
    return sum(len(str(message["content"]).encode()) for message in request["messages"])


def test_sizes_follow_the_models_context() -> None:
    """Facts take 30 % of a context and 240 kB at most; parts always fit beside them."""
    assert sizes(0) == sizes(200_000)
    for context in (8_192, 16_000, 32_000, 64_000, 128_000, 1_000_000):
        fits = sizes(context)
        assert fits.prefix <= 0.3 * 4 * context
        assert fits.prefix + fits.chunk + 4 * fits.reply <= 4 * context or fits.chunk == 3_000


async def test_a_large_scope_is_looked_over_in_pages(scene: Scene) -> None:
    """Each value is on one page, code joins the reports, later phases see what matters."""
    for number in range(300):
        await scene.knows(f"topic_{number:03}", f"Fact number {number}: ".ljust(200, "x"))
    await scene.said("Topic 7 is about otters.")

    async def look(request: JSONObject) -> Answer:
        keys = [line["k"] for line in blocks_of(request)["VALUES"]]
        return orientation(duplicates=[keys[:2]], topics=["many"])

    script = Script(
        orient=[look] * 9,
        gather_signal=findings(
            {"statement": "Topic 7 is on otters", "keys": ["topic_007"], "evidence": ["a1"]}
        ),
    )
    await scene.dream(script, SMALL)
    pages = [blocks_of(request)["VALUES"] for request in script.of("orient")]
    assert [line["k"] for page in pages for line in page] == [f"topic_{n:03}" for n in range(300)]
    assert 1 < len(pages) == scene.results["orient"].counts["pages"] <= 9
    assert scene.results["orient"].counts["duplicates"] == len(pages)
    (later,) = script.of("consolidate")
    shown = {line["k"] for line in blocks_of(later)["VALUES"]}
    assert {"topic_000", "topic_001", "topic_007"} <= shown
    assert len(shown) < 50
    first = [str(request["messages"][:2]) for request in script.requests]
    assert len(set(first)) == 1  # the shared beginning stays, byte for byte
    assert all(size(request) < 4 * 20_000 for request in script.requests)


async def test_a_huge_scope_costs_a_bounded_number_of_pages(scene: Scene) -> None:
    """Ten pages are looked over, and the report says how many there are."""
    for number in range(900):
        await scene.knows(f"topic_{number:03}", f"Fact number {number}: ".ljust(400, "x"))
    await scene.said("Good morning.")
    script = Script()
    report = await scene.dream(script, DreamLimits(context=20_000, keys=1_000))
    assert len(script.of("orient")) == 10
    assert [note for note in report.notes if note.startswith("orient: 10 of ")]


async def test_a_long_transcript_is_read_in_chunks(scene: Scene) -> None:
    """Each message is in one request, findings of all are joined, and it costs once each."""
    for number in range(60):
        await scene.said(f"I visited Place{number}. ".ljust(1_000, "y"))

    async def find(request: JSONObject) -> Answer:
        return findings(
            {"statement": "Visited many places", "evidence": ids(request)[:1]},
            {"statement": f"Visited {ids(request)[0]}", "evidence": ids(request)[:1]},
        )

    script = Script(gather_signal=[find] * 9)
    await scene.dream(script, SMALL)
    read = [ids(request) for request in script.of("gather_signal")]
    assert len(read) > 2
    assert [alias for part in read for alias in part] == [f"a{n}" for n in range(1, 61)]
    assert scene.results["gather_signal"].counts["findings"] == len(read) + 1


async def test_what_does_not_fit_waits(scene: Scene) -> None:
    """A round reads eight chunks; the rest is the next round's."""
    for number in range(300):
        await scene.said(f"I visited Place{number}. ".ljust(1_000, "y"))
    begun = await scene.begin(SMALL)
    assert (begun.more_evidence, begun.messages < 300) == (True, True)


@pytest.mark.parametrize(("words", "said"), [("ok", 500), ("word" * 90, 200)])
async def test_gather_signal_asks_eight_times_at_most(scene: Scene, words: str, said: int) -> None:
    """Also where messages are so short that their frame is longer; none is lost."""
    for number in range(said):
        await scene.said(f"{words} {number}")
    read: list[str] = []
    while await scene.provider.unread("assistant", "user-1", 9_999):
        script = Script()
        await scene.dream(script, DreamLimits(context=8_192))
        asked = script.of("gather_signal")
        assert 0 < len(asked) <= 8
        read += [line["text"] for one in asked for line in blocks_of(one)["TRANSCRIPT"]]
    assert read == [f"{words} {number}" for number in range(said)]


VISITED = findings({"statement": "Visited Place1", "evidence": ["a2"]})


def cut() -> Answer:
    """A reply that ends in the middle of its hand-in."""
    return says('{"findings": [{"statement": "Visi', finish="length")


async def test_a_reply_cut_off_halves_its_input(scene: Scene) -> None:
    """Two halves instead of the same request again; the good half is not asked twice."""
    for number in range(8):
        await scene.said(f"I visited Place{number}.")
    script = Script(gather_signal=[cut(), VISITED, findings()])
    report = await scene.dream(script)
    assert [len(ids(request)) for request in script.of("gather_signal")] == [8, 4, 4]
    assert report.status != "failed"
    assert report.usage.requests == len(script.requests)  # what was cut off was paid too


async def test_halving_ends(scene: Scene) -> None:
    """At most twice; a part that cannot be halved is asked about once more; then all waits."""
    for number in range(8):
        await scene.said(f"I visited Place{number}.")
    script = Script(gather_signal=[cut()] * 20)
    with pytest.raises(DreamFailed, match="cut off at 8192 tokens"):
        await scene.dream(script)
    assert [len(ids(one)) for one in script.of("gather_signal")] == [
        *[8, 4, 2, 2, 2, 2],
        *[4, 2, 2, 2, 2],
    ]
    assert len(await scene.provider.unread(STORE.agent, STORE.scope, 10_000)) == 8


async def test_a_prompt_that_is_too_long_is_halved(scene: Scene) -> None:
    """A model whose context nobody knew says so itself."""
    for number in range(8):
        await scene.said(f"I visited Place{number}.")

    async def refuses(request: JSONObject) -> Answer:
        if len(ids(request)) > 4:
            raise ContextOverflow("the prompt is too long")
        return findings()

    script = Script(gather_signal=[refuses] * 3)
    assert (await scene.dream(script)).status == "nothing_learned"
    assert [len(ids(request)) for request in script.of("gather_signal")] == [8, 4, 4]


async def attempt(scene: Scene, script: Script) -> DreamReport | None:
    """Dream once, however it ends, an hour after the last time and past every cool-down."""
    state = await scene.provider.scope_state(STORE.agent, STORE.scope)
    now = (state.last_attempt or NOON) + timedelta(hours=1)
    try:
        return await scene.dream(script, DreamLimits(failures=1_000), now)
    except (DreamFailed, ModelCallError):
        return None


async def test_messages_that_fail_dreams_are_halved_and_at_last_passed_over(scene: Scene) -> None:
    """Each second failure on the same messages halves them; one alone that fails is reported."""
    for word in ("Cursed", "Bergen", "Oslo", "Voss"):
        await scene.said(f"I visited {word}.")

    async def reads(request: JSONObject) -> Answer:
        if "Cursed" in request["messages"][2]["content"]:
            return says("hm")
        return findings({"statement": "Visited Bergen", "evidence": ["a2"]})

    TOLD = {"findings": ["f1"]}
    script = Script(
        gather_signal=[reads] * 20,
        consolidate=[changes({"op": "add", "key": "trip", "value": "Visited Bergen"} | TOLD)] * 9,
    )
    seen: list[int] = []
    report = None
    while report is None:
        before = len(script.requests)
        report = await attempt(scene, script)
        shown = [ids(one) for one in script.requests[before:] if "TRANSCRIPT" in blocks_of(one)]
        seen.append(len(shown[0]))
        assert len(seen) < 9
    assert seen == [4, 4, 2, 2, 1, 1, 3]
    assert [note for note in report.notes if note.startswith("unreadable: a message of")]
    assert await scene.facts() == {"trip": "Visited Bergen"}
    assert await scene.provider.unread(STORE.agent, STORE.scope, 10_000) == []


async def test_a_model_that_cannot_be_reached_is_not_the_messages_fault(scene: Scene) -> None:
    """However often it fails, the next dream reads them all."""
    for word in ("Bergen", "Oslo"):
        await scene.said(f"I visited {word}.")

    async def down(_: Any) -> Answer:
        raise ModelCallError("the model cannot be reached")

    for _ in range(6):
        assert await attempt(scene, Script(gather_signal=down)) is None
    script = Script(gather_signal=findings())
    await attempt(scene, script)
    assert [len(ids(request)) for request in script.of("gather_signal")] == [2]


async def test_what_was_overtaken_is_offered_to_the_next_dream(scene: Scene) -> None:
    """A finding whose key the agent changed meanwhile goes along twice, with its message."""
    await scene.knows("job", "Works as a baker")
    await scene.said("I work as a nurse now.")
    update = {"op": "update", "key": "job", "value": "Works as a nurse now", "findings": ["f1"]}
    found = findings({"statement": "Works as a nurse now", "evidence": ["a1"]})

    async def overtaken(_: JSONObject) -> Answer:
        await scene.knows("job", f"Works as a baker ({next(numbers)})")
        return changes(update)

    numbers = iter(range(9))
    report = await scene.dream(Script(gather_signal=found, consolidate=[overtaken]))
    assert report.conflicts == ["job"]
    assert report.notes == ["carry_over: 1 findings are offered to the next dream"]
    offered: list[list[JSONObject]] = []
    for number in range(3):
        await scene.said(f"Good morning {number}.")
        script = Script(gather_signal=findings(), consolidate=[overtaken])
        report = await scene.dream(script, now=NOON + timedelta(hours=number + 1))
        offered.append([blocks_of(one)["FINDINGS"][0] for one in script.of("consolidate")])
    assert [len(one) for one in offered] == [1, 1, 0]
    assert (offered[0][0]["statement"], offered[0][0]["evidence"]) == (
        "Works as a nurse now",
        ["p1"],
    )


async def test_a_carried_finding_becomes_a_fact_with_its_own_message(scene: Scene) -> None:
    """The second try succeeds, and the fact rests on the words of back then."""
    await scene.knows("job", "Works as a baker")
    await scene.said("I work as a nurse now.")
    update = {"op": "update", "key": "job", "value": "Works as a nurse now", "findings": ["f1"]}

    async def overtaken(_: JSONObject) -> Answer:
        await scene.knows("job", "Works as a baker in Voss")
        return changes(update)

    found = findings({"statement": "Works as a nurse now", "evidence": ["a1"]})
    await scene.dream(Script(gather_signal=found, consolidate=[overtaken]))
    await scene.said("Good morning.")
    report = await scene.dream(Script(consolidate=changes(update)))
    assert report.applied == ["update job"]
    (fact,) = await scene.provider.facts_at(STORE.agent, STORE.scope, {"job": 3})
    assert [row.quote for row in fact.evidence] == ["I work as a nurse now."]


async def test_a_mendable_refusal_is_offered_again(scene: Scene) -> None:
    """A change that the model did not mend in its dream may go better in the next."""
    await scene.said("I work as a nurse now.")
    wrong = {"op": "update", "key": "jobs", "value": "Works as a nurse now", "findings": ["f1"]}
    found = findings({"statement": "Works as a nurse now", "evidence": ["a1"]})
    await scene.dream(Script(gather_signal=found, consolidate=[changes(wrong), changes(wrong)]))
    assert await scene.facts() == {}
    await scene.said("Good morning.")
    right = wrong | {"op": "add", "key": "job"}
    await scene.dream(Script(consolidate=changes(right)))
    assert await scene.facts() == {"job": "Works as a nurse now"}
