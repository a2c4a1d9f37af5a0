"""No message is refused because a session changes its run: plain sends, as any SDK makes them."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import (
    Client,
    WorkflowHandle,
    WorkflowUpdateFailedError,
    WorkflowUpdateHandle,
    WorkflowUpdateStage,
)
from temporalio.exceptions import ApplicationError

from agentmem.errors import RollingOver, SessionBusy
from agentmem.testing import reply
from tests.runs import SHORT, histories, hold_appends, replay_all, transcript
from tests.stack import Stack, last_user_text, stack, status_where

Handle = WorkflowHandle[Any, Any]


def echo(request: Any) -> Any:
    """Answer with what was said last; keep no request: thousands would fill the test's memory."""
    text = last_user_text(request.messages)
    request.raw, request.body = b"", {}
    return reply(f"re: {text}")


async def talk(session: Handle, name: str, turns: int) -> None:
    """Send messages without a pause, and no retry: a refusal fails the test."""
    for number in range(turns):
        said = f"{name}{number}"
        assert await session.execute_update("send", said) == f"re: {said}"


async def ended(client: Client, session: Handle, turns: int) -> list[Any]:
    """End a session, and return its runs' histories."""
    await session.execute_update("end")
    assert await session.result() == {"turns": turns}
    return await histories(client, session)


@pytest.mark.parametrize("clients", [1, 4])
async def test_plain_sends_without_a_pause_are_never_refused(
    client: Client, tmp_path: Path, clients: int
) -> None:
    """One client, and four that never leave the session quiet: each gets its answer, each once."""
    async with stack(client, tmp_path, echo, agents=SHORT) as s:
        session = await s.start(agent="plain", session=True)
        await asyncio.gather(*(talk(session, name, 60 // clients) for name in "abcd"[:clients]))
        found = await ended(client, session, 60)
        rows = await transcript(s.configuration.providers, "plain")
    assert len(found) >= 4
    assert len({text for role, text in rows if role == "user"}) == 60
    assert len(rows) == 120
    await replay_all(found)


@pytest.mark.slow
@pytest.mark.timeout(200)
async def test_a_store_that_hangs_keeps_no_session_from_its_next_run(
    client: Client, tmp_path: Path
) -> None:
    """Messages are taken all the time, the run changes, and what the store lacks goes along."""
    async with stack(client, tmp_path, echo, agents=SHORT) as s:
        entered, go = hold_appends(await s.configuration.providers.get("default"))
        session = await s.start(agent="plain", session=True)
        said = 0

        async def talk_on(name: str) -> None:
            nonlocal said
            while len(await histories(client, session)) == 1:
                await talk(session, f"{name}{said}.", 1)
                said += 1
                await asyncio.sleep(0.2)

        async with asyncio.timeout(50):
            await asyncio.gather(*(talk_on(name) for name in "abc"))
        assert entered.is_set()
        go.set()
        found = await ended(client, session, said)
        rows = await transcript(s.configuration.providers, "plain")
    assert len({text for role, text in rows if role == "user"}) == said
    assert len(rows) == 2 * said
    await replay_all(found)


async def test_a_hook_that_had_not_begun_runs_in_the_next_run(
    client: Client, tmp_path: Path
) -> None:
    """Dreams after each answer, and a store that is slow: none is forgotten with its run."""
    agents = SHORT + 'long_term_memory.provider = "sqlite:memory.db"\ndream.on = ["complete"]\n'
    async with stack(client, tmp_path, echo, agents=agents) as s:
        provider: Any = await s.configuration.providers.get("sqlite:memory.db")
        original = provider.append

        async def slow(*args: Any) -> int:
            await asyncio.sleep(0.3)
            return await original(*args)

        provider.append = slow
        session = await s.start(agent="plain", scope="ada", session=True)
        await talk(session, "a", 20)
        assert len(await histories(client, session)) >= 2
        async with asyncio.timeout(20):  # by hooks alone: the session does not end
            while await missing(provider, session):  # noqa: ASYNC110 - a store tells nobody
                await asyncio.sleep(0.1)
        found = await ended(client, session, 20)
    await replay_all(found)


async def missing(provider: Any, session: Handle) -> bool:
    """Tell whether the transcript lacks something that was said."""
    rows = [row for row in await provider.export("plain", "ada") if row["table"] == "transcript"]
    total = (await session.query("messages"))["total"]
    return len(rows) < total


async def test_four_open_sends_count_answers_that_are_held(client: Client, tmp_path: Path) -> None:
    """A run that is overdue holds answers until it is quiet, and takes no fifth message."""
    pauses = {"two": asyncio.Event(), "three": asyncio.Event()}

    async def script(request: Any) -> Any:
        if pause := pauses.get(last_user_text(request.messages)):
            await pause.wait()
        return echo(request)

    async with stack(client, tmp_path, script, agents=SHORT.replace("60", "1")) as s:
        session = await s.start(agent="plain", session=True)

        async def send(text: str) -> WorkflowUpdateHandle[Any]:
            return await session.start_update(
                "send", text, wait_for_stage=WorkflowUpdateStage.ACCEPTED
            )

        sent = [await send(text) for text in ("one", "two", "three", "four")]
        assert await sent[0].result() == "re: one"  # from here on the run is overdue
        while not await transcript(s.configuration.providers, "plain"):  # noqa: ASYNC110 - a store
            await asyncio.sleep(0.05)  # and from here on prepared
        sent.append(await send("five"))
        pauses["two"].set()
        await status_where(session, lambda found: found["open"] == 3)
        with pytest.raises(WorkflowUpdateFailedError) as caught:
            await session.execute_update("send", "six")
        assert isinstance(caught.value.cause, ApplicationError)
        assert "4 messages are waiting" in caught.value.cause.message
        pauses["three"].set()
        answers = [await one.result() for one in sent]
        assert answers == [f"re: {text}" for text in ("one", "two", "three", "four", "five")]
        assert await session.execute_update("send", "six") == "re: six"
        found = await ended(client, session, 6)
    assert len(found) >= 2
    await replay_all(found)


def test_the_former_refusal_is_an_alias_for_one_release() -> None:
    """Code that catches it still imports."""
    assert RollingOver is SessionBusy


async def _sessions(s: Stack, number: int) -> list[Handle]:
    return [await s.start(agent="plain", session=True) for _ in range(number)]


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_300_turns_back_to_back_and_twelve_clients_on_six_sessions(
    client: Client, tmp_path: Path
) -> None:
    """The cases that were refused 32 and 153 times when a session that changed refused sends."""
    async with stack(client, tmp_path, echo, agents=SHORT) as s:
        (one,) = await _sessions(s, 1)
        await talk(one, "a", 300)
        found = await ended(client, one, 300)
        assert len(found) > 15
        six = await _sessions(s, 6)
        await asyncio.gather(*(talk(six[number % 6], f"{number}:", 15) for number in range(12)))
        for session in six:
            found = await ended(client, session, 30)
            assert len(found) > 2
    await replay_all(found)
