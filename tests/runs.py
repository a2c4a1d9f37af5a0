"""The runs of one session, and what they said."""

import asyncio
from typing import Any

from temporalio.client import Client, WorkflowHandle, WorkflowHistory

from agentmem.storage.registry import Providers
from tests.replayer import replayer
from workflows.agent import AgentWorkflow

SHORT = """[agents.plain]
system_prompt = "Be brief."
working_memory.max_tokens = 50000
run_limits.events = 60
"""
"""An agent whose sessions go on in a new run after about five turns."""


async def histories(client: Client, session: WorkflowHandle[Any, Any]) -> list[WorkflowHistory]:
    """Return the history of each run of a session, the first one's first."""
    found: list[WorkflowHistory] = []
    run = session.first_execution_run_id
    while run:
        history = await client.get_workflow_handle(session.id, run_id=run).fetch_history()
        found.append(history)
        last = history.events[-1].workflow_execution_continued_as_new_event_attributes
        run = last.new_execution_run_id
    return found


async def replay_all(found: list[WorkflowHistory]) -> None:
    """Replay each run with today's code."""
    strict = replayer(AgentWorkflow)
    for history in found:
        await strict.replay_workflow(history)


def carried_bytes(history: WorkflowHistory) -> int:
    """Return the size of what a run was handed by the one before; 0 for a first run."""
    started = history.events[0].workflow_execution_started_event_attributes
    payloads = started.input.payloads
    return len(payloads[1].data) if len(payloads) > 1 else 0


def history_bytes(history: WorkflowHistory) -> int:
    """Return the size of a run's history."""
    return sum(event.ByteSize() for event in history.events)


async def transcript(providers: Providers, agent: str, scope: str = "") -> list[tuple[str, str]]:
    """Return role and text of each message in a transcript, in order and without a gap."""
    provider = await providers.get("default")
    rows = await provider.unread(agent, scope, 1_000_000_000)
    assert [row.seq for row in rows] == list(range(1, len(rows) + 1))
    return [(row.role, row.text) for row in rows]


def hold_appends(provider: Any) -> tuple[asyncio.Event, asyncio.Event]:
    """Let a store's appends wait; returns what says that one has come, and what lets them go."""
    original, entered, go = provider.append, asyncio.Event(), asyncio.Event()

    async def slow(*args: Any) -> int:
        entered.set()
        await go.wait()
        return await original(*args)

    provider.append = slow
    return entered, go
