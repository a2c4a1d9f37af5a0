"""Compaction at its limits: hangs, long histories, large results, in the middle of a turn."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from temporalio.client import Client
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

import agentmem.memory.compaction
import worker
from agentmem.llm.request import SUMMARY
from agentmem.llm.summaries import PART_BYTES
from agentmem.testing import Reply, Request, call, fail, hang, reply
from tests.long_workflows import LongTalk, dump
from tests.own_workflows import Own
from tests.replayer import replayer
from tests.stack import Stack, last_user_text, stack
from tests.tools import ping
from tests.workflow.test_compaction import (
    MEMORY,
    OVERFLOWS,
    PLAIN_USAGE,
    answering,
    asked,
    facts,
    hand_in,
    lines,
    material,
    question,
    summaries,
)

pytestmark = pytest.mark.timeout(120)

OWN = [Own, LongTalk, ping, dump]


async def test_a_summariser_that_hangs_holds_a_turn_up_until_its_timeout_only(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The turn goes on without a summary when the activity's time is over."""
    short = {"start_to_close_timeout": timedelta(seconds=1)}
    once = {"schedule_to_close_timeout": timedelta(seconds=2)}
    # Outside of the sandbox workflow code sees what a test changes.
    monkeypatch.setattr(
        agentmem.memory.compaction,
        "COMPACT",
        {**agentmem.memory.compaction.COMPACT, **short, **once},
    )
    runner = UnsandboxedWorkflowRunner()
    monkeypatch.setattr(worker, "Worker", partial(Worker, workflow_runner=runner))
    questions = [question(i) for i in range(5)]
    async with stack(client, tmp_path, answering(lambda _: hang()), extra=OWN) as s:
        result = await s.run("Own", questions, {"memory": dict(MEMORY)})
        assert asked(s, "summariser")
        assert not summaries(s.model.requests[-1])
    assert result["answers"] == [f"re: {text}" for text in questions]


async def test_compaction_in_the_middle_of_a_turn_keeps_what_is_preserved(
    client: Client, tmp_path: Path
) -> None:
    """40 messages, an overflow while a tool round is under way: the rest stands verbatim."""
    overflown: list[Request] = []

    def script(request: Request) -> Reply:
        if request.model == "summariser":
            return facts(request)
        if last_user_text(request.messages) != "use it":
            return reply(f"re: {last_user_text(request.messages)}", usage=PLAIN_USAGE)
        if request.messages[-1]["role"] == "user":
            return reply(calls=[call("ping")], usage=PLAIN_USAGE)
        if not overflown:
            overflown.append(request)
            return fail(400, OVERFLOWS[0])
        return reply("used", usage=PLAIN_USAGE)

    memory = {**MEMORY, "max_tokens": 50_000, "compact_preserve": 6}
    questions = [question(i) for i in range(20)]
    async with stack(client, tmp_path, script, extra=OWN) as s:
        options = {"tools": ["ping"], "memory": memory}
        result = await s.run("Own", [*questions, "use it"], options)
        [summarised] = asked(s, "summariser")
        last = s.model.requests[-1]
        s.model.assert_strict()
    assert result["answers"][-1] == "used"
    [system, summary, *rest] = last.messages
    assert system["role"] == "system"
    assert summary["content"] == SUMMARY + "they talked"
    # The call and its result, the question, and of the talk before it what fills up the six.
    expected = overflown[0].messages
    assert rest == expected[len(expected) - len(rest) :]
    assert [m["role"] for m in rest[-3:]] == ["user", "assistant", "tool"]
    assert len(rest) == 6
    assert all(text in material(summarised) for text in questions[:18])


async def test_a_large_result_and_a_small_model_still_give_an_answer(
    client: Client, tmp_path: Path
) -> None:
    """1 MB of tool result, 8k tokens for the model, 32k for the summariser; it goes on."""
    limits = {"test-model": 8_000 * 4, "summariser": 32_000 * 4}

    def script(request: Request) -> Reply:
        if len(request.raw) > limits[request.model]:
            return fail(400, OVERFLOWS[1])
        if request.model == "summariser":
            return hand_in("They read a long page.")
        if last_user_text(request.messages) == "read it" and len(request.messages) == 2:
            return reply(calls=[call("dump", number=1)], usage=PLAIN_USAGE)
        return reply("read", usage=PLAIN_USAGE)

    memory = {**MEMORY, "max_tokens": 6_000, "compact_preserve": 2}
    async with stack(client, tmp_path, script, extra=OWN) as s:
        options = {"tools": ["dump"], "memory": memory}
        result = await s.run("Own", ["read it", "and?", "what else?", "go on"], options)
        sizes = {model: [len(r.raw) for r in asked(s, model)] for model in limits}
        s.model.assert_strict()
    assert result["answers"] == ["read"] * 4
    assert all(size <= limits[model] for model in limits for size in sizes[model])


async def test_a_long_history_is_summarised_in_parts(client: Client, tmp_path: Path) -> None:
    """Each part fits the summariser, takes the summary before it in, and none is left out."""

    def script(request: Request) -> Reply:
        if request.model != "summariser":
            return reply("yes", usage=PLAIN_USAGE)
        return hand_in(f"summary {len(asked(running[0], 'summariser'))}")

    running: list[Stack] = []
    memory = {**MEMORY, "max_tokens": 20_000, "compact_preserve": 2}
    async with stack(client, tmp_path, script, extra=OWN) as s:
        running.append(s)
        await s.run("LongTalk", 20, 9_000, memory)
        compactions = asked(s, "summariser")
        last = s.model.requests[-1]
        s.model.assert_strict()
    assert len(compactions) > 2
    assert all(len(material(request)) < PART_BYTES + 1_000 for request in compactions)
    for before, later in enumerate(compactions[1:], 1):
        assert lines(later)[0] == {"from": "summary so far", "text": f"summary {before}"}
    given = "".join(map(material, compactions))
    assert [number for number in range(18) if f'"{number} x' not in given] == []
    assert summaries(last) == [f"summary {len(compactions)}"]


async def test_a_conversation_with_summaries_is_rebuilt_by_its_history(
    client: Client, tmp_path: Path
) -> None:
    """Replayed from its first event, the workflow does the same again."""
    questions = [question(i, "the door code is 4821" if i == 2 else "") for i in range(8)]
    async with stack(client, tmp_path, answering(facts), extra=OWN) as s:
        session = await client.start_workflow(
            "Own",
            args=[questions, {"memory": dict(MEMORY)}],
            id=f"own-{uuid4()}",
            task_queue=s.task_queue,
        )
        await session.result()
        assert asked(s, "summariser")
    await replayer(Own).replay_workflow(await session.fetch_history())


async def test_the_offline_model_says_that_its_summary_is_none(
    client: Client, tmp_path: Path
) -> None:
    """`compact_model="agentmem/offline"` keeps what the user said, and says what it is."""
    script: Callable[[Request], Any] = answering(lambda _: fail(500, "not asked"))
    memory = {**MEMORY, "compact_model": "agentmem/offline"}
    questions = [question(i, "the door code is 4821" if i == 2 else "") for i in range(12)]
    async with stack(client, tmp_path, script, extra=OWN) as s:
        await s.run("Own", questions, {"memory": memory})
        last = summaries(s.model.requests[-1])
        s.model.assert_strict()
    assert len(last) == 1
    assert last[0].startswith("By fixed rules, no summary of a model's. The user said:")
    assert "the door code is 4821" in last[0]
