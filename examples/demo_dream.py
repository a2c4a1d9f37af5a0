"""A dream as it runs: its phases from the current details, what each looks at from its history."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from demo_crash import Session
from demo_screen import Screen
from demo_worker import DemoFailed, DemoWorker
from temporalio.api.sdk.v1 import WorkflowMetadata
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle

from agentmem import DreamReport

Dream = WorkflowHandle[Any, DreamReport]

PATIENCE = 600
"""Seconds that a dream may take."""


async def dream_of(client: Client, session: Session) -> Dream:
    """Return the dream that a session starts when it ends, as soon as its history has it.

    Raises:
        DemoFailed: It starts none.
    """
    while True:
        async for event in session.fetch_history_events():
            child = event.child_workflow_execution_started_event_attributes.workflow_execution
            if child.workflow_id:
                return client.get_workflow_handle(
                    child.workflow_id, run_id=child.run_id, result_type=DreamReport
                )
            if event.HasField("workflow_execution_completed_event_attributes"):
                raise DemoFailed("the session ended without a dream")
        await asyncio.sleep(0.05)


async def watch(dream: Dream, worker: DemoWorker, screen: Screen) -> DreamReport:
    """Show each phase when it is done, and return the dream's report.

    Raises:
        DemoFailed: The dream fails, or takes too long.
    """
    result = asyncio.create_task(dream.result())
    shown: set[str] = set()
    try:
        async with asyncio.timeout(PATIENCE):
            with screen.waiting("dreaming"):
                while not result.done():
                    worker.check()
                    await _show(dream, shown, screen)
                    await asyncio.wait([result], timeout=0.1)
                await _show(dream, shown, screen)
        return result.result()
    except WorkflowFailureError as error:
        raise DemoFailed(f"the dream failed: {error.cause}") from error
    except TimeoutError as error:
        raise worker.failure(f"the dream did not end in {PATIENCE} s") from error
    finally:
        result.cancel()


async def _show(dream: Dream, shown: set[str], screen: Screen) -> None:
    done = {phase: found async for phase, found in _done(dream) if phase not in shown}
    if done:
        seen = await _summaries(dream)
        for phase, found in done.items():
            screen.row(phase, f"{seen.get(phase, ''):<26} → {found}", style="magenta")
        shown.update(done)


async def _done(dream: Dream) -> AsyncIterator[tuple[str, str]]:
    """Yield the phases that are done with what they found, from the lines that the UI shows."""
    told: WorkflowMetadata = await dream.query(
        "__temporal_workflow_metadata", result_type=WorkflowMetadata
    )
    for line in told.current_details.splitlines():
        phase, _, state = line.removeprefix("- ").partition(": ")
        if state.startswith("done: "):
            yield phase, state.removeprefix("done: ")


async def _summaries(dream: Dream) -> dict[str, str]:
    """Return what each phase looks at, by the summary of its activity."""
    found: dict[str, str] = {}
    async for event in dream.fetch_history_events():
        if event.user_metadata.summary.data:
            phase, _, seen = json.loads(event.user_metadata.summary.data).partition(": ")
            found[phase] = seen
    return found
