"""Take the pictures of the docs: a real dream in the Temporal UI, by headless Chromium.

    python docs/screenshots.py [CHROMIUM]

Starts a server and a worker of its own with the offline model, holds a short session, waits for its
dream, and writes `docs/images/dream-*.png`.
"""

import asyncio
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import quote
from uuid import uuid4

# The docs are no package: the checkout's worker is found beside them.
sys.path.insert(0, str(Path(__file__).parents[1]))

from agentmem import AgentInput
from agentmem.contracts import ScopeRef
from agentmem.dreaming.hook import dream_id
from agentmem.settings import OFFLINE_MODEL
from worker import local

IMAGES = Path(__file__).parent / "images"
AGENTS = """
[agents.travel]
system_prompt = "You plan journeys."
long_term_memory.provider = "in_memory"
[agents.travel.dream]
on = ["end"]
"""
SAID = (
    "My name is Ada and I live in Oslo.",
    "I am allergic to peanuts. I moved to Bergen yesterday.",
    "I prefer window seats.",
)


def shoot(chromium: str, address: str, name: str) -> None:
    """Write a picture of a page; the UI needs a moment to draw it."""
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    size = ["--window-size=1400,1000", "--virtual-time-budget=12000"]
    picture = f"--screenshot={IMAGES / name}"
    subprocess.run(
        [chromium, *flags, *size, picture, address], check=True, capture_output=True, timeout=120
    )


async def main(chromium: str) -> None:
    """Dream, and take the pictures."""
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        agents = Path(folder) / "agents.toml"
        agents.write_text(AGENTS)
        async with local(agents=agents, model=OFFLINE_MODEL, ui=True) as running:
            session = await running.client.start_workflow(
                "agent",
                AgentInput(agent="travel", scope="ada", session=True),
                id=f"session-{uuid4()}",
                task_queue=running.task_queue,
            )
            for text in SAID:
                await session.execute_update("send", text)
            await session.execute_update("end")
            await session.result()
            name = dream_id(ScopeRef(provider="in_memory:default", agent="travel", scope="ada"))
            dream = running.client.get_workflow_handle(name)
            await dream.result()
            run = (await dream.describe()).run_id
            base = f"{running.ui}/namespaces/default/workflows/{quote(name, safe='')}/{run}"
            for page in ("timeline", "user-metadata"):
                await asyncio.to_thread(shoot, chromium, f"{base}/{page}", f"dream-{page}.png")
            overview = f"{running.ui}/namespaces/default/workflows"
            await asyncio.to_thread(shoot, chromium, overview, "dream-list.png")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "chromium"))
