"""`worker.py` whose SDK fails two seconds after its start, and never ends its shutdown.

So it was seen for lack of memory; that cannot be had at will, so the two methods stand in for it.
"""

import asyncio
import importlib
import sys
from pathlib import Path
from typing import Any, NoReturn

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from agentmem.cli.worker import command
from worker import running


async def fail(_self: Any) -> NoReturn:
    """Fail."""
    await asyncio.sleep(2)
    raise RuntimeError("Activity worker failed: out of memory")


async def hang(_self: Any) -> None:
    """Wait for what never comes."""
    await asyncio.Event().wait()


if __name__ == "__main__":
    activities: Any = vars(importlib.import_module("temporalio.worker._activity"))[
        "_ActivityWorker"
    ]
    activities.run, activities.drain_poll_queue = fail, hang
    command(running)
