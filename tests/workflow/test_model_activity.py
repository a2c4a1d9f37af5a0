"""The activity `agentmem.model` on the real server, with litellm and a model over real HTTP."""

import asyncio
import itertools
import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from temporalio import activity, workflow
from temporalio.client import (
    Client,
    WorkflowHandle,
    WorkflowUpdateFailedError,
    WorkflowUpdateStage,
)
from temporalio.exceptions import ActivityError, ApplicationError, CancelledError
from temporalio.worker import Worker

from activities.llm import ModelActivity, Models
from activities.messages import MessageCache
from agentmem import contracts
from agentmem.contracts import MESSAGES_QUERY, ModelCall, ModelReply, Page, Prompt
from agentmem.errors import InvalidInput
from agentmem.messages import Message, Role, ToolCall, from_ranges
from agentmem.policies import model_options
from agentmem.testing import Call, Reply, ScriptedModel, fail, hang, reply, reset
from agentmem.tools.toolbox import ToolBox

pytestmark = pytest.mark.timeout(180)  # the first one waits for litellm's import

MODEL = model_options(timedelta(minutes=10))
SYSTEM = Message(id="s0", role=Role.SYSTEM, content="Be brief.")
TOOLS = ["recall_memory", "list_memory_keys"]


@workflow.defn(sandboxed=False)
class Talk:
    """A conversation as a dictionary, with the query that workers ask for messages."""

    def __init__(self) -> None:
        self.messages: dict[str, Message] = {}
        self.pages: list[list[str]] = []
        self.call: asyncio.Task[ModelReply] | None = None

    @workflow.run
    async def run(self) -> None:
        """Stay until terminated."""
        await workflow.wait_condition(lambda: False)

    @workflow.update
    async def know(self, messages: list[Message]) -> None:
        """Store messages."""
        self.messages |= {message.id: message for message in messages}

    @workflow.update
    async def ask(self, calls: list[ModelCall]) -> list[ModelReply]:
        """Make model calls at the same time, and store their replies."""
        replies = await asyncio.gather(*(self._ask(call) for call in calls))
        self.messages |= {made.message.id: made.message for made in replies}
        return replies

    @workflow.update
    async def cancel(self) -> bool:
        """Cancel the running call; says whether it ended as cancelled."""
        assert self.call is not None
        self.call.cancel()
        try:
            await self.call
        except ActivityError as error:
            return isinstance(error.cause, CancelledError)
        return False

    @workflow.update
    async def plant(self, ghost: Message) -> None:
        """Have the worker remember what an attempt left whose answer was lost."""
        await workflow.execute_activity("plant", ghost, start_to_close_timeout=timedelta(seconds=5))

    @workflow.query(name=MESSAGES_QUERY)
    def page(self, memory: str, ids: list[str]) -> Page:
        """Give two messages a page."""
        asked = list(from_ranges(ids))
        missing = [i for i in asked if i not in self.messages]
        if missing:
            raise InvalidInput(f"message {missing[0]} of {memory} is not in this run")
        return Page(messages=[self.messages[i] for i in asked[:2]])

    async def _ask(self, call: ModelCall) -> ModelReply:
        self.call = asyncio.ensure_future(
            workflow.execute_activity(contracts.model, call, **MODEL)  # pyright: ignore[reportUnknownArgumentType]
        )
        return await self.call


class Planting(MessageCache):
    """The worker's cache, and an activity that leaves a message in it."""

    @activity.defn(name="plant")
    async def plant(self, ghost: Message) -> None:
        """Remember a message."""
        self.remember("wm0", ghost)


@pytest.fixture(scope="session")
async def models() -> AsyncIterator[Models]:
    """The process's models: litellm is imported once."""
    made = Models()
    yield made
    await made.close()


@pytest.fixture
async def scripted(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ScriptedModel]:
    """A model endpoint whose requests all pass the strict rules."""
    async with ScriptedModel() as model:
        for name, value in model.env().items():
            monkeypatch.setenv(name, value)
        yield model
        model.assert_strict()


@asynccontextmanager
async def working(
    client: Client, task_queue: str, models: Models, cache: MessageCache | None = None
) -> AsyncGenerator[MessageCache]:
    """Run a worker with a cache of its own, which is what the body gets."""
    held = cache or Planting()
    planting = held if isinstance(held, Planting) else Planting()
    async with Worker(
        client,
        task_queue=task_queue,
        workflows=[Talk],
        activities=[ModelActivity(models, held, ToolBox().schemas).model, planting.plant],
        max_heartbeat_throttle_interval=timedelta(seconds=1),
    ):
        yield held


async def begin(
    client: Client, task_queue: str, *messages: Message, workflow_id: str = ""
) -> WorkflowHandle[Talk, None]:
    """Start a conversation that holds these messages, which no worker has seen."""
    handle = await client.start_workflow(
        Talk.run, id=workflow_id or f"talk-{uuid.uuid4()}", task_queue=task_queue
    )
    await handle.execute_update(Talk.know, list(messages))
    return handle


async def ask(handle: WorkflowHandle[Talk, None], *calls: ModelCall) -> list[ModelReply]:
    """Make model calls of a conversation."""
    return await handle.execute_update(Talk.ask, list(calls))


async def failure(handle: WorkflowHandle[Talk, None], call: ModelCall) -> ApplicationError:
    """Make a model call that fails for good; returns its error."""
    with pytest.raises(WorkflowUpdateFailedError) as caught:
        await ask(handle, call)
    assert isinstance(caught.value.cause, ActivityError)
    error = caught.value.cause.cause
    assert isinstance(error, ApplicationError)
    return error


def user(number: int, content: str = "hello") -> Message:
    return Message(id=f"m{number}", role=Role.USER, content=content, turn=1)


def calling(*view: str, made: int = 9, step: int = 1, **prompt: object) -> ModelCall:
    """A model call that sees these messages; its reply will be `m9`."""
    return ModelCall(
        prompt=Prompt(memory="wm0", view=list(view)).replace(**prompt),
        reply=f"m{made}",
        turn=1,
        step=step,
        model="openai/scripted",
        tools=TOOLS,
    )


async def test_a_reply_comes_back_and_is_not_asked_for_again(
    client: Client, task_queue: str, models: Models, scripted: ScriptedModel
) -> None:
    """The request holds what was referred to; the reply is in the cache for the next one."""
    scripted.add(reply("Hi.", usage={"prompt_tokens": 20, "completion_tokens": 2}), reply("Bye."))
    async with working(client, task_queue, models) as cache:
        handle = await begin(client, task_queue, SYSTEM)
        [first] = await ask(handle, calling("s0", "m0", made=1, new=[user(0)]))
        assert first.message == Message(id="m1", role=Role.ASSISTANT, content="Hi.", turn=1)
        assert (first.usage.prompt, first.usage.completion, first.finish) == (20, 2, "stop")
        await ask(handle, calling("s0", "m0-2", made=3, new=[user(2, "bye")]))
    assert (cache.hits, cache.misses) == (3, 1)
    [request, again] = scripted.requests
    assert [tool["function"]["name"] for tool in request.tools] == TOOLS
    assert request.messages == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "hello"},
    ]
    assert again.messages[2:] == [
        {"role": "assistant", "content": "Hi."},
        {"role": "user", "content": "bye"},
    ]


async def test_what_the_cache_lost_is_asked_for_page_by_page(
    client: Client, task_queue: str, models: Models, scripted: ScriptedModel
) -> None:
    """A worker without any cache, or a new one, sends the same bytes as one with all in it."""
    messages = [SYSTEM, *(user(number, f"text {number}") for number in range(5))]
    scripted.add(*(reply("yes") for _ in range(3)))
    async with working(client, task_queue, models, MessageCache(max_bytes=0)) as cache:
        handle = await begin(client, task_queue, *messages)
        await ask(handle, calling("s0", "m0-4"))
        assert (cache.hits, cache.misses, cache.size) == (0, 6, 0)
    async with working(client, task_queue, models) as cache:
        await ask(handle, calling("s0", "m0-4"))
        await ask(handle, calling("s0", "m0-4"))
        assert (cache.hits, cache.misses) == (6, 6)
    assert len({request.raw for request in scripted.requests}) == 1
    assert [message["content"] for message in scripted.requests[0].messages[1:]] == [
        f"text {number}" for number in range(5)
    ]


async def test_the_message_of_a_lost_attempt_is_never_sent(
    client: Client, task_queue: str, models: Models, scripted: ScriptedModel
) -> None:
    """A ghost in the cache has another attempt than the workflow's message of that id."""
    scripted.add(reply("yes"))
    answer = Message(id="m1", role=Role.ASSISTANT, content="the answer", attempt=2)
    async with working(client, task_queue, models):
        handle = await begin(client, task_queue, user(0), answer, user(2))
        await handle.execute_update(Talk.plant, answer.replace(content="a ghost", attempt=1))
        await ask(handle, calling("m0-2", retried={"m1": 2}))
    assert scripted.requests[0].messages[1]["content"] == "the answer"


async def test_calls_at_the_same_time_find_what_one_of_them_asked_for(
    client: Client, task_queue: str, models: Models, scripted: ScriptedModel
) -> None:
    """Three calls on a cold worker: one asks the workflow, the others wait for its answer."""
    scripted.add(*(reply("yes", delay=0.2) for _ in range(3)))
    messages = [user(number, f"text {number}") for number in range(8)]
    async with working(client, task_queue, models):
        handle = await begin(client, task_queue, *messages)
        calls = [calling("m0-7", made=20 + number) for number in range(3)]
        replies = await ask(handle, *calls)
    assert [made.message.id for made in replies] == ["m20", "m21", "m22"]
    assert len({request.raw for request in scripted.requests}) == 1


async def test_one_workflow_id_twice_never_mixes_two_conversations(
    client: Client, task_queue: str, models: Models, scripted: ScriptedModel
) -> None:
    """The cache belongs to the run: the second conversation gets its own words."""
    scripted.add(reply("yes"), reply("yes"))
    workflow_id = f"talk-{uuid.uuid4()}"
    async with working(client, task_queue, models):
        for text in ("the first", "the second"):
            message = user(0, text)
            handle = await begin(client, task_queue, message, workflow_id=workflow_id)
            await ask(handle, calling("m0"))
            await handle.terminate()
    sent = [request.messages[0]["content"] for request in scripted.requests]
    assert sent == ["the first", "the second"]


async def test_messages_that_the_workflow_does_not_know_fail_at_once(
    client: Client, task_queue: str, models: Models, scripted: ScriptedModel
) -> None:
    """A prompt of another run is a clear error, and the model is never asked."""
    async with working(client, task_queue, models):
        handle = await begin(client, task_queue, user(0))
        error = await failure(handle, calling("m0", "m5"))
    assert error.non_retryable
    assert "message m5 of wm0 is not in this run" in error.message
    assert scripted.requests == []


async def test_a_workflow_that_cannot_answer_yet_is_waited_for(
    client: Client, task_queue: str, models: Models, scripted: ScriptedModel
) -> None:
    """Its worker is gone while another one has the activity: the query waits for a new worker."""
    scripted.add(reply("yes"))
    async with working(client, task_queue, models):
        handle = await begin(client, task_queue, user(0))
    only = ModelActivity(models, MessageCache(), ToolBox().schemas).model
    async with Worker(client, task_queue=task_queue, workflows=[Talk], no_remote_activities=True):
        update = await handle.start_update(
            Talk.ask, [calling("m0")], wait_for_stage=WorkflowUpdateStage.ACCEPTED
        )
    async with Worker(client, task_queue=task_queue, activities=[only]):
        await asyncio.sleep(1)
        assert scripted.requests == []
        async with Worker(
            client, task_queue=task_queue, workflows=[Talk], no_remote_activities=True
        ):
            [made] = await update.result()
    assert (made.message.text, made.message.attempt) == ("yes", 1)


async def test_a_rate_limit_is_waited_out(
    client: Client, task_queue: str, models: Models, scripted: ScriptedModel
) -> None:
    """Three requests of one attempt, each as late as the provider asked."""
    busy = fail(429, headers={"Retry-After": "2"})
    scripted.add(busy, busy, reply("at last"))
    async with working(client, task_queue, models):
        handle = await begin(client, task_queue, user(0))
        [made] = await ask(handle, calling("m0"))
    assert (made.message.text, made.message.attempt) == ("at last", 1)
    times = [request.at for request in scripted.requests]
    assert all(second - first >= 2 for first, second in itertools.pairwise(times))
    assert len(times) == 3


@pytest.mark.parametrize(
    ("broken", "kind", "words"),
    [
        (fail(401, "Incorrect API key provided: sk-1234567890abcd"), "ModelCallError", "valid key"),
        (fail(400, "tools.0.name: invalid"), "ModelCallError", "tools.0.name: invalid"),
        (fail(404, "no such model"), "ModelCallError", "there is no model openai/"),
        (
            fail(429, {"error": {"message": "x", "code": "insufficient_quota"}}),
            "ModelCallError",
            "quota",
        ),
        (fail(400, "maximum context length is 8192"), "ContextOverflow", "too long"),
    ],
)
async def test_what_no_retry_can_change_is_one_attempt(
    client: Client,
    task_queue: str,
    models: Models,
    scripted: ScriptedModel,
    broken: Reply,
    kind: str,
    words: str,
) -> None:
    """The error reaches the caller at once, typed, without a key."""
    scripted.add(broken, reply("works again"))
    async with working(client, task_queue, models):
        handle = await begin(client, task_queue, user(0))
        error = await failure(handle, calling("m0"))
        assert len(scripted.requests) == 1
        assert (error.type, error.non_retryable) == (kind, True)
        assert words in error.message
        [made] = await ask(handle, calling("m0"))
    assert made.message.text == "works again"
    history = (await handle.fetch_history()).to_json()
    assert "sk-1234567890abcd" not in history


@pytest.mark.parametrize("model", ["openai/scripted", "ollama/scripted"])
@pytest.mark.parametrize(
    "broken",
    [
        fail(529, "Overloaded"),
        reset(),
        reset(headers_first=True),
        reply(raw={"choices": [], "message": None}),
    ],
)
async def test_what_may_pass_is_tried_again(
    client: Client,
    task_queue: str,
    models: Models,
    scripted: ScriptedModel,
    broken: Reply,
    model: str,
) -> None:
    """Overload and broken lines; the second request is the same bytes."""
    scripted.add(broken, reply("yes"))
    async with working(client, task_queue, models):
        handle = await begin(client, task_queue, user(0))
        [made] = await ask(handle, calling("m0").replace(model=model))
    assert (made.message.text, made.message.attempt) == ("yes", 2)
    first, second = scripted.requests
    assert first.raw == second.raw


@pytest.mark.parametrize("model", ["openai/scripted", "ollama/scripted"])
@pytest.mark.parametrize("headers_first", [False, True])
async def test_a_silent_model_is_given_up_in_time(
    client: Client,
    task_queue: str,
    models: Models,
    scripted: ScriptedModel,
    *,
    headers_first: bool,
    model: str,
) -> None:
    """The attempt ends at the configured timeout, closes its connection, and is retried."""
    scripted.add(reply("warm"), hang(headers_first=headers_first), reply("yes"))
    await models.complete({"model": model, "messages": [{"role": "user", "content": "hi"}]})
    async with working(client, task_queue, models):
        handle = await begin(client, task_queue, user(0))
        [made] = await ask(handle, calling("m0").replace(model=model, seconds=2.0))
    assert (made.message.text, made.message.attempt) == ("yes", 2)
    _, silent, second = scripted.requests
    assert silent.disconnected
    assert 2 <= second.at - silent.at < 10


async def test_a_cancelled_call_closes_its_connection(
    client: Client, task_queue: str, models: Models, scripted: ScriptedModel
) -> None:
    """Cancelling reaches the HTTP request within two seconds."""
    scripted.add(hang())
    async with working(client, task_queue, models):
        handle = await begin(client, task_queue, user(0))
        await handle.start_update(
            Talk.ask, [calling("m0")], wait_for_stage=WorkflowUpdateStage.ACCEPTED
        )
        async with asyncio.timeout(30):
            await scripted.received(1)
        start = time.monotonic()
        cancelled = asyncio.create_task(handle.execute_update(Talk.cancel))
        async with asyncio.timeout(10):
            await scripted.disconnected(1)
        assert time.monotonic() - start < 2
        assert await cancelled


async def test_reasoning_and_signatures_survive_a_restart(
    client: Client, task_queue: str, models: Models, scripted: ScriptedModel
) -> None:
    """litellm, history, another worker; then back on the wire unchanged."""
    blocks = [
        {"type": "thinking", "thinking": "...", "signature": "s1"},
        {"type": "redacted_thinking", "data": "d"},
    ]
    signed = {"provider_specific_fields": {"thought_signature": "abc=="}}
    raw_call = {
        "id": "x1",
        "type": "function",
        "function": {"name": "list_memory_keys", "arguments": "{}"},
        **signed,
    }
    extra = {"thinking_blocks": blocks, "reasoning_content": "hm", **signed}
    scripted.add(reply(calls=[raw_call], extra=extra), reply("done"))
    result = Message(
        id="m2", role=Role.TOOL_RESULT, call="t1.s1.c0", name="list_memory_keys", content="[]"
    )
    async with working(client, task_queue, models):
        handle = await begin(client, task_queue, user(0), result)
        [made] = await ask(handle, calling("m0", made=1))
    async with working(client, task_queue, models):
        await ask(handle, calling("m0-2", made=3, step=2))
    assert made.message.calls == [ToolCall(id="t1.s1.c0", name="list_memory_keys", fields=signed)]
    sent = scripted.requests[1].messages[1]
    assert sent["thinking_blocks"] == blocks
    assert sent["reasoning_content"] == "hm"
    assert sent["provider_specific_fields"] == signed["provider_specific_fields"]
    [call] = sent["tool_calls"]
    assert (call["id"], call["provider_specific_fields"]) == (
        "000101000",
        signed["provider_specific_fields"],
    )


async def test_ollama_is_asked_by_its_own_tool_calls(
    client: Client, task_queue: str, models: Models, scripted: ScriptedModel
) -> None:
    """`ollama/NAME` is sent to Ollama's chat endpoint, tools as tools."""
    scripted.add(
        reply(calls=[Call("recall_memory", {"key": "city"})], extra={"thinking": "hm"}),
        reply("Oslo"),
        reply("no more"),
    )
    result = Message(
        id="m2", role=Role.TOOL_RESULT, call="t1.s1.c0", name="recall_memory", content="Oslo"
    )
    call = calling("m0", made=1).replace(model="ollama/llama3.2")
    async with working(client, task_queue, models):
        handle = await begin(client, task_queue, user(0), result)
        [made] = await ask(handle, call)
        again = calling("m0-2", made=3, step=2).replace(model="ollama/llama3.2")
        await ask(handle, again)
        await ask(handle, again.replace(tool_choice="none"))
    assert [found.arguments for found in made.message.calls] == [{"key": "city"}]
    first, second, last = scripted.requests
    assert (first.path, first.model) == ("/api/chat", "llama3.2")
    assert [tool["function"]["name"] for tool in first.tools] == TOOLS
    assert [message["role"] for message in second.messages] == ["user", "assistant", "tool"]
    assert second.messages[1]["thinking"] == "hm"
    assert last.tools == []


@pytest.mark.parametrize("stream", [False, True])
async def test_ollama_is_never_asked_what_its_model_is(
    models: Models, monkeypatch: pytest.MonkeyPatch, *, stream: bool
) -> None:
    """The library would ask by a client that blocks the worker's loop, heartbeats and all."""
    asked: list[str] = []

    async def served(request: web.Request) -> web.Response:
        asked.append(request.path)
        done = {"done": True, "message": {"role": "assistant", "content": "Oslo"}}
        return web.json_response({"model": "own:7b", **done})

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", served)
    async with TestServer(app) as server:
        monkeypatch.setenv("OLLAMA_API_BASE", str(server.make_url("/")).rstrip("/"))
        messages = [{"role": "user", "content": "where?"}]
        tools = ToolBox().schemas(TOOLS)
        request = {"model": "ollama/own:7b", "messages": messages, "tools": tools}
        async with asyncio.timeout(20):
            reply = await models.complete(request, stream=stream)
    assert reply["choices"][0]["message"]["content"] == "Oslo"
    assert asked == ["/api/chat"]


async def test_a_reply_in_parts_is_joined(
    client: Client, task_queue: str, models: Models, scripted: ScriptedModel
) -> None:
    """A content list goes through litellm; its thinking goes back where it stood."""
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "q"}]}
    texts = [{"type": "text", "text": text} for text in ("A", None, "B")]
    scripted.add(reply([thought, *texts]), reply("fine"))
    async with working(client, task_queue, models):
        handle = await begin(client, task_queue, user(0))
        [made] = await ask(handle, calling("m0", made=1))
        await ask(handle, calling("m0-1", made=2))
    assert made.message.content == "AB"
    sent = scripted.requests[1].messages[1]
    assert sent == {"role": "assistant", "content": [thought, {"type": "text", "text": "AB"}]}


async def test_a_very_long_reply_is_stored_within_the_limits(
    client: Client, task_queue: str, models: Models, scripted: ScriptedModel
) -> None:
    """Three million characters come back clipped, and the next call works."""
    scripted.add(reply('"' * 3_000_000), reply("fine"))
    async with working(client, task_queue, models):
        handle = await begin(client, task_queue, user(0))
        [made] = await ask(handle, calling("m0", made=1))
        assert len(made.message.model_dump_json()) <= 1024 * 1024
        [after] = await ask(handle, calling("m0-1", made=2))
    assert after.message.text == "fine"


async def test_the_offline_model_answers_through_litellm(
    client: Client, task_queue: str, models: Models
) -> None:
    """`agentmem/offline` needs no endpoint, and may call the tools that it is offered."""
    async with working(client, task_queue, models):
        handle = await begin(client, task_queue, user(0, "Remember that I live in Oslo."))
        call = calling("m0").replace(model="agentmem/offline", tools=["store_memory"])
        [made] = await ask(handle, call)
    assert [found.name for found in made.message.calls] == ["store_memory"]


async def test_a_models_context_is_what_litellm_knows_of_it() -> None:
    """Named with its provider or without; 0 for others, and before it is imported."""
    models = Models()
    assert models.context("openai/gpt-4o") == 0
    await models.ask({"model": "agentmem/offline", "messages": [{"role": "user", "content": "hi"}]})
    assert models.context("openai/gpt-4o") == 128_000
    assert models.context("gpt-4o") == 128_000
    assert models.context("openai/test-model") == 0
    await models.close()
