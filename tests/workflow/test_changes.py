"""Around the change of a session's run: what comes at the wrong moment, and what is seen of it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from temporalio.api.sdk.v1 import WorkflowMetadata
from temporalio.client import (
    Client,
    WithStartWorkflowOperation,
    WorkflowFailureError,
    WorkflowHandle,
    WorkflowUpdateFailedError,
    WorkflowUpdateStage,
)
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.exceptions import ApplicationError, CancelledError
from temporalio.service import RPCError

from agentmem.client import ask
from agentmem.contracts import ScopeRef
from agentmem.testing import hang, reply
from tests.own_workflows import Anew
from tests.runs import SHORT, histories, hold_appends, replay_all, transcript
from tests.stack import eventually, last_user_text, stack, status_where, task_failures


def echo(request: Any) -> Any:
    """Answer with what was said last."""
    return reply(f"re: {last_user_text(request.messages)}")


async def details(session: WorkflowHandle[Any, Any]) -> str:
    """Return what the Temporal UI shows of a session."""
    found = await session.query("__temporal_workflow_metadata", result_type=WorkflowMetadata)
    return found.current_details


async def test_a_cancelled_session_tells_every_message_so(client: Client, tmp_path: Path) -> None:
    """The running turn and the waiting ones end with the same clear reason."""
    async with stack(client, tmp_path, [hang()]) as s:
        session = await s.start(agent="plain", session=True)
        sent = [
            await session.start_update(
                "send", f"say {n}", wait_for_stage=WorkflowUpdateStage.ACCEPTED
            )
            for n in range(4)
        ]
        await eventually(lambda: bool(s.model.requests), 40)
        await session.cancel()
        for update in sent:
            with pytest.raises(WorkflowUpdateFailedError) as caught:
                await update.result()
            assert isinstance(caught.value.cause, ApplicationError)
            assert caught.value.cause.type == "TurnFailed"
            assert "cancelled" in caught.value.cause.message
        with pytest.raises(WorkflowFailureError):
            await session.result()
        assert await task_failures(session) == []
        await replay_all(await histories(client, session))


async def test_a_session_cancelled_in_the_middle_of_the_change(
    client: Client, tmp_path: Path
) -> None:
    """It is closed as cancelled, in that run, and what was said is in the transcript once."""
    async with stack(client, tmp_path, echo, agents=SHORT.replace("60", "11")) as s:
        entered, go = hold_appends(await s.configuration.providers.get("default"))
        session = await s.start(agent="plain", session=True, message="one")
        await eventually(entered.is_set, 40)
        await session.cancel()
        go.set()
        with pytest.raises(WorkflowFailureError) as caught:
            await session.result()
        assert isinstance(caught.value.cause, CancelledError)
        found = await histories(client, session)
        assert await transcript(s.configuration.providers, "plain") == [
            ("user", "one"),
            ("assistant", "re: one"),
        ]
    assert len(found) == 1
    await replay_all(found)


async def test_a_start_with_a_message_and_two_more_at_once(client: Client, tmp_path: Path) -> None:
    """Update-with-start on a session that is not there yet; all three, each once."""
    async with stack(client, tmp_path, echo) as s:
        request = {"agent": "plain", "session": True, "message": "one"}

        def start() -> WithStartWorkflowOperation[Any, Any]:
            return WithStartWorkflowOperation(
                "agent",
                request,
                id=s.task_queue,
                task_queue=s.task_queue,
                id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            )

        answers = await asyncio.gather(
            *(
                client.execute_update_with_start_workflow(
                    "send", text, start_workflow_operation=start()
                )
                for text in ("two", "three")
            )
        )
        assert answers == ["re: two", "re: three"]
        asked = [last_user_text(sent.messages) for sent in s.model.requests]
        assert asked[0] == "one"
        assert sorted(asked) == ["one", "three", "two"]
        assert s.model.requests[0].messages[0] == {"role": "system", "content": "Be brief."}
        await client.get_workflow_handle(s.task_queue).signal("end")


async def test_a_start_by_a_signal_ends_after_its_message(client: Client, tmp_path: Path) -> None:
    """Signal-with-start; the state is there before the handler runs."""
    async with stack(client, tmp_path, echo) as s:
        session = await client.start_workflow(
            "agent",
            {"agent": "plain", "session": True, "message": "one"},
            id=s.task_queue,
            task_queue=s.task_queue,
            start_signal="end",
        )
        assert await session.result() == {"turns": 1}
        assert [last_user_text(sent.messages) for sent in s.model.requests] == ["one"]


async def test_a_session_that_ended_says_so(client: Client, tmp_path: Path) -> None:
    """Updates and signals to it, and a turn that a terminated one had accepted."""
    async with stack(client, tmp_path, [hang()]) as s:
        session = await s.start(agent="plain", session=True)
        waiting = await session.start_update(
            "ask", "say", wait_for_stage=WorkflowUpdateStage.ACCEPTED
        )
        await session.terminate()
        async with asyncio.timeout(10):
            with pytest.raises(WorkflowUpdateFailedError) as caught:
                await waiting.result()
            assert "completed before" in str(caught.value.cause)
            for call in (ask(session, "more"), session.signal("end")):
                with pytest.raises(RPCError, match="completed"):
                    await call


async def test_updates_that_are_no_turns_bring_the_change_too(
    client: Client, tmp_path: Path
) -> None:
    """Temporal takes 2,000 updates a run: without a change the next message would be refused."""
    agents = SHORT.replace("events = 60", "updates = 5")
    async with stack(client, tmp_path, echo, agents=agents) as s:
        session = await s.start(agent="plain", session=True)
        await ask(session, "one")
        for _ in range(4):
            await session.execute_update("cancel_turn")
        assert (await ask(session, "two")).text == "re: two"
        async with asyncio.timeout(20):
            while len(await histories(client, session)) == 1:  # noqa: ASYNC110 - the server's
                await asyncio.sleep(0.05)
        await session.execute_update("end")
        found = await histories(client, session)
        await session.result()
    assert len(found) == 2
    await replay_all(found)


async def test_the_ui_shows_a_session_from_its_start_and_after_a_change(
    client: Client, tmp_path: Path
) -> None:
    """The details are there before the first turn of a run, and count all runs."""
    async with stack(client, tmp_path, echo, agents=SHORT.replace("60", "10")) as s:
        session = await s.start(agent="plain", session=True)
        await status_where(session, lambda found: found["model"])
        assert "Turns: 0" in await details(session)
        await ask(session, "one")
        async with asyncio.timeout(20):
            while len(await histories(client, session)) == 1:  # noqa: ASYNC110 - the server's
                await asyncio.sleep(0.05)
        assert "Turns: 1" in await details(session)
        await session.execute_update("end")


async def test_a_reply_full_of_quotes_can_be_read(client: Client, tmp_path: Path) -> None:
    """The query's answer stays under Temporal's limit; what is cut says its full size."""
    quotes = '"' * 400_000
    script = [reply("ok", extra={"reasoning_content": quotes})]
    async with stack(client, tmp_path, script) as s:
        session = await s.start(agent="plain", session=True, message="hi")
        await status_where(session, lambda found: found["state"] == "waiting", 40)
        page = await session.query("messages", args=[1])
        assert [entry["role"] for entry in page["messages"]] == ["reasoning", "assistant"]
        assert "bytes in full" in page["messages"][0]["content"]
        assert page["messages"][1]["content"] == "ok"
        await session.execute_update("end")


async def test_a_conversation_that_begins_anew_is_another_one(
    client: Client, tmp_path: Path
) -> None:
    """Runs that follow each other without `restore` lose nothing of their transcripts."""
    store = ScopeRef(provider="sqlite:anew.db", agent="own", scope="s")
    async with stack(client, tmp_path, extra=[Anew]) as s:
        await s.run("Anew", ["one", "two", "three"], store)
        provider = await s.configuration.providers.get(store.provider)
        rows = await provider.unread("own", "s", 1_000_000)
    assert [row.text for row in rows] == ["one", "two", "three"]
    assert [row.seq for row in rows] == [1, 1, 1]
    assert len({row.session for row in rows}) == 3
