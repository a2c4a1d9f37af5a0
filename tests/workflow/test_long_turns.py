"""A turn that reads more than a prompt takes, on the real server: in own workflows and sessions."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from temporalio.client import Client

from agentmem.llm.request import OPENED, SUMMARY
from agentmem.llm.summaries import FORM
from agentmem.testing import Reply, Request, call, fail, reply
from tests.long_workflows import (
    FILE_BYTES,
    Answering,
    Interfering,
    Meddling,
    Memorizing,
    ending,
    look,
    opening,
    read_file,
    read_page,
)
from tests.own_workflows import Own
from tests.replayer import replayer
from tests.stack import Stack, stack, task_failures
from tests.tools import ping
from tests.workflow.test_compaction import PLAIN_USAGE, asked, hand_in, material, summaries, toml
from workflows.agent import AgentWorkflow

pytestmark = pytest.mark.timeout(120)

EXTRA = [Own, Answering, Interfering, Meddling, Memorizing, look, read_file, read_page, ping]
PLAIN: dict[str, Any] = {"max_tokens": 50_000}
COMPACTING = {**PLAIN, "compact_model": "openai/summariser"}
QUESTION = "compare the files"

Script = Callable[[Request], Reply]


def thinking(number: int) -> dict[str, Any]:
    """A signed thought."""
    return {"thinking_blocks": [{"type": "thinking", "thinking": "hm", "signature": f"s{number}"}]}


def reading(rounds: int, at_once: int = 1, summarise: Script | None = None) -> Script:
    """A script: read so many files, a thought before each reply, then answer; and summarise."""
    made: list[int] = []

    def script(request: Request) -> Reply:
        if request.model == "summariser":
            return (summarise or codes)(request)
        made.append(len(made))
        if made[-1] == rounds:
            return reply("all read", usage=PLAIN_USAGE)
        first = 1 + made[-1] * at_once
        calls = [call("read_file", number=number) for number in range(first, first + at_once)]
        return reply(calls=calls, extra=thinking(made[-1]), usage=PLAIN_USAGE)

    return script


def codes(request: Request) -> Reply:
    """Summarise by the codes that are found in what is given."""
    text = material(request)
    known = [line for n in range(1, 9) for line in (opening(n), ending(n)) if line in text]
    return hand_in("Codes:\n" + "\n".join(known))


async def ask(s: Stack, kind: str, options: dict[str, Any]) -> str:
    """Ask the question in a workflow of one's own or in a session; returns the answer.

    No task of it failed, and its history replays.
    """
    if kind == "own":
        args: list[Any] = [[QUESTION], options]
        handle = await s.client.start_workflow(
            "Own", args=args, id=f"own-{uuid4()}", task_queue=s.task_queue
        )
        answer = (await handle.result())["answers"][0]
    else:
        handle = await s.start(agent="reader", session=True)
        answer = await handle.execute_update("send", QUESTION)
        await handle.execute_update("end")
        await handle.result()
    assert await task_failures(handle) == []
    await replayer(Own, AgentWorkflow).replay_workflow(await handle.fetch_history())
    return answer


def agents(options: dict[str, Any]) -> str:
    """Return an agents' file with a reader of these options."""
    memory = toml(options["memory"])
    return f"[agents.reader]\ntools = {options['tools']}\nworking_memory = {memory}\n"


def results(request: Request) -> list[str]:
    """Return the tool results of a request."""
    return [str(m["content"]) for m in request.messages if m["role"] == "tool"]


@pytest.mark.parametrize("kind", ["own", "session"])
@pytest.mark.parametrize(
    ("rounds", "at_once", "max_tokens"), [(4, 1, 50_000), (3, 2, 50_000), (4, 1, 9_000)]
)
async def test_long_results_stand_shortened_with_a_note(
    client: Client, tmp_path: Path, kind: str, rounds: int, at_once: int, max_tokens: int
) -> None:
    """Without a summariser each file that was read is in each request, whole or cut to a note."""
    options = {"tools": ["read_file"], "memory": {"max_tokens": max_tokens}}
    script = reading(rounds, at_once)
    async with stack(client, tmp_path, script, agents=agents(options), extra=EXTRA) as s:
        assert await ask(s, kind, options) == "all read"
        requests = s.model.requests
        s.model.assert_strict()
    for number, request in enumerate(requests):
        shown = results(request)
        assert len(shown) == number * at_once
        for file, text in enumerate(shown, 1):
            assert text.startswith(opening(file))
            assert text.endswith(ending(file)) or "bytes in full]" in text[-40:]
        assert sum(map(len, shown)) < 4 * max_tokens
        assert [m for m in request.messages if m.get("content") == QUESTION]
        thoughts = [m["thinking_blocks"] for m in request.messages if "thinking_blocks" in m]
        assert len(thoughts) == number
    assert any("bytes in full]" in text for text in results(requests[-1]))


@pytest.mark.parametrize("kind", ["own", "session"])
@pytest.mark.parametrize(
    ("rounds", "at_once", "max_tokens"), [(4, 1, 50_000), (3, 2, 50_000), (4, 1, 24_000)]
)
async def test_long_results_are_summarised_within_the_turn(
    client: Client, tmp_path: Path, kind: str, rounds: int, at_once: int, max_tokens: int
) -> None:
    """With one, what was read first is in the summary, read to its end; the latest stays whole."""
    options = {"tools": ["read_file"], "memory": {**COMPACTING, "max_tokens": max_tokens}}
    script = reading(rounds, at_once)
    async with stack(client, tmp_path, script, agents=agents(options), extra=EXTRA) as s:
        assert await ask(s, kind, options) == "all read"
        last = asked(s, "test-model")[-1]
        summarised = asked(s, "summariser")
        s.model.assert_strict()
    assert summarised
    [summary] = summaries(last)
    shown = results(last)
    assert 0 < len(shown) < rounds * at_once
    told = summary + "".join(shown)
    files = range(1, rounds * at_once + 1)
    assert [n for n in files if opening(n) not in told] == []
    assert [n for n in files if ending(n) not in told] == []
    first, second, third = [m for m in last.messages if m["role"] != "system"][:3]
    assert first["content"] == SUMMARY + summary
    assert second["content"] == QUESTION
    assert third["thinking_blocks"]
    assert all(len(text) > FILE_BYTES - 200 for text in shown[-at_once:])


MISFIRES: list[Script] = [
    lambda _: reply("."),
    lambda _: fail(401),
    lambda _: hand_in("No.", cannot=True),
]


@pytest.mark.parametrize("misfire", MISFIRES, ids=["a dot", "fails", "cannot"])
async def test_a_summariser_that_misfires_in_a_turn_is_asked_once(
    client: Client, tmp_path: Path, misfire: Script
) -> None:
    """The turn is answered, and what does not fit stands shortened as without a summariser."""
    options = {"tools": ["read_file"], "memory": {**COMPACTING, "max_tokens": 24_000}}
    async with stack(client, tmp_path, reading(4, 1, misfire), extra=EXTRA) as s:
        assert await ask(s, "own", options) == "all read"
        last = asked(s, "test-model")[-1]
        assert len(asked(s, "summariser")) <= 2, "by a call, then as text"
    assert len(results(last)) == 4
    assert not summaries(last)


@pytest.mark.parametrize("kind", ["own", "session"])
@pytest.mark.parametrize("window", [1, 3, 6])
async def test_a_window_shows_the_whole_running_turn(
    client: Client, tmp_path: Path, kind: str, window: int
) -> None:
    """However short the window, the turn's calls and results are in each request of it."""
    options = {"tools": ["ping"], "memory": {"window": window}}

    def script(request: Request) -> Reply:
        made = len(results(request))
        return reply("done") if made == 5 else reply(calls=[call("ping")])

    async with stack(client, tmp_path, script, agents=agents(options), extra=EXTRA) as s:
        assert await ask(s, kind, options) == "done"
        assert [len(results(request)) for request in s.model.requests] == list(range(6))
        s.model.assert_strict()


MEDDLING = [
    [["user", "also look at the date"], ["assistant", "noted"]],
    [["user", "x" * 300_000], ["user", "y" * 300_000]],
    [
        ["tool_call", json.dumps({"calls": [{"id": "k", "name": "own", "arguments": {}}]})],
        ["tool_result", json.dumps({"call_id": "k", "output": "z" * 300_000})],
    ],
]


@pytest.mark.parametrize("said", MEDDLING, ids=["talk", "long talk", "calls"])
@pytest.mark.parametrize("memory", [{**PLAIN, "window": 2}, COMPACTING], ids=["plain", "compact"])
async def test_what_code_adds_in_a_turn_pushes_nothing_of_it_out(
    client: Client, tmp_path: Path, said: list[list[str]], memory: dict[str, Any]
) -> None:
    """Each file is shown, shortened with a note, or summarised, and the question stays."""
    options = {"tools": ["read_file"], "memory": dict(memory)}
    async with stack(client, tmp_path, reading(3), extra=EXTRA) as s:
        result = await s.run("Meddling", QUESTION, options, said)
        last = asked(s, "test-model")[-1]
        s.model.assert_strict()
    assert result["answer"] == "all read"
    told = "".join([*summaries(last), *results(last)])
    assert [n for n in range(1, 4) if opening(n) not in told] == []
    assert QUESTION in [m.get("content") for m in last.messages]


@pytest.mark.parametrize("what", ["answer", "forget", "forget all"])
async def test_code_cannot_come_between_a_turn_and_its_tools(
    client: Client, tmp_path: Path, what: str
) -> None:
    """A tool's result is shown whatever code does, but where code forgot its call."""
    turns: list[Request] = []

    def script(request: Request) -> Reply:
        turns.append(request)
        calls = [call("look", number=1), call("look", number=2)]
        return reply("done") if len(turns) > 1 else reply(calls=calls, extra=thinking(1))

    async with stack(client, tmp_path, script, extra=EXTRA) as s:
        args = [QUESTION, what]
        handle = await client.start_workflow(
            "Interfering", args=args, id=f"own-{uuid4()}", task_queue=s.task_queue
        )
        result = await handle.result()
        assert await task_failures(handle) == []
        await replayer(Interfering).replay_workflow(await handle.fetch_history())
        s.model.assert_strict()
    assert result["answer"] == "done"
    shown = results(turns[-1])
    said = [m["content"] for m in turns[-1].messages if m["role"] == "user"]
    if what == "answer":
        assert "its tool gives its result; forget that" in result["came"]
        assert shown == ["seen 1", "seen 2"]
    else:
        assert shown == []
        assert said == [QUESTION if what == "forget" else "never mind, say hello"]
        assert [entry["role"] for entry in result["recall"]] == ["user", "assistant"]


async def test_a_result_that_comes_while_its_call_is_summarised_is_not_lost(
    client: Client, tmp_path: Path
) -> None:
    """The summary knows nothing of it, and is not used."""
    slow: list[Request] = []

    def script(request: Request) -> Reply:
        if request.model != "summariser":
            return reply("ok", usage=PLAIN_USAGE)
        slow.append(request)
        return reply(calls=[call(FORM, summary="They measure something.")], delay=1)

    memory = {**COMPACTING, "max_tokens": 1_400, "compact_preserve": 1}
    async with stack(client, tmp_path, script, extra=EXTRA) as s:
        shown = await s.run("Answering", "so?", memory)
    assert len(slow) == 1
    assert [e for e in shown if "it is 4821 long" in e["content"]]
    assert not [e for e in shown if e["role"] == "summary"]


@pytest.mark.parametrize("kind", ["own", "session"])
async def test_a_fixed_part_over_the_threshold_is_a_warning_and_no_summary(
    client: Client, tmp_path: Path, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    """The numbers are named at the start; the provider's own count makes nothing due."""
    memory = {**COMPACTING, "max_tokens": 150, "compact_preserve": 0}
    options = {"tools": ["read_file", "read_page", "ping"], "memory": memory}
    counted = {"prompt_tokens": 200 if kind == "own" else 10_300}
    file = f'{agents(options)}system_prompt = "{"Be brief. " * 4_000}"\n'
    script = [reply("ok", usage=counted) for _ in range(4)]
    async with stack(client, tmp_path, script, agents=file, extra=EXTRA) as s:
        if kind == "own":
            await s.run("Own", ["x" * 60] * 4, options)
        else:
            session = await s.start(agent="reader", session=True)
            for _ in range(4):
                await session.execute_update("send", "x" * 60)
            await session.execute_update("end")
        assert {request.model for request in s.model.requests} == {"test-model"}
    [warning, *_] = [text for text in caplog.messages if "has a fixed part of about" in text]
    assert f"(system prompt {2 if kind == 'own' else 10_000}, tools 1" in warning
    assert "over the 105 tokens" in warning


CALLS = '{"calls": [{"id": "a", "name": "look", "arguments": {"x": %s}}, {"id": "b", "name": "l"}]}'


async def test_a_conversation_can_be_taken_over_in_a_workflow(
    client: Client, tmp_path: Path
) -> None:
    """A wrong entry is refused without a failing task; the rest is sent, greeting and all."""
    entries = [
        ["summary", "They met in Oslo."],
        ["assistant", "Welcome back."],
        ["tool_call", CALLS % "NaN"],
        ["tool_call", CALLS % "1e400"],
        ["tool_call", CALLS % '"\\ud83d"'],
        ["tool_call", CALLS.replace('"b"', '"a"') % "1"],
        ["tool_call", CALLS.replace('"id": "b", ', "") % "1"],
        ["user", "look"],
        ["reasoning", json.dumps({"text": "hm", "opaque": thinking(1)["thinking_blocks"]})],
        ["tool_call", CALLS % '"\\ud83d\\ude00"'],
        ["tool_result", '{"call_id": "a", "output": Infinity}'],
        ["tool_result", '{"call_id": "a", "output": {"x": [1, null]}}'],
        ["tool_result", '{"call_id": "b", "output": "fine"}'],
        ["tool_result", '{"call_id": "b", "output": "again"}'],
    ]
    async with stack(client, tmp_path, [reply("ok")], extra=EXTRA) as s:
        handle = await client.start_workflow(
            "Memorizing", args=[entries, "and?"], id=f"own-{uuid4()}", task_queue=s.task_queue
        )
        result = await handle.result()
        assert await task_failures(handle) == []
        [request] = s.model.requests
        s.model.assert_strict()
    assert len(result["refused"]) == 7
    assert all("; " in text for text in result["refused"]), "each says what to do"
    roles = [entry["role"] for entry in result["recall"]]
    assert roles == [
        *("summary", "assistant", "user", "reasoning", "tool_call"),
        *("tool_result", "tool_result", "user", "assistant"),
    ]
    assert [entry["role"] for entry in result["copy"]] == roles
    assert [m["role"] for m in request.messages] == [
        *("system", "user", "assistant", "user", "assistant", "tool", "tool", "user"),
    ]
    assert request.messages[4]["thinking_blocks"] == thinking(1)["thinking_blocks"]
    calls = [entry["id"] for entry in result["copy"] if entry["role"].startswith("tool")]
    assert calls in result["forgot"]


async def test_a_greeting_is_sent_behind_a_line_in_the_users_place(
    client: Client, tmp_path: Path
) -> None:
    """Code sees it, the model sees it, and the strictest provider takes it."""
    async with stack(client, tmp_path, [reply("ok")], extra=EXTRA) as s:
        result = await s.run("Memorizing", [["assistant", "How can I help?"]], "hi")
        [request] = s.model.requests
        s.model.assert_strict()
    texts = [m["content"] for m in request.messages[1:]]
    assert texts == [OPENED, "How can I help?", "hi"]
    assert [entry["content"] for entry in result["recall"]] == ["How can I help?", "hi", "ok"]
