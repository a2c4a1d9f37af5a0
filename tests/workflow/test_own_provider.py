"""A user's five methods under a session and a dream: the example that the documentation shows."""

import asyncio
import json
import logging
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client, WorkflowHandle

from agentmem.contracts import ScopeRef
from agentmem.dreaming.hook import dream_id
from agentmem.storage.protocol import MemoryProvider, TransactionalProvider
from examples.notebook import Notebook
from tests.stack import stack

NOTER = """
[agents.noter]
system_prompt = "You keep notes."
long_term_memory.provider = "notebook"
[agents.noter.dream]
[agents.noter.working_memory]
max_tokens = 50000
"""


async def test_five_methods_carry_sessions_and_dreams(
    client: Client,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A dream writes what one session says to the user's file, and the next session knows it.

    What such a store loses is said once.
    """
    file = tmp_path / "notes" / "mine.json"
    monkeypatch.setenv("NOTEBOOK", str(file))
    assert isinstance(Notebook(), MemoryProvider)
    assert not isinstance(Notebook(), TransactionalProvider)
    with caplog.at_level(logging.WARNING):
        async with stack(
            client, tmp_path, agents=NOTER, extra=[Notebook], model_name="agentmem/offline"
        ) as s:
            session = await s.start(agent="noter", scope=s.task_queue, session=True)
            await session.execute_update("send", "I live in Bergen.")
            await session.execute_update("end")
            await session.result()
            store = ScopeRef(provider="named:notebook", agent="noter", scope=s.task_queue)
            dream: WorkflowHandle[Any, Any] = s.client.get_workflow_handle(dream_id(store))
            async with asyncio.timeout(30):
                report = await dream.result()
            assert report["status"].startswith("completed")
            facts = json.loads(file.read_text())["noter"][s.task_queue]
            assert "Bergen" in json.dumps(facts)
            again = await s.start(agent="noter", scope=s.task_queue, message="Where do I live?")
            assert "Bergen" in await again.result()
    said = [one for one in caplog.messages if "five methods of MemoryProvider only" in one]
    assert len(said) == 1
