"""Hand-ins of models that draft, break off or use other names: asked for again, never lost."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from agentmem.errors import DreamFailed
from tests.dreams import STORE, Answer, Scene, Script, calls, changes, findings, says

PLACE = (STORE.agent, STORE.scope)
FOUND = {
    "statement": "Has a cat named Momo",
    "evidence": ["a1"],
    "quote": "My cat is named Momo",
}
ADD = {"op": "add", "key": "pet", "value": "Has a cat named Momo", "findings": ["f1"]}
TEXT = '{"findings": [{"statement": "Has a cat", "evidence": ["a1"], "quote": "My cat is named"}]}'

UNUSABLE: list[Answer] = [
    findings({"fact": "Has a cat named Momo", "source": "a1"}),
    calls(("submit_findings", {"findings": ["Has a cat named Momo"]})),
    calls(("submit_findings", {"facts": [FOUND]})),
    findings({"statement": "Has a cat named Momo", "evidence": ["m1"], "quote": "My cat"}),
    says('{"facts": ["Has a cat named Momo"]}'),
    says("<think>The user has a cat named Momo, so I should", "length"),
]


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    """An empty scope, and a user who tells of a cat."""
    scene = await Scene.make()
    await scene.said("My cat is named Momo.")
    yield scene
    await scene.provider.close()


@pytest.mark.parametrize("answer", UNUSABLE)
async def test_nothing_usable_is_asked_for_again(scene: Scene, answer: Answer) -> None:
    """Wrong names, texts in place of objects, unknown messages, a reply cut off in its thoughts."""
    script = Script(gather_signal=[answer, findings(FOUND)], consolidate=changes(ADD))
    report = await scene.dream(script)
    assert await scene.facts() == {"pet": "Has a cat named Momo"}
    assert len(script.of("gather_signal")) == 2
    assert report.status in ("completed", "completed_with_rejections")


@pytest.mark.parametrize("answer", UNUSABLE)
async def test_if_it_stays_unusable_the_messages_stay_unread(scene: Scene, answer: Answer) -> None:
    """They never count as read with nothing learned."""
    with pytest.raises(DreamFailed):
        await scene.dream(Script(gather_signal=[answer] * 9))
    assert len(await scene.provider.unread(*PLACE, 10_000)) == 1


@pytest.mark.parametrize(
    "text",
    [
        f'<think>Perhaps {{"findings": []}}? No.</think>{TEXT}',
        f'First draft: {{"findings": []}}\nFinal:\n```json\n{TEXT}\n```',
        f'{{"findings": [{{"statement": "Is a cat"}}]}} and then {TEXT}',
    ],
)
async def test_the_last_readable_hand_in_of_a_text_counts(scene: Scene, text: str) -> None:
    """A draft inside the thoughts, or an empty one, is followed by the real one."""
    script = Script(gather_signal=says(text))
    await scene.phase("gather_signal", begun := await scene.begin(), script)
    record = await scene.provider.dream(*PLACE, begun.dream)
    assert record is not None
    found: list[Any] = record.data["draft"]["findings"]
    assert [one["statement"] for one in found] == ["Has a cat"]
    assert len(script.requests) == 1


async def test_of_several_calls_in_a_reply_the_last_readable_counts(scene: Scene) -> None:
    """An empty draft, then the whole; the model is told which one counted."""
    twice = calls(("submit_findings", {"findings": []}), ("submit_findings", {"findings": [FOUND]}))
    script = Script(gather_signal=twice, consolidate=changes(ADD))
    await scene.dream(script)
    assert await scene.facts() == {"pet": "Has a cat named Momo"}


async def test_a_reply_at_its_token_limit_is_never_whole(scene: Scene) -> None:
    """Even if it parses: its rest is asked for, and what was read of it counts."""
    await scene.said("My dog is named Rex.")
    cut = findings(FOUND)
    cut["finish"] = "length"
    rest = findings({"statement": "Has a dog", "evidence": ["a2"], "quote": "My dog is named Rex"})

    # One message would be halved no further, two are shown one by one.
    script = Script(gather_signal=[cut, findings(FOUND), rest])
    await scene.phase("gather_signal", begun := await scene.begin(), script)
    assert scene.results["gather_signal"].counts["findings"] == 2
    assert len(script.requests) == 3
    assert begun.messages == 2


async def test_the_rest_of_a_reply_that_cannot_be_halved_is_asked_for(scene: Scene) -> None:
    """With one message there is nothing to halve."""
    cut = findings(FOUND)
    cut["finish"] = "length"
    rest = findings({"statement": "Momo is a cat", "evidence": ["a1"], "quote": FOUND["quote"]})
    script = Script(gather_signal=[cut, rest])
    await scene.phase("gather_signal", await scene.begin(), script)
    assert scene.results["gather_signal"].counts["findings"] == 2
    assert "length limit" in script.requests[1]["messages"][-1]["content"]
