"""The worker's cache of messages: bounded, by run, and never a lost attempt's message."""

import dataclasses
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeVar

from hypothesis import given, settings
from hypothesis import strategies as st
from temporalio.testing import ActivityEnvironment

from activities.messages import OBJECT_BYTES, MessageCache
from agentmem.contracts import Prompt
from agentmem.messages import Message, Role

T = TypeVar("T")


def message(number: int, content: str = "hello", **fields: object) -> Message:
    return Message(id=f"m{number}", role=Role.USER, content=content).replace(**fields)


def activity_of(run: str) -> ActivityEnvironment:
    env = ActivityEnvironment()
    env.info = dataclasses.replace(ActivityEnvironment.default_info(), workflow_run_id=run)
    return env


def within(run: str, function: Callable[[], T]) -> T:
    """Call a function as an activity of that workflow run."""
    return activity_of(run).run(function)


async def test_remembered_messages_are_found_in_the_order_of_the_view() -> None:
    """A message that this worker made or was given needs no query."""
    cache = MessageCache()
    within("run-1", lambda: [cache.remember("wm0", message(n)) for n in (3, 1, 2)])
    prompt = Prompt(memory="wm0", view=["m1-3", "m7"], new=[message(7, "new")])
    found = await activity_of("run-1").run(cache.resolve_prompt, prompt)
    assert [item.id for item in found] == ["m1", "m2", "m3", "m7"]
    assert (cache.hits, cache.misses) == (3, 0)


async def test_new_messages_are_kept_for_the_next_prompt() -> None:
    """They travel once: the next call of the run refers to them."""
    cache = MessageCache()
    await activity_of("run-1").run(
        cache.resolve_prompt, Prompt(memory="wm0", view=["m0"], new=[message(0, "once")])
    )
    [found] = await activity_of("run-1").run(
        cache.resolve_prompt, Prompt(memory="wm0", view=["m0"])
    )
    assert found.content == "once"


def held(cache: MessageCache, run: str, *ids: str, **prompt: object) -> list[str]:
    """Return which of a prompt's messages the cache would use."""
    asked = Prompt(memory="wm0", view=list(ids)).replace(**prompt)
    return list(within(run, lambda: cache.find(asked, ids)))


def test_two_runs_of_one_workflow_never_mix() -> None:
    """The same workflow id used twice is two conversations: entries belong to a run."""
    cache = MessageCache()
    within("run-1", lambda: cache.remember("wm0", message(0, "of the first")))
    assert held(cache, "run-1", "m0") == ["m0"]
    assert held(cache, "run-2", "m0") == []


def test_two_memories_of_one_run_never_mix() -> None:
    """Ids count in each working memory from 0."""
    cache = MessageCache()
    within("run-1", lambda: cache.remember("wm0", message(0)))
    assert held(cache, "run-1", "m0", memory="wm1") == []


def test_the_message_of_a_lost_attempt_is_not_used() -> None:
    """An attempt whose answer never arrived may have left another message under the id."""
    cache = MessageCache()
    within("run-1", lambda: cache.remember("wm0", message(1, "a ghost", attempt=1)))
    assert held(cache, "run-1", "m1", retried={"m1": 2}) == []
    within("run-1", lambda: cache.remember("wm0", message(1, "the answer", attempt=2)))
    assert held(cache, "run-1", "m1", retried={"m1": 2}) == ["m1"]
    assert held(cache, "run-1", "m1") == []


def test_a_transcript_takes_only_messages_with_their_time() -> None:
    """The workflow gives an activity's message its time; a copy from before has none."""
    cache = MessageCache()
    prompt = Prompt(memory="wm0", view=["m0-1"])

    def kept() -> list[str]:
        cache.remember("wm0", message(0, at=datetime(2026, 3, 10, tzinfo=UTC)))
        cache.remember("wm0", message(1))
        return list(cache.find(prompt, ["m0", "m1"], timed=True))

    assert within("run-1", kept) == ["m0"]


def test_the_least_recently_used_leaves_first() -> None:
    """A message that a prompt used stays longer than one that nobody asked for."""
    one = OBJECT_BYTES + len(message(0).model_dump_json())
    cache = MessageCache(max_bytes=2 * one)
    within("run-1", lambda: [cache.remember("wm0", message(n)) for n in (0, 1)])
    assert held(cache, "run-1", "m0") == ["m0"]
    within("run-1", lambda: cache.remember("wm0", message(2)))
    assert held(cache, "run-1", "m0", "m1", "m2") == ["m0", "m2"]


def test_a_message_that_does_not_fit_leaves_nothing_of_its_id() -> None:
    """A larger message under a known id must not be answered by the one before it."""
    cache = MessageCache(max_bytes=3 * OBJECT_BYTES)
    within("run-1", lambda: [cache.remember("wm0", message(n)) for n in (0, 1)])
    within("run-1", lambda: cache.remember("wm0", message(1, "x" * 3 * OBJECT_BYTES)))
    assert held(cache, "run-1", "m0", "m1") == ["m0"]


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.text(max_size=5000)), max_size=30))
def test_the_cache_never_holds_more_than_its_bytes(kept: list[tuple[int, str]]) -> None:
    """Whatever is remembered, also again and also when it is larger than the whole cache."""
    cache = MessageCache(max_bytes=3 * OBJECT_BYTES)

    def remember() -> None:
        for number, text in kept:
            content = text.encode("utf-8", "replace").decode()
            cache.remember("wm0", message(number, content))
            assert 0 <= cache.size <= 3 * OBJECT_BYTES

    within("run-1", remember)
