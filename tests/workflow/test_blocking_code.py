"""A user's code that blocks or never ends: the loop that heartbeats goes on, results are kept."""

import asyncio
import itertools
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, BaseModel
from temporalio import activity
from temporalio.client import Client
from temporalio.testing import ActivityEnvironment

from activities.tools import tool_activities
from agentmem.contracts import ToolRun
from agentmem.messages import Message, ToolCall
from agentmem.storage.registry import Providers
from agentmem.testing import Request, call, reply
from agentmem.tools import tool
from agentmem.tools.toolbox import ToolBox
from agentmem.wire import JSONObject
from tests.providers.five_methods import FiveMethods
from tests.stack import stack, task_failures, waiting_call
from tests.tools import runs, sleepy

entered, released = threading.Event(), threading.Event()


def block() -> str:
    """Block until the test's own loop says to go on, which a blocked loop never does."""
    entered.set()
    return "free" if released.wait(30) else "held up"


async def while_blocked(work: Any) -> Any:
    """Return what the work gives, which blocks until this loop has seen it do so."""
    entered.clear()
    released.clear()
    task = asyncio.ensure_future(work)
    while not entered.is_set():  # noqa: ASYNC110 - of another thread
        await asyncio.sleep(0.01)
    released.set()
    return await task


def running(function: Callable[..., Any], arguments: JSONObject | None = None) -> Any:
    """Run a tool as its activity does."""
    [run] = tool_activities(ToolBox([function]))
    wish = ToolCall(id="c", name=function.__name__, arguments=arguments or {})
    return ActivityEnvironment().run(run, ToolRun(reply="m1", call=wish))


@tool
async def blocking() -> str:
    """Block in a coroutine."""
    return block()


@tool
def lazy() -> Iterator[str]:
    """Return a generator that blocks."""
    return (block() for _ in range(2))


@tool
async def lazy_in_a_coroutine() -> Any:
    """Return an iterator that blocks."""
    return map(lambda _: block(), range(2))  # noqa: C417


@tool
async def in_pieces() -> AsyncIterator[str]:
    """Return an async generator that blocks."""

    async def pieces() -> AsyncIterator[str]:
        for _ in range(2):
            await asyncio.sleep(0)
            yield block()

    return pieces()


@tool
def in_pieces_from_a_thread() -> AsyncIterator[str]:
    """Return the same from a function that is no coroutine."""

    async def pieces() -> AsyncIterator[str]:
        yield block()
        yield block()

    return pieces()


class Shouting:
    """A value whose text takes long."""

    def __str__(self) -> str:
        return block()


@tool
async def slow_to_show() -> Any:
    """Return something that blocks while it is written down."""
    return [Shouting(), "free"]


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (blocking, "free"),
        (lazy, '["free","free"]'),
        (lazy_in_a_coroutine, '["free","free"]'),
        (in_pieces, '["free","free"]'),
        (in_pieces_from_a_thread, '["free","free"]'),
        (slow_to_show, '["free","free"]'),
    ],
)
async def test_a_tool_that_blocks_holds_up_no_loop(function: Any, text: str) -> None:
    """A blocking call in a coroutine, and a lazy result that computes while it is read."""
    message: Message = await while_blocked(running(function))
    assert (message.content, message.failed) == (text, False)


def checked(value: str) -> str:
    """Check an argument, for long."""
    return f"{value} and {block()}"


Checked = Annotated[str, AfterValidator(checked)]


class Form(BaseModel):
    """An argument that checks itself."""

    name: Checked


@tool
async def slow_check(name: Checked) -> str:
    """Take an argument whose check blocks."""
    return name


@tool
def slow_check_in_a_thread(name: Checked) -> str:
    """Take the same, without a coroutine."""
    return name


@tool
async def slow_form(form: Form) -> str:
    """Take an object whose check blocks."""
    return form.name


SLOW_CHECKS: list[tuple[Any, JSONObject]] = [
    (slow_check, {"name": "x"}),
    (slow_check_in_a_thread, {"name": "x"}),
    (slow_form, {"form": {"name": "x"}}),
]


@pytest.mark.parametrize(("function", "arguments"), SLOW_CHECKS)
async def test_a_check_of_arguments_that_blocks_holds_up_no_loop(
    function: Any, arguments: JSONObject
) -> None:
    """A type's validators are the user's code as well."""
    message: Message = await while_blocked(running(function, arguments))
    assert (message.content, message.failed) == ("x and free", False)


@pytest.mark.parametrize("stream", ["false", "true"])
@pytest.mark.parametrize(("function", "arguments"), SLOW_CHECKS)
async def test_a_check_before_an_approval_holds_up_no_loop(
    client: Client, tmp_path: Path, function: Any, arguments: JSONObject, stream: str
) -> None:
    """It runs where the model's reply is read."""
    name = function.__name__
    agents = f'[agents.a]\ntools = ["{name}"]\napprove = "all"\nstream = {stream}\n'
    script = [reply(calls=[call(name, **arguments)]), reply("done")]
    async with stack(client, tmp_path, script, agents=agents, extra=[function]) as s:
        handle = await s.start(agent="a", session=True)
        turn = asyncio.ensure_future(handle.execute_update("send", "go"))
        waits = await while_blocked(waiting_call(handle, "t1.s1.c0"))
        released.set()
        await handle.execute_update("approve", {"call": waits, "ok": True})
        assert await turn == "done"
        assert len(s.model.requests) == 2


class Rows:
    """A cursor that can be read, and is no iterator itself."""

    def __iter__(self) -> Iterator[int]:
        return iter(range(3))


class Pages:
    """The same, in a coroutine."""

    def __init__(self, most: int = 3) -> None:
        self.most = most

    async def __aiter__(self) -> AsyncIterator[int]:
        for number in range(self.most):
            yield number


@pytest.mark.parametrize("rows", [Rows, Pages, lambda: {"rows": Rows()}])
async def test_what_can_be_read_is_read(rows: Callable[[], Any]) -> None:
    """Cursors of databases are no iterators, and their text says nothing."""

    @tool
    def read() -> Any:
        """Read."""
        return rows()

    message: Message = await running(read)
    assert message.content in ("[0,1,2]", '{"rows":[0,1,2]}')


async def endless() -> AsyncIterator[int]:
    """Count for ever."""
    for number in itertools.count():
        yield number


ENDLESS: dict[str, Callable[[], Any]] = {
    "iterator": itertools.count,
    "generator": lambda: ("" for _ in itertools.count()),
    "async generator": endless,
    "range": lambda: range(10**15),
    "pages": lambda: Pages(10**15),
    "inside": lambda: {"rows": itertools.repeat({"a": [1, 2]}), "more": 1},
}


@pytest.mark.parametrize("kind", ENDLESS)
@pytest.mark.parametrize("in_coroutine", [True, False])
async def test_an_endless_result_is_bounded(kind: str, in_coroutine: bool) -> None:
    """Its beginning is the result, and the notice says that the rest was not read."""

    @tool(name="x", result_bytes=2_000)
    async def in_a_coroutine() -> Any:
        return ENDLESS[kind]()

    @tool(name="x", result_bytes=2_000)
    def in_a_thread() -> Any:
        return ENDLESS[kind]()

    [run] = tool_activities(ToolBox([in_a_coroutine if in_coroutine else in_a_thread]))
    wish = ToolRun(reply="m1", call=ToolCall(id="c", name="x"))
    message: Message = await ActivityEnvironment().run(run, wish)
    assert message.text.endswith("... [cut: the rest of the result was not read]")
    assert not message.failed
    assert 1_000 < len(message.text.encode()) <= 2_000


async def test_a_lazy_result_that_ends_is_whole() -> None:
    """A result that fits is read to its end, and an error on the way is the tool's failure."""

    @tool
    def squares() -> Iterator[int]:
        return (number * number for number in range(5))

    @tool
    def failing() -> Iterator[int]:
        return (1 // number for number in (1, 0))

    assert (await running(squares)).content == "[0,1,4,9,16]"
    failed: Message = await running(failing)
    assert (failed.failed, "ZeroDivisionError" in failed.text) == (True, True)


@pytest.mark.parametrize("in_coroutine", [True, False])
async def test_a_tool_may_heartbeat_from_its_own_thread(in_coroutine: bool) -> None:
    """The SDK's function needs the worker's loop; a tool need not know."""
    beats: list[Any] = []

    @tool(name="x")
    async def in_a_coroutine() -> None:
        activity.heartbeat("mine")
        await asyncio.sleep(0.1)

    @tool(name="x")
    def in_a_thread() -> None:
        activity.heartbeat("mine")
        time.sleep(0.1)

    env = ActivityEnvironment()
    env.on_heartbeat = lambda *details: beats.append((details, threading.current_thread()))
    [run] = tool_activities(ToolBox([in_a_coroutine if in_coroutine else in_a_thread]))
    await env.run(run, ToolRun(reply="m1", call=ToolCall(id="c", name="x")))
    assert (("mine",), threading.main_thread()) in beats


class Blocking(FiveMethods):
    """A store with a driver that blocks."""

    async def memorize(self, agent: str, scope: str, key: str, value: Any) -> None:
        """Block, then store."""
        await super().memorize(agent, scope, key, [value, block()])


def slow_to_make() -> FiveMethods:
    """Block while the store is made."""
    block()
    return FiveMethods()


async def test_a_store_that_blocks_holds_up_no_loop(tmp_path: Path) -> None:
    """With five methods, or while it is made; and a whole one."""
    providers = Providers(tmp_path, None, {"blocking": Blocking, "slow": slow_to_make})
    store = await providers.get("named:blocking")
    await while_blocked(store.memorize("a", "s", "city", "Oslo"))
    assert await store.recall("a", "s", "city") == ["Oslo", "free"]
    made = await while_blocked(providers.get("named:slow"))
    assert await made.keys("a", "s") == []
    await providers.close()

    whole = await Providers(tmp_path).get("in_memory:blocked")
    recall = whole.recall

    async def blocks(*args: Any) -> Any:
        return [block(), await recall(*args)]

    whole.recall = blocks  # type: ignore[method-assign]
    providers = Providers(tmp_path, None, {"whole": lambda: whole})
    mine = await providers.get("named:whole")
    assert await while_blocked(mine.recall("a", "s", "city")) == ["free", None]
    await providers.close()


@tool
async def who_asks() -> str:
    """Ask the server which workflow this is."""
    workflow = activity.info().workflow_id
    assert workflow
    described = await activity.client().get_workflow_handle(workflow).describe()
    return f"{described.workflow_type} in {threading.current_thread().name}"


async def test_a_tool_may_use_its_activitys_client(client: Client, tmp_path: Path) -> None:
    """The SDK's client works in the tools' loop as in the worker's."""
    agents = '[agents.asking]\ntools = ["who_asks"]'
    script = [reply(calls=[call("who_asks")]), reply("done")]
    async with stack(client, tmp_path, script, agents=agents, extra=[who_asks]) as s:
        assert await (await s.start(agent="asking", message="go")).result() == "done"
        told = s.model.requests[1].messages[-1]["content"]
    assert told == "agent in agentmem-async-tools"


AGENTS = """
[agents.blocking]
tools = ["sleepy"]
[agents.plain]
[agents.streamed]
stream = true
"""


@pytest.mark.slow
@pytest.mark.timeout(180)
async def test_nobody_elses_call_is_made_again(client: Client, tmp_path: Path) -> None:
    """A coroutine blocks for longer than a heartbeat may be late: every call is made once."""
    runs.clear()

    def script(request: Request) -> Any:
        if not request.tools:
            return reply("slowly", delay=14)
        if request.messages[-1]["role"] == "tool":
            return reply("done")
        return reply(calls=[call("sleepy")])

    async with stack(client, tmp_path, script, agents=AGENTS, extra=[sleepy]) as s:
        names = ("plain", "streamed", "blocking")
        handles = [await s.start(agent=name, message="go") for name in names]
        answers = [await handle.result() for handle in handles]
        assert answers == ["slowly", "slowly", "done"]
        assert len(s.model.requests) == 4
    assert runs == ["sleepy"]
    for handle in handles:
        assert await task_failures(handle) == []
