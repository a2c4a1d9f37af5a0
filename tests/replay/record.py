"""Record the histories that the replay tests run over: `make histories`.

Only histories that are not there yet are recorded. An old one is never replaced: it stands for the
sessions that run in the world.
"""

import asyncio
import sys
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

from temporalio.client import WorkflowFailureError, WorkflowHandle, WorkflowUpdateStage
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.testing import WorkflowEnvironment

from agentmem import queues
from agentmem.client import ask
from agentmem.contracts import SEARCH_ATTRIBUTES, ScopeRef
from agentmem.dreaming.hand_over import hand_over_id
from agentmem.dreaming.hook import dream_id
from agentmem.llm.summaries import FORM
from agentmem.testing import Call, Reply, Request, call, fail, hang, reply
from tests.conftest import temporal_binary
from tests.replay.own import OWN_WORKFLOWS, Pair
from tests.runs import hold_appends
from tests.stack import Stack, stack, status_where, waiting_call
from tests.tools import dawdle, delete_file, ping, read_log

ROOT = Path(__file__).parents[2]
HISTORIES = Path(__file__).with_name("histories")
OFFLINE = "agentmem/offline"
AGENTS = """
[agents.plain]
system_prompt = "Be brief."
tools = ["ping", "delete_file"]
[agents.short]
system_prompt = "Be brief."
run_limits.events = 30
[agents.city]
response_format = { type = "object", required = ["name"] }
[agents.curious]
tools = ["ask_user", "ping"]
approve = ["ping"]
approval_minutes = 0.05
[agents.summed]
working_memory = { max_tokens = 300, compact_model = "openai/test-model" }
[agents.reader]
tools = ["read_log"]
working_memory = { max_tokens = 3000, compact_model = "openai/test-model" }
[agents.slow]
tools = ["dawdle"]
[agents.friend]
system_prompt = "You are a friend with a memory."
long_term_memory.provider = "sqlite:facts.db"
[agents.friend.dream]
on = ["complete", "end"]
[agents.busy]
tools = ["ping", "delete_file"]
long_term_memory.provider = "sqlite:facts.db"
[agents.busy.dream]
on = ["complete", "pause", "end"]
model = "agentmem/offline"
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
    scope = ScopeRef(provider="sqlite:facts.db", agent="friend", scope=s.task_queue)
    found: Handle = s.client.get_workflow_handle(dream_id(scope))
    await found.result()
    return found


async def dream_on_its_own_queue(s: Stack) -> Handle:
    """A dream whose steps have a queue and a fairness key."""
    return await dream(s)


async def call_that_no_worker_took(s: Stack) -> Handle:
    """A turn whose model call waits for a slot on a queue of its own, and is scheduled anew."""
    script = [reply("slow", delay=8), reply("quick")]
    look, queues.FIRST_LOOK = queues.FIRST_LOOK, timedelta(seconds=2)
    try:
        with tempfile.TemporaryDirectory() as data:
            more: dict[str, Any] = {"model_queue": "models-apart", "model_slots": 1}
            async with stack(s.client, Path(data), script, model_name=MODEL, **more) as apart:
                slow = await apart.start(agent="plain", message="slow")
                await apart.model.received(1)
                handle = await apart.start(agent="plain", message="quick")
                await asyncio.gather(slow.result(), handle.result())
    finally:
        queues.FIRST_LOOK = look
    return handle


async def dream_that_waited(s: Stack) -> Handle:
    """A dream that waits twice for its model, which is overloaded."""
    return await dream(s)


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


async def structured_output(s: Stack) -> Handle:
    """An answer in a form, after one repair."""
    handle = await s.start(agent="city", message="which?")
    await handle.result()
    return handle


async def cancelled_turn(s: Stack) -> Handle:
    """A turn cancelled in its second model call, and one after it."""
    handle = await s.start(agent="plain", session=True)
    turn = await handle.start_update("send", "go", wait_for_stage=WorkflowUpdateStage.ACCEPTED)
    await s.model.received(2)
    await handle.execute_update("cancel_turn")
    await asyncio.gather(turn.result(), return_exceptions=True)
    await handle.execute_update("send", "go on")
    await handle.execute_update("end")
    await handle.result()
    return handle


async def people(s: Stack) -> Handle:
    """Two calls that wait for people at once, a question among them; one times out."""
    handle = await s.start(agent="curious", session=True, message="go")
    await status_where(handle, lambda status: len(status["approvals"]) == 2)
    name = await waiting_call(handle, "t1.s1.c0")
    await handle.signal("approve", {"call": name, "ok": True, "answer": "Oslo"})
    await status_where(handle, lambda status: status["turns"] == 1 and not status["open"])
    await handle.execute_update("end")
    await handle.result()
    return handle


async def compaction(s: Stack) -> Handle:
    """A session whose first messages a summary replaces."""
    handle = await s.start(agent="summed", session=True)
    for number in range(4):
        await handle.execute_update("send", f"message {number}: " + "words " * 40)
    await handle.execute_update("end")
    await handle.result()
    return handle


async def compaction_in_turn(s: Stack) -> Handle:
    """A turn whose first results a summary replaces while it runs, twice, and a turn after it."""
    handle = await s.start(agent="reader", session=True)
    for text in ("read the logs", "and what do they say?"):
        await handle.execute_update("send", text)
    await handle.execute_update("end")
    await handle.result()
    return handle


async def interrupted_tool(s: Stack) -> Handle:
    """A tool that takes longer than it may, and a failed model call after it."""
    handle = await s.start(agent="slow", session=True, message="go")
    await status_where(handle, lambda status: status["turns"] == 1 and not status["open"])
    await handle.execute_update("send", "again")
    await handle.execute_update("end")
    await handle.result()
    return handle


async def side_by_side(s: Stack) -> Handle:
    """Sends, approvals, tool calls and the hooks of each answer at the same time."""
    handle = await s.start(agent="busy", scope=s.task_queue, session=True)
    sends = asyncio.gather(*(handle.execute_update("send", text) for text in ("one", "two")))
    waiting = await status_where(handle, lambda status: len(status["approvals"]) == 2)
    answers = [{"call": one["call"], "ok": True} for one in waiting["approvals"]]
    await asyncio.gather(*(handle.execute_update("approve", answer) for answer in answers))
    await sends
    await asyncio.gather(*(handle.execute_update("send", text) for text in ("three", "four")))
    await handle.execute_update("end")
    await handle.result()
    return handle


async def own_workflow(s: Stack) -> Handle:
    """A workflow of one's own: two agents that answer and dream beside each other."""
    handle: Handle = await s.client.start_workflow(
        Pair.run, s.task_queue, id=f"own-{s.task_queue}", task_queue=s.task_queue
    )
    await handle.result()
    return handle


async def answer_that_is_handed_over(s: Stack) -> Handle:
    """An answer whose store hangs; its hand-over stores it later."""
    entered, go = hold_appends(await s.configuration.providers.get("sqlite:facts.db"))
    handle = await s.start(agent="friend", scope=s.task_queue, message="I live in Bergen.")
    await handle.result()
    assert entered.is_set()
    go.set()
    await _hand_over_of(s, handle).result()
    return handle


async def hand_over(s: Stack) -> Handle:
    """The hand-over of such an answer, from its start to the dream's."""
    return _hand_over_of(s, await answer_that_is_handed_over(s))


def _hand_over_of(s: Stack, handle: Handle) -> Handle:
    scope = ScopeRef(provider="sqlite:facts.db", agent="friend", scope=s.task_queue)
    name = hand_over_id(handle.first_execution_run_id or "", "wm0", scope)
    return s.client.get_workflow_handle(name)


async def session_that_hands_over(s: Stack) -> Handle:
    """A session that dreams after answers and at its end, and a store that hangs at the end."""
    handle = await s.start(agent="friend", scope=s.task_queue, session=True)
    await handle.execute_update("send", "My name is Ada.")
    _, go = hold_appends(await s.configuration.providers.get("sqlite:facts.db"))
    await handle.execute_update("send", "My locker is number 42.")
    await handle.execute_update("end")
    await handle.result()
    go.set()
    await _hand_over_of(s, handle).result()
    return handle


async def session_cancelled_at_its_end(s: Stack) -> Handle:
    """A session that is cancelled while its end waits for a store that hangs."""
    entered, go = hold_appends(await s.configuration.providers.get("sqlite:facts.db"))
    handle = await s.start(agent="friend", scope=s.task_queue, session=True)
    await handle.execute_update("send", "My name is Ada.")
    await handle.signal("end")
    await entered.wait()
    await handle.cancel()
    with suppress(WorkflowFailureError):
        await handle.result()
    go.set()
    await _hand_over_of(s, handle).result()
    return handle


async def run_that_changes_under_load(s: Stack) -> Handle:
    """A run that four clients never leave quiet: it holds answers back and then changes."""
    handle = await s.start(agent="short", session=True)

    async def talk(name: str) -> None:
        for number in range(5):
            await handle.execute_update("send", f"{name}{number}")

    await asyncio.gather(*(talk(name) for name in "abcd"))
    await handle.execute_update("end")
    await handle.result()
    return s.client.get_workflow_handle(handle.id, run_id=handle.first_execution_run_id)


TOOL_TURN = [
    reply(calls=[call("ping"), call("no_such_tool"), Call("ping", "{", "x")]),
    reply("done"),
    reply("again"),
]
APPROVAL = [reply(calls=[call("ping"), call("delete_file", path="a.txt")]), reply("deleted")]

SHORT = [reply(text) for text in ("1", "2", "3", "4")]

MODEL = "openai/test-model"
CANCELLED = [reply(calls=[call("ping")]), hang(), reply("fine")]
PEOPLE = [reply(calls=[call("ask_user", question="Where?"), call("ping")]), reply("done")]
WAITED = [
    *(reply("Nice."), fail(503, "overloaded"), fail(503, "overloaded")),
    reply(calls=[call("submit_findings", findings=[])]),
]
TOO_SLOW = reply(calls=[call("dawdle")])
DELETED = [call("delete_file", path=f"{name}.txt") for name in ("a", "b")]
SIDE_BY_SIDE = [reply(calls=[call("ping"), call("ping"), *DELETED]), *[reply("done")] * 4]


def summing(*replies: Reply) -> Callable[[Request], Reply]:
    """A script: the model hands in a summary where it is asked for one, else takes these."""
    left = list(replies)

    def script(request: Request) -> Reply:
        offered = [tool["function"]["name"] for tool in request.tools]
        if FORM in offered:
            return reply(calls=[call(FORM, summary="State: they read logs and talked of them.")])
        return left.pop(0)

    return script


READS = [reply(calls=[call("read_log")])] * 6

Record = Callable[[Stack], Awaitable[Handle]]
RECORDS: dict[str, tuple[Record, str, Any]] = {
    "plain_turn": (plain_turn, "openai/test-model", [reply("Hello!")]),
    "tool_turn": (tool_turn, "openai/test-model", TOOL_TURN),
    "approval": (approval, "openai/test-model", APPROVAL),
    "approval_by_unique_id": (approval, "openai/test-model", APPROVAL),
    "session_with_dream": (session_with_dream, OFFLINE, []),
    "dream": (dream, OFFLINE, []),
    "dream_on_its_own_queue": (dream_on_its_own_queue, OFFLINE, []),
    "call_that_no_worker_took": (call_that_no_worker_took, MODEL, []),
    "dream_that_waited": (dream_that_waited, MODEL, WAITED),
    "structured_output": (structured_output, MODEL, [reply("Oslo"), reply('{"name": "Oslo"}')]),
    "cancelled_turn": (cancelled_turn, MODEL, CANCELLED),
    "people": (people, MODEL, PEOPLE),
    "compaction": (compaction, MODEL, summing(*[reply("answer " * 30)] * 4)),
    "compaction_in_turn": (compaction_in_turn, MODEL, summing(*READS, reply("read"), reply("no"))),
    "interrupted_tool": (interrupted_tool, MODEL, [TOO_SLOW, fail(400), reply("done")]),
    "run_that_goes_on": (run_that_goes_on, "openai/test-model", SHORT),
    "answer_that_is_handed_over": (answer_that_is_handed_over, OFFLINE, []),
    "hand_over": (hand_over, OFFLINE, []),
    "session_that_hands_over": (session_that_hands_over, OFFLINE, []),
    "session_cancelled_at_its_end": (session_cancelled_at_its_end, OFFLINE, []),
    "run_that_changes_under_load": (run_that_changes_under_load, MODEL, [reply("ok")] * 20),
    "run_that_was_handed_on": (run_that_was_handed_on, "openai/test-model", SHORT),
    "run_that_asked_anew": (run_that_was_handed_on, "openai/test-model", SHORT),
    "side_by_side": (side_by_side, MODEL, SIDE_BY_SIDE),
    "own_workflow": (own_workflow, OFFLINE, []),
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
                    extra=[ping, delete_file, dawdle, read_log, *OWN_WORKFLOWS],
                    model_name=model,
                ) as s:
                    handle = await record(s)
                    history = await handle.fetch_history()
            # Stack traces of failures name files: by their place in the checkout.
            file.write_text(history.to_json().replace(f"{ROOT}/", "") + "\n")
            file.with_suffix(".id").write_text(handle.id + "\n")
            sys.stdout.write(f"recorded {file.name}: {len(history.events)} events\n")


if __name__ == "__main__":
    asyncio.run(main())
