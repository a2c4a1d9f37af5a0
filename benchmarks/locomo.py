"""Drive one LoCoMo conversation, turn by turn, through a session with dreams.

    python benchmarks/locomo.py PATH/locomo10.json --conversation 0

Needs the data set's file (snap-research/LoCoMo, CC BY-NC 4.0), which is not part of this project.
Without AGENTMEM_MODEL the offline model answers: that shows that a long real conversation runs to
its end, and nothing about quality.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import count, takewhile
from pathlib import Path
from typing import Any
from uuid import uuid4

from temporalio.client import Client

from agentmem import AgentInput
from agentmem.client import ask
from agentmem.contracts import ScopeRef
from agentmem.dreaming.hook import dream_id
from agentmem.settings import OFFLINE_MODEL

AGENTS = """
[agents.listener]
system_prompt = "Two friends talk. Listen, and keep what matters."
working_memory.max_tokens = 8000
long_term_memory.provider = "in_memory"
[agents.listener.dream]
on = ["end"]
"""


def sessions(conversation: dict[str, Any]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Give the day and the turns of each session of a conversation, in order."""
    for number in takewhile(lambda one: f"session_{one}" in conversation, count(1)):
        yield conversation[f"session_{number}_date_time"], conversation[f"session_{number}"]


def turns(path: Path, number: int) -> list[str]:
    """Return a conversation's turns as a user would send them: day, speaker, words."""
    conversation = json.loads(path.read_text())[number]["conversation"]
    return [
        f"[{day}] {turn['speaker']}: {turn['text']}"
        for day, said in sessions(conversation)
        for turn in said
    ]


async def drive(texts: list[str]) -> None:
    """Hold the session, wait for its dream, say what came out."""
    from worker import local

    with tempfile.TemporaryDirectory() as folder:
        agents = Path(folder) / "agents.toml"
        agents.write_text(AGENTS)
        model = os.environ.get("AGENTMEM_MODEL") or OFFLINE_MODEL
        async with local(agents=agents, model=model) as running:
            began = time.monotonic()
            session = await running.client.start_workflow(
                "agent",
                AgentInput(agent="listener", scope="locomo", session=True),
                id=f"locomo-{uuid4()}",
                task_queue=running.task_queue,
            )
            for number, text in enumerate(texts, 1):
                await ask(session, text)
                if number % 100 == 0 or number == len(texts):
                    _say(f"{number} turns, {time.monotonic() - began:.0f} s")
            info = (await session.describe()).raw_description.workflow_execution_info
            _say(f"history: {info.history_size_bytes} bytes, {info.history_length} events")
            await session.signal("end")
            await session.result()
            await _dream(running.client)


async def _dream(client: Client) -> None:
    store = ScopeRef(provider="in_memory:default", agent="listener", scope="locomo")
    report = await client.get_workflow_handle(dream_id(store)).result()
    shown = {name: report.get(name) for name in ("status", "rounds", "keys_after", "changes")}
    _say(f"dream: {shown}")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description="Drive one LoCoMo conversation.")
    parser.add_argument("path", type=Path, help="locomo10.json")
    parser.add_argument("--conversation", type=int, default=0, help="which of the ten, from 0")
    options = parser.parse_args()
    texts = turns(options.path, options.conversation)
    _say(f"{len(texts)} turns")
    asyncio.run(drive(texts))


if __name__ == "__main__":
    main()
