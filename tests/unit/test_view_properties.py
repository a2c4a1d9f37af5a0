"""The messages that a model is shown keep the strictest provider's rules, for any conversation."""

import json
from collections.abc import Sequence
from typing import overload

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentmem.llm.request import render
from agentmem.memory.selection import select
from agentmem.memory.working import WorkingMemory
from agentmem.messages import Group, Role, estimate_tokens, from_ranges, groups
from agentmem.testing.strict import violations

Action = tuple[str, int]
actions = st.lists(
    st.tuples(
        st.sampled_from(["user", "assistant", "calls", "open", "forget"]), st.integers(0, 400)
    ),
    max_size=30,
)
bounds = st.none() | st.integers(1, 300)


async def play(memory: WorkingMemory, script: list[Action]) -> None:
    """Hold a random conversation: talk, parallel calls, interrupted calls, forgetting."""
    for kind, number in script:
        if kind in ("user", "assistant"):
            await memory.memorize(kind, "x" * (number + 1))
        elif kind == "forget":
            ids = [message.id for message in memory.messages()]
            if ids:
                await memory.forget(ids[number % len(ids)])
        else:
            await _calls(memory, number, answered=kind == "calls")


async def _calls(memory: WorkingMemory, number: int, *, answered: bool) -> None:
    count = number % 3 + 1
    calls = [{"id": f"k{i}", "name": "look", "arguments": {"n": i}} for i in range(count)]
    await memory.memorize("tool_call", json.dumps({"calls": calls}))
    for i in range(count if answered else count - 1):
        result = {"call_id": f"k{i}", "name": "look", "output": "y" * number}
        await memory.memorize("tool_result", json.dumps(result))


@settings(max_examples=100, deadline=None)
@given(script=actions, window=bounds, max_tokens=bounds)
async def test_views_are_whole_groups_in_order_within_bounds(
    script: list[Action], window: int | None, max_tokens: int | None
) -> None:
    """Groups never split, order kept, the newest question in view, bounds kept or the minimum.

    What is sent keeps every strict rule; only the minimum is ever shortened.
    """
    memory = WorkingMemory(window=window, max_tokens=max_tokens)
    await play(memory, script)
    said = memory.messages()
    view = memory.view().messages
    ids = [message.id for message in view]
    assert ids == [message.id for message in said if message.id in set(ids)], "order"
    whole = [[m.id for m in group] for group in groups(said)]
    assert all(set(group) <= set(ids) or not set(group) & set(ids) for group in whole), "groups"
    users = [message.id for message in said if message.role is Role.USER]
    assert bool(ids) == bool(said)
    if not users:
        return
    assert view[0].role is Role.USER or view[0] is said[0], "a view opens as the conversation does"
    assert users[-1] in ids, "the newest question"
    minimum = {users[-1], *whole[-1]}
    prompt = memory.prompt(memory.system_prompt("Be brief."))
    sent = [memory.log.get(i) for i in from_ranges(prompt.view)]
    rendered = render([m for m in sent if m], clipped=prompt.clipped)
    assert not violations(rendered)
    if set(ids) - minimum:
        assert not prompt.clipped
        assert window is None or len(view) <= window
        assert max_tokens is None or sum(map(estimate_tokens, view)) <= max_tokens


@settings(max_examples=100, deadline=None)
@given(script=actions, window=st.integers(1, 40))
async def test_a_wider_window_shows_no_less(script: list[Action], window: int) -> None:
    """A message that a window shows is shown by a wider one too."""
    memory = WorkingMemory()
    await play(memory, script)
    split = groups(memory.messages())
    narrow = {m.id for m in select(split, window=window).messages}
    wide = {m.id for m in select(split, window=window + 1).messages}
    assert narrow <= wide


class Looked(Sequence[Group]):
    """Groups that count how many of them are looked at one by one."""

    def __init__(self, groups: Sequence[Group]) -> None:
        self._groups = groups
        self.looked = 0

    def __len__(self) -> int:
        return len(self._groups)

    @overload
    def __getitem__(self, index: int) -> Group: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Group]: ...
    def __getitem__(self, index: int | slice) -> Group | Sequence[Group]:
        self.looked += 1
        return self._groups[index]


@pytest.mark.parametrize(("window", "max_tokens"), [(40, None), (None, 4_000)])
async def test_a_view_costs_what_it_shows(window: int | None, max_tokens: int | None) -> None:
    """Only messages in view are looked at, and a few more, however long the conversation."""
    memory = WorkingMemory()
    for _ in range(5_000):
        await memory.memorize("user", "x" * 400)
        await memory.memorize("assistant", "y" * 400)
    said = Looked(memory.log.groups)
    assert len(select(said, window=window, max_tokens=max_tokens).messages) == 40
    assert said.looked < 200
