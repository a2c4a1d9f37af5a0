"""The real replies of providers, through litellm and a session: whole, and piece by piece."""

from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client, WorkflowHandle, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError

from agentmem.testing import Reply, Request, call, fail, reply
from agentmem.wire import JSONObject
from tests.counted_tools import get_temp
from tests.replayer import replayer
from tests.stack import last_user_text, stack
from tests.vendors_workflows import Asking
from workflows.agent import AgentWorkflow

pytestmark = pytest.mark.timeout(180)  # the first one waits for litellm's import

AGENTS = """\
[agents.whole]
tools = ["get_temp"]
[agents.pieces]
tools = ["get_temp"]
stream = true
"""
ALL: dict[str, Any] = {"agents": AGENTS, "extra": [get_temp, Asking]}
BOTH = pytest.mark.parametrize("name", ["whole", "pieces"])
HELLO: JSONObject = {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "m"}
PAID = {"prompt_tokens": 100, "completion_tokens": 10}


def chunk(finish: str | None = None, **delta: Any) -> JSONObject:
    """A chunk as OpenAI's protocol has it."""
    return {**HELLO, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


async def failing(handle: WorkflowHandle[Any, Any], text: str) -> str:
    """Send what fails; returns the turn's error."""
    with pytest.raises(WorkflowUpdateFailedError) as caught:
        await handle.execute_update("send", text)
    cause = caught.value.cause
    assert isinstance(cause, ApplicationError)
    assert cause.type == "TurnFailed"
    return cause.message


async def entries(handle: WorkflowHandle[Any, Any], role: str) -> list[str]:
    """Return what a conversation holds of a role."""
    page = await handle.query("messages")
    return [entry["content"] for entry in page["messages"] if entry["role"] == role]


async def most_attempts(handle: WorkflowHandle[Any, Any]) -> int:
    """Return how often an activity of a history was tried at most."""
    history = await handle.fetch_history()
    return max(event.activity_task_started_event_attributes.attempt for event in history.events)


async def assert_replays(handle: WorkflowHandle[Any, Any]) -> None:
    """Replay what was recorded so far: no decision may depend on anything else."""
    result = await replayer(AgentWorkflow).replay_workflow(
        await handle.fetch_history(), raise_on_replay_failure=False
    )
    assert result.replay_failure is None


THOUGHT = [
    "<think>secret musing</think>Cairo.",
    "secret musing\n</think>\n\nCairo.",
    "<thinking>\nsecret musing\n</thinking>\nCairo.",
    "[THINK]secret musing[/THINK]Cairo.",
    "secret musing (an easy one) </think><answer>Cairo.</answer>",
    "<|begin_of_thought|>secret musing<|end_of_thought|>\n\nCairo.",
]


@BOTH
@pytest.mark.parametrize("model", ["openai/test-model", "ollama/test-model"])
async def test_thought_in_the_text_is_no_answer(
    client: Client, tmp_path: Path, name: str, model: str
) -> None:
    """The text is the answer alone; the thought is kept, and no later prompt holds it."""
    script = [*map(reply, THOUGHT), reply("Bye.")]
    async with stack(client, tmp_path, script, model_name=model, **ALL) as s:
        handle = await s.start(agent=name, session=True)
        for _ in THOUGHT:
            assert await handle.execute_update("send", "where?") == "Cairo."
        await handle.execute_update("send", "bye")
        assert sum("secret musing" in text for text in await entries(handle, "reasoning")) == 6
        assert b"musing" not in s.model.requests[-1].raw
        await handle.execute_update("end")
        s.model.assert_strict()


@pytest.mark.parametrize("cut", [1, 3, 5])
async def test_tags_that_are_split_over_pieces_are_tags(
    client: Client, tmp_path: Path, cut: int
) -> None:
    """Wherever a piece ends, in both protocols."""
    text = "<think>secret musing</think>Cairo."
    pieces = [text[at : at + cut] for at in range(0, len(text), cut)]
    openai = [*(chunk(content=piece) for piece in pieces), chunk("stop")]
    start: JSONObject = {"model": "m", "created_at": "2026-01-01T00:00:00Z", "done": False}
    ollama = [{**start, "message": {"role": "assistant", "content": piece}} for piece in pieces]
    last = {**start, "done": True, "done_reason": "stop", "message": {"content": ""}}
    for model, chunks in (("openai/m", openai), ("ollama/m", [*ollama, last])):
        script = [reply("", chunks=chunks)]
        async with stack(client, tmp_path, script, model_name=model, **ALL) as s:
            handle = await s.start(agent="pieces", message="where?")
            assert await handle.result() == "Cairo."
            assert await entries(handle, "reasoning") != []


@BOTH
async def test_json_behind_a_thought_keeps_its_response_format(
    client: Client, tmp_path: Path, name: str
) -> None:
    """Whatever braces the thought has; asked once."""
    schema = '{type = "object", properties = {city = {type = "string"}}, required = ["city"]}'
    agents = (
        f"[agents.{name}]\nresponse_format = {schema}\nstream = {str(name == 'pieces').lower()}\n"
    )
    script = [reply(f'{text.removesuffix("Cairo.")}{{"city": "Cairo"}}') for text in THOUGHT[:3]]
    async with stack(client, tmp_path, script, agents=agents) as s:
        handle = await s.start(agent=name, session=True)
        for _ in script:
            assert (await handle.execute_update("ask", "where?"))["data"] == {"city": "Cairo"}
        assert len(s.model.requests) == 3


def streamed_calls(*pieces: JSONObject) -> Reply:
    """A reply of these pieces of calls."""
    chunks = [chunk(role="assistant"), *(chunk(tool_calls=[piece]) for piece in pieces)]
    return reply("unused", chunks=[*chunks, chunk("tool_calls")])


def piece(arguments: str, **fields: Any) -> JSONObject:
    """A piece of the call at place 0."""
    function = {"arguments": arguments} | {k: v for k, v in fields.items() if k == "name"}
    return {"index": 0, "function": function} | {k: v for k, v in fields.items() if k != "name"}


ROME = '{"city": "Rome"}'


async def test_pieces_that_repeat_are_one_call_that_runs(client: Client, tmp_path: Path) -> None:
    """Through litellm: arguments again in full, the name in each piece, a name in pieces."""
    streams = [
        [piece('{"city"', id="a", name="get_temp"), piece(': "Rome"}'), piece(ROME)],
        [piece('{"city"', name="get_temp"), piece(': "Rome"}', name="get_temp")],
        [piece("", id="a", name="get_"), piece("", name="temp"), piece(ROME)],
        [piece(ROME, id="a", name="get_temp"), piece(ROME, id="a", name="get_temp")],
        [piece('{"ci', name="get_temp"), piece('{"city": "Ro', name="get_temp"), piece(ROME)],
        [piece("", id="a", name="get_temp"), piece('{"city"', id="b"), piece(': "Rome"}', id="c")],
        [piece("", id="a", name="get_temp"), piece('{"city"') | {"index": 1}, piece(': "Rome"}')],
    ]
    script = [one for pieces in streams for one in (streamed_calls(*pieces), reply("20"))]
    async with stack(client, tmp_path, script, **ALL) as s:
        handle = await s.start(agent="pieces", session=True)
        for number, _ in enumerate(streams, 1):
            assert await handle.execute_update("send", "how warm?") == "20"
            told = s.model.requests[2 * number - 1].messages
            assert [m["content"] for m in told if m["role"] == "tool"] == ["Rome: 20"] * number
        s.model.assert_strict()


async def test_a_stream_without_a_finish_reason_is_a_reply(client: Client, tmp_path: Path) -> None:
    """It ended by [DONE], with usage or without: answered at the first attempt."""
    usage: JSONObject = {**HELLO, "choices": [], "usage": PAID}
    streams: list[list[JSONObject]] = [
        [chunk(content="Cai"), chunk(content="ro.")],
        [chunk(content="Cairo."), usage],
        [chunk(content="Cairo."), {**HELLO, "choices": []}],
        [chunk(reasoning_content="hm"), chunk(content="Cairo.")],
    ]
    script = [reply("", chunks=chunks) for chunks in streams]
    async with stack(client, tmp_path, script, **ALL) as s:
        handle = await s.start(agent="pieces", session=True)
        for number, _ in enumerate(streams, 1):
            assert await handle.execute_update("send", "where?") == "Cairo."
            assert len(s.model.requests) == number


async def test_a_stream_that_breaks_off_is_tried_again(client: Client, tmp_path: Path) -> None:
    """Half of an answer is none, also where the connection is closed in good order."""
    half = {"role": "assistant", "content": "Cai"}
    chunks = [{"model": "m", "created_at": "2026-01-01T00:00:00Z", "done": False, "message": half}]
    script = [reply("", chunks=chunks), reply("Cairo.")]
    async with stack(client, tmp_path, script, model_name="ollama/m", **ALL) as s:
        handle = await s.start(agent="pieces", message="where?")
        assert await handle.result() == "Cairo."
        assert len(s.model.requests) == 2


ERRORS: list[tuple[Reply, Reply, str, int]] = [
    # As a whole answer, inside of a stream, what the turn says, requests in all.
    (
        fail(400, {"error": {"message": "no such field", "type": "invalid_request_error"}}),
        reply("", chunks=[{"error": {"message": "no such field", "code": 400}}]),
        "did not accept the request: no such field",
        1,
    ),
    (
        fail(429, {"error": {"message": "out", "code": "insufficient_quota"}}),
        reply("", chunks=[{"error": {"message": "out", "code": "insufficient_quota"}}]),
        "quota or credit",
        1,
    ),
    (
        fail(401, {"error": {"message": "who?", "type": "authentication_error"}}),
        reply("", chunks=[{"error": {"message": "who?", "type": "authentication_error"}}]),
        "needs a valid key",
        1,
    ),
    (
        fail(503, "litellm.APIConnectionError: upstream"),
        reply("", chunks=[{"error": {"message": "APIConnectionError: upstream", "code": 503}}]),
        "",
        2,
    ),
    (
        fail(429, "usage limit of 3 concurrent requests, slow down"),
        reply("", chunks=[{"error": {"message": "usage limit of 3", "code": 429}}]),
        "",
        2,
    ),
]


@BOTH
@pytest.mark.parametrize("model", ["openai/test-model", "ollama/test-model"])
async def test_an_error_is_the_same_whole_and_in_a_stream(
    client: Client, tmp_path: Path, name: str, model: str
) -> None:
    """Final or tried again by what it is, by status and by code, not by how it came."""
    script: list[Reply] = []
    for whole, inside, _, requests in ERRORS:
        for failed in [whole, *([inside] if name == "pieces" else [])]:
            script += [failed, *([reply("at last")] if requests == 2 else [])]
    async with stack(client, tmp_path, script, model_name=model, **ALL) as s:
        handle = await s.start(agent=name, session=True)
        for _, _, words, requests in ERRORS:
            for _ in range(2 if name == "pieces" else 1):
                before = len(s.model.requests)
                if words:
                    assert words in await failing(handle, "hi")
                else:
                    assert await handle.execute_update("send", "hi") == "at last"
                assert len(s.model.requests) - before == requests


@BOTH
async def test_refused_replies_are_paid_for(client: Client, tmp_path: Path, name: str) -> None:
    """A reply that broke off, one without a choice, an empty one: all in the turn's usage."""
    broken = reply("half", finish="error", usage=PAID)
    nothing = reply(raw={"id": "x", "object": "chat.completion", "choices": [], "usage": PAID})
    blank = reply("", usage=PAID)
    script = [broken, broken, reply("one", usage=PAID)]
    script += [nothing, reply("two", usage=PAID), blank, reply("three", usage=PAID)]
    async with stack(client, tmp_path, script, **ALL) as s:
        handle = await s.start(agent=name, session=True)
        for text, requests in (("one", 3), ("two", 2), ("three", 2)):
            answer = await handle.execute_update("ask", "hi")
            assert answer["text"] == text
            if name == "pieces" and text == "two":
                continue  # pieces without a choice say no more than that
            usage = answer["usage"]
            assert (usage["requests"], usage["prompt"]) == (requests, 100 * requests)


async def test_half_a_stream_is_paid_for(client: Client, tmp_path: Path) -> None:
    """Reset in the middle, an error in the middle: counted by its size, for nobody said it."""
    half = [chunk(content="Cairo is the one " * 20)]
    cut = Reply(content="", chunks=half, ending="reset")
    told = reply("", chunks=[*half, {"error": {"message": "busy", "code": 503}}])
    script = [cut, reply("one", usage=PAID), told, reply("two", usage=PAID)]
    async with stack(client, tmp_path, script, **ALL) as s:
        handle = await s.start(agent="pieces", session=True)
        for text in ("one", "two"):
            answer = await handle.execute_update("ask", "hi")
            assert answer["text"] == text
            assert answer["usage"]["requests"] == 2
            assert 10 + 80 < answer["usage"]["completion"] < 10 + 200


@BOTH
@pytest.mark.parametrize("limit", ["turn_budget = 250", "budget = 250"])
async def test_a_budget_stops_the_retries(
    client: Client, tmp_path: Path, name: str, limit: str
) -> None:
    """Each of the broken replies takes 110 tokens: after three the turn fails, and says why."""
    agents = f"[agents.{name}]\n{limit}\nstream = {str(name == 'pieces').lower()}\n"
    script = [reply("half", finish="error", usage=PAID)] * 5
    async with stack(client, tmp_path, script, agents=agents) as s:
        handle = await s.start(agent=name, session=True)
        message = await failing(handle, "hi")
        assert "budget" in message
        assert "broke its reply off" in message
        assert len(s.model.requests) == 3
        assert (await handle.query("usage"))["prompt"] == 300
        await assert_replays(handle)


async def test_what_a_failed_summary_took_is_counted(client: Client, tmp_path: Path) -> None:
    """A summariser that says nothing is paid for, and the turn goes on."""
    agents = (
        "[agents.plain]\nworking_memory.max_tokens = 400\n"
        'working_memory.compact_model = "openai/summariser"\nworking_memory.compact_preserve = 2\n'
    )

    def script(request: Request) -> Reply:
        return reply("" if request.model == "summariser" else "yes " * 150, usage=PAID)

    async with stack(client, tmp_path, script, agents=agents) as s:
        handle = await s.start(agent="plain", session=True)
        for _ in range(4):
            await handle.execute_update("send", "more")
        assert any(request.model == "summariser" for request in s.model.requests)
        usage = await handle.query("usage")
        assert (usage["requests"], usage["prompt"]) == (
            len(s.model.requests),
            100 * len(s.model.requests),
        )


BLANK: list[tuple[Reply, str]] = [
    (reply(""), "stop"),
    (reply(" \n", finish="length"), "max_tokens"),
    (reply("<think>hm</think>"), "stop"),
    (reply(None, extra={"reasoning_content": "hm"}), "stop"),
]


@BOTH
async def test_no_answer_is_no_answer(client: Client, tmp_path: Path, name: str) -> None:
    """Two blank replies in a row fail the turn with the reason; the session goes on."""
    script = [one for blank, _ in BLANK for one in (blank, blank, reply("here"))]
    async with stack(client, tmp_path, script, **ALL) as s:
        handle = await s.start(agent=name, session=True)
        for _, reason in BLANK:
            message = await failing(handle, "hi")
            assert "gave no answer" in message
            assert reason in message
            assert await handle.execute_update("send", "hi") == "here"
        s.model.assert_strict()


@BOTH
async def test_what_a_turn_said_before_its_last_step_is_not_lost(
    client: Client, tmp_path: Path, name: str
) -> None:
    """Said beside a tool call, blank after it: in the error, and in the conversation."""
    told = reply("It is Cairo.", calls=[call("get_temp", city="Cairo")])
    script = [told, reply(""), reply(""), reply("Cairo, as I said.")]
    async with stack(client, tmp_path, script, **ALL) as s:
        handle = await s.start(agent=name, session=True)
        assert "Before that it said: It is Cairo." in await failing(handle, "where is it warm?")
        assert await handle.execute_update("send", "where?") == "Cairo, as I said."
        assert "It is Cairo." in [m["content"] for m in s.model.requests[-1].messages]
        await assert_replays(handle)
        s.model.assert_strict()


@BOTH
async def test_no_answer_at_the_tool_limit_is_no_answer(
    client: Client, tmp_path: Path, name: str
) -> None:
    """A model that only calls, when no calls are left, has given none."""
    agents = AGENTS.replace("\ntools", "\nmax_tool_calls = 1\ntools")
    wants = reply(calls=[call("get_temp", city="Rome")])
    async with stack(client, tmp_path, [wants] * 3, agents=agents, extra=[get_temp]) as s:
        handle = await s.start(agent=name, session=True)
        message = await failing(handle, "how warm?")
        assert "max_tool_calls 1" in message
        assert await entries(handle, "tool_result") != []


async def test_no_answer_fails_a_turn_of_an_own_workflow(client: Client, tmp_path: Path) -> None:
    """Blank twice, blank at the limit, a filter without a word: none is an empty answer."""
    script = [reply(""), reply(""), reply("", finish="content_filter"), reply("here")]
    asked = [["openai/m", "one"], ["openai/m", "two"], ["openai/m", "three"]]
    async with stack(client, tmp_path, script, **ALL) as s:
        result = await s.run("Asking", asked, {})
        first, second, third = result["answers"]
    assert first.startswith("failed: the model openai/m gave no answer")
    assert "content_filter" in second
    assert third == "here"


SIGNED: dict[str, JSONObject] = {
    "thinking": {
        "thinking_blocks": [{"type": "thinking", "thinking": "hm", "signature": "s1"}],
        "reasoning_content": "hm",
    },
    "details": {"reasoning_details": [{"type": "reasoning.encrypted", "data": "xx", "id": "r1"}]},
    "fields": {"provider_specific_fields": {"thought_signature": "abc=="}},
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("kind", SIGNED)
async def test_two_vendors_go_on_with_one_conversation(
    client: Client, tmp_path: Path, kind: str, *, stream: bool
) -> None:
    """Signed data returns to its signer only; the other, which would refuse it, never sees it."""
    extra = SIGNED[kind]
    words = [b"signature", b"reasoning_details", b"reasoning_content", b"thinking_blocks"]

    def script(request: Request) -> Reply:
        if request.path == "/api/chat":
            is_foreign = any(word in request.raw for word in [*words, b"thinking"])
            return fail(400, "unknown field") if is_foreign else reply("from the second")
        if request.messages[-1]["role"] == "user" and len(request.messages) == 2:
            return reply(calls=[call("get_temp", city="Rome")], extra=extra)
        return reply("from the first", extra=extra)

    models = ["openai/one", "ollama/two", "openai/one", "ollama/two"]
    asked = [[model, f"question {number}"] for number, model in enumerate(models)]
    async with stack(client, tmp_path, script, **ALL) as s:
        result = await s.run("Asking", asked, {"tools": ["get_temp"], "stream": stream})
        own = [request for request in s.model.requests if request.path != "/api/chat"]
        s.model.assert_strict()
    assert result["answers"] == ["from the first", "from the second"] * 2
    assert any(word in own[-1].raw for word in words)


def too_large(request: Request, limit: int) -> bool:
    """Tell whether a request is over a limit of bytes."""
    return len(request.raw) > limit


PHRASES = [
    (400, "Prompt exceeds max length"),
    (400, "上下文过长"),
    (422, "gizmo overflow in the frobnicator"),
    (413, "Payload Too Large"),
    (400, "The decoder prompt (length 9000) is longer than the maximum model length of 8192"),
]


@BOTH
async def test_an_overflow_in_any_words_is_tried_once_smaller(
    client: Client, tmp_path: Path, name: str
) -> None:
    """And only where that is needed: the history is back once there is room for it."""
    refused: list[int] = []
    failure = [fail(0)]

    def script(request: Request) -> Reply:
        if not refused and too_large(request, 12_000):
            refused.append(request.number)
            return failure[0]
        return reply(f"re: {last_user_text(request.messages)[:8]}")

    async with stack(client, tmp_path, script, **ALL) as s:
        for status, text in PHRASES:
            failure[0] = fail(status, text)
            refused.clear()
            begun = len(s.model.requests)
            handle = await s.start(agent=name, session=True)
            for number in range(10):
                answer = await handle.execute_update("send", f"number {number} {'x' * 2_000}")
                assert answer == f"re: number {number}"
            sizes = [len(request.messages) for request in s.model.requests[begun:]]
            at = refused[0] - begun
            assert len(sizes) == 11
            assert sizes[at] < sizes[at - 1]  # smaller once,
            assert sizes[-1] > sizes[at - 1]  # and later all of it again


async def test_a_code_that_names_another_cause_is_one_request(
    client: Client, tmp_path: Path
) -> None:
    """A large request with a bad schema is not shown a shorter conversation."""
    bodies = [
        {"message": "bad", "code": "invalid_function_parameters"},
        {"message": "bad", "param": "tools[0].function.parameters"},
        {"message": "bad", "code": "unsupported_value", "param": "temperature"},
    ]
    script = [fail(400, {"error": body}) for body in bodies]
    async with stack(client, tmp_path, script, **ALL) as s:
        handle = await s.start(agent="whole", session=True)
        for _ in bodies:
            assert "did not accept" in await failing(handle, "x" * 20_000)
        assert len(s.model.requests) == 3


async def test_refusals_do_not_shrink_what_later_turns_see(client: Client, tmp_path: Path) -> None:
    """Ten refused turns in a row, one for tools that are too many; then all is shown again."""
    broken = [True]

    def script(request: Request) -> Reply:
        if broken[0] and request.number > 4:
            return fail(400, "maximum context length is 100 tokens")
        return reply("yes")

    async with stack(client, tmp_path, script, **ALL) as s:
        handle = await s.start(agent="whole", session=True)
        for number in range(4):
            await handle.execute_update("send", f"fact {number} {'x' * 1_000}")
        for _ in range(10):
            assert "too long" in await failing(handle, "hi")
        broken[0] = False
        for _ in range(6):
            await handle.execute_update("send", "hi")
        assert "fact 0" in str(s.model.requests[-1].messages)
        assert len(s.model.requests[-1].messages) == 4 * 2 + 5 * 2 + 1


async def test_a_guess_that_was_wrong_is_taken_back(client: Client, tmp_path: Path) -> None:
    """A 400 that a smaller request meets too was no overflow: nothing is left out after it."""
    script = [reply("a"), fail(400, "odd"), fail(400, "odd"), reply("b")]
    async with stack(client, tmp_path, script, **ALL) as s:
        handle = await s.start(agent="whole", session=True)
        await handle.execute_update("send", f"first {'x' * 12_000}")
        assert "odd" in await failing(handle, "hi")
        await handle.execute_update("send", "and?")
        smaller, last = s.model.requests[2], s.model.requests[3]
        assert len(smaller.raw) < 10_000 < len(last.raw)
        assert [m["content"][:5] for m in last.messages] == ["first", "a", "and?"]
        await assert_replays(handle)


@pytest.mark.parametrize(
    ("model", "variables", "words"),
    [
        ("vertex_ai/gemini-2.0-flash", {}, "google"),
        ("bedrock/anthropic.claude-3-5-sonnet-20240620-v1:0", {}, "AWS_ACCESS_KEY_ID"),
        ("watsonx/ibm/granite", {}, "WX_PROJECT_ID"),
        ("openai/m", {"OPENAI_API_BASE": "not an address"}, "not an address"),
        ("azure/m", {"AZURE_API_KEY": "k" * 20}, "azure/m"),
        ("openai/m", {"OPENAI_API_KEY": "two\nlines"}, "openai/m"),
        ("nobody/m", {}, "ollama/llama3.2"),
    ],
)
async def test_what_no_request_can_be_made_of_is_told_at_once(
    client: Client,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    model: str,
    variables: dict[str, str],
    words: str,
) -> None:
    """A missing library, an address that is none, a header that is none: one attempt."""
    async with stack(client, tmp_path, [], model_name=model, **ALL) as s:
        for variable, value in variables.items():
            monkeypatch.setenv(variable, value)
            monkeypatch.setenv(variable.replace("API_BASE", "BASE_URL"), value)
        for name in ("whole", "pieces"):
            handle = await s.start(agent=name, session=True)
            message = await failing(handle, "hi")
            assert words in message
            assert "no reply" not in message
            assert "cannot be reached" not in message
            assert s.model.requests == []
            assert await most_attempts(handle) == 1


POLICY = {"error": {"message": "flagged", "code": "content_filter", "param": "prompt"}}
REFUSED = [
    fail(400, POLICY),
    fail(400, "the tool result is unacceptable"),
    fail(400, {"error": {"message": "输入不合规", "code": "data_inspection_failed"}}),
    fail(422, "cannot process entity"),
    fail(403, "<html>Request blocked</html>"),
    reply("", finish="content_filter"),
    reply(None, finish="content_filter", extra={"reasoning_content": "hm"}),
]


@BOTH
async def test_a_tool_result_that_is_refused_does_not_end_the_session(
    client: Client, tmp_path: Path, name: str
) -> None:
    """The turn fails and says so; the next one goes on without the result, with a note."""
    refusal = REFUSED[:1]

    def script(request: Request) -> Reply:
        if b"Rome: 20" in request.raw:
            return refusal[0]
        if last_user_text(request.messages) == "how warm?":
            return reply(calls=[call("get_temp", city="Rome")])
        return reply("still here")

    async with stack(client, tmp_path, script, **ALL) as s:
        for refusal[0] in REFUSED:
            handle = await s.start(agent=name, session=True)
            failure = await failing(handle, "how warm?")
            assert "The results of get_temp, which it refused" in failure
            for _ in range(2):
                assert await handle.execute_update("send", "hello?") == "still here"
            told = [m["content"] for m in s.model.requests[-1].messages if m["role"] == "tool"]
            assert len(told) == 1
            assert "left out" in told[0]
            await assert_replays(handle)
        s.model.assert_strict()


async def test_a_result_that_the_provider_took_stays(client: Client, tmp_path: Path) -> None:
    """A later refusal, such as that of a repair, is no reason to leave the result out."""
    schema = '{type = "object", properties = {city = {type = "string"}}, required = ["city"]}'
    agents = f'[agents.plain]\ntools = ["get_temp"]\nresponse_format = {schema}\n'
    script = [
        reply(calls=[call("get_temp", city="Rome")]),
        reply("no JSON"),
        fail(400, "no repairs here"),
        reply('{"city": "Rome"}'),
    ]
    async with stack(client, tmp_path, script, agents=agents, extra=[get_temp]) as s:
        handle = await s.start(agent="plain", session=True)
        assert "left out" not in await failing(handle, "how warm?")
        await handle.execute_update("send", "and?")
        told = [m["content"] for m in s.model.requests[-1].messages if m["role"] == "tool"]
        assert told == ["Rome: 20"]


async def test_a_refused_result_in_an_own_workflow(client: Client, tmp_path: Path) -> None:
    """The same loop: the next question is answered."""
    refusal = REFUSED[:1]

    def script(request: Request) -> Reply:
        if b"Rome: 20" in request.raw:
            return refusal[0]
        if last_user_text(request.messages) == "how warm?":
            return reply(calls=[call("get_temp", city="Rome")])
        return reply("still here")

    asked = [["openai/m", "how warm?"], ["openai/m", "hello?"]]
    async with stack(client, tmp_path, script, **ALL) as s:
        for refusal[0] in (REFUSED[0], *REFUSED[-3:]):
            for stream in (False, True):
                options = {"tools": ["get_temp"], "stream": stream}
                first, second = (await s.run("Asking", asked, options))["answers"]
                assert first.startswith("failed: ")
                assert "The results of get_temp, which it refused" in first
                assert second == "still here"
