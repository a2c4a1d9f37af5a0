"""The call that a person approves is what runs, and an approval releases one call alone."""

from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, ConfigDict, Field, SecretStr
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest
from temporalio.client import Client, WorkflowUpdateFailedError

from agentmem.messages import ToolCall
from agentmem.testing import call, reply
from agentmem.tools import tool
from agentmem.tools.toolbox import ToolBox
from agentmem.wire import JSONObject
from tests.own_workflows import Asking
from tests.stack import eventually, stack, status_where, task_failures, waiting_call
from tests.tools import Wiping, runs, wipe

AGENTS = """
[agents.whole]
tools = ["wipe"]
[agents.streamed]
tools = ["wipe"]
stream = true
"""
WISH = reply(calls=[call("wipe", path="a")])


def checked(name: str, /, **arguments: Any) -> ToolCall:
    """Return a call as the worker checks it before a person is asked."""
    return ToolBox([wipe]).checked(ToolCall(id="t1.s1.c0", name=name, arguments=arguments))


@pytest.mark.parametrize("agent", ["whole", "streamed"])
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"path": "a", "force": True}, "force: no such parameter"),
        ({"path": "a", "how": {"shred": True, "keep": "b"}}, "how.keep: no such parameter"),
        ({}, "path: missing"),
        ({"path": "a", "recursive": "perhaps"}, "recursive: input should be a valid boolean"),
    ],
)
async def test_nobody_is_asked_about_a_call_that_cannot_run_as_sent(
    client: Client, tmp_path: Path, agent: str, arguments: JSONObject, words: str
) -> None:
    """The model reads what is wrong, and the person sees the corrected call alone."""
    runs.clear()
    script = [reply(calls=[call("wipe", **arguments)]), WISH, reply("done")]
    async with stack(client, tmp_path, script, agents=AGENTS, extra=[wipe]) as s:
        handle = await s.start(agent=agent, message="go")
        name = await waiting_call(handle, "t1.s2.c0")
        assert words in str(s.model.requests[1].messages[-1]["content"])
        await handle.execute_update("approve", {"call": name, "ok": True})
        assert await handle.result() == "done"
        assert runs == ["wipe a True None"]
        s.model.assert_strict()
    assert await task_failures(handle) == []


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        ({"path": "a"}, {"path": "a", "recursive": True, "how": None}),
        ({"path": "a", "recursive": None}, {"path": "a", "recursive": True, "how": None}),
        ({"path": 5, "recursive": "no"}, {"path": "5", "recursive": False, "how": None}),
        (
            {"path": "a", "how": {"passes": "3"}},
            {"path": "a", "recursive": True, "how": {"shred": False, "passes": 3}},
        ),
    ],
)
async def test_a_person_sees_what_the_tool_gets(
    client: Client, tmp_path: Path, sent: JSONObject, shown: JSONObject
) -> None:
    """Converted values, defaults and what stands in place of a null are shown, and run."""
    runs.clear()
    script = [reply(calls=[call("wipe", **sent)]), reply("done")]
    async with stack(client, tmp_path, script, agents=AGENTS, extra=[wipe]) as s:
        handle = await s.start(agent="whole", message="go")
        name = await waiting_call(handle, "t1.s1.c0")
        [waiting] = (await handle.query("status"))["approvals"]
        assert waiting == {"call": name, "tool": "wipe", "arguments": shown}
        await handle.signal("approve", {"call": name, "ok": True})
        assert await handle.result() == "done"
        [ran] = runs
        assert ran.startswith(f"wipe {shown['path']} {shown['recursive']} ")
        assert ("passes=3" in ran) == (shown["how"] is not None)
        s.model.assert_strict()


class Anything(BaseModel):
    """What takes any field."""

    model_config = ConfigDict(extra="allow")

    size: int = 1


@tool
def odd(
    token: SecretStr,
    amount: Annotated[int, Field(alias="count")] = 3,
    some: Anything | int | None = None,
    many: list[Wiping] = [],  # noqa: B006
    handle: Any = runs,
) -> None:
    """Take values whose JSON form is not what binds to them, or that take any field."""


@pytest.mark.parametrize(
    ("sent", "shown", "problem"),
    [
        ({"token": "x"}, {"token": "x", "count": 3, "some": None, "many": []}, ""),
        ({"token": "x", "some": {"new": 1}}, {"some": {"size": 1, "new": 1}}, ""),
        ({"token": "x", "amount": 1}, {}, "amount: no such parameter"),
        ({"token": "x", "many": [{}, {"shed": True}]}, {}, "many.1.shed: no such parameter"),
        ({"token": "x", "some": 4, "other": 1}, {}, "other: no such parameter"),
    ],
)
def test_values_of_any_type_are_shown_or_told(
    sent: JSONObject, shown: JSONObject, problem: str
) -> None:
    """A secret has no JSON form that binds to it: it is shown as it was sent, as ever."""
    call = ToolBox([odd]).checked(ToolCall(id="t1.s1.c0", name="odd", arguments=sent))
    assert {name: call.bound.get(name) for name in shown} == shown
    assert problem in call.problem
    assert bool(problem) == bool(call.problem)


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("store_memory", {"key": "a", "value": 1, "scope": "b"}, "no parameter scope"),
        ("store_memory", {"key": "a", "name": "b", "value": 1}, "no parameter name"),
        ("store_memory", {"key": "a"}, "`value` is missing"),
        ("forget_memory", {"key": ["a", "b"]}, "name one key"),
        ("forget_memory", {"key": "a", "all": True}, "no parameter all"),
        ("list_memory_keys", {"key": "a"}, "no parameter key"),
        ("recall_memory", {"key": "a", "keys": ["b"]}, ""),
        ("store_memory", {"name": "a", "content": 1}, ""),
    ],
)
def test_calls_of_memory_tools_are_checked_too(
    name: str, arguments: JSONObject, words: str
) -> None:
    """A person is not asked about a call with arguments that the tool would refuse or leave out."""
    problem = checked(name, **arguments).problem
    assert words in problem
    assert bool(problem) == bool(words)


async def refused(client: Client, workflow_id: str, name: str) -> str:
    """Answer a call that does not wait; returns what the workflow says."""
    handle = client.get_workflow_handle(workflow_id)
    await handle.signal("approve", {"call": name, "ok": True})
    with pytest.raises(WorkflowUpdateFailedError) as caught:
        await handle.execute_update("approve", {"call": name, "ok": True})
    return str(caught.value.cause)


async def test_an_approval_for_an_ended_workflow_releases_nothing_in_the_next(
    client: Client, tmp_path: Path, task_queue: str
) -> None:
    """A second workflow under the id of the first waits for its own answer."""
    runs.clear()
    script = [WISH, WISH, reply("done")]
    async with stack(client, tmp_path, script, agents=AGENTS, extra=[wipe]) as s:
        request = {"agent": "whole", "message": "go"}
        options: dict[str, Any] = {"id": task_queue, "task_queue": s.task_queue}
        first = await client.start_workflow("agent", request, **options)
        old = await waiting_call(first, "t1.s1.c0")
        await first.terminate()
        second = await client.start_workflow("agent", request, **options)
        name = await waiting_call(second, "t1.s1.c0")
        assert f"no call {old!r} waits" in await refused(client, task_queue, old)
        assert runs == []
        await second.signal("approve", {"call": name, "ok": True})
        assert await second.result() == "done"
    assert runs == ["wipe a True None"]


async def test_an_approval_releases_nothing_in_the_next_run_of_an_own_workflow(
    client: Client, tmp_path: Path, task_queue: str
) -> None:
    """A workflow that continues as new begins its turns anew; their calls have new names."""
    runs.clear()
    script = [WISH, reply("one"), WISH, reply("two")]
    async with stack(client, tmp_path, script, agents=AGENTS, extra=[wipe, Asking]) as s:
        handle = await client.start_workflow("Asking", 1, id=task_queue, task_queue=s.task_queue)
        old = await waiting_call(handle, "t1.s1.c0")
        await handle.signal("approve", {"call": old, "ok": True})
        await eventually(lambda: len(s.model.requests) == 3)
        latest = client.get_workflow_handle(task_queue)
        await status_where(latest, lambda status: status["approvals"])
        assert f"no call {old!r} waits" in await refused(client, task_queue, old)
        assert len(runs) == 1
        await latest.signal("approve", {"call": await waiting_call(latest, "t1.s1.c0"), "ok": True})
        assert await latest.result() == "two"
    assert len(runs) == 2


async def test_an_approval_releases_nothing_in_a_run_that_was_reset(
    client: Client, tmp_path: Path
) -> None:
    """The run before the reset waited for another call, though that call's place is the same."""
    runs.clear()
    script = [WISH, WISH, reply("done")]
    async with stack(client, tmp_path, script, agents=AGENTS, extra=[wipe]) as s:
        handle = await s.start(agent="whole", message="go")
        old = await waiting_call(handle, "t1.s1.c0")
        await client.workflow_service.reset_workflow_execution(
            ResetWorkflowExecutionRequest(
                namespace=client.namespace,
                workflow_execution=WorkflowExecution(workflow_id=handle.id),
                workflow_task_finish_event_id=4,
                request_id=old,
            )
        )
        latest = client.get_workflow_handle(handle.id)
        name = await waiting_call(latest, "t1.s1.c0")
        assert f"no call {old!r} waits" in await refused(client, handle.id, old)
        await latest.signal("approve", {"call": name, "ok": True})
        assert await latest.result() == "done"
    assert runs == ["wipe a True None"]
