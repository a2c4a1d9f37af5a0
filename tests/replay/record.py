"""Record the histories that the replay tests run over: `make histories`.

Only histories that are not there yet are recorded. An old one is never replaced: it stands for the
sessions that run in the world.
"""

import asyncio
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from temporalio.client import WorkflowHandle
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.testing import WorkflowEnvironment

from agentmem.client import ask
from agentmem.contracts import SEARCH_ATTRIBUTES, Store
from agentmem.dreaming.hook import dream_id
from agentmem.testing import Call, call, reply
from tests.conftest import temporal_binary
from tests.stack import Stack, stack, status_where
from tests.tools import delete_file, ping

HISTORIES = Path(__file__).with_name("histories")
OFFLINE = "agentmem/offline"
AGENTS = """
[agents.plain]
system_prompt = "Be brief."
tools = ["ping", "delete_file"]
[agents.short]
system_prompt = "Be brief."
run_limits.events = 30
[agents.friend]
system_prompt = "You are a friend with a memory."
long_term_memory.provider = "sqlite:facts.db"
[agents.friend.dream]
on = ["complete", "end"]
"""

Handle = WorkflowHandle[Any, Any]


async def plain_turn(s: Stack) -> Handle:
    """One message, one answer."""
    handle = await s.start(agent="plain", message="hi")
    await handle.result()
    return handle


async def tool_turn(s: Stack) -> Handle:
    """A session with parallel calls, an unknown tool and broken arguments."""
    handle = await s.start(agent="plain", session=True, message="go")
    await handle.execute_update("send", "and again")
    await handle.execute_update("end")
    await handle.result()
    return handle


async def approval(s: Stack) -> Handle:
    """A turn that waits for a person."""
    handle = await s.start(agent="plain", session=True, message="delete it")
    waiting = await status_where(handle, lambda status: status["approvals"])
    call_id = waiting["approvals"][0]["call"]
    await handle.execute_update("approve", {"call": call_id, "ok": True})
    await handle.signal("end")
    await handle.result()
    return handle


async def session_with_dream(s: Stack) -> Handle:
    """A session with long-term memory that dreams after answers and at its end."""
    handle = await s.start(agent="friend", scope=s.task_queue, session=True)
    for text in ("My name is Ada.", "Remember that my locker is number 42.", "Who am I?"):
        await handle.execute_update("send", text)
    await handle.execute_update("end")
    await handle.result()
    return handle


async def dream(s: Stack) -> Handle:
    """The dream of such a session, from its start."""
    handle = await s.start(agent="friend", scope=s.task_queue, message="I live in Bergen.")
    await handle.result()
    scope = Store(provider="sqlite:facts.db", agent="friend", scope=s.task_queue)
    found: Handle = s.client.get_workflow_handle(dream_id(scope))
    await found.result()
    return found


async def _short_session(s: Stack) -> Handle:
    handle = await s.start(agent="short", session=True, message="one")
    for text in ("two", "three", "four"):
        await ask(handle, text)
    await handle.execute_update("end")
    await handle.result()
    return handle


async def run_that_goes_on(s: Stack) -> Handle:
    """The first run of a session, up to its change to the next."""
    handle = await _short_session(s)
    return s.client.get_workflow_handle(handle.id, run_id=handle.first_execution_run_id)


async def run_that_was_handed_on(s: Stack) -> Handle:
    """The last run of such a session, from what it was handed to its end."""
    return s.client.get_workflow_handle((await _short_session(s)).id)


TOOL_TURN = [
    reply(calls=[call("ping"), call("no_such_tool"), Call("ping", "{", "x")]),
    reply("done"),
    reply("again"),
]
APPROVAL = [reply(calls=[call("ping"), call("delete_file", path="a.txt")]), reply("deleted")]

SHORT = [reply(text) for text in ("1", "2", "3", "4")]

Record = Callable[[Stack], Awaitable[Handle]]
RECORDS: dict[str, tuple[Record, str, list[Any]]] = {
    "plain_turn": (plain_turn, "openai/test-model", [reply("Hello!")]),
    "tool_turn": (tool_turn, "openai/test-model", TOOL_TURN),
    "approval": (approval, "openai/test-model", APPROVAL),
    "session_with_dream": (session_with_dream, OFFLINE, []),
    "dream": (dream, OFFLINE, []),
    "run_that_goes_on": (run_that_goes_on, "openai/test-model", SHORT),
    "run_that_was_handed_on": (run_that_was_handed_on, "openai/test-model", SHORT),
}


async def main() -> None:
    """Record what is missing."""
    async with await WorkflowEnvironment.start_local(
        dev_server_existing_path=temporal_binary(),
        dev_server_extra_args=[f"--search-attribute={name}=Keyword" for name in SEARCH_ATTRIBUTES],
        data_converter=pydantic_data_converter,
    ) as env:
        for name, (record, model, script) in RECORDS.items():
            file = HISTORIES / f"{name}.json"
            if file.exists():
                continue
            with tempfile.TemporaryDirectory() as data:
                async with stack(
                    env.client,
                    Path(data),
                    script,
                    agents=AGENTS,
                    extra=[ping, delete_file],
                    model_name=model,
                ) as s:
                    handle = await record(s)
                    history = await handle.fetch_history()
            file.write_text(history.to_json() + "\n")
            file.with_suffix(".id").write_text(handle.id + "\n")
            sys.stdout.write(f"recorded {file.name}: {len(history.events)} events\n")


if __name__ == "__main__":
    asyncio.run(main())
